"""Scores by storage capacity: the gate StorageCapacityScoring (G16.1)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from berth.kube.objects.quantity import value
from berth.kube.objects.storage import PersistentVolumeClaim
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints
from berth_plugins.shared.resource_allocation import UtilizationShapePoint, scoring_curve
from berth_plugins.volume_binding.matching_volumes import ClaimMatch
from berth_plugins.volume_binding.volume_provisions import VolumeProvisions

STORAGE_CAPACITY_SCORING: Final = "StorageCapacityScoring"
"""The feature gate."""

DEFAULT_SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)
"""Prefers nodes with much storage left, in contrast to what other shapes are made for."""

_FULL: Final = 100
_MOST: Final = np.iinfo(np.int64).max // _FULL
"""Bytes beyond which a percentage is not an int64: 92 PB."""


class StorageResource:
    """What claims of one storage class ask for and what there is, in bytes per row."""

    def __init__(self, rows: int) -> None:
        self.requested: Ints = np.zeros(rows, np.int64)
        self.capacity: Ints = np.zeros(rows, np.int64)
        self.counts = np.zeros(rows, bool)
        """The rows where any claim of the class gets a volume."""

    def utilization(self) -> Ints:
        """Return ``requested * 100 / capacity``, 100 where there is less than is asked for."""
        requested = np.minimum(self.requested, _MOST)
        capacity = np.minimum(self.capacity, _MOST)
        fits = (capacity > 0) & (requested <= capacity)
        return np.where(fits, requested * _FULL // np.maximum(capacity, 1), _FULL)


def class_resources(
    matches: Sequence[ClaimMatch],
    selected: Sequence[PersistentVolumeClaim],
    provisions: VolumeProvisions,
    nodes: NodeTable,
) -> Mapping[str, StorageResource]:
    """Return what a pod takes, by storage class.

    On rows where a claim gets an existing volume, only such claims count, each against the size of
    its volume. Elsewhere the claims of a class share the capacity of the last of them. Claims whose
    driver does not tell its capacity do not count.
    """
    resources: dict[str, StorageResource] = {}

    def of(claim: PersistentVolumeClaim) -> StorageResource:
        return resources.setdefault(claim.storage_class, StorageResource(nodes.size))

    is_static = nodes.no_rows()
    for match in matches:
        matched = match.found
        if not matched.any():
            continue
        sizes = np.array([min(value(volume.size), _MOST) for volume in match.volumes], np.int64)
        resource = of(match.claim)
        resource.requested[matched] += _requested(match.claim)
        resource.capacity[matched] += sizes[match.index[matched]]
        resource.counts |= matched
        is_static |= matched
    to_provision = [(claim, ~is_static) for claim in selected]
    to_provision += [(match.claim, ~is_static) for match in matches]
    for claim, where in to_provision:
        capacities = provisions.capacities(claim, nodes)
        if capacities is None:
            continue
        known = where & (capacities >= 0)
        resource = of(claim)
        resource.requested[known] += _requested(claim)
        resource.capacity[known] = capacities[known]
        resource.counts |= known
    return resources


def _requested(claim: PersistentVolumeClaim) -> int:
    return min(value(claim.requested_size), _MOST)


Scorer: TypeAlias = Callable[[Mapping[str, StorageResource], int], Ints]
"""Scores rows, of which it is told how many, 0 to 100."""


def volume_capacity_scorer(shape: Sequence[UtilizationShapePoint]) -> Scorer:
    """Return what scores rows by the curve of *shape*: the mean over their storage classes.

    Halves are rounded up; 0 where no class counts.
    """
    curve = scoring_curve(shape)

    def score(resources: Mapping[str, StorageResource], rows: int) -> Ints:
        total, classes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        for resource in resources.values():
            total += curve.take(resource.utilization()) * resource.counts
            classes += resource.counts
        return (2 * total + classes) // np.maximum(2 * classes, 1)

    return score
