"""Which running pods may be moved to another node."""

from collections.abc import Container
from typing import Final

from berth.framework.listers import Listers
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.objects.pod import Pod
from berth.whatif.daemons import DAEMON_SET

_MIRROR: Final = "kubernetes.io/config.mirror"


def goes_with_node(pod: Pod) -> bool:
    """Whether *pod* is of a DaemonSet, or a mirror of what the kubelet runs from a file."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind in (DAEMON_SET, "Node"):
        return True
    return _MIRROR in pod.metadata.annotations


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
