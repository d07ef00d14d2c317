"""Small problems, made at random, and their best answers by trying everything."""

import random
from collections import Counter
from itertools import combinations, product

from msgspec.structs import replace

from berth.insight.certificate.keeping import broken_rules
from berth.insight.certificate.problem import Exclusion, Goal, Group, Problem, Spread

NODES = 4
ROOM = 8
HALVES = (0, 0, 1, 1)
EACH = (0, 1, 2, 3)


def small(seed: int, goal: Goal = Goal.FEWEST_NODES) -> Problem:
    """Four nodes with two resources, three kinds of pods, and perhaps rules between nodes."""
    rng = random.Random(seed)
    load = [[0, 0] for _ in range(NODES)]
    groups = []
    for number in range(3):
        requests = {0: rng.randint(1, 4), 1: rng.randint(1, 4)}
        homes: Counter[int] = Counter()
        for _ in range(rng.randint(1, 3)):
            fitting = [
                node
                for node in range(NODES)
                if all(load[node][r] + need <= ROOM for r, need in requests.items())
            ]
            if fitting:
                node = rng.choice(fitting)
                homes[node] += 1
                for resource, need in requests.items():
                    load[node][resource] += need
        groups.append(Group(requests, tuple(range(NODES)), dict(homes), 0, number))
    exclusions = [Exclusion(rng.choice((0, 1)), (0,), (rng.choice((0, 1)),))]
    spreads = [Spread(rng.choice((0, 1)), (2,), 1, 1, tuple(range(NODES)), {})]
    problem = Problem(
        goal,
        ((ROOM, ROOM),) * NODES,
        (rng.random() < 0.3, False, False, False),
        tuple(groups),
        (EACH, HALVES),
    )
    if goal is Goal.FEWEST_NODES:
        return replace(
            problem,
            exclusions=tuple(exclusions if rng.random() < 0.5 else ()),
            spreads=tuple(spreads if rng.random() < 0.5 else ()),
        )
    number = rng.randint(1, 2)
    wanted = Group({0: 5, 1: 4}, tuple(range(NODES)), {}, number, 9)
    return replace(problem, groups=(*groups, wanted))


def fewest_nodes(problem: Problem) -> int | None:
    """Return how many nodes run something in the best placement; None: there is none."""
    pods = [number for number, group in enumerate(problem.groups) for _ in range(group.count)]
    best: int | None = None
    for nodes in product(*(problem.groups[group].nodes for group in pods)):
        used = {node for node, is_busy in enumerate(problem.is_busy) if is_busy} | set(nodes)
        if best is not None and len(used) >= best:
            continue
        counts = Counter(zip(pods, nodes, strict=True))
        if not any(broken_rules(problem, [(*cell, count) for cell, count in counts.items()])):
            best = len(used)
    return best


def fewest_evictions(problem: Problem) -> int | None:
    """Return how many of the pods that run must go elsewhere; None: it does not help."""
    running = [
        (number, home)
        for number, group in enumerate(problem.groups)
        for home, count in group.homes.items()
        for _ in range(count)
    ]
    waiting = [number for number, group in enumerate(problem.groups) for _ in range(group.waiting)]
    for count in range(len(running) + 1):
        for leaving in combinations(range(len(running)), count):
            stay = [pod for index, pod in enumerate(running) if index not in leaving]
            moving = [running[index][0] for index in leaving] + waiting
            for nodes in product(range(NODES), repeat=len(moving)):
                counts = Counter([*stay, *zip(moving, nodes, strict=True)])
                placement = [(*cell, number) for cell, number in counts.items()]
                busy = {node for _, node, _ in placement}
                busy |= {node for node, is_busy in enumerate(problem.is_busy) if is_busy}
                is_enough = NODES - len(busy) >= problem.empty_nodes
                if is_enough and not any(broken_rules(problem, placement)):
                    return count
    return None
