"""The linear program over the known patterns: how much of each, for how few nodes.

Only for the solver's process, which has OR-Tools.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ortools.linear_solver import pywraplp

from berth.insight.certificate.node_classes import Counts, NodeClass

SCALE: Final = 1_000_000
"""Prices are in so many parts of a node."""
UNPLACED_COST: Final = 10.0
"""Of a pod without a pattern, in nodes: more than any price."""
MOST_MILLISECONDS: Final = 5_000
EPSILON: Final = 1e-6
NEARLY: Final = 0.7
NEARLY_LARGEST: Final = 0.8
"""Of the largest: then it is as good."""

Packing = Counter[tuple[int, Counts]]
"""How many nodes of a class have a pattern."""


class Relaxation:
    """The linear program over the known patterns; more are added between solutions."""

    def __init__(
        self, classes: Sequence[NodeClass], nodes: Sequence[int], counts: Sequence[int]
    ) -> None:
        """*nodes* are left of the classes, and *counts* pods of the groups."""
        self._solver = solver = pywraplp.Solver.CreateSolver(
            "CLP"
        )  # GLOP fails numerically now and then
        solver.SetTimeLimit(MOST_MILLISECONDS)
        self._covers = [solver.Constraint(count, solver.infinity()) for count in counts]
        self._classes, self._counts, self._nodes = classes, counts, nodes
        self._limits = [solver.Constraint(-solver.infinity(), count) for count in nodes]
        self.columns: dict[tuple[int, Counts], pywraplp.Variable] = {}
        self._objective = solver.Objective()
        self._objective.SetMinimization()
        self.is_solved = False
        """Whether the last solution is one; it may fail numerically, or take too long."""
        self.cost = 0.0
        """The least, in nodes."""
        self.prices: list[int] = []
        """Of each group, in parts of SCALE."""
        self._class_prices: list[float] = []
        for cover in self._covers:
            unplaced = solver.NumVar(0, solver.infinity(), "")
            cover.SetCoefficient(unplaced, 1)
            self._objective.SetCoefficient(unplaced, UNPLACED_COST)

    def add(self, number: int, pattern: Counts) -> bool:
        """Add a pattern of a class; return whether it is new."""
        if (number, pattern) in self.columns or not any(pattern):
            return False
        self.columns[number, pattern] = variable = self._solver.NumVar(0, math.inf, "")
        for group, count in enumerate(pattern):
            if count:
                self._covers[group].SetCoefficient(variable, count)
        self._limits[number].SetCoefficient(variable, 1)
        self._objective.SetCoefficient(variable, self._classes[number].cost)
        return True

    def solve(self) -> None:
        self.is_solved = self._solver.Solve() == pywraplp.Solver.OPTIMAL
        if not self.is_solved:
            return
        self.cost = self._objective.Value()
        self.prices = [max(math.floor(cover.dual_value() * SCALE), 0) for cover in self._covers]
        self._class_prices = [max(-limit.dual_value(), 0.0) for limit in self._limits]

    def worth(self, pattern: Counts) -> int:
        """Return the prices of the pods of *pattern*."""
        return sum(price * count for price, count in zip(self.prices, pattern, strict=True))

    def gains(self, number: int, pattern: Counts) -> bool:
        """Whether the relaxation costs less with *pattern*."""
        return (
            self.worth(pattern)
            > (self._classes[number].cost + self._class_prices[number] + EPSILON) * SCALE
        )

    def taken(self, rng: random.Random) -> Packing:
        """Return the patterns that are taken as a whole; else those that are nearly, or one.

        Which one is chosen at random, of those that are taken most.
        """
        values = {key: variable.solution_value() for key, variable in self.columns.items()}
        taken: Packing = Counter()
        for key, value in values.items():
            if times := math.floor(value + EPSILON):
                taken[key] = times
        if taken or not (largest := max(values.values(), default=0.0)) > EPSILON:
            return taken
        left, counts = list(self._nodes), list(self._counts)
        likely = [
            key for key, value in values.items() if value >= min(NEARLY, NEARLY_LARGEST * largest)
        ]
        rng.shuffle(likely)
        for number, pattern in sorted(likely, key=lambda key: values[key] < NEARLY):
            if taken and values[number, pattern] < NEARLY:
                break
            fits = all(count <= has for count, has in zip(pattern, counts, strict=True))
            if left[number] and (fits or not taken):
                taken[number, pattern] = 1
                left[number] -= 1
                counts = [has - count for count, has in zip(pattern, counts, strict=True)]
        return taken
