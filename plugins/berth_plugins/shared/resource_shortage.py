"""Shortages of a resource on nodes: in words for one row, in columns for all."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.explanation import Objection
from berth.scheduler.framework.node_table import CPU, EPHEMERAL_STORAGE, MEMORY
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.framework.words import amount_in_words, counted, listed

NATIVE_INDEX: Final = {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": EPHEMERAL_STORAGE}
"""What every node has some of."""
NOTHING: Final = np.zeros(1, np.int64)
"""Of a resource that neither nodes nor their pods know, in every row."""


class Need(NamedTuple):
    """How much of a resource must be left, and what to say where it is not."""

    name: str
    amount: int
    reason: str


def too_many_pods(count: int, allowed: int) -> Detail:
    missing = count - allowed + 1
    change = Change(
        kind=ChangeKind.FREE_POD_SLOT,
        what="pods",
        amount=missing,
        words=f"take {counted(missing, 'pod')} away"
        if allowed
        else f"let it take {counted(missing, 'more pod')}",
    )
    return Detail(f"has {count} pods, takes {allowed}", change)


def in_all(name: str, total: int, free: int, nodes: int, holders: Sequence[str]) -> str:
    there, left = amount_in_words(name, total), amount_in_words(name, free)
    held = f", {'the others ' * bool(free)}held by {listed(holders)}" if holders else ""
    have = "has" if nodes == 1 else "have"
    return f"{counted(nodes, 'node')} {have} {there} {name} in all, {left} free{held}"


def lack(need: Need, allocatable: int, *, free: int) -> Detail:
    """Tell how much of a resource is missing, and whether other pods could give it back."""
    name, missing = need.name, need.amount - free
    needed = amount_in_words(name, need.amount, round_up=True)
    lacking = amount_in_words(name, missing, round_up=True)
    if not allocatable and name not in NATIVE_INDEX:
        return Detail(f"has no {name}")
    is_too_small = allocatable < need.amount
    change = Change(
        kind=ChangeKind.REQUEST_LESS if is_too_small else ChangeKind.FREE_RESOURCE,
        what=name,
        amount=missing,
        shortfall=missing / need.amount,
        words=f"request {lacking} {name} less, or have a larger node"
        if is_too_small
        else f"free {lacking} more {name}",
    )
    there = f"free {amount_in_words(name, free)} of {amount_in_words(name, allocatable)}"
    return Detail(f"needs {name} {needed}, {there}", change)


def lacks_in_columns(
    need: Need, allocatable: Ints, requested: Ints, *, is_backed: bool
) -> Iterator[Objection]:
    """Tell the same as :func:`lack` of all rows; where devices back it, of those that have some."""
    free = allocatable - requested
    short, has_some = free < need.amount, allocatable != 0
    if is_backed:
        short &= has_some
    elif need.name not in NATIVE_INDEX:
        yield Objection(short & ~has_some, None)
        short &= has_some
    is_too_small, shortfall = allocatable < need.amount, (need.amount - free) / need.amount
    yield Objection(short & is_too_small, ChangeKind.REQUEST_LESS, shortfall)
    yield Objection(short & ~is_too_small, ChangeKind.FREE_RESOURCE, shortfall)
