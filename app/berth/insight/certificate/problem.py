"""What is sent to the solver's process, and what it sends back. Plain numbers, no objects.

Nodes, groups and resources are numbered from 0.
"""

from enum import StrEnum

import msgspec

NO_DOMAIN = -1
"""Of a node without the label."""


class Goal(StrEnum):
    """What a placement is sought for."""

    FEWEST_NODES = "fewest nodes"
    """for all pods that run"""
    MOST_PENDING = "most pending pods"
    """by priority, and then the fewest evictions"""
    FEWEST_EVICTIONS = "fewest evictions"
    """that let all pods in, and leave nodes empty, and then those of the lowest priority"""


class Group(msgspec.Struct, frozen=True, array_like=True):
    """Pods that are alike in all that the model knows of them."""

    requests: dict[int, int]
    """What each takes of a resource, above 0."""
    nodes: tuple[int, ...]
    """Where the filters would let one come, were no movable pod there."""
    homes: dict[int, int]
    """How many run on a node."""
    waiting: int
    """How many have no node."""
    priority: int

    @property
    def running(self) -> int:
        return sum(self.homes.values())

    @property
    def count(self) -> int:
        return self.running + self.waiting


class Exclusion(msgspec.Struct, frozen=True, array_like=True):
    """Required anti-affinity: in a domain with a pod of *holders* there is no other of *targets*.

    That is for pods that get a node: two that run there already may stay.
    """

    topology: int
    holders: tuple[int, ...]
    targets: tuple[int, ...]


class Spread(msgspec.Struct, frozen=True, array_like=True):
    """A required spread: where a pod of *members* comes, there are then at most *max_skew* more of
    them than in the domain that has fewest.
    """

    topology: int
    members: tuple[int, ...]
    max_skew: int
    min_domains: int
    nodes: tuple[int, ...]
    """The nodes that count."""
    fixed: dict[int, int]
    """How many pods that stay count, by node."""


class Problem(msgspec.Struct, frozen=True, array_like=True):
    """A cluster without its movable pods, these pods, and what is to be reached."""

    goal: Goal
    rooms: tuple[tuple[int, ...], ...]
    """By node, what is left of each resource; below 0 where too much is taken."""
    is_busy: tuple[bool, ...]
    """By node, whether something that stays runs there, but for what goes with its node."""
    groups: tuple[Group, ...]
    topologies: tuple[tuple[int, ...], ...] = ()
    """By label, the domain of each node; or NO_DOMAIN."""
    exclusions: tuple[Exclusion, ...] = ()
    spreads: tuple[Spread, ...] = ()
    most_evictions: int | None = None
    may_lose: bool = False
    """Whether pods that run may be left without a node for pods of higher priority."""
    empty_nodes: int = 0
    """How many nodes have to run nothing at least, but for what goes with them."""
    forbidden: tuple[tuple[tuple[int, int, int], ...], ...] = ()
    """Sets of evictions that are not to be proposed (again): group, node, how many at least."""


class Limits(msgspec.Struct, frozen=True, array_like=True):
    """What the solver's process may take."""

    seconds: float = 30.0
    memory: int = 4 << 30
    """Bytes of address space."""
    workers: int = 2
    seed: int = 1


class Stage(msgspec.Struct, frozen=True, array_like=True):
    """One of the numbers sought, in their order; each given those before."""

    what: str
    value: int
    bound: int
    """No placement has a better one; the same as the value if that is the best."""


class Status(StrEnum):
    """How the search ended."""

    SOLVED = "solved"
    """with a placement, and a bound"""
    IMPOSSIBLE = "impossible"
    """proven: there is no placement"""
    OPEN = "open"
    """without a placement: the time or the memory was over"""


class Solution(msgspec.Struct, frozen=True, array_like=True):
    """What the solver found."""

    status: Status
    stages: tuple[Stage, ...] = ()
    placement: tuple[tuple[int, int, int], ...] = ()
    """Group, node, and how many of the group are there."""
    seconds: float = 0.0
    within_one_percent: float | None = None
    """After how many seconds value and bound of the first stage were that close."""
    why: str = ""
    """What ended the search, if it has no placement."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """What the process reads."""

    problem: Problem
    limits: Limits


def is_within_one_percent(value: float, bound: float) -> bool:
    return abs(value - bound) <= 0.01 * max(abs(value), abs(bound))
