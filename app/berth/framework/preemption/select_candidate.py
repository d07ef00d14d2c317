"""The node whose victims are missed least (spec §6.6)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.framework.preemption.candidate import Candidate, Candidates, Preemption

_EVERY_VICTIM: Final = 2**31
"""Added to each priority, so that a victim of negative priority counts, too."""


def select_candidate(found: Preemption, rng: Random) -> Preemption:
    """Return *found*, which has candidates, with the best of them chosen; *rng* breaks ties."""
    equals = equally_good(found.candidates)
    return replace(found, equals=equals, chosen=rng.choice(equals))


def equally_good(candidates: Sequence[Candidate]) -> Candidates:
    """Return the best of *candidates*; several if no criterion tells them apart.

    Each criterion leaves those that are best by it to the next one.
    """
    columns = Candidates.of(candidates)
    left = np.arange(len(columns))
    for costs in _criteria(columns):
        if len(left) < 2:
            break
        left = left[costs[left] == costs[left].min()]
    return columns.take(left)


def _criteria(candidates: Candidates) -> Iterator[NDArray[np.int64] | NDArray[np.float64]]:
    """Yield what each candidate costs, by one criterion after the other."""
    priorities, first = candidates.priorities, candidates.first_victims
    yield candidates.pdb_violations
    highest = priorities[first]
    yield highest
    yield np.add.reduceat(priorities + _EVERY_VICTIM, first)
    yield candidates.num_victims
    # Of the victims with the highest priority, the one that started first should be young.
    are_highest = priorities == np.repeat(highest, candidates.num_victims)
    yield -np.minimum.reduceat(np.where(are_highest, candidates.starts, np.inf), first)
