"""Resources: requests of pods and allocatable of nodes (spec §4.3, §4.4).

Amounts by name are kept in nano units while they are added up; :class:`Resources` has them in the
units that scheduling compares: milli-CPU, bytes, and whole pieces of everything else.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from berth.kube.objects.names import is_qualified_name
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Container, ContainerStatus, Pod
from berth.kube.objects.quantity import NANO, Quantities, Quantity, milli_value, parse, value

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
PODS: Final = "pods"

Nanos: TypeAlias = dict[str, int]
"""Resource name to amount in nano units."""

NON_ZERO_DEFAULTS: Final[Mapping[str, int]] = {
    CPU: NANO // 10,  # 100 milli-CPU
    MEMORY: 200 * 1024**2 * NANO,
}
"""What a container without such a request is taken to need, in nano units (spec §4.4)."""

_HUGEPAGES: Final = "hugepages-"
_NATIVE_DOMAIN: Final = "kubernetes.io/"


class Resources(msgspec.Struct, frozen=True):
    """Amounts as scheduling compares them; none is beyond int64."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: dict[str, int] = msgspec.field(default_factory=dict)
    """Extended resources, hugepages and the like, zeros included; not to be changed."""
    allowed_pods: int = 0
    """How many pods a node takes; 0 for pods."""

    def amount(self, name: str) -> int:
        """Return the amount of the resource *name*, 0 if there is none."""
        match name:
            case "cpu":
                return self.milli_cpu
            case "memory":
                return self.memory
            case "ephemeral-storage":
                return self.ephemeral_storage
            case _:
                return self.scalars.get(name, 0)


def is_extended(name: str) -> bool:
    """Whether *name* is a resource of somebody's own domain (spec §4.3)."""
    return (
        "/" in name
        and _NATIVE_DOMAIN not in name
        and not name.startswith("requests.")
        and is_qualified_name(f"requests.{name}")
    )


def is_scalar(name: str) -> bool:
    """Whether *name* counts beside cpu, memory and ephemeral-storage (spec §4.3)."""
    return (
        name.startswith((_HUGEPAGES, "attachable-volumes-"))
        or _NATIVE_DOMAIN in name
        or is_extended(name)
    )


def to_resources(nanos: Mapping[str, int], *, allowed_pods: int = 0) -> Resources:
    """Round *nanos* up to the units of scheduling; names that mean nothing to it are dropped."""
    return Resources(
        milli_cpu=milli_value(nanos.get(CPU, 0)),
        memory=value(nanos.get(MEMORY, 0)),
        ephemeral_storage=value(nanos.get(EPHEMERAL_STORAGE, 0)),
        scalars={
            name: value(amount)
            for name, amount in nanos.items()
            if name not in _NATIVE and is_scalar(name)
        },
        allowed_pods=allowed_pods,
    )


def node_allocatable(node: Node) -> Resources:
    """Return ``status.allocatable`` with the number of pods that the node takes."""
    return _allocatable(tuple(node.status.allocatable.items()))


@lru_cache(maxsize=1 << 10)  # machines of one type have the same, and come one after the other
def _allocatable(quantities: tuple[tuple[str, Quantity], ...]) -> Resources:
    nanos = _parsed(dict(quantities))
    return to_resources(nanos, allowed_pods=value(nanos.get(PODS, 0)))


def requested(pod: Pod) -> Resources:
    """Return what *pod* takes from its node: ``NodeInfo.Requested``."""
    return to_resources(pod_requests(pod, use_status=True, pod_level=True))


def non_zero_requested(pod: Pod) -> tuple[int, int]:
    """Return milli-CPU and bytes, with defaults for what is not requested."""
    nanos = pod_requests(pod, use_status=True, pod_level=True, non_zero=True)
    return milli_value(nanos.get(CPU, 0)), value(nanos.get(MEMORY, 0))


def incoming_requested(pod: Pod) -> Resources:
    """Return what NodeResourcesFit's Filter asks for *pod*; the status of a waiting pod is void."""
    return to_resources(pod_requests(pod, use_status=False, pod_level=True))


def fit_score_requests(pod: Pod) -> Resources:
    """Return what NodeResourcesFit's Score counts for *pod*.

    As kube-scheduler does, it leaves out pod-level requests and always applies the defaults.
    """
    requests = pod_requests(pod, use_status=False, pod_level=False, non_zero=True)
    return to_resources(requests)


