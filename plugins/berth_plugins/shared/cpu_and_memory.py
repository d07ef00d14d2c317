"""The scores by cpu and memory, which profiles have by default, in float64.

NumPy divides float64 ten times as fast as int64. What does not depend on the pod is kept by row.
The answers are those of :mod:`berth_plugins.shared.resource_allocation`: for amounts up to
:data:`MOST` a hundred times as much is an integer that float64 holds, and the quotient of two such
integers, rounded to float64, has the same integer part as the exact one.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.resources import Resources
from berth.scheduler.framework.interface import MAX_NODE_SCORE
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints
from berth_plugins.shared.resource_allocation import ResourceSpec

Floats = NDArray[np.float64]
SmallInts = NDArray[np.int32]

MOST: Final = 2**46
"""In the units of a table: 64 TiB."""


class TooMuchError(Exception):
    """Some amount is negative or more than :data:`MOST`."""


def weights_of(resources: Sequence[ResourceSpec]) -> tuple[int, int] | None:
    """Return the weights of cpu and memory if these are the *resources*, in this order."""
    if [resource.name for resource in resources] != ["cpu", "memory"]:
        return None
    cpu, memory = resources
    return cpu.effective_weight, memory.effective_weight


class CpuAndMemory(NamedTuple):
    """Cpu and memory of all rows; shape (2, slots) unless it says otherwise."""

    allocatable: Floats
    nothing: Floats
    """Zeros: NumPy compares two arrays twice as fast as an array and a number."""
    free: Floats
    """What is left, times a hundred; pods that request none count with defaults."""
    used: Floats
    """What pods request."""
    balance: SmallInts
    """The balance (spec §5.9) without any other pod; shape (slots,)."""

    @classmethod
    def of(cls, nodes: NodeTable) -> "CpuAndMemory | None":
        """Return what is kept of *nodes*; None unless all of them have both, in moderation."""
        capacity = nodes.kept(CpuAndMemory, partial(_capacity, nodes))
        if capacity is None:
            return None
        try:
            loads = nodes.per_row(CpuAndMemory, _Loads(nodes, capacity[0]))
        except TooMuchError:
            return None
        return cls(*capacity, *loads)

    def least_allocated(self, requests: Resources, weights: tuple[int, int]) -> Ints | None:
        """Score as the strategy of this name; None if the requests are out of range."""
        cpu, memory = requests.milli_cpu, requests.memory
        if not (0 <= cpu <= MOST and 0 <= memory <= MOST):
            return None
        percent = self.free - _column(MAX_NODE_SCORE * cpu, MAX_NODE_SCORE * memory)
        np.maximum(percent, self.nothing, out=percent)
        percent /= self.allocatable
        of_resources = percent.astype(np.int32)
        if weights != (1, 1):
            of_resources *= np.array(weights, np.int32)[:, np.newaxis]
        total = of_resources[0] + of_resources[1]
        total //= sum(weights)
        scores: Ints = total.astype(np.int64)
        return scores

    def balanced_allocation(self, requests: Resources) -> Ints | None:
        """Score as NodeResourcesBalancedAllocation; None if the requests are out of range."""
        cpu, memory = requests.milli_cpu, requests.memory
        if not (0 <= cpu <= MOST and 0 <= memory <= MOST):
            return None
        gain = _balance(self.used + _column(cpu, memory), self.allocatable)
        gain -= self.balance
        gain += 3 * MAX_NODE_SCORE // 2
        gain >>= 1  # 50 and half of 50 + gain, rounded down
        return gain.astype(np.int64)


def least_allocated_of(
    nodes: NodeTable, row: int, requests: Resources, weights: tuple[int, int]
) -> int | None:
    """Return what :meth:`CpuAndMemory.least_allocated` says of *row*; None as there.

    Of few rows one by one costs less than all at once.
    """
    loads = _loads_of(nodes, row, requests, nodes.non_zero_requested)
    if loads is None:
        return None
    (of_cpu, of_memory), (cpu, memory) = loads
    left_of_cpu = max(of_cpu - cpu, 0) * MAX_NODE_SCORE // of_cpu
    left_of_memory = max(of_memory - memory, 0) * MAX_NODE_SCORE // of_memory
    return (left_of_cpu * weights[0] + left_of_memory * weights[1]) // sum(weights)


def balanced_allocation_of(nodes: NodeTable, row: int, requests: Resources) -> int | None:
    """Return what :meth:`CpuAndMemory.balanced_allocation` says of *row*; None as there."""
    loads = _loads_of(nodes, row, requests, nodes.requested)
    if loads is None:
        return None
    allocatable, (cpu, memory) = loads
    without = cpu - requests.milli_cpu, memory - requests.memory
    gain = _balance_of((cpu, memory), allocatable) - _balance_of(without, allocatable)
    return (gain + 3 * MAX_NODE_SCORE // 2) >> 1


def _loads_of(
    nodes: NodeTable, row: int, requests: Resources, used: Ints
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return how much cpu and memory *row* has, and how much of it is taken with the pod."""
    if nodes.kept(CpuAndMemory, partial(_capacity, nodes)) is None:
        return None
    allocatable = nodes.allocatable
    of_cpu, of_memory = allocatable.item(0, row), allocatable.item(1, row)
    cpu, memory = used.item(0, row), used.item(1, row)
    more_cpu, more_memory = requests.milli_cpu, requests.memory
    if not (
        0 <= cpu <= MOST
        and 0 <= memory <= MOST
        and 0 <= more_cpu <= MOST
        and 0 <= more_memory <= MOST
    ):
        return None
    return (of_cpu, of_memory), (cpu + more_cpu, memory + more_memory)


