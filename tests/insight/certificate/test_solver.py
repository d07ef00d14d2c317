"""The solver against all placements of small problems; in this process, for speed."""

import pytest
from msgspec.structs import replace

from berth.insight.certificate import counting
from berth.insight.certificate.keeping import broken_rules
from berth.insight.certificate.problem import (
    Goal,
    Group,
    Limits,
    Problem,
    Solution,
    Stage,
    Status,
)
from berth.insight.certificate.solver_process import is_installed
from tests.insight.certificate.small import fewest_evictions, fewest_nodes, small

pytestmark = pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed")


def solved(problem: Problem, **limits: float) -> Solution:
    from berth.insight.certificate.solver import solve

    return solve(problem, Limits(**{"seconds": 30.0, **limits}))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
def test_the_fewest_nodes_are_those_of_the_best_of_all_placements(seed: int) -> None:
    problem = small(seed)
    solution, best = solved(problem), fewest_nodes(problem)
    if best is None:
        assert solution.status is Status.IMPOSSIBLE
        return
    assert solution.stages[0] == Stage("nodes", best, best)
    assert list(broken_rules(problem, solution.placement)) == []
    assert counting.bound(problem) <= best


@pytest.mark.parametrize("seed", range(8))
def test_the_fewest_evictions_are_those_of_the_best_of_all(seed: int) -> None:
    problem = small(seed, Goal.FEWEST_EVICTIONS)
    solution, best = solved(problem), fewest_evictions(problem)
    if best is None:
        assert solution.status is Status.IMPOSSIBLE
        return
    assert solution.stages[0] == Stage("evictions", best, best)
    assert list(broken_rules(problem, solution.placement)) == []
    assert counting.bound(problem) <= best


@pytest.mark.parametrize("empty", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_fewest_evictions_that_empty_nodes(seed: int, empty: int) -> None:
    problem = small(seed, Goal.FEWEST_EVICTIONS)
    problem = replace(problem, groups=problem.groups[:-1], empty_nodes=empty)
    solution, best = solved(problem), fewest_evictions(problem)
    if best is None:
        assert solution.status is Status.IMPOSSIBLE
        return
    assert solution.stages[0] == Stage("evictions", best, best)
    assert list(broken_rules(problem, solution.placement)) == []
    assert counting.bound(problem) <= best


def two_nodes(*groups: Group, goal: Goal = Goal.MOST_PENDING, **more: object) -> Problem:
    return Problem(goal, ((10,), (10,)), (False, False), groups, **more)  # type: ignore[arg-type]


BOTH = (0, 1)


@pytest.mark.parametrize(
    ("problem", "stages"),
    [
        pytest.param(
            two_nodes(Group({0: 6}, BOTH, {0: 1}, 0, 0), Group({0: 4}, BOTH, {}, 4, 5)),
            [("priority 5", 3, 3), ("evictions", 0, 0)],
            id="who runs keeps its room",
        ),
        pytest.param(
            two_nodes(
                Group({0: 6}, BOTH, {0: 1}, 0, 0),
                Group({0: 5}, BOTH, {}, 4, 5),
                may_lose=True,
            ),
            [("priority 5", 4, 4), ("priority 0", 0, 0), ("evictions", 1, 1)],
            id="who may lose its room makes place for a higher priority",
        ),
        pytest.param(
            two_nodes(
                Group({0: 4}, BOTH, {0: 1, 1: 1}, 0, 0),
                Group({0: 10}, BOTH, {}, 1, 5),
                most_evictions=0,
            ),
            [("priority 5", 0, 0), ("evictions", 0, 0)],
            id="no evictions are allowed",
        ),
        pytest.param(
            two_nodes(
                Group({0: 4}, BOTH, {0: 1, 1: 1}, 0, 0),
                Group({0: 10}, BOTH, {}, 1, 5),
                Group({0: 2}, BOTH, {}, 3, 1),
                most_evictions=1,
            ),
            [("priority 5", 1, 1), ("priority 1", 1, 1), ("evictions", 1, 1)],
            id="the higher priority comes first, then as many as fit beside it",
        ),
        pytest.param(
            two_nodes(
                Group({0: 4}, BOTH, {0: 1}, 0, 7),
                Group({0: 4}, BOTH, {1: 1}, 0, 1),
                Group({0: 10}, BOTH, {}, 1, 9),
                goal=Goal.FEWEST_EVICTIONS,
            ),
            [("evictions", 1, 1), ("evictions, by priority", 0, 0)],
            id="of equally many the lower priority goes",
        ),
    ],
)
def test_stages(problem: Problem, stages: list[tuple[str, int, int]]) -> None:
    found = solved(problem).stages
    assert [(stage.what, stage.value, stage.bound) for stage in found] == stages


def test_forbidden_evictions_are_not_proposed_again() -> None:
    problem = two_nodes(
        Group({0: 4}, BOTH, {0: 1}, 0, 0),
        Group({0: 4}, BOTH, {1: 1}, 0, 1),
        Group({0: 10}, BOTH, {}, 1, 9),
        goal=Goal.FEWEST_EVICTIONS,
        forbidden=(((0, 0, 1),),),
    )
    assert (1, 0, 1) in solved(problem).placement


def test_what_runs_too_much_already_may_stay() -> None:
    problem = two_nodes(
        Group({0: 6}, BOTH, {0: 2}, 0, 0),
        Group({0: 10}, BOTH, {}, 1, 9),
        goal=Goal.FEWEST_EVICTIONS,
    )
    assert solved(problem).stages[0] == Stage("evictions", 0, 0)
