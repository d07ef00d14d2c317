"""PodDisruptionBudgets: how many pods may be evicted, told to those who evict."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from berth.clock import Clock, rfc3339
from berth.cluster import percent
from berth.cluster.actions import Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    PodView,
    ReplicationControllerView,
    ResourceView,
    WorkloadView,
    metadata_of,
)
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors import LabelSelector, matches

CONDITION: Final = "DisruptionAllowed"


class DisruptionController:
    """Counts. *workloads* are the tables of owners by kind, which know how many there should be."""

    name = "disruption"

    def __init__(
        self,
        budgets: Table[ResourceView],
        pods: Table[PodView],
        workloads: Mapping[str, Table[WorkloadView]],
        *,
        clock: Clock,
    ) -> None:
        self._budgets = budgets
        self._pods = pods
        self._workloads = workloads
        self._clock = clock
        self._selectors: dict[str, LabelSelector] = {}
        """By key of budget. They may be large, and are asked about with every change of a pod."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def budget_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            key = metadata_of(old, new).key
            self._selectors.pop(key, None)
            selector = None if new is None else new.spec.get("selector")
            if selector is not None:
                self._selectors[key] = msgspec.convert(selector, LabelSelector)
            enqueue(key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            for budget in self._budgets.in_namespace(metadata_of(old, new).namespace):
                for pod in (old, new):
                    if pod is not None and self._selects(budget, pod):
                        enqueue(budget.metadata.key)

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
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return NOTHING
        namespace = budget.metadata.namespace
        pods = [pod for pod in self._pods.in_namespace(namespace) if self._selects(budget, pod)]
        expected, desired = self._wanted(budget.spec, pods)
        healthy = sum(1 for pod in pods if pod.is_active and pod.ready_since is not None)
        allowed = max(healthy - desired, 0) if expected else 0
        status: Object = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget.metadata.generation,
        }
        told = budget.status
        if "conditions" in told and all(told.get(field) == n for field, n in status.items()):
            return NOTHING
        status["conditions"] = self._conditions(budget, allowed)
        meta = budget.metadata
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{meta.name}/status"
        return Plan([Patch(path, {"metadata": {"uid": meta.uid}, "status": status})])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was reported shows in the table."""

    def _selects(self, budget: ResourceView, pod: PodView) -> bool:
        """Whether the budget is about the pod: an empty selector is, a missing one is not."""
        selector = self._selectors.get(budget.metadata.key)
        return selector is not None and matches(selector, pod.metadata.labels or {})

    def _wanted(self, spec: Object, pods: list[PodView]) -> tuple[int, int]:
        """Return how many pods there should be, and how many of them have to be healthy.

        A number that must stay is of the pods that there are; else it counts what owners want.
        """
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is None and most is not None:
            expected = self._expected(pods)
            return expected, max(expected - _share(most, expected), 0)
        if isinstance(least, str):
            expected = self._expected(pods)
            return expected, _share(least, expected)
        return (0, 0) if least is None else (len(pods), int(least))

    def _expected(self, pods: Iterable[PodView]) -> int:
        """Add up what the owners of *pods* want; a pod without one we know counts for itself."""
        total, owners = 0, dict[str, int]()
        for pod in pods:
            owner = self._scale_owner(pod)
            if owner is None:
                total += 1
            else:
                owners[owner.metadata.uid] = owner.replicas
        return total + sum(owners.values())

    def _scale_owner(self, pod: PodView) -> WorkloadView | None:
        """Return who says how many pods there are: the Deployment above a ReplicaSet."""
        owner = None
        reference = pod.metadata.controller
        while reference is not None and reference.kind in self._workloads:
            above = self._workloads[reference.kind].by_uid(reference.uid)
            if above is None:
                break
            owner, reference = above, above.metadata.controller
        return owner

    def _conditions(self, budget: ResourceView, allowed: int) -> list[Object]:
        reason, status = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
        before = budget.status.get("conditions") or []
        same = [each for each in before if each["type"] == CONDITION and each["status"] == status]
        since = same[0]["lastTransitionTime"] if same else rfc3339(self._clock.now())
        condition = {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": since,
            "observedGeneration": budget.metadata.generation,
        }
        return [*(each for each in before if each["type"] != CONDITION), condition]


def new_controller(context: ControllerContext) -> DisruptionController:
    return DisruptionController(
        context.table("poddisruptionbudgets.policy", ResourceView),
        context.table("pods", PodView),
        {
            "Deployment": context.table("deployments.apps", WorkloadView),
            "ReplicaSet": context.table("replicasets.apps", WorkloadView),
            "ReplicationController": context.table(
                "replicationcontrollers", ReplicationControllerView
            ),
            "StatefulSet": context.table("statefulsets.apps", WorkloadView),
        },
        clock=context.clock,
    )


def _share(amount: int | str, total: int) -> int:
    """Return a number, or a percentage of *total*, rounded up."""
    if isinstance(amount, int):
        return amount
    return -(-percent.number_of(amount) * total // 100)
