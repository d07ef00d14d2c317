"""Slots are shared out evenly, and few change hands."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.shards.assignment import assignment, for_pool, pool_of

members = st.sets(st.sampled_from("abcdef"), min_size=1)
holders = st.lists(st.sampled_from(["", *"abcdefgh"]), min_size=1, max_size=24)


@pytest.mark.parametrize(
    ("now", "among", "moved"),
    [
        pytest.param([""] * 8, "a", 8, id="the first member takes all"),
        pytest.param(["a"] * 8, "ab", 4, id="the second one gets half"),
        pytest.param([*"aaaabbbb"], "abc", 2, id="the third one gets two of eight"),
        pytest.param([*"aaabbbcc"], "ab", 2, id="what a dead one had is shared out"),
        pytest.param([*"aaabbbcc"], "abc", 0, id="even shares stay as they are"),
    ],
)
def test_moves(now: list[str], among: str, moved: int) -> None:
    wanted = assignment(now, among)
    assert sum(before != after for before, after in zip(now, wanted, strict=True)) == moved


@given(holders, members)
def test_shares_are_even_and_no_more_moves_than_that_takes(now: list[str], among: set[str]) -> None:
    wanted = assignment(now, among)
    shares = Counter(dict.fromkeys(among, 0)) + Counter()
    shares.update(wanted)
    counts = [shares[member] for member in among]
    assert sum(counts) == len(now)
    assert max(counts) - min(counts) <= 1

    held = Counter(holder for holder in now if holder in among)
    low, extra = divmod(len(now), len(among))
    above = sorted((held[member] for member in among), reverse=True)
    kept = sum(min(count, low + (place < extra)) for place, count in enumerate(above))
    stayed = sum(before == after for before, after in zip(now, wanted, strict=True))
    assert stayed == kept


@given(holders, members)
def test_once_followed_it_does_not_change(now: list[str], among: set[str]) -> None:
    wanted = assignment(now, among)
    assert assignment(wanted, among) == wanted


CANARY = for_pool("c", 0)


@pytest.mark.parametrize(
    ("now", "among", "wanted"),
    [
        pytest.param(["a", "a", ""], {"a", CANARY}, ["a", "a", CANARY], id="a pool has its own"),
        pytest.param(["a", "a", "a"], {"a"}, ["a", "a", ""], id="nobody else has it"),
        pytest.param(
            ["", "", ""], {CANARY}, ["", "", CANARY], id="who has a pool has nothing else"
        ),
        pytest.param(
            ["a", "a", CANARY],
            {"a", CANARY, for_pool("d", 0)},
            ["a", "a", CANARY],
            id="the second for a pool waits",
        ),
    ],
)
def test_slots_of_pools(now: list[str], among: set[str], wanted: list[str]) -> None:
    assert assignment(now, among, pools=1) == wanted


@pytest.mark.parametrize(
    ("member", "pool"),
    [
        pytest.param(for_pool("host-0123abcd", 12), 12, id="for a pool"),
        pytest.param("host-0123abcd", None, id="for none"),
        pytest.param("host.pool1-0123abcd", None, id="on a host that is called so"),
    ],
)
def test_whose_pool_a_member_is(member: str, pool: int | None) -> None:
    assert pool_of(member) == pool
