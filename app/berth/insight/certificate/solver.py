"""The solver's process: reads a request, writes a solution. It alone imports OR-Tools.

MessagePack from stdin to stdout, as :mod:`.problem` has them. Started by :mod:`.solver_process`.
"""

import sys
import time
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.insight.certificate.direct import Direct
from berth.insight.certificate.keeping import broken_rules
from berth.insight.certificate.patterns import Patterns
from berth.insight.certificate.problem import Goal, Limits, Problem, Request, Solution, Status
from berth.runtime.memory import limit_memory

FEW: Final = 8
"""Evictions that are tried first."""
FEW_SHARE: Final = 0.5
"""Of the time, for that."""
MOST_CELLS: Final = 5_000
"""Groups times nodes; with more, a number for each is of no use beside patterns."""


def solve(problem: Problem, limits: Limits) -> Solution:
    """Return the best that is found within the time of *limits*."""
    begun = time.monotonic()

    def elapsed() -> float:
        return time.monotonic() - begun

    if problem.goal is Goal.FEWEST_EVICTIONS and problem.most_evictions is None:
        # With few evictions, few nodes that are alike have to be looked at.
        few = replace(limits, seconds=FEW_SHARE * limits.seconds)
        solution = Direct(replace(problem, most_evictions=FEW), few, elapsed).solve()
        if solution.status is Status.SOLVED:
            return solution
        fewest = FEW + 1 if solution.status is Status.IMPOSSIBLE else 0
        return Direct(problem, limits, elapsed).solve(bound=fewest)
    if problem.goal is not Goal.FEWEST_NODES:
        return Direct(problem, limits, elapsed).solve()
    patterns = Patterns(problem, limits, elapsed)
    solution = patterns.solve()
    if solution.status is not Status.SOLVED:
        return Direct(problem, limits, elapsed).solve(bound=patterns.bound)
    [stage] = solution.stages
    is_kept = not any(broken_rules(problem, solution.placement))
    is_large = len(problem.groups) * len(problem.rooms) > MOST_CELLS
    if is_kept and (stage.value == stage.bound or is_large or elapsed() > limits.seconds):
        return solution
    start = solution.placement if is_kept else ()
    again = Direct(problem, limits, elapsed).solve(start, bound=stage.bound)
    if again.status is Status.OPEN or (is_kept and again.stages[0].value > stage.value):
        return solution
    close_at = again.within_one_percent
    if is_kept and solution.within_one_percent is not None:
        close_at = solution.within_one_percent
    return replace(again, within_one_percent=close_at)


def main() -> None:
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Request)
    limit_memory(request.limits.memory)
    try:
        solution = solve(request.problem, request.limits)
    except MemoryError:
        solution = Solution(Status.OPEN, why="the memory was over")
    sys.stdout.buffer.write(msgspec.msgpack.encode(solution))


if __name__ == "__main__":
    main()
