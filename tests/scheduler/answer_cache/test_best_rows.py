"""The best of many totals, against a look at all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.answer_cache import best_rows
from berth.scheduler.answer_cache.best_rows import LEFT_OUT, BestRows

totals = st.integers(LEFT_OUT, 6)
tables = st.lists(totals, min_size=1, max_size=60)
changes = st.lists(st.tuples(st.integers(0, 59), totals), max_size=80)


@pytest.fixture(params=[9, 512], ids=["a short front", "a long front"])
def front(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_rows, "IN_FRONT", request.param)


def check(best: BestRows, of_rows: list[int]) -> None:
    by_total = sorted((-total, row) for row, total in enumerate(of_rows) if total >= 0)
    assert len(best) == len(by_total)
    assert best.totals.tolist() == of_rows
    assert best.first(5) == [row for _, row in by_total[:5]]
    if by_total:
        assert [*best.ties] == [row for total, row in by_total if total == by_total[0][0]]
        in_front = sorted(best.front().tolist())
        assert in_front == sorted(row for _, row in by_total[: len(in_front)])
        assert len(in_front) == best.num_in_front >= min(len(by_total), 8)


def test_the_best_rows_are_those_that_sorting_finds(front: None) -> None:
    @given(tables, changes)
    def follows(of_rows: list[int], some: list[tuple[int, int]]) -> None:
        best = BestRows(np.array(of_rows, np.int64))
        check(best, of_rows)
        for row, total in some:
            if row < len(of_rows):
                of_rows[row] = total
                best.change(row, total)
                check(best, of_rows)

    follows()


def test_a_row_that_is_left_out_comes_back() -> None:
    best = BestRows(np.array([3, LEFT_OUT, 2], np.int64))
    best.change(0, LEFT_OUT)
    best.change(2, LEFT_OUT)
    assert (len(best), best.first(5)) == (0, [])
    best.change(1, 0)
    assert (len(best), [*best.ties]) == (1, [1])


def test_the_best_of_some_rows_are_those_that_sorting_finds(front: None) -> None:
    @given(tables, st.lists(st.booleans(), min_size=60, max_size=60), st.integers(1, 5))
    def finds(of_rows: list[int], marks: list[bool], count: int) -> None:
        rows = np.array(marks[: len(of_rows)])
        by_total = sorted(
            (-total, row) for row, total in enumerate(of_rows) if total >= 0 and marks[row]
        )
        found = BestRows(np.array(of_rows, np.int64)).first_among(rows, count)
        if found is None:
            assert len(by_total) < count or len(of_rows) > 8
        else:
            ties, first = found
            assert first == [row for _, row in by_total[:count]]
            assert ties.tolist() == [row for total, row in by_total if total == by_total[0][0]]

    finds()
