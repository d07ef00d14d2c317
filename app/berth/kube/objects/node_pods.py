"""Pods that come and go with their node."""

from typing import Final

from berth.kube.objects.pod import Pod

_KEEPERS: Final = ("DaemonSet", "Node")
MIRROR: Final = "kubernetes.io/config.mirror"


def goes_with_node(pod: Pod) -> bool:
    """Whether *pod* is of a DaemonSet, or a mirror of what the kubelet runs from a file."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind in _KEEPERS:
        return True
    return MIRROR in pod.metadata.annotations
