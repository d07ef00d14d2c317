"""Columns that are kept and mended equal columns that are computed anew."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import ScorePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.row_memo import Columns, RowMemo, few
from berth.scheduler.framework.status import Status
from berth_plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth_plugins.node_resources_fit import NodeResourcesFit
from tests.builders import node, pod

WIDTH = 40


class Generations:
    """Columns that follow from the generation; notes which rows were computed, None for all."""

    def __init__(self, rows: int) -> None:
        self.generation = np.arange(1, rows + 1)
        self.computed: list[int | None] = []
        self.fails = False

    def of_all(self) -> Columns:
        if self.fails:
            raise ValueError("not these")
        self.computed.append(None)
        return self.generation.copy(), np.array([self.generation, -self.generation])

    def of_row(self, row: int) -> tuple[int, tuple[int, int]]:
        if self.fails:
            raise ValueError("not this one")
        self.computed.append(row)
        value = int(self.generation[row])
        return value, (value, -value)

    def change(self, *rows: int) -> None:
        last = int(self.generation.max())
        self.generation[list(rows)] = np.arange(last + 1, last + 1 + len(rows))


def check(memo: RowMemo, formula: Generations) -> None:
    """Ask for the columns, and compare them with what they follow from."""
    generation = formula.generation
    one, two = memo.columns(
        "a",
        formula,
        rows=len(generation),
        last_generation=int(generation.max(initial=0)),
        changed_since=lambda since: np.flatnonzero(generation > since).tolist(),
    )
    assert one.tolist() == generation.tolist()
    assert two.tolist() == [generation.tolist(), (-generation).tolist()]


def test_only_changed_rows_are_computed_again() -> None:
    memo, formula = RowMemo(), Generations(WIDTH)
    check(memo, formula)
    formula.change(3, 7)
    check(memo, formula)
    assert formula.computed == [None, 3, 7]


def test_nothing_is_computed_when_nothing_has_changed() -> None:
    memo, formula = RowMemo(), Generations(WIDTH)
    check(memo, formula)
    check(memo, formula)
    assert formula.computed == [None]


@pytest.mark.parametrize(
    ("changed", "all_at_once"), [(few(WIDTH), False), (few(WIDTH) + 1, True), (WIDTH, True)]
)
def test_all_are_computed_when_many_have_changed(changed: int, *, all_at_once: bool) -> None:
    memo, formula = RowMemo(), Generations(WIDTH)
    check(memo, formula)
    formula.change(*range(changed))
    check(memo, formula)
    assert formula.computed == [None, *([None] if all_at_once else range(changed))]


def test_a_longer_table_is_computed_anew() -> None:
    memo = RowMemo()
    check(memo, Generations(WIDTH))
    longer = Generations(WIDTH + 1)
    check(memo, longer)
    assert longer.computed == [None]


def test_columns_are_computed_anew_after_a_failure() -> None:
    memo, formula = RowMemo(), Generations(WIDTH)
    check(memo, formula)
    formula.change(0)
    formula.fails = True
    for reason in ("not this one", "not these"):
        with pytest.raises(ValueError, match=reason):
            check(memo, formula)
    formula.fails = False
    check(memo, formula)
    assert formula.computed == [None, None]


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
