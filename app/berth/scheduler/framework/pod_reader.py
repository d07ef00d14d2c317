"""The reader of pods, by feature gates: pods are read through it once, where they come in."""

from collections.abc import Callable, Container
from typing import Final

import msgspec

from berth.kube.objects.pod import Container as PodContainer
from berth.kube.objects.pod import ContainerStatus, Pod, ResourceRequirements
from berth.kube.objects.quantity import Quantities, Quantity, parse
from berth.kube.objects.resources import is_resize_infeasible, pod_requests, resized_containers
from berth.runtime.release import Behaviour
from berth.scheduler.config.feature_gates import (
    IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
    POD_LEVEL_RESOURCES,
)
from berth.scheduler.framework.pod_group_sources import group_reader

PodReader = Callable[[Pod], Pod]
"""Returns a pod as it counts."""

RESIZE_COUNTS_BY_POD: Final = Behaviour(
    "1.37",
    "N3.4",
    "While containers are resized in place, the most of what is requested, allocated and actuated"
    " counts for the pod as a whole, not for each container.",
)

_replace: Final = msgspec.structs.replace


def pod_reader(features: Container[object]) -> PodReader | None:
    """Return what leaves out fields whose feature gate is off, and gives pods their groups.

    A component with such a gate off does not see the field (spec §4.4, §5.12, G16.4), so that a
    pod without it is the same. Before RESIZE_COUNTS_BY_POD, a pod that is resized is read as one
    that has what counted then. None if all of every pod counts, as by default.
    """
    readers: list[PodReader] = [read for gate, read in _OFF.items() if gate not in features]
    if RESIZE_COUNTS_BY_POD not in features:
        readers.append(_resized_by_container)
    groups = group_reader(features)
    if groups is not None:
        readers.append(groups)
    if not readers:
        return None

    def read(pod: Pod) -> Pod:
        for reader in readers:
            pod = reader(pod)
        return pod

    return read


def _without_pod_level_resources(pod: Pod) -> Pod:
    if pod.spec.resources is None:
        return pod
    return _replace(pod, spec=_replace(pod.spec, resources=None))


def _without_actual_pod_level_resources(pod: Pod) -> Pod:
    if pod.status.resources is None and not pod.status.allocated_resources:
        return pod
    return _replace(pod, status=_replace(pod.status, resources=None, allocated_resources={}))


def _without_match_label_keys(pod: Pod) -> Pod:
    constraints = pod.spec.topology_spread_constraints
    if not any(constraint.match_label_keys for constraint in constraints):
        return pod
    kept = tuple(_replace(constraint, match_label_keys=()) for constraint in constraints)
    return _replace(pod, spec=_replace(pod.spec, topology_spread_constraints=kept))


def _resized_by_container(pod: Pod) -> Pod:
    """Return a pod whose status says of each container what 1.36 counts for it (spec §4.4).

    That is the most of what is written, actuated and allocated, unless the kubelet says nothing of
    what is actuated; of init containers only sidecars are resized.
    """
    status, spec = pod.status, pod.spec
    has_pod_level = status.resources is not None or bool(status.allocated_resources)
    infeasible = is_resize_infeasible(pod)
    if not (resized_containers(pod) or has_pod_level or infeasible):
        return pod
    status_of = {s.name: s for s in (*status.container_statuses, *status.init_container_statuses)}
    counted = {
        container.name: _counted(
            container,
            status_of.get(container.name),
            infeasible=infeasible,
            is_resized=container in spec.containers or container.restart_policy == "Always",
        )
        for container in (*spec.containers, *spec.init_containers)
    }
    spec = _replace(
        spec,
        containers=tuple(_explicit(c, counted[c.name]) for c in spec.containers),
        init_containers=tuple(_explicit(c, counted[c.name]) for c in spec.init_containers),
    )
    read = _replace(
        pod,
        spec=spec,
        status=_replace(
            status,
            container_statuses=tuple(
                _as_status(c.name, counted[c.name])
                for c in (*spec.containers, *spec.init_containers)
            ),
            init_container_statuses=(),
            resources=None,
            allocated_resources={},
        ),
    )
    if status.resources is None or spec.resources is None:
        return read
    written = spec.resources.requests
    views = [{} if infeasible else written, status.resources.requests, status.allocated_resources]
    bare = _replace(read, spec=_replace(spec, overhead={}))
    total: dict[str, Quantity] = {
        name: f"{amount}n"
        for name, amount in pod_requests(bare, use_status=True, pod_level=False).items()
    }
    total |= _most(*({n: q for n, q in view.items() if n in written} for view in views))
    as_written = ResourceRequirements(requests=total)
    return _replace(
        read, status=_replace(read.status, resources=as_written, allocated_resources=total)
    )


def _counted(
    container: PodContainer,
    status: ContainerStatus | None,
    *,
    infeasible: bool,
    is_resized: bool,
) -> Quantities:
    """Return what 1.36 counts for a container, defaults left out."""
    written = container.resources.requests
    if status is None or status.resources is None or not is_resized:
        return written
    wanted = {} if infeasible else written
    return _most(wanted, status.resources.requests, status.allocated_resources)


def _explicit(container: PodContainer, counted: Quantities) -> PodContainer:
    """Return a container that gets no default for what it has without having requested it."""
    written = container.resources.requests
    if counted.keys() <= written.keys():
        return container
    requests = {**dict.fromkeys(counted, 0), **written}
    return _replace(container, resources=_replace(container.resources, requests=requests))


def _as_status(name: str, counted: Quantities) -> ContainerStatus:
    requirements = ResourceRequirements(requests=counted)
    return ContainerStatus(name=name, resources=requirements, allocated_resources=counted)


def _most(*views: Quantities) -> Quantities:
    """Return of each resource the largest quantity."""
    most: dict[str, Quantity] = {}
    for view in views:
        for name, quantity in view.items():
            if name not in most or parse(quantity) > parse(most[name]):
                most[name] = quantity
    return most


_OFF: Final = {
    POD_LEVEL_RESOURCES: _without_pod_level_resources,
    IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING: _without_actual_pod_level_resources,
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: _without_match_label_keys,
}
"""What a gate that is off leaves of a pod."""
