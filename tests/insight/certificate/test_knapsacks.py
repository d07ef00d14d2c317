"""The dearest pattern of a node, against all its patterns."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.insight.certificate.node_classes import Counts, classes_of, is_pattern
from berth.insight.certificate.problem import Exclusion, Goal, Group, Limits, Problem, Spread
from berth.insight.certificate.solver_process import is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed")

NODES = 2
AMOUNT = st.integers(0, 4)
EACH = tuple(range(NODES))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Nodes that are alike, three kinds of pods, and perhaps rules within a node."""
    groups = []
    for _ in range(3):
        requests = {r: need for r in range(2) if (need := draw(AMOUNT))}
        groups.append(Group(requests, EACH, {}, draw(st.integers(0, 3)), 0))
    of_rule = st.sampled_from([(0,), (1,), (0, 1)])
    exclusions = [Exclusion(0, draw(of_rule), draw(of_rule))] if draw(st.booleans()) else []
    spreads = [Spread(0, (2,), 1, 1, EACH, {})] if draw(st.booleans()) else []
    room = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    return Problem(
        Goal.FEWEST_NODES,
        (room,) * NODES,
        (False,) * NODES,
        tuple(groups),
        (EACH,),
        tuple(exclusions),
        tuple(spreads),
    )


def patterns(problem: Problem, counts: Counts) -> Iterator[Counts]:
    [of] = classes_of(problem, by_domain=False)
    for pattern in product(*(range(count + 1) for count in counts)):
        if not any(pattern) or is_pattern(problem, of, pattern):
            yield pattern


@given(
    problems(),
    st.tuples(*[st.integers(0, 9)] * 3),
    st.tuples(*[st.integers(0, 3)] * 3),
    st.booleans(),
)
def test_no_pattern_is_dearer(
    problem: Problem, prices: Counts, left: Counts, searches: bool
) -> None:
    from berth.insight.certificate.knapsacks import Knapsack, Search

    def worth(pattern: Counts) -> int:
        return sum(price * count for price, count in zip(prices, pattern, strict=True))

    counts = tuple(min(group.count, few) for group, few in zip(problem.groups, left, strict=True))
    [of] = classes_of(problem, by_domain=False)
    knapsack = (Search if searches else Knapsack)(problem, of, Limits())
    bound, pattern = knapsack.dearest(prices, counts, seconds=5.0)
    assert bound == worth(pattern) == max(map(worth, patterns(problem, counts)))
    assert not any(pattern) or is_pattern(problem, of, pattern)
    assert all(count <= most for count, most in zip(pattern, counts, strict=True))