def takes_defaults(pod: Pod) -> bool:
    """Whether a container of *pod* requests no cpu or no memory, so that the default counts."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(
        CPU not in c.resources.requests or MEMORY not in c.resources.requests for c in containers
    )


def requested_with_claims(pod: Pod) -> Resources:
    """Return what must be left for *pod* on a node, if its claims take what its status says."""
    requests = pod_requests(pod, use_status=False, pod_level=True, claims=True)
    return to_resources(requests)


def insufficient_at_pod_level(pod: Pod) -> list[str]:
    """Return the resources of which *pod* as a whole requests less than containers and claims."""
    needed = _written_requests(pod, {}, claims=True)
    written = _parsed(_pod_level_requests(pod))
    return [name for name, amount in written.items() if amount < needed.get(name, 0)]


def pod_requests(
    pod: Pod,
    *,
    use_status: bool,
    pod_level: bool,
    non_zero: bool = False,
    claims: bool | None = None,
) -> Nanos:
    """Return the effective requests of *pod* in nano units (1.37 spec N3.4, spec §4.4, G15.3).

    *use_status*: count what a resize in place has allocated or actuated, where the pod as a whole
    has more of it.
    *claims*: count what devices take of the node, as the status says; by default with the status.
    *pod_level*: let ``spec.resources`` stand in for the sum over containers.
    *non_zero*: give containers that lack cpu or memory the default; where pod-level requests
    count, only what the whole pod lacks.
    """
    defaults: Mapping[str, int] = NON_ZERO_DEFAULTS if non_zero else {}
    of_pod = _pod_level_requests(pod) if pod_level else {}
    if of_pod and non_zero:
        total = pod_requests(pod, use_status=use_status, pod_level=True, claims=claims)
        defaults = {name: amount for name, amount in defaults.items() if name not in total}
    has_claims = use_status if claims is None else claims
    requests = _written_requests(pod, defaults, claims=has_claims)
    actual = _actual_requests(pod, defaults, claims=has_claims) if use_status else None
    if actual is not None:
        if is_resize_infeasible(pod):
            requests = actual
        else:
            _raise_to(requests, actual)
    if of_pod:
        requests.update(_effective_pod_level(pod, of_pod, use_status=use_status))
    _add(requests, _parsed(pod.spec.overhead))
    return requests


def _written_requests(pod: Pod, defaults: Mapping[str, int], *, claims: bool) -> Nanos:
    """Return the most that the containers request at once by the spec."""
    requests = _most_at_once(pod, lambda c: {**defaults, **_parsed(c.resources.requests)})
    if claims:
        _add_claims(requests, pod)
    return requests


def _actual_requests(pod: Pod, defaults: Mapping[str, int], *, claims: bool) -> Nanos | None:
    """Return the more of what is allocated and what is actuated; None if that is what is written.

    Each is summed up over the containers first, unless the status says it of the pod as a whole.
    """
    of_pod = pod.status
    if of_pod.allocated_resources and of_pod.resources is not None and of_pod.resources.requests:
        allocated, actuated = map(_parsed, (of_pod.allocated_resources, of_pod.resources.requests))
    else:
        infeasible = is_resize_infeasible(pod)
        if not infeasible and not resized_containers(pod):
            return None
        status_of = _status_by_container(pod)

        def written(container: Container) -> Quantities:
            return {} if infeasible else container.resources.requests

        def allocated_to(container: Container) -> Quantities:
            status = status_of.get(container.name)
            return (status and status.allocated_resources) or written(container)

        def actuated_of(container: Container) -> Quantities:
            status = status_of.get(container.name)
            requests = status.resources.requests if status and status.resources else {}
            return requests or allocated_to(container)

        allocated = _most_at_once(pod, lambda c: {**defaults, **_parsed(allocated_to(c))})
        actuated = _most_at_once(pod, lambda c: {**defaults, **_parsed(actuated_of(c))})
        if claims:
            _add_claims(allocated, pod)
    _raise_to(allocated, actuated)
    return allocated


def _effective_pod_level(pod: Pod, written: Quantities, *, use_status: bool) -> Nanos:
    """Return what stands in for sums over containers: with the status the most of all views."""
    status = pod.status
    if not use_status or status.resources is None:
        return _parsed(written)
    most = {} if is_resize_infeasible(pod) else _parsed(written)
    _raise_to(most, _parsed(_pod_level(status.resources.requests)))
    _raise_to(most, _parsed(_pod_level(status.allocated_resources)))
    return most


def _add_claims(requests: Nanos, pod: Pod) -> None:
    """Add what devices take (spec G15.3; 1.37 spec N4.11)."""
    for status in pod.status.node_allocatable_resource_claim_statuses:
        _add(requests, _parsed(status.resources))
        _add(requests, _parsed({mapped.name: mapped.quantity for mapped in status.mapping}))
        for overhead in status.overhead:
            of_containers = parse(overhead.per_container or 0) * len(status.containers)
            _add(requests, {overhead.name: parse(overhead.per_pod or 0) + of_containers})


def pod_limits(pod: Pod) -> Nanos:
    """Return the limits of *pod* as a whole in nano units (spec §8).

    The most that its containers may use at once; what is written for the pod stands in for that;
    overhead widens limits that there are.
    """

    limits = _most_at_once(pod, lambda container: _parsed(container.resources.limits))
    if pod.spec.resources is not None:
        limits.update(_parsed(_pod_level(pod.spec.resources.limits)))
    for name, amount in _parsed(pod.spec.overhead).items():
        if limits.get(name):
            limits[name] += amount
    return limits


def _most_at_once(pod: Pod, of_container: Callable[[Container], Nanos]) -> Nanos:
    """Return the most that the containers come to at once, while initialising or running.

    *of_container* says what one has a right to, in a dict that may be changed.
    """
    running: Nanos = {}
    sidecars: Nanos = {}
    initialising: Nanos = {}
    for container in pod.spec.containers:
        _add(running, of_container(container))
    for container in pod.spec.init_containers:
        amounts = of_container(container)
        if container.restart_policy == "Always":
            _add(running, amounts)
            _add(sidecars, amounts)
            _raise_to(initialising, sidecars)
        else:
            _add(amounts, sidecars)
            _raise_to(initialising, amounts)
    _raise_to(running, initialising)
    return running


def _pod_level_requests(pod: Pod) -> Quantities:
    """Return the requests of the pod as a whole."""
    return _pod_level(pod.spec.resources.requests) if pod.spec.resources else {}


def _pod_level(written: Quantities) -> Quantities:
    """Return what counts of amounts *written* for a pod as a whole."""
    return {
        name: quantity
        for name, quantity in written.items()
        if name in (CPU, MEMORY) or name.startswith(_HUGEPAGES)
    }


def resized_containers(pod: Pod) -> list[ContainerStatus]:
    """Return the statuses that make containers of *pod* count for other than what they request.

    Without, requests are those of the spec: a kubelet says of each container what it has given it.
    When a resize is infeasible, nothing but the status counts.
    """
    if not (pod.status.container_statuses or pod.status.init_container_statuses):
        return []
    status_of, resized = _status_by_container(pod), list[ContainerStatus]()
    infeasible = is_resize_infeasible(pod)
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        status, written = status_of.get(container.name), container.resources.requests
        if status is None:
            continue
        actuated = status.resources.requests if status.resources is not None else {}
        allocated = status.allocated_resources
        if infeasible or actuated not in ({}, written) or allocated not in ({}, written):
            resized.append(status)
    return resized


def _status_by_container(pod: Pod) -> dict[str, ContainerStatus]:
    """Return statuses by name; one of a container goes before that of an init container."""
    status = pod.status
    return {s.name: s for s in (*status.init_container_statuses, *status.container_statuses)}


def is_resize_infeasible(pod: Pod) -> bool:
    """Tell whether the kubelet has said that a resize of *pod* cannot come true."""
    return _reason_of_pending_resize(pod) == "Infeasible"


def is_resize_deferred(pod: Pod) -> bool:
    """Tell whether the kubelet has said that *pod* is resized once its node has room for that."""
    return _reason_of_pending_resize(pod) == "Deferred"


def _reason_of_pending_resize(pod: Pod) -> str:
    """Return what the first condition of that type says; empty if there is none."""
    pending = (c.reason for c in pod.status.conditions if c.type == "PodResizePending")
    return next(pending, "")


def _parsed(quantities: Quantities) -> Nanos:
    return {name: parse(quantity) for name, quantity in quantities.items()}


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(most: Nanos, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if name not in most or amount > most[name]:
            most[name] = amount
