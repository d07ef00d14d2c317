"""The node whose victims are missed least (spec §6.6)."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.framework.preemption.candidate import (
    Candidate,
    Candidates,
    Criterion,
    Preemption,
    Round,
)
from berth.framework.verdict import Rows

_EVERY_VICTIM: Final = 2**31
"""Added to each priority, so that a victim of negative priority counts, too."""


def select_candidate(found: Preemption, rng: Random) -> Preemption:
    """Return *found*, which has candidates, with the best of them chosen; *rng* breaks ties."""
    columns = Candidates.of(found.candidates)
    left, rounds, runner_up = _compared(columns)
    equals = columns.take(left)
    chosen = rng.choice(equals)
    if runner_up is None and len(equals) > 1:
        runner_up = next(i for i in left.tolist() if columns.nodes[i] != chosen.node)
    return replace(
        found,
        equals=equals,
        chosen=chosen,
        rounds=rounds,
        runner_up=None if runner_up is None else columns[runner_up],
    )


def equally_good(candidates: Sequence[Candidate]) -> Candidates:
    """Return the best of *candidates*; several if no criterion tells them apart.

    Each criterion leaves those that are best by it to the next one.
    """
    columns = Candidates.of(candidates)
    return columns.take(_compared(columns)[0])


def _compared(candidates: Candidates) -> tuple[Rows, tuple[Round, ...], int | None]:
    """Return the best, what each criterion left, and the best of those left out last."""
    left, rounds, runner_up = np.arange(len(candidates)), [], None
    for criterion, costs in _criteria(candidates):
        if len(left) < 2:
            break
        of_left = costs[left]
        is_best = of_left == of_left.min()
        others = left[~is_best]
        if len(others):
            runner_up = int(others[costs[others].argmin()])
        left = left[is_best]
        rounds.append(Round(criterion, len(left)))
    return left, tuple(rounds), runner_up if len(left) == 1 else None


def _criteria(
    candidates: Candidates,
) -> Iterator[tuple[Criterion, NDArray[np.int64] | NDArray[np.float64]]]:
    """Yield what each candidate costs, by one criterion after the other."""
    priorities, first = candidates.priorities, candidates.first_victims
    yield Criterion.PDB_VIOLATIONS, candidates.pdb_violations
    highest = priorities[first]
    yield Criterion.HIGHEST_PRIORITY, highest
    yield Criterion.SUM_OF_PRIORITIES, np.add.reduceat(priorities + _EVERY_VICTIM, first)
    yield Criterion.NUM_VICTIMS, candidates.num_victims
    # Of the victims with the highest priority, the one that started first should be young.
    are_highest = priorities == np.repeat(highest, candidates.num_victims)
    starts = np.where(are_highest, candidates.starts, np.inf)
    yield Criterion.START_TIME, -np.minimum.reduceat(starts, first)
