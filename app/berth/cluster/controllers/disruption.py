"""PodDisruptionBudgets: how many pods may be evicted, told to those who evict.

Source: ``pkg/controller/disruption``. The status is written only to the budget as it was read:
an eviction that was charged in the meantime counts.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from berth.cluster import percent
from berth.cluster.actions import Get, Patch
from berth.cluster.controllers.claims import reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.pod_scales import Answer, PodScaleError, PodScales, answer_of
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ReplicationControllerView, ResourceView, WorkloadView
from berth.cluster.disruption_budgets import (
    SYNC_FAILED,
    disruption_allowed,
    set_disruption_allowed,
    usual_reason,
)
from berth.cluster.events.correlator import Type
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors import LabelSelector, matches
from berth.cluster.times import seconds_of
from berth.runtime.clock import Clock, rfc3339

BUDGETS: Final = find("policy", "v1", "poddisruptionbudgets")
PODS: Final = find("", "v1", "pods")
COMPONENT: Final = "controllermanager"
"""In whose name the events are."""

DELETION_TIMEOUT: Final = 120.0
"""Seconds after which a pod that was evicted, and is not deleted, counts as healthy again."""


class Counts(NamedTuple):
    """What a budget is about, in pods."""

    expected: int
    desired: int
    unmanaged: list[str]
    """Pods that have no controller, which would say how many there are to be."""
    unknown: list[str]
    """URLs that have to be asked first."""


class DisruptionController:
    """Counts, and tells in the status of budgets."""

    name = "disruption"

    def __init__(
        self,
        budgets: Table[ResourceView],
        pods: Table[PodView],
        workloads: Mapping[str, Table[WorkloadView]],
        scales: PodScales,
        *,
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        self._budgets = budgets
        self._pods = pods
        self._workloads = workloads
        self._scales = scales
        self._clock = clock
        self._recorder = recorder
        self._selectors: dict[str, LabelSelector] = {}
        """By key of budget. They may be large, and are asked about with every change of a pod."""
        self._answers: dict[str, dict[str, Answer]] = {}
        """By key of budget: what was answered about scales, by URL, until it is used."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def budget_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            key = metadata_of(old, new).key
            self._selectors.pop(key, None)
            selector = None if new is None else new.spec.get("selector")
            if selector is not None:
                self._selectors[key] = msgspec.convert(selector, LabelSelector)
            enqueue(key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            found = []
            for budget in self._budgets.in_namespace(metadata_of(old, new).namespace):
                if new is not None and self._selects(budget, new):
                    found.append(budget.metadata)
                    enqueue(budget.metadata.key)
                elif old is not None and self._selects(budget, old):
                    enqueue(budget.metadata.key)
            if new is not None and len(found) > 1:
                meta = new.metadata
                self._warn_of_pod(
                    new,
                    "MultiplePodDisruptionBudgets",
                    f'Pod "{meta.namespace}"/"{meta.name}" matches multiple '
                    f'PodDisruptionBudgets.  Chose "{found[0].name}" arbitrarily.',
                )

        def workload_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            if old is None or new is None or old.replicas == new.replicas:
                return
            for budget in self._budgets.in_namespace(new.metadata.namespace):
                enqueue(budget.metadata.key)

        self._budgets.listen(budget_changed)
        self._pods.listen(pod_changed)
        for table in self._workloads.values():
            table.listen(workload_changed)

    def plan(self, key: str) -> Plan:
        """Report what there is, or ask for the scales that are missing for that."""
        budget = self._budgets.get(key)
        answers = self._answers.pop(key, {})
        if budget is None:
            return NOTHING
        pods = [
            pod
            for pod in self._pods.in_namespace(budget.metadata.namespace)
            if self._selects(budget, pod)
        ]
        try:
            counts = self._counts(budget.spec, pods, answers)
        except PodScaleError as exc:
            return self._failed(budget, str(exc))
        if counts.unknown:
            self._answers[key] = answers
            gets = [Get(url) for url in counts.unknown]
            return Plan([*gets], again=0.0, is_independent=True)
        if not pods:
            self._tell(budget, "Normal", "NoPods", "No matching pods found")
        if counts.unmanaged:
            self._tell(budget, "Warning", "UnmanagedPods", _unmanaged(budget))
        disrupted, again = self._disrupted(budget, pods)
        healthy = sum(
            1
            for pod in pods
            if pod.metadata.deletion_timestamp is None
            and pod.metadata.name not in disrupted
            and pod.ready_since is not None
        )
        allowed = max(healthy - counts.desired, 0) if counts.expected > 0 else 0
        status: Object = {
            "currentHealthy": healthy,
            "desiredHealthy": counts.desired,
            "disruptionsAllowed": allowed,
            "expectedPods": counts.expected,
            "observedGeneration": budget.metadata.generation,
        }
        told = budget.status
        before = told.get("disruptedPods") or {}
        if (
            all(told.get(field) == value for field, value in status.items())
            and before == disrupted
            and (disruption_allowed(told) or {}).get("reason") == usual_reason(status)
        ):
            return Plan(again=again)
        status["conditions"] = told.get("conditions") or []
        set_disruption_allowed(status, reason=usual_reason(status), now=self._now())
        status["disruptedPods"] = (
            {**dict.fromkeys(sorted(before.keys() - disrupted.keys())), **disrupted}
            if disrupted
            else None
        )
        return Plan([_report(budget, status)], again=again)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Keep the answers about scales for the next plan, which follows at once."""
        if isinstance(outcome.action, Get):
            answer = answer_of(outcome.answer, outcome.error)
            self._answers.setdefault(key, {})[outcome.action.path] = answer

    def _selects(self, budget: ResourceView, pod: PodView) -> bool:
        """Whether the budget is about the pod: an empty selector is, a missing one is not."""
        selector = self._selectors.get(budget.metadata.key)
        return selector is not None and matches(selector, pod.metadata.labels or {})

    def _counts(self, spec: Object, pods: list[PodView], answers: Mapping[str, Answer]) -> Counts:
        """Return how many pods there should be, and how many of them have to be healthy.

        A number that must stay is of the pods that there are; else it counts what controllers want.
        """
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is None and not isinstance(least, str):
            return Counts(0 if least is None else len(pods), int(least or 0), [], [])
        expected, unmanaged, unknown = self._scales.expected(pods, answers)
        if most is not None:
            desired = max(expected - _share(most, expected), 0)
        else:
            desired = _share(least or 0, expected)
        return Counts(expected, desired, unmanaged, unknown)

    def _disrupted(
        self, budget: ResourceView, pods: list[PodView]
    ) -> tuple[dict[str, str], float | None]:
        """Return the evicted pods whose end is yet to be seen, and when to look again.

        The time is in seconds from now.
        """
        before: Mapping[str, str] = budget.status.get("disruptedPods") or {}
        if not before:
            return {}, None
        now, disrupted, left = self._clock.now(), {}, []
        for pod in pods:
            meta = pod.metadata
            if meta.deletion_timestamp is not None or meta.name not in before:
                continue
            seconds = seconds_of(before[meta.name]) + DELETION_TIMEOUT - now
            if seconds > 0:
                disrupted[meta.name] = before[meta.name]
                left.append(seconds)
            else:
                namespace = budget.metadata.namespace  # upstream names it twice, and not the budget
                self._warn_of_pod(
                    pod,
                    "NotDeleted",
                    f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't",
                )
        return disrupted, min(left, default=None)

    def _failed(self, budget: ResourceView, why: str) -> Plan:
        """Let nobody be evicted while it is not known how many pods there are to be."""
        message = f"Failed to calculate the number of expected pods: {why}"
        self._tell(budget, "Warning", "CalculateExpectedPodCountFailed", message)
        told = budget.status
        condition = disruption_allowed(told) or {}
        said = (
            told.get("disruptionsAllowed") or 0,
            condition.get("reason"),
            condition.get("message"),
        )
        if said == (0, SYNC_FAILED, why):
            return NOTHING
        status = {"disruptionsAllowed": 0, "conditions": told.get("conditions") or []}
        status["observedGeneration"] = told.get("observedGeneration") or 0
        set_disruption_allowed(status, reason=SYNC_FAILED, message=why, now=self._now())
        return Plan([_report(budget, status)])

    def _now(self) -> str:
        return rfc3339(self._clock.now())

    def _tell(self, budget: ResourceView, type_: Type, reason: str, message: str) -> None:
        about = reference_to(budget, BUDGETS)
        self._recorder.event(about, type=type_, reason=reason, message=message)

    def _warn_of_pod(self, pod: PodView, reason: str, message: str) -> None:
        about = reference_to(pod, PODS)
        self._recorder.event(about, type="Warning", reason=reason, message=message)


def new_controller(context: ControllerContext) -> DisruptionController:
    workloads: dict[str, Table[Any]] = {
        "Deployment": context.table("deployments.apps", WorkloadView),
        "ReplicaSet": context.table("replicasets.apps", WorkloadView),
        "ReplicationController": context.table("replicationcontrollers", ReplicationControllerView),
        "StatefulSet": context.table("statefulsets.apps", WorkloadView),
    }
    return DisruptionController(
        context.table(BUDGETS.storage_key, ResourceView),
        context.table("pods", PodView),
        workloads,
        PodScales(workloads, context.registry),
        clock=context.clock,
        recorder=context.recorder(COMPONENT),
    )


def _report(budget: ResourceView, status: Object) -> Patch:
    """Return the patch of the status, of the budget as it was read."""
    meta = budget.metadata
    body = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": status,
    }
    return Patch(f"{BUDGETS.path_of(meta.namespace, meta.name)}/status", body)


def _share(amount: int | str, total: int) -> int:
    """Return a number, or a percentage of *total*, rounded up."""
    if isinstance(amount, int):
        return amount
    return -(-percent.number_of(amount) * total // 100)


def _unmanaged(budget: ResourceView) -> str:
    return (
        "Pods selected by this PodDisruptionBudget (selector: "
        f"{_in_go(budget.spec.get('selector') or {})}) were found to be unmanaged. As a result, "
        "the status of the PDB cannot be calculated correctly, which may result in undefined "
        'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to '
        "an integer value."
    )


def _in_go(selector: Object) -> str:
    """Return how Go prints a label selector."""
    labels = sorted((selector.get("matchLabels") or {}).items())
    wanted = "".join(f"{key}: {value}," for key, value in labels)
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{expression['key']},Operator:{expression['operator']},"
        f"Values:[{' '.join(expression.get('values') or ())}],}},"
        for expression in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{wanted}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
