"""The dearest pattern of a node: a knapsack, with the rules within a node.

Only for the solver's process, which has OR-Tools.

Where amounts are few numbers, as those of cores and of GiB are, all amounts that a node can have
left are tabled (dynamic programming), which takes a few milliseconds; else CP-SAT seeks it.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from berth.insight.certificate.node_classes import (
    Counts,
    NodeClass,
    is_by_node,
    is_pattern,
    most_on_node,
)
from berth.insight.certificate.problem import Exclusion, Limits, Problem

KNAPSACK_SECONDS: Final = 2.0
"""Then the bound of the dearest pattern stands for it."""
MOST_CELLS: Final = 100_000
"""Of a table: what a node may have left of one resource, times what of the next, and so on."""


class Knapsack:
    """Finds the dearest pattern of one class.

    The table leaves rules out, if need be. Then what it says still is a bound, and CP-SAT is asked
    if its pattern breaks one.
    """

    def __init__(self, problem: Problem, of: NodeClass, limits: Limits) -> None:
        self._problem, self._of = problem, of
        self._table = Table.of(problem, of)
        self._rng = random.Random(limits.seed)
        self._search = Search(problem, of, limits)

    def dearest(
        self, prices: Sequence[int], counts: Sequence[int], *, seconds: float
    ) -> tuple[int, Counts]:
        """Return a bound of what a pattern is worth, and the dearest one that was found.

        *prices* are of a pod of each group, of which there are *counts*.
        """
        if self._table is not None:
            worth, pattern = self._table.dearest(prices, counts, self._rng)
            if not worth or is_pattern(self._problem, self._of, pattern):
                return worth, pattern
        return self._search.dearest(prices, counts, seconds=seconds)


class Table:
    """All that can be left of a node, of the resources that are scarcest."""

    def __init__(
        self, room: tuple[int, ...], needs: Mapping[int, tuple[int, ...]], most: Sequence[int]
    ) -> None:
        """*needs* has what a pod of each group takes of *room*; *most* how many a node may run."""
        self._room, self._needs, self._most = room, needs, most

    @classmethod
    def of(cls, problem: Problem, of: NodeClass) -> "Table | None":
        """Return None if all would be too large."""
        most = most_on_node(problem)
        room = [max(has, 0) for has in of.room]
        needs = {
            group: [problem.groups[group].requests.get(r, 0) for r in range(len(room))]
            for group in of.groups
        }
        by_node = (s for s in problem.spreads if is_by_node(problem, s.topology))
        for spread, most_of_spread in zip(by_node, of.most, strict=True):
            room.append(max(most_of_spread, 0))
            for group, of_group in needs.items():
                of_group.append(group in spread.members)
        wanted = [
            sum(of_group[r] * most[group] for group, of_group in needs.items())
            for r in range(len(room))
        ]
        scarce = [r for r in range(len(room)) if wanted[r] > room[r]]
        scarce.sort(key=lambda r: wanted[r] / max(room[r], 1), reverse=True)
        tabled: list[int] = []
        shape: list[int] = []
        units: list[int] = []
        for r in scarce:
            unit = math.gcd(*(of_group[r] for of_group in needs.values()))
            if math.prod(has + 1 for has in (*shape, room[r] // unit)) <= MOST_CELLS:
                tabled.append(r)
                units.append(unit)
                shape.append(room[r] // unit)
        if scarce and not tabled:
            return None
        in_table = {
            group: tuple(of_group[r] // unit for r, unit in zip(tabled, units, strict=True))
            for group, of_group in needs.items()
        }
        if not tabled:  # there is enough of all
            return cls((0,), dict.fromkeys(needs, (0,)), most)
        return cls(tuple(shape), in_table, most)

    def dearest(
        self, prices: Sequence[int], counts: Sequence[int], rng: random.Random
    ) -> tuple[int, Counts]:
        """Return as :meth:`Knapsack.dearest`; which of equally dear patterns is chance."""
        worth = np.zeros([has + 1 for has in self._room], np.int64)
        steps: list[tuple[int, int, tuple[int, ...], NDArray[np.bool_]]] = []
        for group, times, needs in self._parts(prices, counts, rng):
            with_them = tuple(slice(need, None) for need in needs)
            before = tuple(
                slice(0, has + 1 - need) for need, has in zip(needs, self._room, strict=True)
            )
            candidate = worth[before] + prices[group] * times
            target = worth[with_them]
            is_taken = np.asarray(candidate > target)
            np.copyto(target, candidate, where=is_taken)
            steps.append((group, times, needs, is_taken))
        pattern, left = [0] * len(counts), self._room
        for group, times, needs, is_taken in reversed(steps):
            rest = tuple(has - need for need, has in zip(needs, left, strict=True))
            if min(rest, default=0) >= 0 and is_taken[rest]:
                pattern[group] += times
                left = rest
        return int(worth[self._room]), tuple(pattern)

    def _parts(
        self, prices: Sequence[int], counts: Sequence[int], rng: random.Random
    ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield 1, 2, 4 ... pods of a group, so that each number of them is a sum of some."""
        for group in rng.sample([*self._needs], len(self._needs)):
            needs = self._needs[group]
            most = min(self._most[group], counts[group]) if prices[group] else 0
            for need, has in zip(needs, self._room, strict=True):
                most = min(most, has // need) if need else most
            times = 1
            while most > 0:
                times = min(times, most)
                yield group, times, tuple(need * times for need in needs)
                most -= times
                times *= 2


class Search:
    """By CP-SAT."""

    def __init__(self, problem: Problem, of: NodeClass, limits: Limits) -> None:
        self._problem, self._of, self._seed = problem, of, limits.seed

    def dearest(
        self, prices: Sequence[int], counts: Sequence[int], *, seconds: float
    ) -> tuple[int, Counts]:
        pattern = [0] * len(counts)
        model = cp_model.CpModel()
        amounts = {
            group: model.new_int_var(0, counts[group], "")
            for group in self._of.groups
            if prices[group] and counts[group]
        }
        if not amounts:
            return 0, tuple(pattern)
        self._keep_rules(model, amounts)
        model.maximize(sum(prices[group] * amount for group, amount in amounts.items()))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = self._seed
        solver.parameters.max_time_in_seconds = max(min(seconds, KNAPSACK_SECONDS), 0.01)
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return sum(prices[group] * counts[group] for group in amounts), tuple(pattern)
        for group, amount in amounts.items():
            pattern[group] = solver.value(amount)
        return math.floor(solver.best_objective_bound + 0.5), tuple(pattern)

    def _keep_rules(
        self, model: cp_model.CpModel, amounts: Mapping[int, cp_model.LinearExprT]
    ) -> None:
        problem, of = self._problem, self._of
        for resource, room in enumerate(of.room):
            taken = [
                (problem.groups[group].requests[resource], amount)
                for group, amount in amounts.items()
                if resource in problem.groups[group].requests
            ]
            if taken:
                model.add(sum(need * amount for need, amount in taken) <= max(room, 0))
        for exclusion in problem.exclusions:
            if is_by_node(problem, exclusion.topology):
                exclude(model, amounts, exclusion, problem)
        spreads = [s for s in problem.spreads if is_by_node(problem, s.topology)]
        for spread, most in zip(spreads, of.most, strict=True):
            members = [amounts[group] for group in spread.members if group in amounts]
            if members:
                model.add(sum(members) <= max(most, 0))


def exclude(
    model: cp_model.CpModel,
    amounts: Mapping[int, cp_model.LinearExprT],
    exclusion: Exclusion,
    problem: Problem,
) -> None:
    """Have *amounts*, by group, of one domain keep *exclusion*."""
    targets = [group for group in exclusion.targets if group in amounts]
    for holder in exclusion.holders:
        if holder not in amounts:
            continue
        if holder in targets:
            model.add(amounts[holder] <= 1)
        others = [group for group in targets if group != holder]
        if not others:
            continue
        is_here = model.new_bool_var("")
        model.add(amounts[holder] <= problem.groups[holder].count * is_here)
        for group in others:
            model.add(amounts[group] <= problem.groups[group].count * (1 - is_here))
