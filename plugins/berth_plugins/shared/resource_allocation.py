"""Scores of a node by what is left of its resources (spec §5.8, §5.9).

They look at some configured resources. Which of them count on which
node is the same rule everywhere: :func:`scored_resources` and ``ScoredResource.counts``. Products
and quotients are int64, as Go's: of more than 2**63 // 100 (92 PB) a hundred times as much wraps
around, and quotients are truncated. Sums do not wrap, for then a full node would look empty.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from berth.kube.objects.quantity import MAX_INT64
from berth.kube.objects.resources import Resources
from berth.scheduler.framework.interface import MAX_NODE_SCORE, PluginArgs
from berth.scheduler.framework.node_table import CPU, MEMORY, NodeTable
from berth.scheduler.framework.verdict import Ints, Mask, Rows

_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_WITH_DEFAULTS: Final = {"cpu": CPU, "memory": MEMORY}

MAX_SHAPE_SCORE: Final = 10
"""The best score in a configured shape; ``MAX_NODE_SCORE`` is what it stands for."""


class ResourceSpec(BaseModel):
    """A resource to score by, and how much it weighs against the others; weight 0 means 1."""

    model_config = PluginArgs.model_config

    name: str
    """Name of the resource."""
    weight: int = 1
    """Weight, 1 to 100."""

    @property
    def effective_weight(self) -> int:
        return self.weight or 1


DEFAULT_RESOURCES: Final = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class UtilizationShapePoint(BaseModel):
    """One point of a scoring curve: *score* (0-10) at *utilization* (0-100)."""

    model_config = PluginArgs.model_config

    utilization: int = Field(ge=0, le=100)
    """Utilization in percent."""
    score: int = Field(ge=0, le=MAX_SHAPE_SCORE)
    """Score, 0 to 10."""


def check_shape(shape: Sequence[UtilizationShapePoint]) -> None:
    """Raise ``ValueError`` unless *shape* has points and their utilizations increase."""
    if not shape:
        raise ValueError("shape: at least one point must be specified")
    for i, (before, point) in enumerate(pairwise(shape), start=1):
        if point.utilization <= before.utilization:
            raise ValueError(
                f"shape[{i}].utilization: Invalid value: {point.utilization}: utilization values"
                f" must be sorted in increasing order"
            )


class Capacity(NamedTuple):
    """How much of one resource there is, over all rows of a table; follows from nodes alone."""

    allocatable: Ints
    divisor: Ints
    """``allocatable``, with 1 where there is none of the resource, to divide by."""
    float_divisor: NDArray[np.float64]
    counts: Mask
    """The rows that have any of the resource; on others it is left out of the score."""
    is_everywhere: bool
    is_vast: bool
    """Whether a hundred times as much is somewhere more than int64 holds."""

    @classmethod
    def of(cls, allocatable: Ints) -> "Capacity":
        divisor, counts = np.maximum(allocatable, 1), allocatable != 0
        return cls(
            allocatable.copy(),
            divisor,
            divisor.astype(np.float64),
            counts,
            bool(counts.all()),
            is_vast=int(allocatable.max(initial=0)) > MAX_INT64 // MAX_NODE_SCORE,
        )

    def take(self, rows: NDArray[np.intp]) -> "Capacity":
        """Return the capacity of some rows only."""
        counts = self.counts[rows]
        return Capacity(
            self.allocatable[rows],
            self.divisor[rows],
            self.float_divisor[rows],
            counts,
            self.is_everywhere or bool(counts.all()),
            self.is_vast,
        )


class ScoredResource(msgspec.Struct, frozen=True):
    """One configured resource, over the rows that are scored."""

    weight: int
    capacity: Capacity
    used: Ints
    """What the pods on each node take."""
    request: int
    """What the pod that is being scheduled would add."""

    @property
    def requested(self) -> Ints:
        """What would be taken with the pod; beyond int64 the most that it holds."""
        return np.minimum(self.used, MAX_INT64 - self.request) + self.request


Amounts = tuple[Ints, Ints]
"""Of a resource on each row: how much there is, and how much is in use."""

DeviceCounts = Callable[[str, Amounts | None], Amounts | None]
"""``counts(resource, known)``: the amounts with devices in place of nothing; None: none count."""


def scored_resources(
    nodes: NodeTable,
    resources: Sequence[ResourceSpec],
    requests: Resources,
    rows: Rows | None = None,
    *,
    non_zero: bool,
    devices: DeviceCounts | None = None,
) -> list[ScoredResource]:
    """Return those of *resources* that matter for a pod with *requests* (spec §5.8), on *rows*.

    A scalar resource that the pod does not ask for is left out, as is one that no node has.
    *rows* None: all of them.
    *non_zero*: cpu and memory in use are counted with defaults for pods that request none.
    *devices* counts for a resource where a node has none of it otherwise.
    """
    scored = []
    for resource in resources:
        name, request = resource.name, requests.amount(resource.name)
        if not request and name not in _NATIVE:
            continue
        known = nodes.resource_rows(name)
        counted = devices(name, known) if devices is not None else None
        if counted is not None:
            allocatable, used = counted
            capacity = Capacity.of(allocatable)
        elif known is None:
            continue
        else:
            allocatable, used = known
            if non_zero and name in _WITH_DEFAULTS:
                used = nodes.non_zero_requested[_WITH_DEFAULTS[name]]
            capacity = nodes.kept(("capacity", name), partial(Capacity.of, allocatable))
        if rows is not None:
            capacity, used = capacity.take(rows), used[rows]
        scored.append(ScoredResource(resource.effective_weight, capacity, used, request))
    return scored


ResourceStrategy = Callable[[Sequence[ScoredResource], int], Ints]
"""``strategy(resources, rows)``: a score of 0-100 for each of so many rows."""


def least_allocated(resources: Sequence[ScoredResource], rows: int) -> Ints:
    """Prefer nodes with much left.

    Per resource ``(allocatable - requested) * 100 / allocatable``, 0 when over-full; of a node the
    weighted average, ``sum(score * weight) / sum(weight)``, 0 without resources.
    """
    total = np.zeros(rows, np.int64)
    for resource in resources:
        left = resource.capacity.allocatable - resource.requested
        np.maximum(left, 0, out=left)
        total += _weighted_percent(left, resource)
    return _averaged(total, resources)


def most_allocated(resources: Sequence[ScoredResource], rows: int) -> Ints:
    """Prefer nodes with little left.

    Per resource ``min(requested, allocatable) * 100 / allocatable``; averaged as
    :func:`least_allocated` does.
    """
    total = np.zeros(rows, np.int64)
    for resource in resources:
        taken = np.minimum(resource.requested, resource.capacity.allocatable)
        total += _weighted_percent(taken, resource)
    return _averaged(total, resources)


def _averaged(total: Ints, resources: Sequence[ScoredResource]) -> Ints:
    """Divide by the weights of the resources that each row has; a row without any gets 0."""
    is_vast = any(resource.capacity.is_vast for resource in resources)
    if not is_vast and all(resource.capacity.is_everywhere for resource in resources):
        # The same divisor everywhere, which NumPy divides by several times faster.
        total //= max(sum(resource.weight for resource in resources), 1)
        return total
    weights = np.zeros(len(total), np.int64)
    for resource in resources:
        weights += resource.capacity.counts * resource.weight
    np.maximum(weights, 1, out=weights)
    if is_vast:
        return _quotient(total, weights)
    total //= weights
    return total


def _weighted_percent(part: Ints, of: ScoredResource) -> Ints:
    percent = _percent(part, of)
    if of.weight != 1:
        percent *= of.weight
    return percent


def _percent(part: Ints, of: ScoredResource) -> Ints:
    """Turn *part* into ``part * 100 / allocatable`` in place, and return it."""
    part *= MAX_NODE_SCORE
    if of.capacity.is_vast:
        return _quotient(part, of.capacity.divisor)
    part //= of.capacity.divisor
    return part


def _quotient(part: Ints, divisor: Ints) -> Ints:
    """Divide in place, truncating as Go does; *divisor* is positive."""
    has_wrapped = part < 0
    quotient = part // divisor
    quotient += has_wrapped & (quotient * divisor != part)
    part[:] = quotient
    return part


def requested_to_capacity_ratio(shape: Sequence[UtilizationShapePoint]) -> ResourceStrategy:
    """Return the strategy that scores by a curve over utilization (spec §5.8).

    ``utilization = requested * 100 / allocatable``, 100 when over-full. A node gets the weighted
    average of its resources that score above 0, rounded half up.
    """
    curve = scoring_curve(shape)

    def score(resources: Sequence[ScoredResource], rows: int) -> Ints:
        total, weights = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        for resource in resources:
            requested, allocatable = resource.requested, resource.capacity.allocatable
            utilization = _percent(np.minimum(requested, allocatable), resource)
            if resource.capacity.is_vast:
                utilization[requested > allocatable] = MAX_NODE_SCORE
                np.maximum(utilization, 0, out=utilization)
            scores = curve.take(utilization) * resource.capacity.counts
            total += scores * resource.weight
            weights += (scores > 0) * resource.weight
        # kube-scheduler rounds the quotient of two small floats; halves are exact there too.
        return (2 * total + weights) // np.maximum(2 * weights, 1)

    return score


def scoring_curve(shape: Sequence[UtilizationShapePoint]) -> Ints:
    """Return the score (0-100) at each utilization from 0 to 100."""
    return np.array([_on_curve(shape, u) for u in range(MAX_NODE_SCORE + 1)], np.int64)


def _on_curve(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """Return the score (0-100) at *utilization*, in a straight line between points.

    ``y0 + (y1 - y0) * (utilization - x0) / (x1 - x0)``, the quotient truncated toward zero.
    """
    factor = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    for i, point in enumerate(shape):
        if utilization <= point.utilization:
            if i == 0:
                return point.score * factor
            before = shape[i - 1]
            rise = (point.score - before.score) * factor * (utilization - before.utilization)
            run = point.utilization - before.utilization
            return before.score * factor + (rise // run if rise >= 0 else -(-rise // run))
    return shape[-1].score * factor
