"""Every goal, with a number for each group and node.

Only for the solver's process, which has OR-Tools.

The numbers sought come one after the other: when one is found, it is held, and the next is sought.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ortools.sat.python import cp_model

from berth.insight.certificate.knapsacks import exclude
from berth.insight.certificate.patterns import NODES
from berth.insight.certificate.problem import (
    NO_DOMAIN,
    Exclusion,
    Goal,
    Limits,
    Problem,
    Solution,
    Spread,
    Stage,
    Status,
    is_within_one_percent,
)

EVICTIONS: Final = "evictions"
PRIORITIES: Final = "evictions, by priority"
LAST_SHARE: Final = 0.5
"""Of the time that is left, for a number that matters less."""
TIER_SHARE: Final = 0.6
LAST_TIER_SHARE: Final = 0.9
"""The same for pods of one priority, and of the lowest."""
MOMENT: Final = 0.05
"""Seconds that each number gets at least."""
EPSILON: Final = 1e-6
MOST_CELLS: Final = 2_000_000
"""Groups times nodes; more would not be looked at in time."""

Cell = tuple[int, int]
"""A group and a node."""
Placement = tuple[tuple[int, int, int], ...]


class Direct:
    """The model of one problem, and its search. *elapsed* tells the seconds since the beginning."""

    def __init__(self, problem: Problem, limits: Limits, elapsed: Callable[[], float]) -> None:
        self._problem, self._limits, self._elapsed = problem, limits, elapsed
        self._model = cp_model.CpModel()
        self._here: dict[Cell, cp_model.LinearExprT] = {}
        """How many pods of a group are on a node."""
        self._come: dict[Cell, cp_model.IntVar] = {}
        """How many come that are not there now."""
        self._gone: dict[Cell, cp_model.IntVar] = {}
        """How many that are there now are not any more."""
        self._at: dict[int, list[int]] = defaultdict(list)
        """The groups that may be on a node."""
        self._hints: Sequence[cp_model.IntVar] = ()
        self._close_at: float | None = None

    def solve(self, start: Placement = (), *, bound: int = 0) -> Solution:
        """Return the best placement that is found in time, beginning with that of *start*.

        *bound* is a bound that is known of the first number.
        """
        problem = self._problem
        if len(problem.groups) * len(problem.rooms) > MOST_CELLS:
            why = f"{len(problem.groups)} kinds of pods on {len(problem.rooms)} nodes are too many"
            return Solution(Status.OPEN, (), (), self._elapsed(), None, why)
        self._build()
        stages: list[Stage] = []
        placement = start
        if problem.goal is Goal.MOST_PENDING:  # where pods are now is a solution
            placement = tuple(
                (number, node, count)
                for number, group in enumerate(problem.groups)
                for node, count in group.homes.items()
            )
        self._hint(placement)
        for target in self._targets():
            is_first = not stages
            if target.value_of is not None and target.value_of(placement) == target.most:
                stages.append(Stage(target.what, target.most, target.most))
                self._model.add(target.objective >= target.most * target.unit)
                continue
            solver, status, stopped_at = self._search(target, is_first=is_first)
            if status == cp_model.INFEASIBLE and is_first:
                return Solution(Status.IMPOSSIBLE, (), (), self._elapsed())
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                if target.value_of is not None:
                    stages.append(Stage(target.what, target.value_of(placement), target.most))
                elif is_first:
                    why = "no placement was found in time"
                    return Solution(Status.OPEN, (), (), self._elapsed(), None, why)
                break
            value = round(solver.objective_value) // target.unit
            best = target.bound(min(solver.best_objective_bound, stopped_at, key=target.tightness))
            if is_first and not target.maximizes:
                best = max(best, bound)
            stages.append(Stage(target.what, value, best))
            placement = tuple(self._placement(solver))
            least = value * target.unit
            self._model.add(
                target.objective >= least if target.maximizes else target.objective <= least
            )
            self._hint_values(solver)
        return Solution(Status.SOLVED, tuple(stages), placement, self._elapsed(), self._close_at)

    def _placement(self, solver: cp_model.CpSolver) -> Iterator[tuple[int, int, int]]:
        """Yield where pods are; on nodes that were not looked at, as they are now."""
        for (number, node), here in self._here.items():
            if count := solver.value(here):
                yield number, node, count
        for number, group in enumerate(self._problem.groups):
            for node, count in group.homes.items():
                if (number, node) not in self._here:
                    yield number, node, count

    def _search(
        self, target: "_Target", *, is_first: bool
    ) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus, float]:
        """Return the solver, how its search ended, and the best bound that it told."""
        model = self._model
        (model.maximize if target.maximizes else model.minimize)(target.objective)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self._limits.workers
        solver.parameters.random_seed = self._limits.seed
        left = self._limits.seconds - self._elapsed()
        solver.parameters.max_time_in_seconds = max(target.share * left, MOMENT)
        progress = _Progress(self._elapsed, target, solver)
        solver.best_bound_callback = progress.on_bound
        status = solver.solve(model, progress)
        if is_first:
            if status == cp_model.OPTIMAL and progress.close_at is None:
                progress.close_at = self._elapsed()
            self._close_at = progress.close_at
        return solver, status, progress.bound

    # The model.

    def _build(self) -> None:
        problem, model = self._problem, self._model
        nodes = set(self._nodes())
        for number, group in enumerate(problem.groups):
            for node in group.nodes:
                if node in nodes:
                    come = model.new_int_var(0, group.count, "")
                    self._come[number, node] = come
            for node, running in group.homes.items():
                if node in nodes:
                    self._gone[number, node] = model.new_int_var(0, running, "")
            for node in {*group.nodes, *group.homes} & nodes:
                cell = number, node
                running = group.homes.get(node, 0)
                self._here[cell] = running + self._come.get(cell, 0) - self._gone.get(cell, 0)
                if cell in self._come and cell in self._gone:
                    model.add(self._come[cell] <= group.count - running)
                self._at[node].append(number)
            here = sum(self._cells_of(number))
            if problem.goal is Goal.MOST_PENDING:
                model.add(here <= group.count)
                if not problem.may_lose:
                    model.add(here >= group.running)
            else:
                model.add(here == group.count)
        for node in nodes:
            self._fit(node)
        for exclusion in problem.exclusions:
            self._exclude(exclusion, nodes)
        for spread in problem.spreads:
            self._spread(spread, nodes)
        if problem.most_evictions is not None:
            model.add(self._evictions() <= problem.most_evictions)
        if problem.empty_nodes:
            self._leave_empty(nodes)
        for evictions in problem.forbidden:
            if all((group, node) in self._gone for group, node, _ in evictions):
                self._forbid(evictions)

    def _cells_of(self, group: int) -> Iterator[cp_model.LinearExprT]:
        spec = self._problem.groups[group]
        for node in {*spec.nodes, *spec.homes}:
            yield self._here.get((group, node), spec.homes.get(node, 0))

    def _nodes(self) -> Iterable[int]:
        """Return the nodes to look at: of those that are alike, as many as evictions can touch.

        An eviction touches two nodes, a pod that comes touches one.
        """
        problem, most = self._problem, self._problem.most_evictions
        if most is None or problem.goal is Goal.FEWEST_NODES:
            return range(len(problem.rooms))
        touched = 2 * most + sum(group.waiting for group in problem.groups)
        alike: dict[object, list[int]] = {}
        allowed = [set(group.nodes) for group in problem.groups]
        for node, room in enumerate(problem.rooms):
            key = (
                room,
                tuple(topology[node] for topology in problem.topologies),
                tuple(
                    (group.homes.get(node, 0), node in allowed[number])
                    for number, group in enumerate(problem.groups)
                ),
                tuple((node in s.nodes, s.fixed.get(node, 0)) for s in problem.spreads),
            )
            alike.setdefault(key, []).append(node)
        return sorted(node for nodes in alike.values() for node in nodes[:touched])

    def _fit(self, node: int) -> None:
        """Requests fit, unless nobody comes: what runs may take too much already."""
        problem = self._problem
        for resource, room in enumerate(problem.rooms[node]):
            takers = [g for g in self._at[node] if resource in problem.groups[g].requests]
            needs = [problem.groups[g].requests[resource] for g in takers]
            terms = (need * self._here[g, node] for need, g in zip(needs, takers, strict=True))
            coming = [self._come[g, node] for g in takers if (g, node) in self._come]
            if not coming:
                continue
            now = sum(
                need * problem.groups[g].homes.get(node, 0)
                for need, g in zip(needs, takers, strict=True)
            )
            fits = self._model.add(sum(terms) <= max(room, 0))
            if now > max(room, 0):
                fits.only_enforce_if(self._is_any(coming))

    def _is_any(self, amounts: Sequence[cp_model.IntVar]) -> cp_model.IntVar:
        """Return whether any of *amounts* is more than 0; it may say so in vain."""
        is_any = self._model.new_bool_var("")
        for amount in amounts:
            self._model.add(amount == 0).only_enforce_if(~is_any)
        return is_any

    def _exclude(self, exclusion: Exclusion, nodes: Iterable[int]) -> None:
        for _, members in self._domains(exclusion.topology, nodes):
            groups = {*exclusion.holders, *exclusion.targets}
            amounts = {
                group: sum(self._here[group, n] for n in members if (group, n) in self._here)
                for group in groups
            }
            is_new = self._problem.goal is Goal.FEWEST_NODES
            if not is_new and not self._is_kept_now(exclusion, members):
                continue  # it may go on as it is
            exclude(self._model, amounts, exclusion, self._problem)

    def _is_kept_now(self, exclusion: Exclusion, members: Sequence[int]) -> bool:
        def here(group: int) -> int:
            return sum(self._problem.groups[group].homes.get(node, 0) for node in members)

        total = sum(here(group) for group in exclusion.targets)
        return all(
            total - (holder in exclusion.targets) <= 0
            for holder in exclusion.holders
            if here(holder)
        )

    def _domains(self, topology: int, nodes: Iterable[int]) -> Iterable[tuple[int, list[int]]]:
        domains: dict[int, list[int]] = defaultdict(list)
        for node in nodes:
            domains[self._problem.topologies[topology][node]].append(node)
        domains.pop(NO_DOMAIN, None)
        return domains.items()

    def _spread(self, spread: Spread, nodes: set[int]) -> None:
        problem, model = self._problem, self._model
        of_node = problem.topologies[spread.topology]
        counted = set(spread.nodes)
        domains: dict[int, list[int]] = defaultdict(list)
        for node in counted:
            domains[of_node[node]].append(node)
        total = sum(problem.groups[g].count for g in spread.members) + sum(spread.fixed.values())
        fewest = model.new_int_var(0, total, "")
        if len(domains) < spread.min_domains:
            model.add(fewest == 0)
        for members in domains.values():
            cells = [(group, node) for node in members for group in spread.members]
            fixed = sum(spread.fixed.get(node, 0) for node in members)
            here = fixed + sum(
                self._here.get(cell, problem.groups[cell[0]].homes.get(cell[1], 0))
                for cell in cells
            )
            coming = [self._come[cell] for cell in cells if cell in self._come]
            if len(domains) >= spread.min_domains:
                model.add(here >= fewest)
            if coming:
                rule = model.add(here <= fewest + spread.max_skew)
                if problem.goal is not Goal.FEWEST_NODES:
                    rule.only_enforce_if(self._is_any(coming))

    def _leave_empty(self, nodes: set[int]) -> None:
        """Have enough nodes empty; those that are not looked at stay as they are."""
        problem = self._problem
        homes = {node for group in problem.groups for node in group.homes}
        empty: list[cp_model.LinearExprT] = []
        for node, is_busy in enumerate(problem.is_busy):
            if is_busy or (node not in nodes and node in homes):
                continue
            is_empty = self._model.new_bool_var("")
            for group in self._at[node]:
                self._model.add(self._here[group, node] == 0).only_enforce_if(is_empty)
            empty.append(is_empty)
        self._model.add(sum(empty) >= problem.empty_nodes)

    def _forbid(self, evictions: Sequence[tuple[int, int, int]]) -> None:
        fewer = []
        for group, node, count in evictions:
            is_fewer = self._model.new_bool_var("")
            self._model.add(self._gone[group, node] < count).only_enforce_if(is_fewer)
            fewer.append(is_fewer)
        self._model.add_bool_or(fewer)

    # What is sought.

    def _evictions(self, above: int | None = None) -> cp_model.LinearExprT:
        """Return how many pods are evicted, of those that are of higher priority than *above*."""
        groups = self._problem.groups
        return sum(
            gone
            for (group, _), gone in self._gone.items()
            if above is None or groups[group].priority > above
        )

    def _targets(self) -> "Iterator[_Target]":
        problem = self._problem
        match problem.goal:
            case Goal.FEWEST_NODES:
                yield _Target(NODES, self._used_nodes())
                yield _Target(EVICTIONS, self._evictions(), share=LAST_SHARE)
            case Goal.MOST_PENDING:
                yield from self._tiers()
                yield _Target(EVICTIONS, self._evictions())
            case Goal.FEWEST_EVICTIONS:
                yield _Target(EVICTIONS, self._evictions())
                priorities = sorted({group.priority for group in problem.groups if group.homes})
                if len(priorities) > 1:
                    by_priority = self._by_priority(priorities)
                    yield _Target(PRIORITIES, by_priority, share=LAST_SHARE)

    def _tiers(self) -> "Iterator[_Target]":
        """Yield how many pods of each priority are placed, the highest first.

        As many as can be of lower ones beside that, so that nobody goes without need.
        """
        groups, may_lose = self._problem.groups, self._problem.may_lose
        tiers: dict[int, list[int]] = defaultdict(list)
        for number, group in enumerate(groups):
            if group.waiting or may_lose:
                tiers[group.priority].append(number)
        ordered = sorted(tiers.items(), reverse=True)
        unit = 1 + sum(group.count for group in groups)
        for place, (priority, numbers) in enumerate(ordered):
            kept = 0 if may_lose else sum(groups[number].running for number in numbers)
            others = [number for _, lower in ordered[place + 1 :] for number in lower]
            kept_of_others = 0 if may_lose else sum(groups[other].running for other in others)
            terms = [unit * self._placed(numbers), self._placed(others)]
            objective = cp_model.LinearExpr.sum(terms) - unit * kept - kept_of_others
            yield _Target(
                f"priority {priority}",
                objective,
                maximizes=True,
                unit=unit,
                share=TIER_SHARE if others else LAST_TIER_SHARE,
                most=sum(groups[number].count for number in numbers) - kept,
                value_of=partial(_count, numbers, kept),
            )

    def _placed(self, numbers: Iterable[int]) -> cp_model.LinearExprT:
        return sum(sum(self._cells_of(number)) for number in numbers)

    def _by_priority(self, priorities: Sequence[int]) -> cp_model.LinearExprT:
        rank = {priority: number for number, priority in enumerate(priorities)}
        groups = self._problem.groups
        return sum(rank[groups[group].priority] * gone for (group, _), gone in self._gone.items())

    def _used_nodes(self) -> cp_model.LinearExprT:
        problem, model = self._problem, self._model
        used: list[cp_model.LinearExprT] = []
        for node, groups in self._at.items():
            if problem.is_busy[node]:
                continue
            is_used = model.new_bool_var("")
            for group in groups:
                model.add(self._here[group, node] <= problem.groups[group].count * is_used)
            used.append(is_used)
        return sum(used) + sum(problem.is_busy)

    # Where to begin.

    def _hint(self, start: Placement) -> None:
        """Begin with *start*; with the pods where they run, if it is empty."""
        counts = {(group, node): count for group, node, count in start}
        for cell in self._here:
            group, node = cell
            running = self._problem.groups[group].homes.get(node, 0)
            change = counts.get(cell, 0) - running if start else 0
            if cell in self._come:
                self._model.add_hint(self._come[cell], max(change, 0))
            if cell in self._gone:
                self._model.add_hint(self._gone[cell], max(-change, 0))

    def _hint_values(self, solver: cp_model.CpSolver) -> None:
        self._model.clear_hints()  # type: ignore[no-untyped-call]
        for variable in (*self._come.values(), *self._gone.values()):
            self._model.add_hint(variable, solver.value(variable))


def _count(numbers: Sequence[int], kept: int, placement: Placement) -> int:
    return sum(count for group, _, count in placement if group in numbers) - kept


@dataclass(frozen=True, slots=True)
class _Target:
    """One of the numbers that are sought."""

    what: str
    objective: cp_model.LinearExprT
    maximizes: bool = False
    unit: int = 1
    """The objective has the number so many times, and less than that of something else."""
    share: float = 1.0
    """Of the time that is left."""
    most: int = 0
    """What can obviously not be exceeded, if *value_of* says what a placement comes to."""
    value_of: Callable[[Placement], int] | None = None

    def bound(self, objective: float) -> int:
        """Return the bound of the number that follows from one of the objective."""
        if self.maximizes:
            return min(math.floor((objective + EPSILON) / self.unit), self.most)
        return math.ceil(objective - EPSILON)

    def tightness(self, objective: float) -> float:
        """Sort bounds of the objective, the tightest first."""
        return objective if self.maximizes else -objective


class _Progress(cp_model.CpSolverSolutionCallback):
    """Notes when value and bound are close, and ends a search when the number is found."""

    def __init__(
        self, elapsed: Callable[[], float], target: _Target, solver: cp_model.CpSolver
    ) -> None:
        super().__init__()
        self._elapsed, self._target, self._solver = elapsed, target, solver
        self._value: int | None = None
        self.close_at: float | None = None
        self.bound = math.inf if target.maximizes else -math.inf

    def on_solution_callback(self) -> None:
        self._value = round(self.objective_value) // self._target.unit
        self._note(self.best_objective_bound)

    def on_bound(self, bound: float) -> None:
        self._note(bound)

    def _note(self, objective: float) -> None:
        self.bound = min(self.bound, objective, key=self._target.tightness)
        if self._value is None:
            return
        bound = self._target.bound(self.bound)
        if self.close_at is None and is_within_one_percent(self._value, bound):
            self.close_at = self._elapsed()
        if self._target.unit > 1 and self._value == bound:
            self._solver.stop_search()
