"""Nodes that fall silent: they become unreachable, then their pods are evicted.

As ``k8s.io/kubernetes/pkg/controller/nodelifecycle``:

- every ``--node-monitor-period`` all nodes are looked at. One whose lease and status have not
  changed for ``--node-monitor-grace-period`` gets the status Unknown in all conditions that its
  kubelet reports, and its pods are marked as not ready;
- the taints of effect NoSchedule follow the conditions at once;
- those of effect NoExecute, which evict (:mod:`.taint_eviction`), are given one by one in each zone
  (:mod:`.node_lifecycle_zones`), and taken away when the node is ready.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Patch
from berth.cluster.controllers.claims import reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.node_lifecycle_taints import (
    NODES,
    NOT_READY,
    UNREACHABLE,
    evicting,
    patch_of,
)
from berth.cluster.controllers.node_lifecycle_zones import Counts, Disruption, Zones, zone_of
from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import LeaseView, NodeView
from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.kubelet.node_events import LARGEST_FLEET
from berth.cluster.pods.controllers import NODE_NAME, PodView
from berth.cluster.times import seconds_of
from berth.kube.client.errors import NotFoundError
from berth.runtime.clock import Clock, rfc3339

# Health of nodes: when each was heard of last, and what is still to be done because of it.


EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that do not count when a zone's health is judged."""

