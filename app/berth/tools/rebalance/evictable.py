"""Pods that may be evicted, and how many at a time."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final

from berth.kube.objects.node_pods import goes_with_node
from berth.kube.objects.pod_defaults import SYSTEM_PRIORITIES
from berth.kube.objects.policy import PodDisruptionBudget
from berth.kube.objects.selectors import compile_selector
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo

CRITICAL: Final = min(SYSTEM_PRIORITIES.values())


class Evictable:
    """Knows the budgets of one cluster, as they are at its beginning."""

    def __init__(self, listers: Listers, schedulers: Container[str]) -> None:
        """*schedulers*: whose pods are placed here."""
        self._budgets = [
            (budget, compile_selector(budget.spec.selector))
            for budget in listers.pod_disruption_budgets
            if budget.spec.selector is not None
        ]
        self._schedulers = schedulers

    def why_not(self, pod: PodInfo) -> str:
        """Return what forbids the eviction of *pod*, empty if nothing does."""
        if pod.pod.metadata.controller is None:
            return "it has no controller, nobody would make it again"
        if goes_with_node(pod.pod):
            return "it belongs to its node"
        if pod.priority >= CRITICAL:
            return "it is critical"
        if pod.is_terminating:
            return "it is being deleted"
        if pod.pod.spec.scheduler_name not in self._schedulers:
            return f"scheduler {pod.pod.spec.scheduler_name!r} places pods of it"
        budgets = self._budgets_of(pod)
        if len(budgets) > 1:
            return "it has more than one PodDisruptionBudget"
        if budgets and budgets[0].status.disruptions_allowed < 1:
            return f"the PodDisruptionBudget {budgets[0].metadata.name} allows no disruption"
        return ""

    def in_rounds(self, pods: Iterable[PodInfo]) -> list[Sequence[PodInfo]]:
        """Put *pods*, which may be evicted, into rounds; each is in the first that has room."""
        rounds: list[list[PodInfo]] = []
        used: list[Counter[str]] = []
        for pod in pods:
            place = 0
            budgets = self._budgets_of(pod)
            while place < len(rounds) and any(
                used[place][budget.metadata.key] >= budget.status.disruptions_allowed
                for budget in budgets
            ):
                place += 1
            if place == len(rounds):
                rounds.append([])
                used.append(Counter())
            rounds[place].append(pod)
            used[place].update(budget.metadata.key for budget in budgets)
        return list(rounds)

    def _budgets_of(self, pod: PodInfo) -> list[PodDisruptionBudget]:
        return [
            budget
            for budget, selector in self._budgets
            if budget.metadata.namespace == pod.namespace and selector.matches(pod.labels)
        ]
