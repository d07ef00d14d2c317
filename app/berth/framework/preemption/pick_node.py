"""The node whose victims are missed least (spec §6.6)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from berth.framework.preemption.candidate import Candidate, Preemption
from berth.framework.preemption.importance import started

_EVERY_VICTIM: Final = 2**31
"""Added to each priority, so that a victim of negative priority counts, too."""


def choose(found: Preemption, rng: Random) -> Preemption:
    """Return *found*, which has candidates, with the best of them chosen; *rng* breaks ties."""
    equals = equally_good(found.candidates)
    return replace(found, equals=equals, chosen=rng.choice(equals))


def equally_good(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the best of *candidates*; several if no criterion tells them apart.

    Each criterion leaves those that are best by it to the next one.
    """
    left = tuple(candidates)
    for cost in CRITERIA:
        if len(left) < 2:
            break
        costs = [cost(candidate) for candidate in left]
        lowest = min(costs)
        left = tuple(c for c, its_cost in zip(left, costs, strict=True) if its_cost == lowest)
    return left


def _pdb_violations(candidate: Candidate) -> int:
    return candidate.pdb_violations


def _highest_priority(candidate: Candidate) -> int:
    return candidate.victims[0].priority


def _sum_of_priorities(candidate: Candidate) -> int:
    return sum(victim.priority + _EVERY_VICTIM for victim in candidate.victims)


def _number_of_victims(candidate: Candidate) -> int:
    return len(candidate.victims)


def _how_early_one_started(candidate: Candidate) -> float:
    """Of the victims with the highest priority, the one that started first should be young."""
    highest = candidate.victims[0].priority
    return -min(started(victim) for victim in candidate.victims if victim.priority == highest)


CRITERIA: Final[tuple[Callable[[Candidate], float], ...]] = (
    _pdb_violations,
    _highest_priority,
    _sum_of_priorities,
    _number_of_victims,
    _how_early_one_started,
)
"""What each candidate costs, in the order in which that matters."""
