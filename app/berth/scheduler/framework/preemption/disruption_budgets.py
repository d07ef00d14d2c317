"""Victims that PodDisruptionBudgets would rather keep (spec §6.4)."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from berth.kube.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from berth.kube.objects.selectors import NOTHING, Selector, compile_selector
from berth.runtime.release import Behaviour
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.preemption.victim_units import VictimUnit

STOPS_AT_FIRST_VIOLATION: Final = Behaviour(
    "1.37",
    "N3.7",
    "Of the PodDisruptionBudgets of a victim, those after the first that is violated are not"
    " charged.",
)

BudgetKey = tuple[str, str]
"""Namespace and name."""


class Charges(NamedTuple):
    """What the eviction of some pods of a node means to the budgets."""

    violating: list[PodInfo]
    """The pods whose eviction would break one, most important first."""
    charged: dict[BudgetKey, int]
    """How many pods are charged to each budget that is about any of them."""


class DisruptionBudgets:
    """The budgets there are; which are about a pod is kept, by template.

    That follows from their selectors. How many evictions they allow changes more often: with each
    one, as the disruption controller follows it.
    """

    def __init__(
        self, lister: Lister[PodDisruptionBudget], *, stops_at_first_violation: bool = True
    ) -> None:
        """*stops_at_first_violation* says whether STOPS_AT_FIRST_VIOLATION is on."""
        self._lister = lister
        self._stops_at_first_violation = stops_at_first_violation
        self._about: WeakKeyDictionary[PodTemplate, list[BudgetKey]] = WeakKeyDictionary()
        self._selectors: dict[BudgetKey, Selector] = {}
        self.selection_version = 0
        """Changes when a budget comes, goes or selects other pods."""
        lister.follow(self._follow)

    def _follow(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if old is None or new is None or old.spec.selector != new.spec.selector:
            self.selection_version += 1
            self._about.clear()
            self._selectors.clear()

    @property
    def is_empty(self) -> bool:
        """Whether there are no budgets."""
        return self._lister.is_empty

    @property
    def version(self) -> int:
        """Changes with the budgets."""
        return self._lister.version

    def status(self, key: BudgetKey) -> PodDisruptionBudgetStatus:
        """Return the status of a budget; KeyError if there is none."""
        namespace, name = key
        return self._lister.in_namespace(namespace)[name].status

    def filter_pods_with_pdb_violation(self, pods: Sequence[PodInfo]) -> list[PodInfo]:
        """Return those of *pods*, most important first, whose eviction too would break a budget."""
        return self.charge(pods).violating

    def charge(self, pods: Sequence[PodInfo]) -> Charges:
        """Charge *pods*, most important first, to their budgets.

        A pod is charged to every budget that is about it, but not to those that have granted its
        eviction before. With STOPS_AT_FIRST_VIOLATION, a budget that it breaks is the last that it
        is charged to, in the lister's order.
        """
        charged: dict[BudgetKey, int] = {}
        if self.is_empty:
            return Charges([], charged)
        return Charges([pod for pod in pods if self._breaks(pod, charged)], charged)

    def filter_units_with_pdb_violation(self, units: Sequence[VictimUnit]) -> list[VictimUnit]:
        """Return the same for pods that are evicted together (spec G9.4).

        All pods of a unit are charged; kube-scheduler 1.36 stops at the first that breaks a budget.
        """
        counts = self.violations(units)
        return [unit for unit, count in zip(units, counts, strict=True) if count]

    def violations(self, units: Sequence[VictimUnit]) -> list[int]:
        """Return of how many pods of each unit, most important first, the eviction breaks one."""
        if self.is_empty:
            return [0] * len(units)
        charged: dict[BudgetKey, int] = {}
        return [sum(self._breaks(pod, charged) for pod in unit.pods) for unit in units]

    def _breaks(self, pod: PodInfo, charged: dict[BudgetKey, int]) -> bool:
        """Charge *pod* to its budgets, beside the pods that were *charged* to each before."""
        breaks = False
        for key in self._about_pod(pod):
            status, before = self.status(key), charged.setdefault(key, 0)
            if pod.name in status.disrupted_pods:
                continue
            charged[key] = before + 1
            if before >= status.disruptions_allowed:
                breaks = True
                if self._stops_at_first_violation:
                    break
        return breaks

    def _about_pod(self, pod: PodInfo) -> list[BudgetKey]:
        keys = self._about.get(pod.template)
        if keys is None:
            namespace = pod.namespace
            budgets = self._lister.in_namespace(namespace).values() if pod.labels else ()
            keys = self._about[pod.template] = [
                (namespace, budget.metadata.name)
                for budget in budgets
                if self._selector(budget).matches(pod.labels)
            ]
        return keys

    def _selector(self, budget: PodDisruptionBudget) -> Selector:
        key = budget.metadata.namespace, budget.metadata.name
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
