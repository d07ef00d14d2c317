"""Running pods that may be moved to another node."""

from collections.abc import Container

from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets


class Movable:
    """Tells of the pods of one cluster who may be moved.

    As in a drain, a pod stays while a PodDisruptionBudget allows no eviction. One that allows some
    keeps nobody: a drain goes on as soon as the evicted pods run elsewhere.
    """

    def __init__(self, listers: Listers, schedulers: Container[str]) -> None:
        """*schedulers*: whose pods are placed here."""
        self._budgets = DisruptionBudgets(listers.pod_disruption_budgets)
        self._schedulers = schedulers

    def why_not(self, pod: PodInfo) -> str:
        """Return what keeps *pod* on its node, empty if nothing does."""
        name = pod.pod.spec.scheduler_name
        if name not in self._schedulers:
            return f"scheduler {name!r} places pods of it"
        if self._budgets.filter_pods_with_pdb_violation([pod]):
            return "a PodDisruptionBudget allows no eviction"
        return ""
