"""Columns that are kept and mended equal columns that are computed anew."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.framework.cycle_state import CycleState
from berth.framework.interface import ScorePlugin
from berth.framework.pod_info import PodInfo
from berth.framework.row_memo import Columns, RowMemo, Rows
from berth.framework.status import Status
from berth.framework.verdict import Ints
from berth_plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth_plugins.node_resources_fit import NodeResourcesFit
from tests.builders import node, pod

WIDTH = 40


class Counted:
    """Columns that are the generation itself; notes which rows they were asked for."""

    def __init__(self, generation: Ints) -> None:
        self.generation = generation
        self.asked: list[Rows] = []

    def __call__(self, rows: Rows) -> Columns:
        self.asked.append(rows)
        column = self.generation[rows].copy()
        return column, np.array([column, -column])


def column(memo: RowMemo, key: str, counted: Counted) -> list[int]:
    """Return the first of the columns; the second has two rows that follow from it."""
    found, both = memo.columns(
        key,
        counted,
        rows=len(counted.generation),
        last_generation=int(counted.generation.max(initial=0)),
        changed_since=lambda since: np.flatnonzero(counted.generation > since).tolist(),
    )
    values: list[int] = found.tolist()
    assert both.tolist() == [values, (-found).tolist()]
    return values


def test_only_changed_rows_are_computed_again() -> None:
    memo, counted = RowMemo(), Counted(np.arange(1, WIDTH + 1))
    column(memo, "a", counted)
    counted.generation[[3, 7]] = [WIDTH + 1, WIDTH + 2]

    assert column(memo, "a", counted) == counted.generation.tolist()
    assert [rows if isinstance(rows, slice) else rows.tolist() for rows in counted.asked] == [
        slice(None),
        [3, 7],
    ]


def test_nothing_is_computed_when_nothing_has_changed() -> None:
    memo, counted = RowMemo(), Counted(np.arange(1, WIDTH + 1))
    first = column(memo, "a", counted)
    assert (column(memo, "a", counted), len(counted.asked)) == (first, 1)


@pytest.mark.parametrize("changed", [WIDTH, WIDTH // 2])
def test_all_are_computed_when_many_have_changed(changed: int) -> None:
    memo, counted = RowMemo(), Counted(np.arange(1, WIDTH + 1))
    column(memo, "a", counted)
    counted.generation[:changed] += WIDTH

    assert column(memo, "a", counted) == counted.generation.tolist()
    assert counted.asked == [slice(None), slice(None)]


def test_a_longer_table_is_computed_anew() -> None:
    memo = RowMemo()
    column(memo, "a", Counted(np.arange(1, WIDTH)))
    longer = Counted(np.arange(1, WIDTH + 1))
    assert column(memo, "a", longer) == longer.generation.tolist()


def test_columns_are_computed_anew_after_a_failure() -> None:
    memo, counted = RowMemo(), Counted(np.arange(1, WIDTH + 1))
    column(memo, "a", counted)

    def fail(_rows: Rows) -> Columns:
        raise ValueError("not these")

    with pytest.raises(ValueError, match="not these"):
        memo.columns("a", fail, rows=WIDTH, last_generation=WIDTH + 1, changed_since=lambda _: [0])
    assert column(memo, "a", counted) == counted.generation.tolist()
    assert counted.asked == [slice(None), slice(None)]


@given(seed=st.integers(0, 10_000), steps=st.integers(1, 25))
def test_scores_that_are_mended_equal_scores_of_a_new_table(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    cache = Cache()
    for i in range(20):
        cache.add_node(node(f"n{i}", cpu=rng.choice([2, 4])))
    plugins: tuple[ScorePlugin, ...] = (NodeResourcesFit(), NodeResourcesBalancedAllocation())
    incoming = [PodInfo(pod("small", cpu=1)), PodInfo(pod("large", cpu=2))]
    placed: list[PodInfo] = []
    for step in range(steps):
        match rng.randrange(4):
            case 0 if placed:
                cache.forget_pod(placed.pop(rng.randrange(len(placed))))
            case 1:
                name = f"n{rng.randrange(24)}"
                put = cache.update_node if name in cache.table.row_of else cache.add_node
                put(node(name, cpu=rng.choice([0, 1, 8]), allocatable={"example.com/gpu": 2}))
            case _:
                info = PodInfo(pod(f"p{step}", cpu=rng.choice([1, 2])))
                placed.append(info.on_node(f"n{rng.randrange(20)}"))
                cache.assume_pod(placed[-1])
        table = cache.table
        fresh = table.take(range(table.size))
        for info in incoming:
            for plugin in plugins:
                kept = plugin.score(CycleState(), info, table)
                anew = plugin.score(CycleState(), info, fresh)
                assert not isinstance(kept, Status)
                assert not isinstance(anew, Status)
                assert kept.tolist() == anew.tolist()