UNKNOWN_TYPES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that a kubelet reports. Others come from elsewhere."""


@dataclass(slots=True)
class NodeHealth:
    """What was seen of a node when all were looked at last, and what it needs."""

    node: NodeView
    zone: str
    counts: bool
    """Whether the health of its zone depends on it."""
    heard_at: float
    """When a sign of life came, monotonic: a status with another heartbeat, or a renewed lease."""
    lease: LeaseView | None = None
    renewed_at: datetime | None = None
    is_lost: bool = False
    """Whether its conditions are to become Unknown."""
    evicting: str | None = None
    """The key of the NoExecute taint that it is to get; empty: it is to have none. None: nothing
    is to be done."""
    marks_pods: bool = False
    """Whether its pods are to be marked as not ready."""

    @classmethod
    def of(cls, node: NodeView, *, now: float, wall: float) -> "NodeHealth":
        """Return what is known of a node that is new; *wall* is the time in unix seconds."""
        heard_at = now
        born = node.metadata.creation_timestamp
        if node.condition("Ready") is None and born:
            heard_at = now - max(wall - seconds_of(born), 0.0)
        return cls(node, zone_of(node), _counts(node), heard_at)

    def see(self, node: NodeView, lease: LeaseView | None, *, now: float) -> None:
        """Take in the present state. Cheap when nothing has changed."""
        if node is not self.node:
            if _heartbeat(node) != _heartbeat(self.node):
                self.heard_at = now
            self.node, self.zone, self.counts = node, zone_of(node), _counts(node)
        if lease is not None and lease is not self.lease:
            self.lease = lease
            try:
                renewed_at = lease.renew_time
            except msgspec.ValidationError:
                return
            if renewed_at is not None and (self.renewed_at is None or renewed_at > self.renewed_at):
                self.renewed_at, self.heard_at = renewed_at, now


def _counts(node: NodeView) -> bool:
    return EXCLUDED not in (node.metadata.labels or {})


def _heartbeat(node: NodeView) -> str | None:
    ready = node.condition("Ready")
    return None if ready is None else ready.last_heartbeat_time or ""


MONITOR: Final = "/monitor"
TAINT: Final = "/taint"
"""Keys. All others are names of nodes, or namespace and name of pods."""

PODS: Final = find("", "v1", "pods")


class NodeLifecycleController:
    """Decides about nodes. Leases are looked at when all nodes are, not when they are renewed."""

    name = "node-lifecycle-controller"

    def __init__(
        self,
        nodes: Table[NodeView],
        leases: Table[LeaseView],
        pods: Table[PodView],
        *,
        options: ControllerOptions,
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        self._nodes = nodes
        self._leases = leases
        self._pods = pods
        self._on_node = pods.index(NODE_NAME)
        self._options = options
        self._clock = clock
        self._recorder = recorder
        self._enqueue: Callable[[str], None] = lambda _key: None
        self._healths: dict[str, NodeHealth] = {}
        self._removed: list[NodeView] = []
        """Nodes that were deleted since all were looked at."""
        self._unready: set[str] = set()
        """Nodes that were not ready when all were looked at."""
        self._zones = Zones(options, clock=clock)

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        self._enqueue = enqueue

        def node_changed(old: NodeView | None, new: NodeView | None) -> None:
            if new is not None:
                if patch_of(new, evict=None, stamp="") is not None:
                    enqueue(new.metadata.name)
            elif old is not None:
                self._forget(old)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            if not self._unready or new is None or new.node_name not in self._unready:
                return
            if old is None or old.node_name != new.node_name:
                enqueue(new.metadata.key)

        self._nodes.listen(node_changed)
        self._pods.listen(pod_changed)
        enqueue(MONITOR)

    def plan(self, key: str) -> Plan:
        if key == MONITOR:
            self._monitor()
            return Plan(again=self._options.node_monitor_period)
        if key == TAINT:
            self._taint()
            return Plan(again=self._zones.next)
        if "/" in key:
            pod = self._pods.get(key)
            if pod is None or pod.node_name not in self._unready or pod.ready_since is None:
                return NOTHING
            return Plan([self._not_ready(pod)])
        node = self._nodes.get(key)
        return NOTHING if node is None else self._plan_node(node)

    def finished(self, key: str, outcome: Outcome) -> None:
        action = outcome.action
        if not isinstance(action, Patch):
            return
        is_done = outcome.error is None and not outcome.skipped
        if action.note:
            self._finished_pod(key, action, outcome)
            return
        health = self._healths.get(key)
        if health is None or not is_done:
            return
        if "status" not in action.body:
            health.evicting = None
            return
        health.is_lost = False
        ready = health.node.condition("Ready")
        if ready is not None and ready.status == "True":
            self._tell_node(health.node, "NodeNotReady", "status is now: NodeNotReady")
            health.marks_pods = True
            self._enqueue(key)

    def _plan_node(self, node: NodeView) -> Plan:
        health = self._healths.get(node.metadata.name)
        if health is not None and health.is_lost:
            self._check(node, health, self._clock.monotonic())
            if health.is_lost:
                return Plan([self._lost(node)])
        evict = None if health is None else health.evicting
        patch = patch_of(node, evict=evict, stamp=rfc3339(self._clock.now()))
        actions = [] if patch is None else [patch]
        if health is not None:
            if patch is None:
                health.evicting = None
            if health.marks_pods:
                health.marks_pods = False
                on_node = self._on_node.get(node.metadata.name).values()
                actions += [self._not_ready(pod) for pod in on_node if pod.ready_since is not None]
        return Plan([*actions], is_independent=True)

    def _finished_pod(self, key: str, patch: Patch, outcome: Outcome) -> None:
        """Hear how it ended that a pod was marked as not ready; *key* is its node's, or its own."""
        pod = self._pods.get(patch.note)
        if outcome.error is None and pod is not None:
            self._recorder.event(
                reference_to(pod, PODS),
                type="Warning",
                reason="NodeNotReady",
                message="Node is not ready",
            )
        health = self._healths.get(key)
        if health is not None and not isinstance(outcome.error, NotFoundError | None):
            health.marks_pods = True

    def _monitor(self) -> None:
        """Look at all nodes."""
        now, wall = self._clock.monotonic(), self._clock.now()
        self._greet()
        numbers: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        unready: set[str] = set()
        for node in self._nodes.values():
            name = node.metadata.name
            health = self._healths.get(name)
            if health is None:
                health = self._healths[name] = NodeHealth.of(node, now=now, wall=wall)
                if evicting(node):
                    health.evicting = ""
                    self._enqueue(name)
            observed = current = self._check(node, health, now)
            if health.is_lost:
                current = "Unknown"
                self._enqueue(name)
            if health.counts:
                numbers[health.zone][current != "True"] += 1
            if current is not None:
                self._judge(node, health, observed or "Unknown")
                if current != "True":
                    unready.add(name)
        self._unready = unready
        self._disrupt({zone: Counts(*each) for zone, each in numbers.items()}, now)

    def _check(self, node: NodeView, health: NodeHealth, now: float) -> str | None:
        """Note whether a node is lost; return the status of its condition Ready."""
        health.see(node, self._leases.get(f"kube-node-lease/{node.metadata.name}"), now=now)
        ready = node.condition("Ready")
        grace = (
            self._options.node_startup_grace_period
            if ready is None
            else self._options.node_monitor_grace_period
        )
        status = None if ready is None else ready.status
        health.is_lost = now > health.heard_at + grace and status != "Unknown"
        return status

    def _judge(self, node: NodeView, health: NodeHealth, status: str) -> None:
        """Decide about the taint that evicts pods, by the *status* of the condition Ready."""
        name = node.metadata.name
        has = evicting(node) if health.evicting is None else health.evicting
        if status == "True":
            self._zones.forget(name)
            if has:
                health.evicting = ""
                self._enqueue(name)
            return
        wanted = NOT_READY if status == "False" else UNREACHABLE
        if has and has != wanted:
            health.evicting = wanted
            self._enqueue(name)
        elif not has:
            self._zones.wait(health.zone, name)

    def _disrupt(self, counts: dict[str, Counts], now: float) -> None:
        """Change the rates of zones by how many nodes are well."""
        disruption = self._zones.update(counts)
        if disruption is Disruption.LEFT:
            for health in self._healths.values():
                health.heard_at = now
        if disruption is Disruption.ENTERED:
            for name, health in self._healths.items():
                self._zones.forget(name)
                if evicting(health.node) or health.evicting:
                    health.evicting = ""
                    self._enqueue(name)
        if self._zones.next is not None:
            self._enqueue(TAINT)

    def _taint(self) -> None:
        """Give the nodes whose turn it is the taint that evicts pods."""
        for name in self._zones.take():
            node, health = self._nodes.get(name), self._healths.get(name)
            ready = None if node is None else node.condition("Ready")
            if health is None or ready is None or ready.status == "True":
                continue
            health.evicting = NOT_READY if ready.status == "False" else UNREACHABLE
            self._enqueue(name)

    def _greet(self) -> None:
        """Record which nodes came and went."""
        for node in self._removed:
            self._tell_node(
                node,
                "RemovingNode",
                f"event: Removing Node {node.metadata.name} from Controller",
            )
        self._removed.clear()
        new = [node for node in self._nodes.values() if node.metadata.name not in self._healths]
        if len(new) > LARGEST_FLEET:
            return
        for node in new:
            self._tell_node(
                node,
                "RegisteredNode",
                f"event: Registered Node {node.metadata.name} in Controller",
            )

    def _forget(self, node: NodeView) -> None:
        name = node.metadata.name
        self._zones.forget(name)
        self._unready.discard(name)
        if self._healths.pop(name, None) is not None:
            self._removed.append(node)

    def _lost(self, node: NodeView) -> Patch:
        """Return what says that nothing is known of a node any more."""
        meta, stamp = node.metadata, rfc3339(self._clock.now())
        conditions = []
        for type_ in UNKNOWN_TYPES:
            condition = node.condition(type_)
            if condition is None:
                reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
            elif condition.status != "Unknown":
                reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
            else:
                continue
            told = {"type": type_, "status": "Unknown", "reason": reason, "message": message}
            if condition is None:
                told["lastHeartbeatTime"] = meta.creation_timestamp or stamp
            conditions.append({**told, "lastTransitionTime": stamp})
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"conditions": conditions},
        }
        return Patch(f"{NODES.path_of('', meta.name)}/status", body, STRATEGIC_MERGE)

    def _not_ready(self, pod: PodView) -> Patch:
        meta, stamp = pod.metadata, rfc3339(self._clock.now())
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": stamp}
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        path = f"{PODS.path_of(meta.namespace, meta.name)}/status"
        return Patch(path, body, STRATEGIC_MERGE, note=meta.key)

    def _tell_node(self, node: NodeView, reason: str, what: str) -> None:
        name = node.metadata.name
        about = Reference("v1", "Node", "", name, node.metadata.uid)
        self._recorder.event(about, reason=reason, message=f"Node {name} {what}")


def new_controller(context: ControllerContext) -> NodeLifecycleController:
    return NodeLifecycleController(
        context.table("nodes", NodeView),
        context.table("leases.coordination.k8s.io", LeaseView),
        context.table("pods", PodView),
        options=context.options,
        clock=context.clock,
        recorder=context.recorder("node-controller"),
    )
