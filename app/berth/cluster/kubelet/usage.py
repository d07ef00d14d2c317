"""Use of resources by pods and nodes. No container runs, so annotations or a model say it.

Annotations on a pod are about all of its containers together, and those on a node about the system
outside pods. Without an annotation, a container uses half of what it requests, or next to nothing
if it requests nothing; the system uses 2% of the node.

This is the one place that knows: eviction (:mod:`berth.cluster.kubelet.eviction`), out-of-memory
kills and ``metrics.k8s.io`` (:mod:`berth.cluster.http.resource_metrics`) all ask here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from berth.kube.objects.pod import Container
from berth.kube.objects.quantity import NANO, check_quantity, parse, value
from berth.kube.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY

PREFIX: Final = "berth.dev/usage-"
VOLUME_PREFIX: Final = f"{PREFIX}volume-"
"""With the name of an ``emptyDir`` volume: the bytes in it."""

INODES: Final = "inodes"
PIDS: Final = "pids"
RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, INODES, PIDS)

USED_SHARE: Final = 2
"""A container uses its request divided by this."""
USED_WITHOUT_REQUEST: Final[Mapping[str, int]] = {
    CPU: NANO // 1000,
    MEMORY: 4 * 2**20,
    EPHEMERAL_STORAGE: 2**16,
    INODES: 16,
    PIDS: 1,
}
SYSTEM_SHARE: Final = 50
"""The system uses the capacity of the node divided by this."""

BLOCK: Final = 1024
"""Bytes; the system uses a multiple of it."""

CAPACITIES: Final[Mapping[str, int]] = {INODES: 6_553_600, PIDS: 32_768}
"""What every node has: an inode for 16 KiB of 100 GiB, and the default of ``kernel.pid_max``."""


class Usage(NamedTuple):
    """An amount of each resource."""

    cpu: int = 0
    """Billionths of a core."""
    memory: int = 0
    """Bytes of the working set."""
    ephemeral_storage: int = 0
    """Bytes in writable layers and logs."""
    inodes: int = 0
    pids: int = 0

    def plus(self, other: "Usage") -> "Usage":
        return Usage(*map(sum, zip(self, other, strict=True)))


NOTHING: Final = Usage()


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum."""
    return Usage(*map(sum, zip(NOTHING, *usages, strict=True)))


def is_told(annotations: Mapping[str, str]) -> bool:
    """Tell whether annotations say what is used."""
    return any(annotation.startswith(PREFIX) for annotation in annotations)


class HasContainers(Protocol):
    """The spec of a pod, as far as its usage depends on it."""

    @property
    def containers(self) -> tuple[Container, ...]: ...

    @property
    def init_containers(self) -> tuple[Container, ...]: ...


def running_containers(spec: HasContainers) -> list[Container]:
    """Return the containers that run side by side: sidecars first, as they start."""
    sidecars = [
        container for container in spec.init_containers if container.restart_policy == "Always"
    ]
    return [*sidecars, *spec.containers]


def usage_of_containers(
    annotations: Mapping[str, str], containers: Sequence[Container]
) -> dict[str, Usage]:
    """Return what each of *containers*, all of those of a pod, uses while it runs.

    What an annotation says of the pod is shared out by requests; evenly where there are none.
    """
    shares = [_shares(resource, annotations, containers) for resource in RESOURCES]
    return {each.name: Usage(*amounts) for each, *amounts in zip(containers, *shares, strict=True)}


def usage_of_volumes(annotations: Mapping[str, str]) -> dict[str, int]:
    """Return the bytes in ``emptyDir`` volumes, by name, as far as annotations say."""
    return {
        annotation.removeprefix(VOLUME_PREFIX): amount
        for annotation in annotations
        if annotation.startswith(VOLUME_PREFIX)
        and (amount := _told(annotation.removeprefix(PREFIX), annotations)) is not None
    }


def usage_of_system(annotations: Mapping[str, str], capacity: Mapping[str, int]) -> Usage:
    """Return what a node uses outside pods; *capacity* by resource, in the units of Usage."""
    amounts = []
    for resource in RESOURCES:
        amount = _told(resource, annotations)
        if amount is None:
            amount = capacity.get(resource, 0) // SYSTEM_SHARE
            if resource in (MEMORY, EPHEMERAL_STORAGE):
                amount -= amount % BLOCK
        amounts.append(amount)
    return Usage(*amounts)


def capacity_of(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    """Return what a node has in all, in the units of Usage; *quantities* is its ``capacity``."""
    found = dict(CAPACITIES)
    for resource in (CPU, MEMORY, EPHEMERAL_STORAGE):
        if resource in quantities:
            found[resource] = _in_units(resource, parse(quantities[resource]))
    return found


def _shares(
    resource: str, annotations: Mapping[str, str], containers: Sequence[Container]
) -> list[int]:
    told = _told(resource, annotations) if annotations else None
    if told is not None and len(containers) == 1:
        return [told]
    requests = [
        _in_units(resource, parse(amount))
        if (amount := container.resources.requests.get(resource))
        else 0
        for container in containers
    ]
    if told is None:
        without = USED_WITHOUT_REQUEST[resource]
        return [request // USED_SHARE if request else without for request in requests]
    weights = requests if any(requests) else [1] * len(containers)
    whole = sum(weights)
    shares, given, weighed = [], 0, 0
    for weight in weights:
        weighed += weight
        upto = told * weighed // whole  # so that the shares add up to what is told
        shares.append(upto - given)
        given = upto
    return shares


def _told(resource: str, annotations: Mapping[str, str]) -> int | None:
    """Return what an annotation says; None: nothing, or nothing that makes sense."""
    text = annotations.get(PREFIX + resource)
    if text is None:
        return None
    try:
        check_quantity(text)
    except ValueError:
        return None
    return _in_units(resource, parse(text))


def _in_units(resource: str, nanos: int) -> int:
    return nanos if resource == CPU else value(nanos)
