"""Which victims their PodDisruptionBudgets would rather keep (spec §6.4)."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from berth.framework.listers import Lister
from berth.framework.pod_info import PodInfo, PodTemplate
from berth.framework.preemption.victim_units import VictimUnit
from berth.objects.policy import PodDisruptionBudget
from berth.objects.selectors import NOTHING, Selector, compile_selector


class DisruptionBudgets:
    """The budgets there are; which are about a pod is kept, by template, until any changes."""

    def __init__(self, lister: Lister[PodDisruptionBudget]) -> None:
        self._lister = lister
        self._version = lister.version
        self._about: WeakKeyDictionary[PodTemplate, list[PodDisruptionBudget]] = WeakKeyDictionary()
        self._selectors: dict[str, Selector] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there are no budgets."""
        return self._lister.is_empty

    @property
    def version(self) -> int:
        """Changes with the budgets."""
        return self._lister.version

    def filter_pods_with_pdb_violation(self, pods: Sequence[PodInfo]) -> list[PodInfo]:
        """Return those of *pods*, most important first, whose eviction too would break a budget.

        A pod is charged to every budget that is about it, also when one of them is exceeded
        already; but not to those that have granted its eviction before.
        """
        if self.is_empty:
            return []
        left: dict[str, int] = {}
        return [pod for pod in pods if self._breaks(pod, left)]

    def filter_units_with_pdb_violation(self, units: Sequence[VictimUnit]) -> list[VictimUnit]:
        """Return the same for pods that are evicted together (spec G9.4).

        All pods of a unit are charged; kube-scheduler 1.36 stops at the first that breaks a budget.
        """
        if self.is_empty:
            return []
        left: dict[str, int] = {}
        return [unit for unit in units if sum(self._breaks(pod, left) for pod in unit.pods)]

    def _breaks(self, pod: PodInfo, left: dict[str, int]) -> bool:
        """Charge *pod* to its budgets; *left* is how many more evictions each of them allows."""
        breaks = False
        for budget in self._about_pod(pod):
            status = budget.status
            if pod.name in status.disrupted_pods:
                continue
            key = budget.metadata.key
            left[key] = left.get(key, status.disruptions_allowed) - 1
            breaks |= left[key] < 0
        return breaks

    def _about_pod(self, pod: PodInfo) -> list[PodDisruptionBudget]:
        if self._version != self._lister.version:
            self._version = self._lister.version
            self._about.clear()
            self._selectors.clear()
        found = self._about.get(pod.template)
        if found is None:
            budgets = self._lister.in_namespace(pod.namespace).values() if pod.labels else ()
            found = self._about[pod.template] = [
                budget for budget in budgets if self._selector(budget).matches(pod.labels)
            ]
        return found

    def _selector(self, budget: PodDisruptionBudget) -> Selector:
        key = budget.metadata.key
        known = self._selectors.get(key)
        if known is None:
            known = self._selectors[key] = _compiled(budget)
        return known


def _compiled(budget: PodDisruptionBudget) -> Selector:
    """Return what a budget selects by; nothing if that is absent, empty or cannot be compiled."""
    try:
        selector = compile_selector(budget.spec.selector)
    except ValueError:
        return NOTHING
    return NOTHING if selector.is_empty else selector
