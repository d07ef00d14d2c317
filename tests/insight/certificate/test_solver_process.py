"""The process of the solver, and what it may take."""

import subprocess
import sys

import pytest

from berth.insight.certificate.problem import Goal, Limits, Problem, Solution, Status
from berth.insight.certificate.solver_process import find, is_installed
from tests.insight.certificate.small import fewest_nodes, small

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed"),
]


class NotWantedError(Exception):
    """Nobody waits."""


def test_a_problem_is_solved_in_a_process_of_its_own() -> None:
    problem = small(2)
    solution = find(problem, Limits(seconds=20))
    assert solution.status is Status.SOLVED
    assert solution.stages[0].value == fewest_nodes(problem)


def test_a_problem_may_be_larger_than_what_a_pipe_holds() -> None:
    """The process reads it when it has loaded the solver: later than the first look."""
    nodes = 100_000
    problem = Problem(Goal.MOST_PENDING, ((),) * nodes, (False,) * nodes, ())
    assert find(problem, Limits(seconds=20)).status is Status.SOLVED


def test_a_process_that_fails_finds_nothing() -> None:
    assert find(small(2), Limits(), command=("false",)) == Solution(
        Status.OPEN, why="the memory was over, or the solver failed"
    )


def test_the_memory_is_limited() -> None:
    solution = find(small(2), Limits(memory=1 << 20))
    assert solution.status is Status.OPEN
    assert solution.why.startswith("the memory was over")


def test_whoever_waits_can_end_it() -> None:
    def look() -> None:
        raise NotWantedError

    with pytest.raises(NotWantedError):
        find(small(2), Limits(), look)


@pytest.mark.parametrize(
    "module", ["berth.insight.certificate.repacking", "berth.tools.rebalance.propose"]
)
def test_whoever_asks_does_not_import_the_solver(module: str) -> None:
    program = f"import sys, {module}; print('ortools' in sys.modules)"
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said == "False\n"
