"""Messages about an evicted pod (``evictionMessage``)."""

from collections.abc import Sequence
from typing import NamedTuple

from berth.cluster.kubelet.eviction.observations import Observations
from berth.cluster.kubelet.eviction.signals import RESOURCES
from berth.cluster.kubelet.eviction.stats import PodStats
from berth.cluster.kubelet.eviction.thresholds import Threshold
from berth.kube.objects.amounts import Amount, amount
from berth.kube.objects.quantity import NANO
from berth.kube.objects.resources import EPHEMERAL_STORAGE, MEMORY


class Message(NamedTuple):
    """The message of the pod's status, and the annotations of the event."""

    text: str
    annotations: dict[str, str]


def eviction_message(
    resource: str,
    stats: PodStats,
    thresholds: Sequence[Threshold],
    observations: Observations,
) -> Message:
    """Return why a pod is evicted to reclaim *resource*: one of *thresholds* is not kept."""
    text = f"The node was low on resource: {resource}. "
    met = next(
        (threshold for threshold in thresholds if RESOURCES[threshold.signal] == resource), None
    )
    if met is not None:
        observed = observations[met.signal]
        quantity = met.value.of(observed.capacity)
        text += f"Threshold quantity: {quantity}, available: {observed}. "
    annotations: dict[str, str] = {}
    pod = stats.pod
    of_pod = pod.spec.resources.requests if pod.spec.resources else {}
    if resource == MEMORY and MEMORY in of_pod:
        used = str(_bytes(stats.used.memory))
        text += _larger("Pod", pod.metadata.name, used, str(amount(of_pod[MEMORY])), resource)
        annotations = {"offending_pod": pod.metadata.name, "offending_pod_usage": used}
    names, usages = [], []
    # Ephemeral containers have no requests and are not told of.
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        usage = stats.containers.get(container.name)
        if usage is None or resource not in (MEMORY, EPHEMERAL_STORAGE):
            continue
        measured = usage.memory if resource == MEMORY else usage.ephemeral_storage
        request = amount(container.resources.requests.get(resource, 0))
        if measured * NANO > request.nanos:
            used = str(_bytes(measured))
            text += _larger("Container", container.name, used, str(request), resource)
            names.append(container.name)
            usages.append(used)
    annotations |= {
        "offending_containers": ",".join(names),
        "offending_containers_usage": ",".join(usages),
        "starved_resource": resource,
    }
    return Message(text, annotations)


def _larger(what: str, name: str, used: str, request: str, resource: str) -> str:
    return (
        f"{what} {name} was using {used}, request is {request}, "
        f"has larger consumption of {resource}. "
    )


def _bytes(number: int) -> Amount:
    return Amount(number * NANO, binary=True)
