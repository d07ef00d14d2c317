"""The nodes that get patterns: with the rules between nodes, and so that many pods stay.

Only for the solver's process, which has OR-Tools.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.graph.python import linear_sum_assignment
from ortools.sat.python import cp_model

from berth.insight.certificate.knapsacks import exclude
from berth.insight.certificate.node_classes import (
    Counts,
    NodeClass,
    classes_of,
    coarse_topologies,
    is_by_node,
)
from berth.insight.certificate.problem import NO_DOMAIN, Limits, Problem
from berth.insight.certificate.relaxation import Packing

Placement = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Patterns of the nodes of one class, and how many pods there are of each group at most."""

    of: NodeClass
    patterns: Sequence[Counts]
    most: Sequence[int]


def on_nodes(
    problem: Problem, classes: Sequence[NodeClass], packing: Packing | None, limits: Limits
) -> Placement | None:
    """Return a placement by *packing* of the *classes*; without it, by any of their patterns.

    None: none that keeps the rules between nodes was found in time.
    """
    counts = [group.count for group in problem.groups]
    chosen: list[_Chosen] | None
    if packing is None or coarse_topologies(problem):
        chosen = _by_domain(problem, classes, packing, limits)
    else:
        elements = [*packing.elements()]
        chosen = [
            _Chosen(of, [pattern for n, pattern in elements if n == number], counts)
            for number, of in enumerate(classes)
        ]
    if chosen is None:
        return None
    on: dict[int, list[int]] = {}
    for of_class in chosen:
        on_class = _assigned(problem, of_class)
        _trim(problem, on_class, of_class.most)
        on |= on_class
    _trim(problem, on, counts)
    return tuple(
        (group, node, count)
        for node, of_node in sorted(on.items())
        for group, count in enumerate(of_node)
        if count
    )


def _by_domain(
    problem: Problem,
    classes: Sequence[NodeClass],
    packing: Packing | None,
    limits: Limits,
) -> list[_Chosen] | None:
    """Have the patterns of *packing* in domains, so that rules between nodes are kept.

    Without it, choose among all patterns of the *classes*.
    """
    class_of = {node: number for number, of in enumerate(classes) for node in of.nodes}
    model = cp_model.CpModel()
    finer = classes_of(problem, by_domain=True)
    columns: list[tuple[int, Counts, cp_model.IntVar]] = []
    times: dict[tuple[int, Counts], list[cp_model.IntVar]] = defaultdict(list)
    for number, of in enumerate(finer):
        coarse = class_of[of.nodes[0]]
        of_class = []
        for pattern in classes[coarse].patterns:
            if packing is None or (coarse, pattern) in packing:
                of_class.append(model.new_int_var(0, len(of.nodes), ""))
                columns.append((number, pattern, of_class[-1]))
                times[coarse, pattern].append(of_class[-1])
        model.add(sum(of_class) <= len(of.nodes))
    for key, count in packing.items() if packing is not None else ():
        model.add(sum(times[key]) == count)
    placed = _keep_rules(problem, finer, model, columns)
    model.minimize(sum(finer[number].cost * z for number, _, z in columns))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = limits.seed
    solver.parameters.max_time_in_seconds = max(limits.seconds, 0.1)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return [
        _Chosen(
            of,
            [pattern for n, pattern, z in columns if n == number for _ in range(solver.value(z))],
            [
                solver.value(placed[number, group]) if (number, group) in placed else 0
                for group in range(len(problem.groups))
            ],
        )
        for number, of in enumerate(finer)
    ]


def _keep_rules(
    problem: Problem,
    classes: Sequence[NodeClass],
    model: cp_model.CpModel,
    columns: Sequence[tuple[int, Counts, cp_model.IntVar]],
) -> dict[tuple[int, int], cp_model.IntVar]:
    """Return how many pods of a group are on the nodes of a class.

    Patterns may have room for more pods than there are.
    """
    counts = [group.count for group in problem.groups]
    placed: dict[tuple[int, int], cp_model.IntVar] = {}
    for number, _ in enumerate(classes):
        for group, count in enumerate(counts):
            most = [(c[group], z) for n, c, z in columns if n == number and c[group]]
            if most:
                placed[number, group] = variable = model.new_int_var(0, count, "")
                model.add(variable <= sum(times * z for times, z in most))
    for group, count in enumerate(counts):
        model.add(sum(v for (_, g), v in placed.items() if g == group) == count)

    def in_domain(topology: int, domain: int, group: int) -> cp_model.LinearExprT:
        return sum(
            variable
            for (number, g), variable in placed.items()
            if g == group and classes[number].domains[topology] == domain
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
        fewest = model.new_int_var(0, sum(counts) + sum(spread.fixed.values()), "")
        if len(domains) < spread.min_domains:
            model.add(fewest == 0)
        for domain in domains:
            fixed = sum(n for node, n in spread.fixed.items() if of_node[node] == domain)
            here = fixed + sum(in_domain(spread.topology, domain, g) for g in spread.members)
            if len(domains) >= spread.min_domains:
                model.add(here >= fewest)
            model.add(here <= fewest + spread.max_skew)
    return placed


def _assigned(problem: Problem, chosen: _Chosen) -> dict[int, list[int]]:
    """Give the patterns nodes of their class, so that as many pods as can be stay."""
    nodes = chosen.of.nodes
    patterns = np.zeros((len(nodes), len(problem.groups)), np.int64)
    if chosen.patterns:
        patterns[: len(chosen.patterns)] = chosen.patterns
    stay = np.zeros((len(nodes), len(nodes)), np.int64)
    for number, group in enumerate(problem.groups):
        homes = np.array([group.homes.get(node, 0) for node in nodes], np.int64)
        stay += np.minimum.outer(patterns[:, number], homes)
    assignment = linear_sum_assignment.SimpleLinearSumAssignment()
    lefts, rights = np.indices(stay.shape)
    assignment.add_arcs_with_cost(lefts.ravel(), rights.ravel(), -stay.ravel())
    assignment.solve()
    return {
        nodes[assignment.right_mate(left)]: pattern
        for left, pattern in enumerate(patterns.tolist())
    }


def _trim(problem: Problem, on: Mapping[int, list[int]], counts: Sequence[int]) -> None:
    """Leave *counts* pods on the nodes *on*; who is not at home goes, from emptier nodes."""
    for group, count in enumerate(counts):
        over = sum(of_node[group] for of_node in on.values()) - count
        homes = problem.groups[group].homes
        for keeps_home in (True, False):
            for node in sorted(on, key=lambda node: sum(on[node])) if over > 0 else ():
                staying = homes.get(node, 0) if keeps_home else 0
                gone = min(max(on[node][group] - staying, 0), over)
                on[node][group] -= gone
                over -= gone
