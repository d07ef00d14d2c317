"""Pods that nobody else deletes: those of nodes that are gone, and too many that have ended.

As ``k8s.io/kubernetes/pkg/controller/podgc``: a look every 20 seconds. Pods that have not ended are
made to fail first, so that what controls them sees an end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Action, Delete, Get, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NodeView
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import NODE_NAME, PodView
from berth.cluster.resources import Object
from berth.runtime.clock import Clock, rfc3339

PERIOD: Final = 20.0
"""Seconds between two looks at all pods."""

QUARANTINE: Final = 40.0
"""Seconds for which a node must be missing before the API is asked whether it is gone."""

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

LOOK: Final = "/"
"""The key of the look at all pods. Others are names of nodes, and namespace and name of pods."""

PODS: Final = find("", "v1", "pods")
NODES: Final = find("", "v1", "nodes")


class _List(msgspec.Struct):
    items: list[msgspec.Raw] = []


decode_list = msgspec.json.Decoder(_List).decode


@dataclass(slots=True)
class Collected:
    """A pod that is to go."""

    uid: str
    reason: str
    """The message of its condition DisruptionTarget; empty: it gets none."""
    has_ended: bool


class PodGarbageCollector:
    """Decides which pods to delete by force. *threshold* 0: any number of ended pods may stay."""

    name = "pod-garbage-collector-controller"

    def __init__(
        self,
        nodes: Table[NodeView],
        pods: Table[PodView],
        *,
        threshold: int,
        clock: Clock,
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._on_node = pods.index(NODE_NAME)
        self._threshold = threshold
        self._clock = clock
        self._enqueue: Callable[[str], None] = lambda _key: None
        self._missing: dict[str, float] = {}
        """Nodes that pods name and that are not there, with the end of their quarantine."""
        self._collected: dict[str, Collected] = {}

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        self._enqueue = enqueue
        enqueue(LOOK)

    def plan(self, key: str) -> Plan:
        if key == LOOK:
            self._look()
            return Plan(again=PERIOD)
        if "/" in key:
            return self._delete(key)
        if self._nodes.get(key) is not None:
            return NOTHING
        return Plan([Get(NODES.collection_path(""), {"fieldSelector": f"metadata.name={key}"})])

    def finished(self, key: str, outcome: Outcome) -> None:
        if outcome.error is not None or outcome.skipped:
            return
        match outcome.action:
            case Get():
                if not decode_list(outcome.answer).items:
                    for pod in list(self._on_node.get(key).values()):
                        self._collect(pod, reason="PodGC: node no longer exists")
            case Patch():
                self._collected[key].has_ended = True
            case Delete():
                del self._collected[key]

    def _look(self) -> None:
        """Note all pods that are to go, and have nodes that are missing asked for."""
        for pod in self._pods.values():
            if pod.metadata.deletion_timestamp is not None and self._is_abandoned(pod):
                self._collect(pod)
        if 0 < self._threshold < len(self._pods):
            ended = sorted((each for each in self._pods.values() if each.is_finished), key=_order)
            for pod in ended[: max(len(ended) - self._threshold, 0)]:
                self._collect(pod)
        self._look_for_nodes()

    def _look_for_nodes(self) -> None:
        now = self._clock.monotonic()
        missing = {name for name in self._on_node.values() if self._nodes.get(name) is None}
        self._missing = {
            name: self._missing.get(name, now + QUARANTINE) for name in sorted(missing)
        }
        for name, until in self._missing.items():
            if until <= now:
                self._enqueue(name)

    def _is_abandoned(self, pod: PodView) -> bool:
        """Whether nobody will end *pod*, which is being deleted."""
        if not pod.node_name:
            return True
        node = self._nodes.get(pod.node_name)
        if node is None or all(taint.key != OUT_OF_SERVICE for taint in node.spec.taints):
            return False
        ready = node.condition("Ready")
        return ready is None or ready.status != "True"

    def _collect(self, pod: PodView, *, reason: str = "") -> None:
        key = pod.metadata.key
        self._collected[key] = Collected(pod.metadata.uid, reason, pod.is_finished)
        self._enqueue(key)

    def _delete(self, key: str) -> Plan:
        """Return the next step towards the end of a pod."""
        pod, collected = self._pods.get(key), self._collected.get(key)
        if pod is None or collected is None or pod.metadata.uid != collected.uid:
            self._collected.pop(key, None)
            return NOTHING
        path = PODS.path_of(pod.metadata.namespace, pod.metadata.name)
        if not collected.has_ended:
            return Plan([self._fail(path, pod, collected.reason)], again=0.0)
        return Plan([Delete(path, pod.metadata.uid, grace_seconds=0)])

    def _fail(self, path: str, pod: PodView, reason: str) -> Action:
        status: Object = {"phase": "Failed"}
        if reason:
            status["conditions"] = [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": reason,
                    "observedGeneration": pod.metadata.generation,
                    "lastProbeTime": None,
                    "lastTransitionTime": rfc3339(self._clock.now()),
                }
            ]
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        return Patch(f"{path}/status", body, STRATEGIC_MERGE)


def new_controller(context: ControllerContext) -> PodGarbageCollector:
    return PodGarbageCollector(
        context.table("nodes", NodeView),
        context.table("pods", PodView),
        threshold=context.options.terminated_pod_gc_threshold,
        clock=context.clock,
    )


def _order(pod: PodView) -> tuple[bool, str, str]:
    """Sort evicted pods first, then the oldest."""
    meta = pod.metadata
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, meta.creation_timestamp or "", meta.name
