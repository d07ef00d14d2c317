"""The reader of pods, by feature gates: pods are read through it once, where they come in."""

from collections.abc import Callable, Container
from typing import Final

import msgspec

from berth.kube.objects.pod import Pod
from berth.scheduler.config.feature_gates import (
    IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
    POD_LEVEL_RESOURCES,
)
from berth.scheduler.framework.pod_group_sources import group_reader

PodReader = Callable[[Pod], Pod]
"""Returns a pod as it counts."""

_replace: Final = msgspec.structs.replace


def pod_reader(features: Container[str]) -> PodReader | None:
    """Return what leaves out fields whose feature gate is off, and gives pods their groups.

    A component with such a gate off does not see the field (spec §4.4, §5.12, G16.4), so that a
    pod without it is the same. None if all of every pod counts, as by default.
    """
    readers: list[PodReader] = [read for gate, read in _OFF.items() if gate not in features]
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


_OFF: Final = {
    POD_LEVEL_RESOURCES: _without_pod_level_resources,
    IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING: _without_actual_pod_level_resources,
    MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: _without_match_label_keys,
}
"""What a gate that is off leaves of a pod."""
