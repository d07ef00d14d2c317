"""The fewest nodes, by patterns of a node: column generation (Gilmore and Gomory, 1961).

Only for the solver's process, which has OR-Tools.

A pattern says how many pods of each group a node runs. Nodes that are alike are one class, so it
does not matter which of them has a pattern: how many have it is one number. With a price for each
pod, the most that a node can hold is found (a knapsack, with the rules within a node); prices for
which that is never more than a node costs give a bound:

    sum of prices of all pods - sum over classes of max(0, dearest pattern - cost) * nodes

It holds for any prices, and is computed in integers. The prices come from the linear relaxation
over the patterns that are known; each dearest pattern is a new one. At the end the best whole
numbers of the patterns are sought, with the rules between nodes.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from ortools.graph.python import linear_sum_assignment
from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model

from berth.insight.certificate import counting
from berth.insight.certificate.problem import (
    NO_DOMAIN,
    Exclusion,
    Limits,
    Problem,
    Solution,
    Spread,
    Stage,
    Status,
    is_within_one_percent,
)

SCALE: Final = 1_000_000
"""Prices are in so many parts of a node."""
UNPLACED_COST: Final = 10.0
"""Of a pod without a pattern, in nodes: more than any price."""
KNAPSACK_SECONDS: Final = 2.0
"""Then the bound of the dearest pattern stands for it."""
NODES: Final = "nodes"

EPSILON: Final = 1e-6
NEARLY: Final = 0.7
BOUND_SHARE: Final = 0.4
DIVE_SHARE: Final = 0.8
"""The shares of the time after which the bound, and the way down, are done."""
WHOLE_SHARE: Final = 0.9
"""Of the time that is left then, the share for whole numbers of patterns."""
MOST_FITTED: Final = 5
"""Patterns of a class that are added at once."""
FITTED_ROUNDS: Final = 5
"""How often, before the dearest is sought."""
DIVE_ROUNDS: Final = 2
"""New patterns of each class, before some are taken."""

Counts = tuple[int, ...]
"""Of each group, how many a node runs."""
Packing = Counter[tuple[int, Counts]]
"""How many nodes of a class have a pattern."""


@dataclass(slots=True)
class NodeClass:
    """Nodes that are alike."""

    nodes: list[int]
    room: tuple[int, ...]
    cost: int
    """1, or 0 if something runs there anyway."""
    groups: list[int]
    """Which may come there."""
    domains: tuple[int, ...]
    """By topology; NO_DOMAIN for those in which each node is a domain."""
    most: tuple[int, ...]
    """By spread over single nodes, how many of its pods one may have."""
    patterns: dict[Counts, None] = field(default_factory=dict)


class Knapsack:
    """Finds the dearest pattern of one class."""

    def __init__(
        self, problem: Problem, of: NodeClass, counts: Sequence[int], limits: Limits
    ) -> None:
        self._model = model = cp_model.CpModel()
        self._amounts = amounts = {
            group: model.new_int_var(0, counts[group], "") for group in of.groups if counts[group]
        }
        self._counts = counts
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
            model.add(sum(amounts[g] for g in spread.members if g in amounts) <= max(most, 0))
        self._solver = cp_model.CpSolver()
        self._solver.parameters.num_workers = 1
        self._solver.parameters.random_seed = limits.seed
        self._size = len(problem.groups)

    def dearest(self, prices: Sequence[int], *, seconds: float) -> tuple[int, Counts]:
        """Return a bound of what a pattern is worth, and the dearest one that was found."""
        worth = [(prices[group], amount) for group, amount in self._amounts.items()]
        if not any(price for price, _ in worth):
            return 0, (0,) * self._size
        self._model.maximize(sum(price * amount for price, amount in worth))
        self._solver.parameters.max_time_in_seconds = max(min(seconds, KNAPSACK_SECONDS), 0.01)
        status = self._solver.solve(self._model)
        counts = [0] * self._size
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            most = (prices[group] * self._counts[group] for group in self._amounts)
            return sum(most), tuple(counts)
        for group, amount in self._amounts.items():
            counts[group] = self._solver.value(amount)
        return math.floor(self._solver.best_objective_bound + 0.5), tuple(counts)


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


def is_by_node(problem: Problem, topology: int) -> bool:
    """Whether each node is a domain of its own, as with kubernetes.io/hostname."""
    domains = [domain for domain in problem.topologies[topology] if domain != NO_DOMAIN]
    return len(set(domains)) == len(domains)


def classes_of(problem: Problem) -> list[NodeClass]:
    """Put nodes that are alike into one class."""
    groups_at: list[list[int]] = [[] for _ in problem.rooms]
    for number, group in enumerate(problem.groups):
        for node in group.nodes:
            groups_at[node].append(number)
    used = {exclusion.topology for exclusion in problem.exclusions}
    used |= {spread.topology for spread in problem.spreads}
    coarse = [topology for topology in sorted(used) if not is_by_node(problem, topology)]
    by_node = [
        _most_by_node(problem, s) for s in problem.spreads if is_by_node(problem, s.topology)
    ]
    classes: dict[object, NodeClass] = {}
    for node, room in enumerate(problem.rooms):
        domains = tuple(
            domains[node] if topology in coarse else NO_DOMAIN
            for topology, domains in enumerate(problem.topologies)
        )
        most = tuple(of_node[node] for of_node in by_node)
        counts = tuple(spread.fixed.get(node, 0) for spread in problem.spreads)
        members = tuple(node in spread.nodes for spread in problem.spreads)
        key = (room, problem.is_busy[node], tuple(groups_at[node]), domains, most, counts, members)
        if key not in classes:
            cost = 0 if problem.is_busy[node] else 1
            classes[key] = NodeClass([], room, cost, groups_at[node], domains, most)
        classes[key].nodes.append(node)
    return list(classes.values())


def _most_by_node(problem: Problem, spread: Spread) -> list[int]:
    """Return how many pods of *spread*, over single nodes, each node may get.

    The node with fewest has at most the average.
    """
    total = sum(problem.groups[group].count for group in spread.members)
    total += sum(spread.fixed.values())
    counted = set(spread.nodes)
    fewest = total // len(counted) if len(counted) >= spread.min_domains and counted else 0
    most = spread.max_skew + fewest
    return [
        most - spread.fixed.get(node, 0) if node in counted else total
        for node in range(len(problem.rooms))
    ]


class Patterns:
    """The search. *elapsed* tells the seconds since the process began."""

    def __init__(self, problem: Problem, limits: Limits, elapsed: Callable[[], float]) -> None:
        self._problem, self._limits, self._elapsed = problem, limits, elapsed
        self._counts = [group.count for group in problem.groups]
        self._busy = sum(problem.is_busy)
        self._classes = classes_of(problem)
        self._most_on_node = list(self._counts)
        """Of each group; 1 where its pods exclude each other."""
        for exclusion in problem.exclusions:
            if is_by_node(problem, exclusion.topology):
                for group in {*exclusion.holders} & {*exclusion.targets}:
                    self._most_on_node[group] = 1
        self._bound = counting.bound(problem) - self._busy
        """Of the nodes that are not busy anyway."""
        self._close_at: float | None = None

    def solve(self) -> Solution:
        """Return the best placement that is found in time."""
        for of in self._classes:
            for node in of.nodes:
                counts = tuple(group.homes.get(node, 0) for group in self._problem.groups)
                if self._is_pattern(of, counts):
                    of.patterns[counts] = None
        for number, counts in self._fitted(self._counts, [len(of.nodes) for of in self._classes]):
            self._classes[number].patterns[counts] = None
        self._bound_it()
        packing = self._dive()
        placement = self._whole(packing or Packing())
        if placement is None:
            why = "no placement of all pods was found in time"
            return Solution(Status.OPEN, (), (), self._elapsed(), None, why)
        value = self._nodes_of(placement)
        self._note(value)
        stage = Stage(NODES, value, min(self._bound + self._busy, value))
        return Solution(Status.SOLVED, (stage,), placement, self._elapsed(), self._close_at)

    def _left(self) -> float:
        return self._limits.seconds - self._elapsed()

    def _note(self, value: int) -> None:
        if self._close_at is None and is_within_one_percent(value, self._bound + self._busy):
            self._close_at = self._elapsed()

    def _nodes_of(self, placement: Sequence[tuple[int, int, int]]) -> int:
        used = {node for _, node, _ in placement}
        return self._busy + sum(not self._problem.is_busy[node] for node in used)

    def _is_pattern(self, of: NodeClass, counts: Counts) -> bool:
        """Whether a node of the class may run *counts*."""
        problem, allowed = self._problem, set(of.groups)
        for exclusion in problem.exclusions:
            if is_by_node(problem, exclusion.topology):
                total = sum(counts[group] for group in exclusion.targets)
                holders = (group for group in exclusion.holders if counts[group])
                if any(total > (holder in exclusion.targets) for holder in holders):
                    return False
        spreads = (s for s in problem.spreads if is_by_node(problem, s.topology))
        for spread, most in zip(spreads, of.most, strict=True):
            if sum(counts[group] for group in spread.members) > max(most, 0):
                return False
        needs = [0] * len(of.room)
        for group, count in enumerate(counts):
            if count and group not in allowed:
                return False
            for resource, need in problem.groups[group].requests.items():
                needs[resource] += need * count
        return any(counts) and all(
            need <= max(has, 0) for need, has in zip(needs, of.room, strict=True)
        )

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
            if self._is_pattern(of, pattern):
                packing[number, pattern] += 1
                left = [has - count for has, count in zip(left, pattern, strict=True)]
        return packing

    @property
    def _width(self) -> int:
        return len(self._problem.rooms[0]) if self._problem.rooms else 0

    # The linear relaxation, and prices.

    def _bound_it(self) -> None:
        """Raise the bound as far as the relaxation goes, or time."""
        until = BOUND_SHARE * self._limits.seconds
        nodes = [len(of.nodes) for of in self._classes]
        relaxed = Relaxation(self._classes, nodes, self._counts)
        for paid, worth in self._priced(relaxed, self._counts, nodes, until=until):
            self._bound = max(self._bound, math.ceil((paid - worth) / SCALE))
            if self._bound >= math.ceil(relaxed.cost - EPSILON):
                return

    def _priced(
        self,
        relaxed: "Relaxation",
        counts: Sequence[int],
        nodes: Sequence[int],
        *,
        until: float,
        fitted: int = 0,
    ) -> Iterator[tuple[int, int]]:
        """Add patterns to *relaxed*, until none is worth it or time is over.

        In the first rounds, so many as *fitted* says, quickly made ones.

        Yields for each round the prices of all pods, and by how much patterns are worth more than
        their nodes cost; in parts of SCALE.
        """
        knapsacks = [Knapsack(self._problem, of, counts, self._limits) for of in self._classes]
        is_new = True
        while is_new and self._elapsed() < until:
            relaxed.solve()
            if fitted > 0 and self._add_fitted(relaxed, counts, nodes):
                fitted -= 1  # as long as that helps, nothing dearer is sought
                continue
            worth, is_new = 0, False
            for number, (of, knapsack) in enumerate(zip(self._classes, knapsacks, strict=True)):
                if not nodes[number]:
                    continue
                seconds = until - self._elapsed()
                dearest, pattern = knapsack.dearest(relaxed.prices, seconds=seconds)
                worth += nodes[number] * max(dearest - of.cost * SCALE, 0)
                if relaxed.gains(number, pattern) and relaxed.add(number, pattern):
                    of.patterns[pattern] = None
                    is_new = True
            paid = sum(price * count for price, count in zip(relaxed.prices, counts, strict=True))
            yield paid, worth

    def _add_fitted(
        self, relaxed: "Relaxation", counts: Sequence[int], nodes: Sequence[int]
    ) -> bool:
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
                if relaxed.gains(number, pattern) and self._is_pattern(of, pattern)
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

    def _dive(self) -> Packing | None:
        """Take the patterns that the relaxation has most of, and solve it again for what is left.

        When time is over, what is left goes where it fits. None: some pods are left over.
        """
        until = DIVE_SHARE * self._limits.seconds
        counts, nodes = list(self._counts), [len(of.nodes) for of in self._classes]
        packing: Packing = Counter()
        while any(counts):
            if self._elapsed() > until:
                packing += self._fitted(counts, nodes)
                break
            relaxed = Relaxation(self._classes, nodes, counts)
            for _ in islice(
                self._priced(relaxed, counts, nodes, until=until, fitted=FITTED_ROUNDS),
                DIVE_ROUNDS,
            ):
                pass
            relaxed.solve()
            taken = relaxed.whole() or relaxed.largest()
            if not taken:
                return None
            for (number, pattern), times in taken.items():
                packing[number, pattern] += times
                nodes[number] -= times
                for group, count in enumerate(pattern):
                    counts[group] = max(counts[group] - count * times, 0)
        for group, count in enumerate(self._counts):
            if sum(pattern[group] * times for (_, pattern), times in packing.items()) < count:
                return None
        cost = sum(self._classes[number].cost * times for (number, _), times in packing.items())
        self._note(self._busy + cost)
        return packing

    # Whole numbers of patterns.

    def _whole(self, hint: Packing) -> tuple[tuple[int, int, int], ...] | None:
        """Return the placement on the fewest nodes that the patterns make; None: there is none."""
        for number, pattern in hint:
            self._classes[number].patterns[pattern] = None
        model = cp_model.CpModel()
        columns: list[tuple[int, Counts, cp_model.IntVar]] = []
        for number, of in enumerate(self._classes):
            of_class = [
                (number, counts, model.new_int_var(0, len(of.nodes), "")) for counts in of.patterns
            ]
            model.add(sum(variable for _, _, variable in of_class) <= len(of.nodes))
            columns += of_class
        for group, count in enumerate(self._counts):
            covered = sum(counts[group] * z for _, counts, z in columns if counts[group])
            model.add(covered >= count)
        placed = self._keep_rules_between_nodes(model, columns)
        model.minimize(sum(self._classes[number].cost * z for number, _, z in columns))
        for number, counts, variable in columns:
            model.add_hint(variable, hint[number, counts])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self._limits.workers
        solver.parameters.random_seed = self._limits.seed
        solver.parameters.max_time_in_seconds = max(WHOLE_SHARE * self._left(), 0.1)
        status = solver.solve(model, _Enough(self._bound))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        on: dict[int, list[int]] = {}
        for number, of in enumerate(self._classes):
            chosen = [
                counts for n, counts, z in columns if n == number for _ in range(solver.value(z))
            ]
            on_class = self._on_nodes(of, chosen)
            if placed:
                left = [
                    solver.value(placed[number, group]) if (number, group) in placed else 0
                    for group in range(len(self._counts))
                ]
                self._trim(on_class, left)
            on |= on_class
        self._trim(on, self._counts)
        return tuple(
            (group, node, count)
            for node, counts in sorted(on.items())
            for group, count in enumerate(counts)
            if count
        )

    def _keep_rules_between_nodes(
        self, model: cp_model.CpModel, columns: Sequence[tuple[int, Counts, cp_model.IntVar]]
    ) -> dict[tuple[int, int], cp_model.IntVar]:
        """Return how many pods of a group are on the nodes of a class, if there are such rules.

        Patterns may have room for more pods than there are.
        """
        problem = self._problem
        placed: dict[tuple[int, int], cp_model.IntVar] = {}
        used = {exclusion.topology for exclusion in problem.exclusions}
        used |= {spread.topology for spread in problem.spreads}
        if all(is_by_node(problem, topology) for topology in used):
            return placed
        for number, _ in enumerate(self._classes):
            for group, count in enumerate(self._counts):
                most = [(c[group], z) for n, c, z in columns if n == number and c[group]]
                if most:
                    placed[number, group] = variable = model.new_int_var(0, count, "")
                    model.add(variable <= sum(each * z for each, z in most))
        for group, count in enumerate(self._counts):
            model.add(sum(v for (_, g), v in placed.items() if g == group) == count)

        def in_domain(topology: int, domain: int, group: int) -> cp_model.LinearExprT:
            return sum(
                variable
                for (number, g), variable in placed.items()
                if g == group and self._classes[number].domains[topology] == domain
            )

        for exclusion in problem.exclusions:
            if is_by_node(problem, exclusion.topology):
                continue
            for domain in set(problem.topologies[exclusion.topology]) - {NO_DOMAIN}:
                groups = {*exclusion.holders, *exclusion.targets}
                amounts = {g: in_domain(exclusion.topology, domain, g) for g in groups}
                exclude(model, amounts, exclusion, problem)
        for spread in problem.spreads:
            if is_by_node(problem, spread.topology):
                continue
            of_node = problem.topologies[spread.topology]
            domains = {of_node[node] for node in spread.nodes}
            fewest = model.new_int_var(0, sum(self._counts) + sum(spread.fixed.values()), "")
            if len(domains) < spread.min_domains:
                model.add(fewest == 0)
            for domain in domains:
                fixed = sum(n for node, n in spread.fixed.items() if of_node[node] == domain)
                here = fixed + sum(in_domain(spread.topology, domain, g) for g in spread.members)
                if len(domains) >= spread.min_domains:
                    model.add(here >= fewest)
                model.add(here <= fewest + spread.max_skew)
        return placed

    def _on_nodes(self, of: NodeClass, chosen: Sequence[Counts]) -> dict[int, list[int]]:
        """Give the patterns nodes of their class, so that as many pods as can be stay."""
        homes = [[group.homes.get(node, 0) for group in self._problem.groups] for node in of.nodes]
        patterns = [*chosen, *[(0,) * len(self._counts)] * (len(of.nodes) - len(chosen))]
        assignment = linear_sum_assignment.SimpleLinearSumAssignment()
        for left, counts in enumerate(patterns):
            present = [group for group, count in enumerate(counts) if count]
            for right, home in enumerate(homes):
                stay = sum(min(counts[group], home[group]) for group in present)
                assignment.add_arc_with_cost(left, right, -stay)
        assignment.solve()
        return {
            of.nodes[assignment.right_mate(left)]: list(counts)
            for left, counts in enumerate(patterns)
        }

    def _trim(self, on: Mapping[int, list[int]], counts: Sequence[int]) -> None:
        """Leave *counts* pods on the nodes *on*; who is not at home goes, from emptier nodes."""
        for group, count in enumerate(counts):
            over = sum(of_node[group] for of_node in on.values()) - count
            homes = self._problem.groups[group].homes
            for keeps_home in (True, False):
                for node in sorted(on, key=lambda node: sum(on[node])) if over else ():
                    staying = homes.get(node, 0) if keeps_home else 0
                    gone = min(max(on[node][group] - staying, 0), over)
                    on[node][group] -= gone
                    over -= gone


class Relaxation:
    """The linear program over the known patterns; more are added between solutions."""

    def __init__(
        self, classes: Sequence[NodeClass], nodes: Sequence[int], counts: Sequence[int]
    ) -> None:
        """*nodes* are left of the classes, and *counts* pods of the groups."""
        self._solver = solver = pywraplp.Solver.CreateSolver("GLOP")
        self._covers = [solver.Constraint(count, solver.infinity()) for count in counts]
        self._classes, self._counts, self._nodes = classes, counts, nodes
        self._limits = [solver.Constraint(-solver.infinity(), count) for count in nodes]
        self._columns: dict[tuple[int, Counts], pywraplp.Variable] = {}
        self._objective = solver.Objective()
        self._objective.SetMinimization()
        self.cost = 0.0
        """The least, in nodes."""
        self.prices: list[int] = []
        """Of each group, in parts of SCALE."""
        self._class_prices: list[float] = []
        for cover in self._covers:
            unplaced = solver.NumVar(0, solver.infinity(), "")
            cover.SetCoefficient(unplaced, 1)
            self._objective.SetCoefficient(unplaced, UNPLACED_COST)
        for number, of in enumerate(classes):
            for pattern in of.patterns if nodes[number] else ():
                self.add(number, tuple(map(min, pattern, counts)))

    def add(self, number: int, pattern: Counts) -> bool:
        """Add a pattern of a class; return whether it is new."""
        if (number, pattern) in self._columns or not any(pattern):
            return False
        self._columns[number, pattern] = variable = self._solver.NumVar(0, math.inf, "")
        for group, count in enumerate(pattern):
            if count:
                self._covers[group].SetCoefficient(variable, count)
        self._limits[number].SetCoefficient(variable, 1)
        self._objective.SetCoefficient(variable, self._classes[number].cost)
        return True

    def solve(self) -> None:
        self._solver.Solve()
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

    def whole(self) -> Packing:
        """Return how often each pattern is taken, rounded down."""
        taken: Packing = Counter()
        for key, variable in self._columns.items():
            if times := math.floor(variable.solution_value() + EPSILON):
                taken[key] = times
        return taken

    def largest(self) -> Packing:
        """Return the patterns that are taken nearly once, or the one that is most of all."""
        values = {key: variable.solution_value() for key, variable in self._columns.items()}
        left, counts, taken = list(self._nodes), list(self._counts), Packing()
        for number, pattern in sorted(
            values, key=lambda key: (values[key], sum(key[1])), reverse=True
        ):
            value = values[number, pattern]
            if value < EPSILON or (taken and value < NEARLY):
                break
            fits = all(count <= has for count, has in zip(pattern, counts, strict=True))
            if left[number] and (fits or not taken):
                taken[number, pattern] = 1
                left[number] -= 1
                counts = [has - count for count, has in zip(pattern, counts, strict=True)]
        return taken


class _Enough(cp_model.CpSolverSolutionCallback):
    """Ends a search at a solution that is as good as the bound."""

    def __init__(self, bound: int) -> None:
        super().__init__()
        self._bound = bound

    def on_solution_callback(self) -> None:
        if self.objective_value <= self._bound:
            self.stop_search()
