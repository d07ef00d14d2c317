"""How many nodes must be added."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.insight.whatif.find_nodes import smallest
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot

ONE = node("one", cpu="2", zone="a")


def needed(replicas: int, *, most: int = 50, **question: Any) -> int | None:
    found = ask(
        snapshot(ONE),
        templates=[{"manifest": deployment(cpu="1"), "replicas": replicas}],
        findNodes={"like": "one", "most": most},
        **question,
    )
    assert found.nodes_needed is not None
    return found.nodes_needed.count


@pytest.mark.parametrize(
    ("replicas", "count"),
    [
        pytest.param(2, 0, id="there is room"),
        pytest.param(3, 1, id="one more pod, one more node"),
        pytest.param(9, 4, id="the last node is half full"),
        pytest.param(102, 50, id="the most that may be"),
        pytest.param(103, None, id="more than may be"),
    ],
)
def test_as_many_as_hold_the_pods(replicas: int, count: int | None) -> None:
    assert needed(replicas) == count


def test_what_was_found_fits_and_one_less_does_not() -> None:
    templates = [{"manifest": deployment(cpu="1"), "replicas": 9}]
    for count, fits in ((4, True), (3, False)):
        added = [{"like": "one", "count": count}]
        assert ask(snapshot(ONE), templates=templates, addNodes=added).fits is fits


def test_pods_that_waited_before_need_no_nodes() -> None:
    found = ask(
        snapshot(ONE, pod("never", node_selector={"no": "where"})),
        templates=[{"manifest": deployment(cpu="1"), "replicas": 3}],
        findNodes={"like": "one"},
    )
    assert found.nodes_needed is not None
    assert found.nodes_needed.count == 1


def test_pods_that_are_kept_apart_need_a_node_each() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        }
    }
    found = ask(
        snapshot(ONE),
        templates=[{"manifest": deployment(cpu="1m", affinity=apart), "replicas": 7}],
        findNodes={"manifest": manifest(node("new", cpu="9"))},
    )
    assert found.nodes_needed is not None
    assert found.nodes_needed.count == 6
    assert found.nodes_needed.tried[5] is False


def test_nodes_are_counted_that_spare_evictions() -> None:
    """The answer beside it is that of the cluster as it is, where pods are evicted."""
    found = ask(
        snapshot(ONE, pod("old", cpu="2", node="one", priority=1)),
        templates=[{"manifest": deployment(cpu="2", priority=2)}],
        preemption=True,
        findNodes={"like": "one"},
    )
    assert found.fits
    assert [victim.pod for victim in found.victims] == ["default/old"]
    assert found.nodes_needed is not None
    assert found.nodes_needed.count == 1


def test_the_search_leaves_the_cluster_as_it_was() -> None:
    asked: dict[str, Any] = {
        "templates": [{"manifest": deployment(cpu="1"), "replicas": 5}],
        "seed": 3,
    }
    found = ask(snapshot(ONE), **asked, findNodes={"like": "one"})
    assert found.model_copy(update={"nodes_needed": None}) == ask(snapshot(ONE), **asked)


def test_who_is_gated_is_not_helped_by_nodes() -> None:
    gated = deployment(schedulingGates=[{"name": "later"}])
    found = ask(
        snapshot(ONE),
        templates=[{"manifest": gated}],
        findNodes={"like": "one", "most": 4},
    )
    assert found.nodes_needed is not None
    assert found.nodes_needed.count is None


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 200))
async def test_the_smallest_is_found_from_any_guess(want: int, guess: int, most: int) -> None:
    async def enough(number: int) -> bool:
        return number >= want

    tried = {0: False}
    found = await smallest(enough, guess=min(guess, most), most=most, tried=tried)
    assert found == (want if want <= most else None)
    if found is not None:
        assert tried[found]
        assert not tried[found - 1]


@given(st.sets(st.integers(1, 40)), st.integers(1, 40))
async def test_where_more_can_be_worse_the_step_is_still_one(numbers: set[int], guess: int) -> None:
    async def enough(number: int) -> bool:
        return number in numbers

    tried = {0: False}
    found = await smallest(enough, guess=guess, most=40, tried=tried)
    if found is None:
        assert 40 not in numbers
    else:
        assert tried[found]
        assert not tried[found - 1]
