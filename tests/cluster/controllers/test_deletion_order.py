"""Which pods go first when there are too many."""

import random

import pytest

from berth.cluster.controllers.deletion_order import (
    DELETION_COST,
    deletion_cost,
    in_order_of_deletion,
    ranked,
)
from berth.cluster.pods.controllers import PodView
from berth.cluster.times import seconds_of
from tests.cluster.objects import pod_view

NOW = seconds_of("2026-01-02T00:00:00Z")


def at(hour: int, minute: int = 0) -> str:
    """Return a time of the day before NOW."""
    return f"2026-01-01T{hour:02}:{minute:02}:00Z"


def costing(name: str, cost: str) -> PodView:
    return pod_view(name, annotations={DELETION_COST: cost})


def names(pods: list[PodView]) -> list[str]:
    return [pod.metadata.name for pod in pods]


STATES = [
    pytest.param([pod_view("a"), pod_view("b", node=None)], "b", id="not on a node"),
    pytest.param([pod_view("a"), pod_view("b", phase="Pending")], "b", id="not running"),
    pytest.param([pod_view("a"), pod_view("b", phase="Unknown")], "b", id="nobody knows"),
    pytest.param([pod_view("a"), pod_view("b", ready=None)], "b", id="not ready"),
    pytest.param([pod_view("a", ready=at(1)), pod_view("b", ready=at(23))], "b", id="ready later"),
    pytest.param([pod_view("a", born=at(1)), pod_view("b", born=at(23))], "b", id="younger"),
    pytest.param(
        [pod_view("a", ready=None), pod_view("b", phase="Pending")], "b",
        id="not running counts more than not ready",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pods", "want"), STATES)
def test_who_goes_first_of_a_job(pods: list[PodView], want: str) -> None:
    assert names(in_order_of_deletion(pods))[0] == want


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        *STATES,
        pytest.param([costing("a", "0"), costing("b", "-1")], "b", id="of lower cost"),
        pytest.param(
            [pod_view("a", ready=None), costing("b", "-1")], "a",
            id="not ready counts more than cost",
        ),
        pytest.param(
            [pod_view("a"), pod_view("b", node="n2"), pod_view("c", node="n2", born=at(12))], "c",
            id="on a node with more of its kind, the youngest",
        ),
        pytest.param(
            [pod_view("a", node="n2"), pod_view("b", node="n2"), costing("c", "-1")], "c",
            id="cost counts more than the others on the node",
        ),
        pytest.param(
            [pod_view("b", ready=at(1)), pod_view("a", ready=at(0))], "a",
            id="ready for 23 and 24 hours is the same: the uid decides",
        ),
        pytest.param(
            [pod_view("b", born=at(1)), pod_view("a", born=at(0))], "a",
            id="so it is with the age",
        ),
    ],
)  # fmt: skip
def test_who_goes_first_of_a_replica_set(pods: list[PodView], want: str) -> None:
    shuffled = random.Random(1).sample(pods, len(pods))
    assert names(ranked(shuffled, pods, now=NOW))[0] == want


def test_pods_of_the_same_deployment_count_on_a_node() -> None:
    pods = [pod_view("a"), pod_view("b", node="n2")]
    of_before = [pod_view("old", of="web-1", node="n2")]
    assert names(ranked(pods, [*pods, *of_before], now=NOW)) == ["b", "a"]
    leaving = [pod_view("old", of="web-1", node="n2", deleted=True)] * 2
    assert names(ranked(pods, [*pods, *leaving], now=NOW)) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("100", 100), ("-100", -100), ("0", 0), ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)), ("2147483648", 0), ("+1", 0),
        ("007", 0), (" 1", 0), ("1_0", 0), ("", 0), ("much", 0),
    ],
)  # fmt: skip
def test_deletion_costs(text: str, want: int) -> None:
    assert deletion_cost(costing("a", text)) == want
