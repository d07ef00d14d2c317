"""Admission of pods by a node, by what the Node says now: the kubelet's check after binding.

The rules, their order and their words are those of ``pkg/kubelet/lifecycle/predicate.go`` and, for
devices, of ``pkg/kubelet/cm/devicemanager``. Amounts are in nano units.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from berth.cluster.pods.kubelet import KubeletPod
from berth.kube.objects.host_ports import HostPort, conflicts, host_ports
from berth.kube.objects.node import Node
from berth.kube.objects.quantity import NANO, milli_value, value
from berth.kube.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from berth.kube.objects.selectors import required_node_affinity
from berth.kube.objects.taints import NO_EXECUTE, untolerated

UNEXPECTED_ADMISSION_ERROR: Final = "UnexpectedAdmissionError"
OS_LABEL: Final = "kubernetes.io/os"
MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of the mirror pod of a static pod, which taints do not keep away."""

_FIRST: Final = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
"""What the kubelet names first when it lacks several resources."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node does not take a pod; *message* is that of its event."""

    reason: str
    message: str


def resource_rejection(
    requests: Mapping[str, int],
    *,
    used: Mapping[str, int],
    allocatable: Mapping[str, int],
    devices: Collection[str],
) -> Rejection | None:
    """Say what there is not enough of, if anything.

    *devices* are the resources of the node's own device plugins, which are asked first. Extended
    resources that the node does not have count for nothing, because something else may provide
    them (``removeMissingExtendedResources``).
    """
    for name in devices:
        amount = requests.get(name, 0)
        available = allocatable.get(name, 0) - used.get(name, 0)
        if amount > available:
            return Rejection(
                UNEXPECTED_ADMISSION_ERROR,
                f"Allocate failed due to requested number of devices unavailable for {name}. "
                f"Requested: {value(amount)}, Available: {value(max(available, 0))}, "
                "which is unexpected",
            )
    wanted = {**requests, PODS: NANO}
    lacking = [
        name
        for name, amount in wanted.items()
        if amount and used.get(name, 0) + amount > allocatable.get(name, 0)
        if name in allocatable or not is_extended(name)
    ]
    if not lacking:
        return None
    name = next((each for each in _FIRST if each in lacking), lacking[0])
    text = shortage(
        name,
        "resource",
        requested=wanted[name],
        used=used.get(name, 0),
        capacity=allocatable.get(name, 0),
    )
    return Rejection(f"OutOf{name}", text)


def shortage(name: str, lacking: str, **amounts: int) -> str:
    """Return the kubelet's words for too little of the resource *name*."""
    shown = milli_value if name == CPU else value
    told = ", ".join(f"{what}: {shown(amount)}" for what, amount in amounts.items())
    return f"Node didn't have enough {lacking}: {name}, {told}"


def os_rejection(pod: KubeletPod) -> Rejection | None:
    """Say whether *pod* is for another operating system: hollow nodes are Linux."""
    if pod.metadata.labels.get(OS_LABEL, "linux") != "linux":
        return Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if pod.spec.os is not None and pod.spec.os.name != "linux":
        return Rejection(
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
        )
    return None


def placement_rejection(
    pod: KubeletPod, node: Node, used_ports: Iterable[HostPort], *, comparisons: bool = False
) -> Rejection | None:
    """Say why *node* is not for *pod*: affinity, ports, or taints that evict.

    *comparisons* as in :func:`berth.kube.objects.taints.tolerates`.
    """
    affinity = required_node_affinity(pod.spec)
    if affinity is not None and not affinity.matches(node.labels, node.name):
        return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    wanted = host_ports(pod)
    if wanted and conflicts(wanted, tuple(used_ports)):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    taints, tolerations = node.spec.taints, pod.spec.tolerations
    if (
        taints
        and untolerated(taints, tolerations, effects=(NO_EXECUTE,), comparisons=comparisons)
        is not None
        and MIRROR not in pod.metadata.annotations
    ):
        return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {why}")
