"""Nodes that are alike, so that it does not matter which of them runs what."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from berth.insight.certificate.problem import NO_DOMAIN, Problem, Spread

Counts = tuple[int, ...]
"""A pattern: of each group, how many pods a node runs."""


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
    """By topology; NO_DOMAIN for those in which each node is a domain. Empty if none are told."""
    most: tuple[int, ...]
    """By spread over single nodes, how many of its pods one may have."""
    patterns: dict[Counts, None] = field(default_factory=dict)


def is_by_node(problem: Problem, topology: int) -> bool:
    """Whether each node is a domain of its own, as with kubernetes.io/hostname."""
    domains = [domain for domain in problem.topologies[topology] if domain != NO_DOMAIN]
    return len(set(domains)) == len(domains)


def coarse_topologies(problem: Problem) -> list[int]:
    """Return those of rules whose domains have several nodes."""
    used = {exclusion.topology for exclusion in problem.exclusions}
    used |= {spread.topology for spread in problem.spreads}
    return [topology for topology in sorted(used) if not is_by_node(problem, topology)]


def classes_of(problem: Problem, *, by_domain: bool) -> list[NodeClass]:
    """Put nodes that are alike into one class; *by_domain*, also in the rules between nodes."""
    groups_at: list[list[int]] = [[] for _ in problem.rooms]
    for number, group in enumerate(problem.groups):
        for node in group.nodes:
            groups_at[node].append(number)
    coarse = coarse_topologies(problem)
    by_node = [
        _most_by_node(problem, s) for s in problem.spreads if is_by_node(problem, s.topology)
    ]
    classes: dict[object, NodeClass] = {}
    for node, room in enumerate(problem.rooms):
        most = tuple(of_node[node] for of_node in by_node)
        domains: tuple[int, ...] = ()
        key: tuple[object, ...] = (room, problem.is_busy[node], tuple(groups_at[node]), most)
        if by_domain:
            domains = tuple(
                domains[node] if topology in coarse else NO_DOMAIN
                for topology, domains in enumerate(problem.topologies)
            )
            fixed = tuple(spread.fixed.get(node, 0) for spread in problem.spreads)
            is_counted = tuple(node in spread.nodes for spread in problem.spreads)
            key += (domains, fixed, is_counted)
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


def most_on_node(problem: Problem) -> list[int]:
    """Return how many pods of each group a node may run: 1 where they exclude each other."""
    most = [group.count for group in problem.groups]
    for exclusion in problem.exclusions:
        if is_by_node(problem, exclusion.topology):
            for group in {*exclusion.holders} & {*exclusion.targets}:
                most[group] = min(most[group], 1)
    return most


def is_pattern(problem: Problem, of: NodeClass, counts: Sequence[int]) -> bool:
    """Whether a node of the class may run *counts*, which are not all 0."""
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
    allowed = set(of.groups)
    for group, count in enumerate(counts):
        if count and group not in allowed:
            return False
        for resource, need in problem.groups[group].requests.items() if count else ():
            needs[resource] += need * count
    return any(counts) and all(
        need <= max(has, 0) for need, has in zip(needs, of.room, strict=True)
    )
