"""Admission of pods by a node under pressure (``managerImpl.Admit``)."""

from collections.abc import Sequence
from typing import Final

from berth.cluster.kubelet.eviction.signals import MEMORY_PRESSURE
from berth.cluster.kubelet.eviction.stats import is_critical
from berth.kube.objects.pod import Pod, Toleration

EVICTED: Final = "Evicted"
"""The reason of those that it does not take, and of those that it evicts."""
TAINT: Final = "node.kubernetes.io/memory-pressure"


def admit(pod: Pod, conditions: Sequence[str], *, qos_class: str) -> str | None:
    """Return why a node with these conditions does not take *pod*; None: it does.

    The reason of the rejection is ``Evicted``.

    Critical pods are always taken. With memory pressure alone, only ``BestEffort`` pods are not,
    unless they tolerate its taint.
    """
    if not conditions or is_critical(pod):
        return None
    if tuple(conditions) == (MEMORY_PRESSURE,) and (
        qos_class != "BestEffort"
        or any(_tolerates(toleration) for toleration in pod.spec.tolerations)
    ):
        return None
    return f"The node had condition: [{' '.join(conditions)}]. "


def _tolerates(toleration: Toleration) -> bool:
    """Tell whether *toleration* covers the taint of memory pressure, which has no value."""
    if toleration.effect not in ("", "NoSchedule") or toleration.key not in ("", TAINT):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.key == TAINT and not toleration.value