def _balance_of(used: tuple[int, int], allocatable: tuple[int, int]) -> int:
    """Return the balance of one row, as :func:`_balance` does of all."""
    (cpu, memory), (of_cpu, of_memory) = used, allocatable
    difference = abs(min(cpu, of_cpu) / of_cpu - min(memory, of_memory) / of_memory)
    return int((2.0 - difference) * (MAX_NODE_SCORE / 2))


def _capacity(nodes: NodeTable) -> tuple[Floats, Floats] | None:
    allocatable = np.where(nodes.exists, nodes.allocatable[:2], 1)
    if allocatable.min(initial=1) < 1 or allocatable.max(initial=1) > MOST:
        return None
    return allocatable.astype(np.float64), np.zeros(allocatable.shape)


class _Loads:
    """What is kept of each row: ``free``, ``used`` and ``balance``."""

    def __init__(self, nodes: NodeTable, allocatable: Floats) -> None:
        self._nodes = nodes
        self._allocatable = allocatable

    def of_all(self) -> tuple[Floats, Floats, SmallInts]:
        requested, non_zero = self._nodes.requested[:2], self._nodes.non_zero_requested
        # As unsigned numbers the negative ones are large.
        if max(int(loads.view(np.uint64).max(initial=0)) for loads in (requested, non_zero)) > MOST:
            raise TooMuchError
        free = self._allocatable - non_zero
        free *= MAX_NODE_SCORE
        used = requested.astype(np.float64)
        return free, used, _balance(used.copy(), self._allocatable)

    def of_row(self, row: int) -> tuple[tuple[float, float], tuple[int, int], int]:
        used = cpu, memory = self._nodes.requested[:2, row].tolist()
        non_zero_cpu, non_zero_memory = self._nodes.non_zero_requested[:, row].tolist()
        if not (
            0 <= cpu <= MOST
            and 0 <= memory <= MOST
            and 0 <= non_zero_cpu <= MOST
            and 0 <= non_zero_memory <= MOST
        ):
            raise TooMuchError
        allocatable = of_cpu, of_memory = self._allocatable[:, row].tolist()
        free = (of_cpu - non_zero_cpu) * 100, (of_memory - non_zero_memory) * 100
        return free, used, _balance_of(used, allocatable)


def _balance(used: Floats, allocatable: Floats) -> SmallInts:
    """Return ``int((1 - |f0 - f1| / 2) * 100)``, ``f = min(used / allocatable, 1)``, per row.

    Bit by bit: halves and doubles are exact, so the rounding is the same. *used* is used up.
    """
    np.minimum(used, allocatable, out=used)
    used /= allocatable
    difference = used[0]
    difference -= used[1]
    np.abs(difference, out=difference)
    np.subtract(2.0, difference, out=difference)
    difference *= MAX_NODE_SCORE / 2
    balance: SmallInts = difference.astype(np.int32)
    return balance


def _column(cpu: int, memory: int) -> Floats:
    return np.array(((cpu,), (memory,)), np.float64)
