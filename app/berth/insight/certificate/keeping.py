"""Whether a placement keeps the rules of its problem, in plain words; solvers have their own."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from berth.insight.certificate.problem import NO_DOMAIN, Exclusion, Goal, Problem, Spread

Placement = Iterable[tuple[int, int, int]]


def broken_rules(problem: Problem, placement: Placement) -> Iterator[str]:
    """Yield what is wrong with *placement*, in which all pods are placed anew."""
    counts = {(group, node): count for group, node, count in placement}
    for number, group in enumerate(problem.groups):
        total = sum(count for (g, _), count in counts.items() if g == number)
        if total > group.count or (problem.goal is not Goal.MOST_PENDING and total < group.count):
            yield f"{total} of {group.count} pods of group {number} are placed"
        for node in (node for g, node in counts if g == number):
            if node not in group.nodes and node not in group.homes:
                yield f"group {number} may not be on node {node}"
    taken: dict[int, Counter[int]] = defaultdict(Counter)
    for (number, node), count in counts.items():
        for resource, need in problem.groups[number].requests.items():
            taken[node][resource] += need * count
    for node, of_node in taken.items():
        for resource, amount in of_node.items():
            if amount > max(problem.rooms[node][resource], 0):
                yield f"too much of resource {resource} is taken of node {node}"
    for exclusion in problem.exclusions:
        yield from _broken_exclusion(problem, exclusion, counts)
    for spread in problem.spreads:
        yield from _broken_spread(problem, spread, counts)


def _broken_exclusion(
    problem: Problem, exclusion: Exclusion, counts: dict[tuple[int, int], int]
) -> Iterator[str]:
    of_node = problem.topologies[exclusion.topology]
    here: dict[int, Counter[int]] = defaultdict(Counter)
    for (group, node), count in counts.items():
        if of_node[node] != NO_DOMAIN:
            here[of_node[node]][group] += count
    for domain, groups in here.items():
        targets = sum(groups[group] for group in exclusion.targets)
        for holder in exclusion.holders:
            if groups[holder] and targets > (holder in exclusion.targets):
                yield f"domain {domain} has a pod of group {holder} and others that it excludes"


def _broken_spread(
    problem: Problem, spread: Spread, counts: dict[tuple[int, int], int]
) -> Iterator[str]:
    of_node = problem.topologies[spread.topology]
    here = Counter({of_node[node]: 0 for node in spread.nodes})
    for node in spread.nodes:
        here[of_node[node]] += spread.fixed.get(node, 0)
        here[of_node[node]] += sum(counts.get((group, node), 0) for group in spread.members)
    fewest = min(here.values(), default=0) if len(here) >= spread.min_domains else 0
    for domain, count in here.items():
        if count > fewest + spread.max_skew:
            yield f"domain {domain} has {count} pods, and another {fewest}"
