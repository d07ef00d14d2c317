"""Nodes, and an API that takes every patch, for tests of the node lifecycle controller."""

from collections.abc import Sequence
from typing import Any

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Action, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.node_lifecycle import NodeLifecycleController
from berth.cluster.controllers.options import DEFAULTS
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import LeaseView, NodeView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.pods.controllers import PodView
from berth.kube.client.errors import ConflictError
from berth.runtime.clock import FakeClock, rfc3339
from tests.cluster.objects import pod_view

NOW = 1_767_225_600.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")

decode_node = msgspec.json.Decoder(NodeView).decode
decode_lease = msgspec.json.Decoder(LeaseView).decode


def node(
    name: str = "n1",
    *,
    ready: str | None = "True",
    zone: str = "",
    at: float = NOW,
    taints: Sequence[tuple[str, str]] = (),
    labels: dict[str, str] | None = None,
    **more: str,
) -> dict[str, Any]:
    """A node whose kubelet has reported *at* that time; *more*: the status of other conditions."""
    statuses = {**dict.fromkeys(PRESSURES, "False"), **more}
    if ready is None:
        statuses = {}
    else:
        statuses["Ready"] = ready
    stamp = rfc3339(at)
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": rfc3339(NOW),
            "labels": {**({"topology.kubernetes.io/zone": zone} if zone else {}), **(labels or {})},
        },
        "spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints]},
        "status": {
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "lastHeartbeatTime": stamp,
                    "lastTransitionTime": rfc3339(NOW),
                }
                for type_, status in statuses.items()
            ]
        },
    }


class World:
    """Tables, and an API that takes every patch."""

    def __init__(self, *nodes: dict[str, Any], pods: Sequence[PodView] = ()) -> None:
        self.clock = FakeClock(NOW)
        self.nodes: Table[NodeView] = Table()
        self.leases: Table[LeaseView] = Table()
        self.pods: Table[PodView] = Table()
        self.occurrences: list[Occurrence] = []
        self.controller = NodeLifecycleController(
            self.nodes,
            self.leases,
            self.pods,
            options=DEFAULTS,
            clock=self.clock,
            recorder=EventRecorder(self.occurrences.append, "node-controller", self.clock),
        )
        self.queue: dict[str, None] = {}
        self.again: dict[str, float] = {}
        """When keys are due again."""
        self.objects: dict[str, dict[str, Any]] = {}
        self.patches: list[Patch] = []
        self.refused: set[str] = set()
        """Paths whose next patch is refused."""
        self.controller.subscribe(self.queue.setdefault)
        for each in nodes:
            self.put(each)
        for pod in pods:
            self.pods.on_add(pod)

    def put(self, obj: dict[str, Any]) -> None:
        name = obj["metadata"]["name"]
        view, old = decode_node(msgspec.json.encode(obj)), self.nodes.get(name)
        self.objects[name] = obj
        if old is None:
            self.nodes.on_add(view)
        else:
            self.nodes.on_update(old, view)

    def report(self, name: str, **conditions: Any) -> None:
        """Have the kubelet of a node say how it is now."""
        obj = self.objects[name]
        fresh = node(name, at=self.clock.now(), **conditions)["status"]
        self.put({**obj, "status": fresh})

    def renew(self, *names: str) -> None:
        for name in names:
            stamp = rfc3339(self.clock.now()).replace("Z", ".000000Z")
            metadata = {"name": name, "namespace": "kube-node-lease", "uid": f"lease-{name}"}
            view = decode_lease(
                msgspec.json.encode({"metadata": metadata, "spec": {"renewTime": stamp}})
            )
            old = self.leases.get(f"kube-node-lease/{name}")
            if old is None:
                self.leases.on_add(view)
            else:
                self.leases.on_update(old, view)

    def settle(self) -> None:
        """Carry out all that is due now."""
        due = [key for key, at in self.again.items() if at <= self.clock.monotonic()]
        for key in due:
            del self.again[key]
            self.queue.setdefault(key)
        while self.queue:
            key = next(iter(self.queue))
            del self.queue[key]
            plan = self.controller.plan(key)
            for action in plan.actions:
                self.controller.finished(key, self._perform(key, action))
            if plan.again is not None:
                self.again[key] = self.clock.monotonic() + plan.again

    def wait(self, seconds: float, *, alive: Sequence[str] = ()) -> None:
        """Let time pass, in which the nodes that are *alive* renew their leases."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.clock.advance(1.0)
            self.renew(*alive)
            self.settle()

    def _perform(self, key: str, action: Action) -> Outcome:
        assert isinstance(action, Patch)
        if action.path in self.refused:
            self.refused.remove(action.path)
            self.again[key] = self.clock.monotonic() + 0.1
            return Outcome(action, error=ConflictError(409, "Conflict", "changed"))
        self.patches.append(action)
        parts = action.path.split("/")
        if parts[3] != "nodes":
            pod = self.pods.get(f"{parts[4]}/{parts[6]}")
            assert pod is not None
            self.pods.on_update(pod, pod_view(pod.metadata.name, node=pod.node_name, ready=None))
            return Outcome(action)
        obj = self.objects[parts[4]]
        if "status" in action.body:
            assert action.content_type == STRATEGIC_MERGE
            conditions = {condition["type"]: condition for condition in obj["status"]["conditions"]}
            for condition in action.body["status"]["conditions"]:
                conditions[condition["type"]] = {
                    **conditions.get(condition["type"], {}),
                    **condition,
                }
            obj = {**obj, "status": {"conditions": list(conditions.values())}}
        else:
            assert action.body["metadata"]["resourceVersion"] == "1"
            labels = {**obj["metadata"]["labels"], **action.body["metadata"].get("labels", {})}
            obj = {**obj, "metadata": {**obj["metadata"], "labels": labels}}
            if "spec" in action.body:
                taints = action.body["spec"]["taints"] or []
                obj = {**obj, "spec": {**obj["spec"], "taints": taints}}
        self.put(obj)
        return Outcome(action)

    def taints(self, name: str = "n1") -> set[tuple[str, str]]:
        found = {(t["key"], t["effect"]) for t in self.objects[name]["spec"]["taints"]}
        return {(key.removeprefix("node.kubernetes.io/"), effect) for key, effect in found}

    def evicting(self) -> set[str]:
        """Return the nodes whose pods are evicted."""
        return {n for n in self.objects if {e for _, e in self.taints(n)} & {"NoExecute"}}

    def status(self, type_: str, name: str = "n1") -> str:
        for condition in self.objects[name]["status"]["conditions"]:
            if condition["type"] == type_:
                return str(condition["status"])
        return ""

    def events(self, *reasons: str) -> list[str]:
        return [
            occurrence.message for occurrence in self.occurrences if occurrence.reason in reasons
        ]
