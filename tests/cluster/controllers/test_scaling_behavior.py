"""How fast an autoscaler follows its metrics."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.controllers.scaling_behavior import (
    At,
    History,
    Target,
    normalize,
    tolerances_of,
)
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

NOW = 10_000.0

AUTOSCALERS = find("autoscaling", "v2", "horizontalpodautoscalers")


def behavior(**rules: Any) -> Object:
    """A behavior with its defaults."""
    obj: Object = {"spec": {"behavior": rules}}
    AUTOSCALERS.strategy.default(obj)
    found: Object = obj["spec"]["behavior"]
    return found


def rules(*policies: tuple[str, int, int], select: str = "Max", window: int = 0) -> Object:
    return {
        "policies": [
            {"type": type_, "value": value, "periodSeconds": period}
            for type_, value, period in policies
        ],
        "selectPolicy": select,
        "stabilizationWindowSeconds": window,
    }


def history(
    *recommendations: tuple[float, int], changes: tuple[tuple[float, int], ...] = ()
) -> Any:
    """What was recommended and changed so many seconds ago."""
    return History(
        [At(NOW - ago, number) for ago, number in recommendations],
        [At(NOW - ago, number) for ago, number in changes],
    )


@pytest.mark.parametrize(
    ("desired", "current", "past", "want", "able", "limited"),
    [
        pytest.param(3, 3, history(), 3, "ReadyForNewScale", "DesiredWithinRange", id="as it is"),
        pytest.param(6, 3, history((60, 3)), 6, "ReadyForNewScale", "DesiredWithinRange", id="up"),
        pytest.param(
            9, 3, history((60, 3)), 6, "ReadyForNewScale", "ScaleUpLimit", id="not more than double"
        ),
        pytest.param(
            4, 1, history((60, 1)), 4, "ReadyForNewScale", "DesiredWithinRange", id="but up to four"
        ),
        pytest.param(
            30, 12, history((60, 9)), 20, "ReadyForNewScale", "TooManyReplicas", id="the maximum"
        ),
        pytest.param(
            1, 6, history((300, 6)), 6, "ScaleDownStabilized", "DesiredWithinRange",
            id="not below what was called for in five minutes",
        ),
        pytest.param(
            1, 6, history((301, 6), (200, 4)), 4, "ScaleDownStabilized", "DesiredWithinRange",
            id="down to the highest of five minutes",
        ),
        pytest.param(
            1, 6, history((301, 6)), 2, "ReadyForNewScale", "TooFewReplicas", id="the minimum"
        ),
        pytest.param(
            1, 6, history(), 6, "ScaleDownStabilized", "DesiredWithinRange",
            id="the first look recommends what there is",
        ),
    ],
)  # fmt: skip
def test_without_a_behavior(
    desired: int, current: int, past: History, want: int, able: str, limited: str
) -> None:
    found = normalize(desired, Target(current, 2, 20), None, past, now=NOW)

    assert (found.replicas, found.able[0], found.limited[0]) == (want, able, limited)
    assert found.is_limited is (limited != "DesiredWithinRange")
    assert past.recommendations[-1] == At(NOW, desired)


@pytest.mark.parametrize(
    ("desired", "given", "past", "want", "limited"),
    [
        pytest.param(50, {}, history((60, 10)), 20, "ScaleUpLimit", id="up: doubled at most"),
        pytest.param(
            50,
            {"scaleUp": rules(("Pods", 2, 60))},
            history((60, 10)),
            12,
            "ScaleUpLimit",
            id="pods",
        ),
        pytest.param(
            50,
            {"scaleUp": rules(("Pods", 2, 60), ("Percent", 15, 60), select="Min")},
            history((60, 10)),
            12,
            "ScaleUpLimit",
            id="the policy of the least change",
        ),
        pytest.param(
            50,
            {"scaleUp": rules(("Percent", 15, 60))},
            history((60, 10)),
            12,
            "ScaleUpLimit",
            id="a percentage is rounded up",
        ),
        pytest.param(
            50,
            {"scaleUp": rules(("Pods", 2, 60))},
            history((60, 8), changes=((59, 2), (61, 5))),
            10,
            "ScaleUpLimit",
            id="what was added in the period counts, not what was before",
        ),
        pytest.param(
            50,
            {"scaleUp": rules(("Pods", 2, 60))},
            history((60, 13), changes=((30, -3),)),
            15,
            "ScaleUpLimit",
            id="what was removed in the period may come back",
        ),
        pytest.param(
            50,
            {"scaleUp": rules(select="Disabled")},
            history((60, 10)),
            10,
            "ScaleUpLimit",
            id="off",
        ),
        pytest.param(
            50,
            {"scaleUp": rules(("Percent", 900, 60))},
            history((60, 10)),
            30,
            "TooManyReplicas",
            id="up to the maximum",
        ),
        pytest.param(
            1,
            {"scaleDown": rules(("Pods", 2, 60))},
            history((60, 10)),
            8,
            "ScaleDownLimit",
            id="down by pods",
        ),
        pytest.param(
            1,
            {"scaleDown": rules(("Percent", 25, 60))},
            history((60, 10)),
            7,
            "ScaleDownLimit",
            id="down by a percentage, rounded down",
        ),
        pytest.param(
            1,
            {"scaleDown": rules(("Pods", 1, 60), ("Pods", 4, 60), select="Min")},
            history((60, 10)),
            9,
            "ScaleDownLimit",
            id="down by the least change",
        ),
        pytest.param(
            1,
            {"scaleDown": rules(("Percent", 100, 15))},
            history((60, 10)),
            2,
            "TooFewReplicas",
            id="down to the minimum",
        ),
        pytest.param(
            12,
            {"scaleUp": rules(("Pods", 9, 60), window=120)},
            history((100, 11), (130, 10)),
            11,
            "DesiredWithinRange",
            id="up to the lowest of a window",
        ),
        pytest.param(
            5,
            {},
            history((299, 9), (300, 10)),
            9,
            "DesiredWithinRange",
            id="down to the highest of five minutes unless it says otherwise",
        ),
    ],
)
def test_with_a_behavior(desired: int, given: Any, past: History, want: int, limited: str) -> None:
    found = normalize(desired, Target(10, 2, 30), behavior(**given), past, now=NOW)

    assert (found.replicas, found.limited[0]) == (want, limited)


def test_old_memories_are_forgotten() -> None:
    past = history((5000, 1), changes=((5000, 1), (100, 2)))
    for number in range(100):
        normalize(3, Target(3, 1, 9), behavior(), past, now=NOW + 15 * number)
    assert len(past.recommendations) <= 22
    assert past.changes == [At(NOW - 100, 2)]


def test_tolerances() -> None:
    assert tolerances_of(None) == (0.1, 0.1)
    assert tolerances_of({"scaleUp": {"tolerance": "0.05"}, "scaleDown": {}}) == (0.05, 0.1)


policies = st.lists(
    st.tuples(st.sampled_from(["Pods", "Percent"]), st.integers(1, 300), st.integers(1, 1800)),
    min_size=1,
    max_size=3,
)
any_rules = st.builds(
    lambda chosen, select, window: rules(*chosen, select=select, window=window),
    policies,
    st.sampled_from(["Min", "Max", "Disabled"]),
    st.integers(0, 3600),
)


@given(
    st.none() | st.fixed_dictionaries({"scaleUp": any_rules, "scaleDown": any_rules}),
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 600)), max_size=20),
)
def test_the_bounds_hold_whatever_is_called_for(
    given_behavior: Object | None, looks: list[tuple[int, int]]
) -> None:
    """And a number between the present one and that called for is never left."""
    past, current, now = history(), 5, NOW
    for desired, seconds in looks:
        now += seconds
        found = normalize(desired, Target(current, 2, 20), given_behavior, past, now=now)
        assert 2 <= found.replicas <= 20
        before = [recommendation.number for recommendation in past.recommendations]
        assert min(current, *before) <= found.replicas <= max(current, *before, 2)
        if found.replicas != current:
            past.changes.append(At(now, found.replicas - current))
        current = found.replicas
