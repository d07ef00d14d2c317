"""Which filter rejects which row while loads change, against filters that are asked in order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.answer_cache.filters import NOBODY, NOT_ELIGIBLE, CachedFilters
from berth.scheduler.framework.status import Code
from berth.scheduler.framework.verdict import PASS, Rejection, Verdict

FILTERS = (0, 1, 2, 3)
BY_LOAD = (1, 3)

Rejecting = list[set[int]]
"""By row, the filters that reject it."""
rejecting = st.lists(st.sets(st.sampled_from(FILTERS)), min_size=4, max_size=4)
changes = st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from(BY_LOAD))))


def rejection(index: int, where: list[bool]) -> Rejection:
    return Rejection(f"no {index}", Code.UNSCHEDULABLE, np.array(where))


def check(known: CachedFilters, rows: Rejecting, eligible: list[bool]) -> None:
    charged = [
        min(of_row, default=NOBODY) if asked else NOT_ELIGIBLE
        for of_row, asked in zip(rows, eligible, strict=True)
    ]
    assert known.charged.tolist() == charged
    assert known.feasible.tolist() == [each == NOBODY for each in charged]
    assert [
        (index, number, [(r.reason, r.where.tolist()) for r in verdict.rejections])
        for index, verdict, number in known.charges
    ] == [
        (index, charged.count(index), [(f"no {index}", [each == index for each in charged])])
        for index in FILTERS
        if index in charged
    ]


@given(rejecting, st.lists(st.booleans(), min_size=4, max_size=4), changes)
def test_rows_are_charged_to_the_first_filter_that_rejects_them(
    rows: Rejecting, eligible: list[bool], some: list[tuple[int, set[int]]]
) -> None:
    known = CachedFilters(np.array(eligible))
    for index in FILTERS:
        where = [index in of_row and asked for of_row, asked in zip(rows, eligible, strict=True)]
        verdict = Verdict((rejection(index, where),)) if any(where) else PASS
        known.add(index, verdict, lasts=index not in BY_LOAD)
    check(known, rows, eligible)
    for row, by_load in some:
        if not eligible[row]:
            continue
        rows[row] = {index for index in rows[row] if index not in BY_LOAD} | by_load
        if known.is_ruled_out(row):
            check(known, rows, eligible)
            continue
        before, was = known.feasible, known.feasible.tolist()
        first = min(by_load, default=None)
        found = None if first is None else (first, [rejection(first, [True] * 4)])
        assert known.change(row, found) == (not rows[row])
        assert before.tolist() == was, "masks that were handed out stay as they are"
        check(known, rows, eligible)
