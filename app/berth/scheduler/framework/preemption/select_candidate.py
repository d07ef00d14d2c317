"""The node whose victims are missed least (spec §6.6)."""

from random import Random

import numpy as np
from msgspec.structs import replace

from berth.scheduler.framework.preemption.candidate import Candidates, Preemption, Round
from berth.scheduler.framework.preemption.criterion import Criterion
from berth.scheduler.framework.verdict import Rows


def select_candidate(preemption: Preemption, rng: Random, *, nominated: str = "") -> Preemption:
    """Return *preemption*, which has candidates, with the best of them chosen.

    Of several it is the one on the node that the pod is *nominated* to: whoever nominated it may
    have been about to evict there. Otherwise *rng* chooses.
    """
    columns = Candidates.of(preemption.candidates)
    left, rounds, runner_up = _compared(columns)
    equals = columns.take(left)
    there = equals.nodes.index(nominated) if nominated in equals.nodes else None
    chosen = rng.choice(equals) if there is None else equals[there]
    if runner_up is None and len(equals) > 1:
        runner_up = next(i for i in left.tolist() if columns.nodes[i] != chosen.node)
    return replace(
        preemption,
        equals=equals,
        chosen=chosen,
        rounds=rounds,
        runner_up=None if runner_up is None else columns[runner_up],
    )


def _compared(candidates: Candidates) -> tuple[Rows, tuple[Round, ...], int | None]:
    """Return the best, what each criterion left, and the best of those left out last.

    Each criterion leaves those that are best by it to the next one.
    """
    left, rounds, runner_up = np.arange(len(candidates)), [], None
    for criterion in Criterion:
        if len(left) < 2:
            break
        costs = candidates.costs_by(criterion)
        of_left = costs if len(left) == len(costs) else costs[left]
        is_best = of_left == of_left.min()
        num_best = int(np.count_nonzero(is_best))
        if num_best < len(left):
            others = left[~is_best]
            runner_up = int(others[costs[others].argmin()])
            left = left[is_best]
        rounds.append(Round(criterion, num_best))
    return left, tuple(rounds), runner_up if len(left) == 1 else None
