"""Taint-based evictions: pods leave nodes whose ``NoExecute`` taints they do not tolerate.

As ``k8s.io/kubernetes/pkg/controller/tainteviction``: at once, or after the least of the
``tolerationSeconds`` that apply. Budgets do not protect pods here.

Decision (2026-11): tolerations are read, with a GET, when a pod's node gets such a taint; because
in most clusters no node ever has one; instead of keeping the tolerations of all pods.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from berth.cluster.actions import STRATEGIC_MERGE, Delete, Get, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NodeView
from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import metadata_of
from berth.cluster.pods.controllers import NODE_NAME, PodView, TimedToleration, decode_tolerating
from berth.kube.objects.node import Taint
from berth.kube.objects.taints import COMPARISONS, NO_EXECUTE, tolerates
from berth.runtime.clock import Clock, rfc3339

PODS: Final = find("", "v1", "pods")
REASON: Final = "TaintManagerEviction"


@dataclass(slots=True)
class Eviction:
    """What is known and planned of a pod on a tainted node."""

    uid: str
    generation: int = -1
    """Of the pod when its tolerations were read; -1: they were not."""
    tolerations: tuple[TimedToleration, ...] = ()
    due: float | None = None
    """When it is deleted, monotonic; None: not planned."""
    is_announced: bool = False
    is_marked: bool = False
    """Whether the pod has the condition that says why it goes."""
    is_done: bool = False
    """Whether the pod was deleted. It may stay for a while, and is not deleted again."""

    @property
    def is_pending(self) -> bool:
        """Whether there is something to cancel."""
        return self.due is not None and not self.is_announced


class TaintEvictionController:
    """Decides which pods to delete, and when."""

    name = "taint-eviction-controller"

    def __init__(
        self,
        nodes: Table[NodeView],
        pods: Table[PodView],
        *,
        clock: Clock,
        recorder: EventRecorder,
        comparisons: bool = False,
    ) -> None:
        """*comparisons* as in :func:`berth.kube.objects.taints.tolerates`."""
        self._comparisons = comparisons
        self._nodes = nodes
        self._pods = pods
        self._on_node = pods.index(NODE_NAME)
        self._clock = clock
        self._recorder = recorder
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        """The NoExecute taints of the nodes that have some."""
        self._evictions: dict[str, Eviction] = {}
        """By key of pod."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def node_changed(old: NodeView | None, new: NodeView | None) -> None:
            name = metadata_of(old, new).name
            before = self._tainted.pop(name, ())
            taints = no_execute(new.spec.taints) if new is not None else ()
            if taints:
                self._tainted[name] = taints
            # The pods of a node that is gone are left to their time, and to the garbage collector.
            if new is not None and taints != before:
                for key in self._on_node.get(name):
                    enqueue(key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            if not self._tainted and not self._evictions:
                return
            key = metadata_of(old, new).key
            if new is None:
                if key in self._evictions:
                    enqueue(key)
            elif new.node_name in self._tainted and (
                old is None
                or old.node_name != new.node_name
                or old.metadata.generation != new.metadata.generation
            ):
                enqueue(key)

        self._nodes.listen(node_changed)
        self._pods.listen(pod_changed)

    def plan(self, key: str) -> Plan:
        pod, eviction = self._pods.get(key), self._evictions.get(key)
        if eviction is not None and (pod is None or pod.metadata.uid != eviction.uid):
            self._cancel(key, eviction)
            eviction = None
        if pod is None:
            return NOTHING
        taints = self._tainted.get(pod.node_name, ())
        if not taints and eviction is not None and self._nodes.get(pod.node_name) is not None:
            self._cancel(key, eviction)
            eviction = None
        if eviction is None:
            if not taints:
                return NOTHING
            eviction = self._evictions[key] = Eviction(pod.metadata.uid)
        return self._evict(pod, eviction, taints)

    def finished(self, key: str, outcome: Outcome) -> None:
        eviction = self._evictions.get(key)
        if eviction is None or outcome.error is not None or outcome.skipped:
            return
        match outcome.action:
            case Get():
                pod = decode_tolerating(outcome.answer)
                if pod.metadata.uid == eviction.uid:
                    eviction.generation = pod.metadata.generation
                    eviction.tolerations = pod.spec.tolerations or ()
            case Patch():
                eviction.is_marked = True
            case Delete():
                eviction.is_done = True

    def _evict(self, pod: PodView, eviction: Eviction, taints: Sequence[Taint]) -> Plan:
        """Return the next step towards the deletion of *pod*, or when there is one."""
        if eviction.is_done:
            return NOTHING
        path = PODS.path_of(pod.metadata.namespace, pod.metadata.name)
        now = self._clock.monotonic()
        if taints and not eviction.is_announced:
            if eviction.generation != pod.metadata.generation:
                return Plan([Get(path)], again=0.0)
            self._schedule(pod, eviction, taints, now)
        if eviction.due is None:
            return NOTHING
        if eviction.due > now:
            return Plan(again=eviction.due - now)
        if not eviction.is_announced:
            eviction.is_announced = True
            self._tell(pod.metadata.key, "Marking for deletion")
        if not eviction.is_marked:
            return Plan([self._mark(path, pod)], again=0.0)
        return Plan([Delete(path, pod.metadata.uid)])

    def _schedule(
        self, pod: PodView, eviction: Eviction, taints: Sequence[Taint], now: float
    ) -> None:
        """Set when *pod* goes. A time that was set stays, unless the pod must go now, or never."""
        seconds = toleration_seconds(taints, eviction.tolerations, comparisons=self._comparisons)
        if seconds is None or seconds <= 0:
            if eviction.is_pending and eviction.due is not None and eviction.due > now:
                self._tell(pod.metadata.key, "Cancelling deletion of")
            eviction.due = None if seconds is None else now
        elif eviction.due is None:
            eviction.due = now + seconds

    def _cancel(self, key: str, eviction: Eviction) -> None:
        del self._evictions[key]
        if eviction.is_pending:
            self._tell(key, "Cancelling deletion of")

    def _tell(self, key: str, what: str) -> None:
        namespace, _, name = key.partition("/")
        about = Reference("v1", "Pod", namespace, name, "")
        self._recorder.event(about, reason=REASON, message=f"{what} Pod {key}")

    def _mark(self, path: str, pod: PodView) -> Patch:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        return Patch(f"{path}/status", body, STRATEGIC_MERGE)


def new_controller(context: ControllerContext) -> TaintEvictionController:
    return TaintEvictionController(
        context.table("nodes", NodeView),
        context.table("pods", PodView),
        clock=context.clock,
        recorder=context.recorder(TaintEvictionController.name),
        comparisons=COMPARISONS in context.features,
    )


def no_execute(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return those of *taints* that drive pods out."""
    return tuple(taint for taint in taints if taint.effect == NO_EXECUTE)


def toleration_seconds(
    taints: Iterable[Taint], tolerations: Sequence[TimedToleration], *, comparisons: bool = False
) -> int | None:
    """Return how long a pod may stay on a node with *taints*; None: for ever.

    Of each taint the first toleration that matches counts; of all taints, the least time. It is 0,
    or less, if there is a taint that nothing tolerates. *comparisons* as in
    :func:`berth.kube.objects.taints.tolerates`.
    """
    least: int | None = None
    for taint in taints:
        matching = (t for t in tolerations if tolerates(t, taint, comparisons=comparisons))
        found = next(matching, None)
        if found is None:
            return 0
        seconds = found.toleration_seconds
        if seconds is not None and (least is None or seconds < least):
            least = seconds
    return least
