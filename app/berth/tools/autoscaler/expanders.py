"""Expanders of cluster-autoscaler: the choice among groups that would help."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from berth.kube.objects.quantity import NANO, parse
from berth.tools.autoscaler.node_groups import NodeGroup
from berth.tools.autoscaler.options import (
    LEAST_NODES,
    LEAST_WASTE,
    MOST_PODS,
    PRICE,
    PRIORITY,
    RANDOM,
)

CPU_PRICE: Final = 0.033174
MEMORY_PRICE: Final = 0.004446
"""What a pod is worth for an hour, by core and by GiB: the ratio of cluster-autoscaler's model of
prices, so that a node that takes more pods may cost more."""
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Option:
    """A scale-up that would help; *cpu* (cores) and *memory* (bytes) are what its pods request."""

    group: NodeGroup
    nodes: int
    pods: Sequence[str]
    cpu: float
    memory: float


def best_option(
    options: Sequence[Option], expanders: Sequence[str], *, rng: random.Random
) -> Option | None:
    """Return the option that *expanders*, asked in turn, leave; ties are broken by *rng*."""
    left = list(options)
    for name in expanders:
        if name != RANDOM and len(left) > 1:
            left = _best(left, _COSTS[name])
    if len(left) < 2:
        return left[0] if left else None
    return rng.choice(left)


def _best(options: Sequence[Option], cost: Callable[[Option], float]) -> list[Option]:
    costs = [cost(option) for option in options]
    least = min(costs)
    return [option for option, cost in zip(options, costs, strict=True) if cost == least]


def _waste(option: Option) -> float:
    """Return the share of the new cpu that is not requested, plus that of the memory."""
    allocatable = option.group.template.allocatable()
    cpu = parse(allocatable["cpu"]) / NANO * option.nodes
    memory = parse(allocatable["memory"]) / NANO * option.nodes
    return _free(cpu, option.cpu) + _free(memory, option.memory)


def _free(has: float, requested: float) -> float:
    return (has - requested) / has if has else 0.0


def _price(option: Option) -> float:
    """Return the price of the nodes for what its pods are worth."""
    worth = option.cpu * CPU_PRICE + option.memory / GIB * MEMORY_PRICE
    price = (option.group.price or 0.0) * option.nodes
    return price / worth if worth else price


_COSTS: Final[Mapping[str, Callable[[Option], float]]] = {
    LEAST_NODES: lambda option: option.nodes,
    LEAST_WASTE: _waste,
    MOST_PODS: lambda option: -len(option.pods),
    PRICE: _price,
    PRIORITY: lambda option: -option.group.priority,
}
