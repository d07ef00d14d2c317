"""What can be said without a solver: bounds by sums of requests."""

from collections.abc import Iterable, Iterator, Set

from berth.insight.certificate.problem import Goal, Problem


def bound(problem: Problem) -> int:
    """Return how many nodes, or evictions, are needed at least; or how many pods fit at most.

    For a problem of pending pods: how many of all priorities together.
    """
    match problem.goal:
        case Goal.FEWEST_NODES:
            return sum(problem.is_busy) + max(_nodes_needed(problem), default=0)
        case Goal.MOST_PENDING:
            return _most_pending(problem)
        case Goal.FEWEST_EVICTIONS:
            return max(0 if _fits_now(problem) else 1, _leaving(problem))


def _nodes_needed(problem: Problem) -> Iterator[int]:
    """Yield for each set of nodes and each resource how many nodes take the pods of these nodes.

    The largest nodes come first, after those that are busy anyway.
    """
    for nodes in {frozenset(group.nodes) for group in problem.groups}:
        groups = [group for group in problem.groups if nodes.issuperset(group.nodes)]
        for resource in range(_width(problem)):
            needed = sum(group.requests.get(resource, 0) * group.count for group in groups)
            yield _count(problem, nodes, resource, needed)
        yield 1 if any(g.count for g in groups) and not any(problem.is_busy) else 0


def _count(problem: Problem, nodes: Set[int], resource: int, needed: int) -> int:
    rooms = {node: max(problem.rooms[node][resource], 0) for node in nodes}
    needed -= sum(room for node, room in rooms.items() if problem.is_busy[node])
    idle = sorted((room for node, room in rooms.items() if not problem.is_busy[node]), reverse=True)
    count = 0
    while needed > 0 and count < len(idle):
        needed -= idle[count]
        count += 1
    return count


def _most_pending(problem: Problem) -> int:
    """Return how many pods fit beside those that run, if all room were in one place."""
    most = sum(group.waiting for group in problem.groups)
    for resource in range(_width(problem)):
        left = sum(max(room[resource], 0) for room in problem.rooms)
        left -= sum(g.requests.get(resource, 0) * g.running for g in problem.groups)
        needs = sorted(
            need
            for group in problem.groups
            for need in [group.requests.get(resource, 0)] * group.waiting
        )
        most = min(most, _prefix(needs, max(left, 0)))
    return most


def _prefix(needs: Iterable[int], left: int) -> int:
    count = 0
    for need in needs:
        left -= need
        if left < 0:
            break
        count += 1
    return count


def _fits_now(problem: Problem) -> bool:
    """Whether each kind of pods that wait has a node with room for one of them as it is."""
    taken = [[0] * _width(problem) for _ in problem.rooms]
    for group in problem.groups:
        for node, count in group.homes.items():
            for resource, need in group.requests.items():
                taken[node][resource] += need * count
    return all(
        any(
            all(
                need <= problem.rooms[node][resource] - taken[node][resource]
                for resource, need in group.requests.items()
            )
            for node in group.nodes
        )
        for group in problem.groups
        if group.waiting
    )


def _leaving(problem: Problem) -> int:
    """Return how many pods run on the nodes that are to be empty, if these have the fewest."""
    here = [0 if not is_busy else None for is_busy in problem.is_busy]
    for group in problem.groups:
        for node, count in group.homes.items():
            if (others := here[node]) is not None:
                here[node] = others + count
    return sum(sorted(count for count in here if count is not None)[: problem.empty_nodes])


def _width(problem: Problem) -> int:
    return len(problem.rooms[0]) if problem.rooms else 0
