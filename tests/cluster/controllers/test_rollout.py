"""The arithmetic of rollouts: how many of which, and that the limits hold whatever happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.controllers.rollout import (
    Limits,
    Size,
    absolute,
    grow_new,
    limits_of,
    shrink_old,
)


@pytest.mark.parametrize(
    ("amount", "total", "up", "down"),
    [("25%", 10, 3, 2), ("0%", 10, 0, 0), ("100%", 3, 3, 3), (2, 10, 2, 2), ("1%", 0, 0, 0)],
)
def test_amounts(amount: int | str, total: int, up: int, down: int) -> None:
    assert absolute(amount, total, round_up=True) == up
    assert absolute(amount, total, round_up=False) == down


@pytest.mark.parametrize(
    ("rolling", "want"),
    [
        pytest.param({}, Limits(10, surge=3, unavailable=2), id="a quarter by default"),
        pytest.param(
            {"maxSurge": 0, "maxUnavailable": "1%"},
            Limits(10, surge=0, unavailable=1),
            id="something must give",
        ),
        pytest.param(
            {"maxSurge": 1, "maxUnavailable": "100%"},
            Limits(10, surge=1, unavailable=10),
            id="all at once",
        ),
    ],
)
def test_limits(rolling: dict[str, int | str], want: Limits) -> None:
    spec = {"replicas": 10, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    assert limits_of(spec) == want


@pytest.mark.parametrize(
    ("new", "old", "want"),
    [
        pytest.param(0, [10], 3, id="as far as the surge goes"),
        pytest.param(3, [10], 3, id="no room"),
        pytest.param(3, [8], 5, id="room made by the old"),
        pytest.param(12, [], 10, id="too big: the wanted size"),
    ],
)
def test_growing(new: int, old: list[int], want: int) -> None:
    sizes = [Size(f"old-{i}", each, each) for i, each in enumerate(old)]
    assert grow_new(Size("new", new, 0), sizes, Limits(10, surge=3, unavailable=2)) == want


@pytest.mark.parametrize(
    ("unavailable", "new", "old", "want"),
    [
        pytest.param(2, (3, 0), [(10, 10)], {"old-0": 8}, id="what may be unavailable"),
        pytest.param(2, (5, 5), [(8, 8)], {"old-0": 3}, id="what the new ones replace"),
        pytest.param(2, (5, 2), [(8, 6)], {"old-0": 6}, id="broken ones first, and freely"),
        pytest.param(2, (10, 10), [(2, 2), (1, 1)], {"old-0": 0, "old-1": 0}, id="at last all"),
        pytest.param(0, (3, 0), [(10, 8)], {}, id="nothing while the new ones are not there"),
    ],
)
def test_shrinking(
    unavailable: int, new: tuple[int, int], old: list[tuple[int, int]], want: dict[str, int]
) -> None:
    sizes = [Size(f"old-{i}", *each) for i, each in enumerate(old)]
    limits = Limits(10, surge=3, unavailable=unavailable)
    assert shrink_old(Size("new", *new), sizes, limits) == want


@given(
    data=st.data(),
    replicas=st.integers(0, 12),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    start=st.lists(st.integers(0, 12), min_size=1, max_size=3),
)
def test_a_rollout_keeps_its_limits_and_ends(
    data: st.DataObject, replicas: int, surge: int, unavailable: int, start: list[int]
) -> None:
    """Pods become available in any order; old ones may start out broken or too many."""
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    limits = limits_of({"replicas": replicas, "strategy": strategy})
    new = Size("new", 0, 0)
    old = [Size(f"old-{i}", size, data.draw(st.integers(0, size))) for i, size in enumerate(start)]
    for step in range(60):
        wanted_before = new.replicas + sum(each.replicas for each in old)
        available_before = new.available + sum(each.available for each in old)
        grown = grow_new(new, old, limits)
        if grown != new.replicas:
            new = Size("new", grown, min(new.available, grown))
        else:
            sizes = shrink_old(new, old, limits)
            # Whoever shrinks loses the broken ones first.
            old = [
                Size(each.name, size, min(each.available, size))
                for each in old
                for size in [sizes.get(each.name, each.replicas)]
            ]
        wanted = new.replicas + sum(each.replicas for each in old)
        available = new.available + sum(each.available for each in old)
        assert wanted <= max(limits.maximum, wanted_before)
        assert available >= min(limits.minimum, available_before)
        new = Size("new", new.replicas, data.draw(st.integers(new.available, new.replicas)))
        if step > 30:  # from here on everything starts at once
            new = Size("new", new.replicas, new.replicas)
    assert new.replicas == replicas
    assert all(each.replicas == 0 for each in old)
