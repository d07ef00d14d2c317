"""Additions of the DaemonSet controller to the pods that it makes."""

from typing import Final

from berth.kube.objects.pod import Toleration
from berth.kube.objects.taints import NO_EXECUTE, NO_SCHEDULE

_CONDITIONS: Final = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)
_HOST_NETWORK: Final = (("network-unavailable", NO_SCHEDULE),)


def daemon_tolerations(*, host_network: bool) -> tuple[Toleration, ...]:
    """Return the tolerations of AddOrUpdateDaemonPodTolerations upstream."""
    conditions = (*_CONDITIONS, *(_HOST_NETWORK if host_network else ()))
    return tuple(
        Toleration(f"node.kubernetes.io/{name}", "Exists", "", effect)
        for name, effect in conditions
    )
