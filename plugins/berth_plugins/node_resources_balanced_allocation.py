"""NodeResourcesBalancedAllocation: prefer nodes where no resource runs out long before others."""

from collections.abc import Hashable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from berth.kube.objects.resources import Resources
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    MAX_NODE_SCORE,
    Input,
    PluginArgs,
    PreScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.single_rows import ScoresRows
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import Ints, everywhere
from berth_plugins.shared.cpu_and_memory import CpuAndMemory, balanced_allocation_of, weights_of
from berth_plugins.shared.device_scoring import DeviceScoring
from berth_plugins.shared.resource_allocation import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    ScoredResource,
    scored_resources,
)

Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """The resources to balance; they all weigh the same."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """Resources to balance."""

    @field_validator("resources")
    @classmethod
    def _check_resources(cls, specs: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
        names: set[str] = set()
        for i, spec in enumerate(specs):
            if spec.effective_weight != 1:
                raise ValueError(
                    f"resources[{i}].weight: Invalid value: {spec.weight}: resource weight of"
                    f" {spec.name} must be 1"
                )
            if spec.name in names:
                raise ValueError(f"resources[{i}].name: Duplicate value: {spec.name!r}")
            names.add(spec.name)
        return specs or DEFAULT_RESOURCES


class NodeResourcesBalancedAllocation(PreScorePlugin, ScoresRows):
    """Scores nodes by how much the pod evens out the use of their resources (spec §5.9).

    With ``balance = int((1 - std) * 100)`` over the used fractions of the resources, with and
    without the pod, the score is ``50 + (50 + balance_with - balance_without) / 2``: 75 where
    nothing changes.
    """

    NAME = "NodeResourcesBalancedAllocation"
    INPUTS = Input.LOAD | Input.CONTAINERS
    ARGS = NodeResourcesBalancedAllocationArgs

    def __init__(
        self,
        args: NodeResourcesBalancedAllocationArgs | None = None,
        handle: Handle | None = None,
    ) -> None:
        super().__init__(args, handle)
        self._resources = (args or NodeResourcesBalancedAllocationArgs()).resources
        self._weights = weights_of(self._resources)
        handle = handle or Handle(NodeTable())
        self._devices = DeviceScoring(handle, (resource.name for resource in self._resources))

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return self._devices.follow_from(pod.template.requested)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Skip pods that request none of the resources."""
        return None if self._counts(pod.template.requested) else SKIP

    def _counts(self, requests: Resources) -> bool:
        """Whether any of the resources is requested."""
        return any(requests.amount(resource.name) for resource in self._resources)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        requests = pod.template.requested
        if not self._counts(requests):  # the plugin is disabled at preScore
            return everywhere(0, nodes.size)
        if self._weights is not None and (kept := CpuAndMemory.of(nodes)) is not None:
            scores = kept.balanced_allocation(requests)
            if scores is not None:
                return scores
        devices = self._devices.counts_for(requests, nodes)
        scored = scored_resources(nodes, self._resources, requests, non_zero=False, devices=devices)
        return balanced_allocation(scored, nodes.size)

    def score_row(self, pod: PodInfo, nodes: NodeTable, row: int) -> int | None:
        if self._weights is None or not self._counts(pod.template.requested):
            return None
        return balanced_allocation_of(nodes, row, pod.template.requested)


def balanced_allocation(resources: Sequence[ScoredResource], rows: int) -> Ints:
    """Return the scores of so many rows by *resources*."""
    of = [resource.capacity.float_divisor for resource in resources]
    with_pod = [_fraction(r.requested, f) for r, f in zip(resources, of, strict=True)]
    without = [_fraction(r.used, f) for r, f in zip(resources, of, strict=True)]
    gain = _balance(resources, with_pod, rows) - _balance(resources, without, rows)
    half = MAX_NODE_SCORE // 2
    gain += half
    gain >>= 1  # halves, rounded down; no gain is below -half
    gain += half
    return gain


def _fraction(amounts: Ints, divisor: Floats) -> Floats:
    """Return which part of a resource is used: ``min(amount / allocatable, 1)``.

    Both are converted before they are divided, as in kube-scheduler, so the rounding is the same.
    """
    fraction = amounts.astype(np.float64)
    fraction /= divisor
    np.minimum(fraction, 1.0, out=fraction)
    return fraction


def _balance(resources: Sequence[ScoredResource], fractions: Sequence[Floats], rows: int) -> Ints:
    """Return ``int((1 - std) * 100)`` per row, ``std`` over the resources that the row has.

    For one resource ``std`` is 0, for two ``|f0 - f1| / 2``, for more the standard deviation of the
    population.
    """
    match len(fractions):
        case 0 | 1:
            std = np.zeros(rows)
        case 2:
            std = fractions[0] - fractions[1]
            np.abs(std, out=std)
            std /= 2
            if not all(resource.capacity.is_everywhere for resource in resources):
                std *= resources[0].capacity.counts & resources[1].capacity.counts
        case _:
            std = _deviation(resources, fractions)
    np.subtract(1.0, std, out=std)
    std *= MAX_NODE_SCORE
    return std.astype(np.int64)


def _deviation(resources: Sequence[ScoredResource], fractions: Sequence[Floats]) -> Floats:
    """Return ``std`` for three resources or more, where rows may have fewer of them.

    What a row lacks adds an exact 0 to its sums, so they are those over the others, in order.
    """
    counts = [resource.capacity.counts for resource in resources]
    number = reduce(np.add, (count.astype(np.int64) for count in counts))
    known = [f * count for f, count in zip(fractions, counts, strict=True)]
    mean = reduce(np.add, known) / np.maximum(number, 1)
    squares = [(f - mean) * (f - mean) * count for f, count in zip(known, counts, strict=True)]
    std = np.sqrt(reduce(np.add, squares) / np.maximum(number, 1))
    lowest = reduce(
        np.minimum, (np.where(count, f, 1.0) for f, count in zip(known, counts, strict=True))
    )
    two = (reduce(np.maximum, known) - lowest) / 2
    deviation: Floats = np.where(number > 2, std, np.where(number == 2, two, 0.0))
    return deviation
