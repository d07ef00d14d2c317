"""The fewest nodes, by patterns of a node: column generation (Gilmore and Gomory, 1961).

Only for the solver's process, which has OR-Tools.

A pattern says how many pods of each group a node runs. Nodes that are alike are one class, so it
does not matter which of them has a pattern: how many have it is one number. With a price for each
pod, the most that a node can hold is found (a knapsack, with the rules within a node); prices for
which that is never more than a node costs give a bound:

    sum of prices of all pods - sum over classes of max(0, dearest pattern - cost) * nodes

It holds for any prices, and is computed in integers. The prices come from the linear relaxation
over the patterns that are known; each dearest pattern is a new one.

A packing is made by diving: the patterns that the relaxation has most of are taken, and it is
solved again for what is left. Then some nodes, above all those that are worth less than they cost,
are emptied, and a dive looks for a place for their pods on fewer (large neighbourhood search). At
the end the patterns get nodes (:mod:`.on_nodes`), with the rules between them.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from berth.insight.certificate import counting
from berth.insight.certificate.knapsacks import Knapsack
from berth.insight.certificate.node_classes import (
    Counts,
    NodeClass,
    classes_of,
    coarse_topologies,
    is_pattern,
    most_on_node,
)
from berth.insight.certificate.on_nodes import Placement, on_nodes
from berth.insight.certificate.problem import (
    Limits,
    Problem,
    Solution,
    Stage,
    Status,
    is_within_one_percent,
)
from berth.insight.certificate.relaxation import EPSILON, SCALE, Packing, Relaxation

NODES: Final = "nodes"
BOUND_SHARE: Final = 0.4
DIVE_SHARE: Final = 0.7
IMPROVE_SHARE: Final = 0.85
"""The shares of the time after which the bound, the way down, and better ones are done."""
MOST_FITTED: Final = 5
"""Patterns of a class that are added at once."""
FITTED_ROUNDS: Final = 5
"""How often, before the dearest is sought."""
FEWEST_EMPTIED: Final = 6
"""Nodes that are emptied at once, at first; one more each time that it is in vain."""
MOST_IN_VAIN: Final = 20
"""After so many times, and once for each node, it is given up."""
WASTE: Final = 0.02
"""Added to what nodes cost more than their pods are worth, so that each may be emptied."""


class Patterns:
    """The search. *elapsed* tells the seconds since the process began."""

    def __init__(self, problem: Problem, limits: Limits, elapsed: Callable[[], float]) -> None:
        self._problem, self._limits, self._elapsed = problem, limits, elapsed
        self._rng = random.Random(limits.seed)
        self._counts = [group.count for group in problem.groups]
        self._busy = sum(problem.is_busy)
        self._is_coarse = bool(coarse_topologies(problem))
        """Whether rules between nodes may yet forbid a packing."""
        self._classes = classes_of(problem, by_domain=False)
        self._knapsacks = [Knapsack(problem, of, limits) for of in self._classes]
        self._most_on_node = most_on_node(problem)
        self._bound = counting.bound(problem) - self._busy
        """Of the nodes that are not busy anyway."""
        self._prices = [0] * len(problem.groups)
        """Those of the best bound."""
        self._close_at: float | None = None

    @property
    def bound(self) -> int:
        """How many nodes are needed at least."""
        return self._busy + self._bound

    def solve(self) -> Solution:
        """Return the best placement that is found in time."""
        nodes = [len(of.nodes) for of in self._classes]
        for of in self._classes:
            for node in of.nodes:
                counts = tuple(group.homes.get(node, 0) for group in self._problem.groups)
                if is_pattern(self._problem, of, counts):
                    of.patterns[counts] = None
        self._bound_it(nodes)
        seconds = self._limits.seconds
        until = DIVE_SHARE * seconds
        packing = self._dive(self._counts, nodes, self._bound, self._known(), until=until)
        placement = None
        if packing is not None:
            if not self._is_coarse:
                self._note(self._cost(packing))
            packing = self._improved(packing, until=IMPROVE_SHARE * seconds)
            placement = self._on_nodes(packing, until=IMPROVE_SHARE * seconds)
        if placement is None:
            why = "no placement of all pods was found in time"
            return Solution(Status.OPEN, (), (), self._elapsed(), None, why)
        used = {node for _, node, _ in placement}
        cost = sum(not self._problem.is_busy[node] for node in used)
        self._note(cost)
        stage = Stage(NODES, self._busy + cost, min(self.bound, self._busy + cost))
        return Solution(Status.SOLVED, (stage,), placement, self._elapsed(), self._close_at)

    def _on_nodes(self, packing: Packing, *, until: float) -> Placement | None:
        """Place a packing; if rules between nodes forbid it, another one of that cost, or more."""
        for _ in range(packing.total() + MOST_IN_VAIN):
            left = replace(self._limits, seconds=(self._limits.seconds - self._elapsed()) / 2)
            placement = on_nodes(self._problem, self._classes, packing, left)
            if placement is not None:
                return placement
            if self._elapsed() > until:
                break
            chosen = Counter(self._rng.sample([*packing.elements()], packing.total() // 2))
            cost = self._cost(chosen)
            packing = self._repacked(packing, chosen, cost, until, is_new=True) or packing
        return on_nodes(self._problem, self._classes, None, left)

    def _note(self, cost: int) -> None:
        if self._close_at is None and is_within_one_percent(self._busy + cost, self.bound):
            self._close_at = self._elapsed()

    def _known(self) -> Iterator[tuple[int, Counts]]:
        for number, of in enumerate(self._classes):
            for pattern in of.patterns:
                yield number, pattern

    def _cost(self, packing: Packing) -> int:
        return sum(self._classes[number].cost * times for (number, _), times in packing.items())

    def _fitted(self, counts: Sequence[int], nodes: Sequence[int]) -> Packing:
        """Place *counts* pods on so many *nodes* of the classes, the largest first.

        Each goes where it fits first; some may be left over.
        """
        problem, left, packing = self._problem, list(counts), Packing()
        largest = [max((room[r] for room in problem.rooms), default=1) for r in range(self._width)]

        def size(group: int) -> float:
            requests = problem.groups[group].requests
            return max((need / max(largest[r], 1) for r, need in requests.items()), default=0.0)

        order = sorted(range(len(left)), key=size, reverse=True)
        cheapest = sorted(range(len(nodes)), key=lambda number: self._classes[number].cost)
        each = [number for number in cheapest for _ in range(nodes[number])]
        for number in each:
            of = self._classes[number]
            allowed = set(of.groups)
            dense = [group for group in order if left[group] and group in allowed]
            if not dense:
                continue
            pattern = self._fitting(of, left, dense, dense[0])
            if is_pattern(self._problem, of, pattern):
                packing[number, pattern] += 1
                left = [has - count for has, count in zip(left, pattern, strict=True)]
        return packing

    @property
    def _width(self) -> int:
        return len(self._problem.rooms[0]) if self._problem.rooms else 0

    # The linear relaxation, and prices.

    def _bound_it(self, nodes: Sequence[int]) -> None:
        """Raise the bound as far as the relaxation goes, or time."""
        if not any(self._counts):
            return
        until = BOUND_SHARE * self._limits.seconds
        relaxed = Relaxation(self._classes, nodes, self._counts)
        for number, of in enumerate(self._classes):
            for pattern in of.patterns:
                relaxed.add(number, pattern)
        for number, pattern in self._fitted(self._counts, nodes):
            relaxed.add(number, pattern)
        for paid, worth in self._priced(relaxed, self._counts, nodes, until=until):
            bound = math.ceil((paid - worth) / SCALE)
            if not any(self._prices) or bound > self._bound:
                self._prices = relaxed.prices
            self._bound = max(self._bound, bound)
            if self._bound >= math.ceil(relaxed.cost - EPSILON):
                return

    def _priced(
        self,
        relaxed: Relaxation,
        counts: Sequence[int],
        nodes: Sequence[int],
        *,
        until: float,
        enough: float = -math.inf,
    ) -> Iterator[tuple[int, int]]:
        """Add patterns to *relaxed*, until none is worth it, it costs *enough*, or time is over.

        Yields for each round the prices of all pods, and by how much patterns are worth more than
        their nodes cost; in parts of SCALE.
        """
        is_new, fitted = True, 0 if enough == -math.inf else FITTED_ROUNDS
        while is_new:
            relaxed.solve()
            if not relaxed.is_solved:
                return
            if relaxed.cost < enough + EPSILON or self._elapsed() > until:
                return
            if fitted > 0 and self._add_fitted(relaxed, counts, nodes):
                fitted -= 1  # as long as that helps, nothing dearer is sought
                continue
            worth, is_new = 0, False
            for number, (of, knapsack) in enumerate(
                zip(self._classes, self._knapsacks, strict=True)
            ):
                if not nodes[number]:
                    continue
                seconds = until - self._elapsed()
                dearest, pattern = knapsack.dearest(relaxed.prices, counts, seconds=seconds)
                worth += nodes[number] * max(dearest - of.cost * SCALE, 0)
                if relaxed.gains(number, pattern) and relaxed.add(number, pattern):
                    of.patterns[pattern] = None
                    is_new = True
            paid = sum(price * count for price, count in zip(relaxed.prices, counts, strict=True))
            yield paid, worth

    def _add_fitted(self, relaxed: Relaxation, counts: Sequence[int], nodes: Sequence[int]) -> bool:
        """Add some dear patterns that are quickly made; return whether there are any."""
        is_new = False
        for number, of in enumerate(self._classes):
            if not nodes[number]:
                continue
            dense = self._by_density(of, relaxed.prices, counts)
            fitting = {self._fitting(of, counts, dense, first) for first in dense}
            patterns = [
                pattern
                for pattern in fitting
                if relaxed.gains(number, pattern) and is_pattern(self._problem, of, pattern)
            ]
            patterns.sort(key=lambda pattern: (relaxed.worth(pattern), pattern), reverse=True)
            for pattern in patterns[:MOST_FITTED]:
                if relaxed.add(number, pattern):
                    of.patterns[pattern] = None
                    is_new = True
        return is_new

    def _by_density(self, of: NodeClass, prices: Sequence[int], counts: Sequence[int]) -> list[int]:
        """Return the groups that have a price and are left, those dear for their size first."""

        def density(group: int) -> float:
            requests = self._problem.groups[group].requests
            size = sum(need / max(of.room[r], 1) for r, need in requests.items())
            return prices[group] / (size + EPSILON)

        left = (group for group in of.groups if prices[group] and counts[group])
        return sorted(left, key=density, reverse=True)

    def _fitting(
        self, of: NodeClass, counts: Sequence[int], dense: Sequence[int], first: int
    ) -> Counts:
        """Return a pattern with a pod of group *first*, and then those of *dense* that fit."""
        room, pattern = [max(has, 0) for has in of.room], [0] * len(counts)
        for group, most in ((first, 1), *((group, counts[group]) for group in dense)):
            requests = self._problem.groups[group].requests
            fits = min(most, self._most_on_node[group]) - pattern[group]
            for resource, need in requests.items():
                fits = min(fits, room[resource] // need)
            if fits > 0:
                pattern[group] += fits
                for resource, need in requests.items():
                    room[resource] -= need * fits
        return tuple(pattern)

    def _dive(
        self,
        counts: Sequence[int],
        nodes: Sequence[int],
        cost: int,
        known: Iterable[tuple[int, Counts]],
        *,
        until: float,
        most: float = math.inf,
    ) -> Packing | None:
        """Place *counts* pods on *nodes* of the classes, if it can be for *cost*, else for more.

        Take the patterns that the relaxation has most of, and solve it again for what is left.
        When time is over, what is left goes where it fits. None: some pods are left over, or it
        costs more than *most*.
        """
        wanted, counts, nodes = counts, list(counts), list(nodes)
        packing: Packing = Counter()
        pool = [*known]
        while any(counts):
            if self._elapsed() > until:
                packing += self._fitted(counts, nodes)
                break
            relaxed = Relaxation(self._classes, nodes, counts)
            pool = [key for key in pool if nodes[key[0]] and _fits(key[1], counts)]
            for key in (*pool, *self._fitted(counts, nodes)):
                relaxed.add(*key)
            left = cost - self._cost(packing)
            for _ in self._priced(relaxed, counts, nodes, until=until, enough=left):
                pass
            if not relaxed.is_solved:
                packing += self._fitted(counts, nodes)
                break
            pool = [*relaxed.columns]
            if relaxed.cost > left + EPSILON:
                cost += math.ceil(relaxed.cost - left - EPSILON)
                if cost > most:
                    return None
            taken = relaxed.taken(self._rng)
            if not taken:
                return None
            for (number, pattern), times in taken.items():
                packing[number, pattern] += times
                nodes[number] -= times
                for group, count in enumerate(pattern):
                    counts[group] = max(counts[group] - count * times, 0)
        for number, pattern in packing:
            self._classes[number].patterns[pattern] = None
        is_too_dear = self._cost(packing) > most
        return None if is_too_dear or any(_left_over(packing, wanted)) else packing

    def _improved(self, packing: Packing, *, until: float) -> Packing:
        """Empty some nodes, and place their pods on fewer; as often as there is time."""
        emptied, in_vain = FEWEST_EMPTIED, 0
        while (
            self._cost(packing) > self._bound
            and self._elapsed() < until
            and in_vain < packing.total() + MOST_IN_VAIN
        ):
            before = self._cost(packing)
            chosen = self._chosen(packing, emptied)
            repacked = self._repacked(packing, chosen, self._cost(chosen) - 1, until)
            packing = repacked or packing
            if not self._is_coarse:
                self._note(self._cost(packing))
            if self._cost(packing) < before:
                emptied, in_vain = FEWEST_EMPTIED, 0
            else:
                emptied, in_vain = min(emptied + 1, packing.total()), in_vain + 1
        return packing

    def _repacked(
        self, packing: Packing, chosen: Packing, cost: int, until: float, *, is_new: bool = False
    ) -> Packing | None:
        """Place the pods of *chosen* nodes anew, for *cost* if that can be.

        If it *is_new*, it does not begin with the patterns that are known.
        None: it was not found for what they cost now, either.
        """
        kept = packing - chosen
        nodes = [len(of.nodes) for of in self._classes]
        for (number, _), times in kept.items():
            nodes[number] -= times
        counts = _left_over(kept, self._counts)
        known = () if is_new else self._known()
        placed = self._dive(counts, nodes, cost, known, until=until, most=self._cost(chosen))
        return None if placed is None else kept + placed

    def _chosen(self, packing: Packing, number: int) -> Packing:
        """Return so many nodes, above all those whose pods are worth less than they cost."""

        def key(of: tuple[int, Counts]) -> float:
            worth = sum(price * count for price, count in zip(self._prices, of[1], strict=True))
            waste = max(self._classes[of[0]].cost - worth / SCALE, 0.0)
            return float(self._rng.random() ** (1 / (waste + WASTE)))

        return Counter(sorted(packing.elements(), key=key, reverse=True)[:number])


def _left_over(packing: Packing, counts: Sequence[int]) -> list[int]:
    """Return how many pods of each group, of *counts*, have no place in *packing*."""
    left = list(counts)
    for (_, pattern), times in packing.items():
        for group, count in enumerate(pattern):
            left[group] -= count * times
    return [max(count, 0) for count in left]


def _fits(pattern: Counts, counts: Sequence[int]) -> bool:
    return all(count <= has for count, has in zip(pattern, counts, strict=True))
