"""Pages: together they are the whole, whatever their size, and what happens between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.service.server.scheduler.debug.pagination import decode_names, ordered, unordered
from tests.builders import node, pod
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import all_pages, application, client

Name = tuple[str, str]

names = st.tuples(st.text(max_size=3), st.text("ab", max_size=2))


def in_pages(items: list[Name], limit: int) -> list[Name]:
    found: list[Name] = []
    token = ""
    while True:
        page, token = unordered(
            items, key=lambda item: item, after=decode_names(token), limit=limit
        )
        assert len(page) <= limit
        found += page
        if not token:
            return found


@given(st.sets(names), st.integers(1, 5))
def test_pages_together_are_all_items_in_order(items: set[Name], limit: int) -> None:
    assert in_pages(list(items), limit) == sorted(items)


@given(st.sets(names), st.sets(names), st.sets(names), st.integers(1, 5))
def test_what_stays_is_told_once_whatever_comes_and_goes(
    stays: set[Name], goes: set[Name], comes: set[Name], limit: int
) -> None:
    goes -= stays
    first, token = unordered(stays | goes, key=lambda item: item, after=None, limit=limit)
    after = decode_names(token)
    rest: list[Name] = []
    if after is not None:
        rest, _ = unordered(stays | comes, key=lambda item: item, after=after, limit=1_000)

    told = [item for item in (*first, *rest) if item in stays]
    assert told == sorted(stays)


@given(st.lists(st.integers(), unique=True), st.integers(1, 5))
def test_a_page_that_ends_the_list_has_no_token(numbers: list[int], limit: int) -> None:
    page, token = ordered(numbers, key=lambda number: number, limit=limit)

    assert page == numbers[:limit]
    assert bool(token) == (len(numbers) > limit)


@pytest.mark.parametrize("path", ["queue", "cache", "decisions", "nominated"])
async def test_pages_of_endpoints(path: str) -> None:
    harness = Harness()
    harness.put(*(node(f"n{i}", unschedulable=True) for i in range(7)))
    harness.put(*(pod(f"p{i}", nominated=f"n{i}") for i in range(7)))
    while (queued := harness.queue.pop()) is not None:
        harness.scheduler.scheduling_cycle(queued)
    harness.put(*(pod(f"q{i}", nominated=f"n{i}") for i in range(7)))

    whole = await all_pages(harness, f"/debug/{path}", limit=1_000)
    assert len(whole) >= 7
    for limit in (1, 2, 3, len(whole) - 1, len(whole)):
        assert await all_pages(harness, f"/debug/{path}", limit=limit) == whole


@pytest.mark.parametrize("path", ["queue", "cache", "decisions", "nominated", "waiting", "tasks"])
@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("continue=nonsense", 400, id="no token"),
        pytest.param("continue=W10=", 400, id="a token of no list"),
        pytest.param("limit=0", 422, id="no items"),
        pytest.param("limit=1001", 422, id="too many items"),
    ],
)
async def test_refusals(path: str, query: str, status: int) -> None:
    async with client(application(Harness())) as asking:
        answer = await asking.get(f"/debug/{path}?{query}")

    assert answer.status_code == status
    assert "continue" in query or "limit" in answer.text
    if status == 400:
        token = query.partition("=")[2]
        assert answer.json() == {"detail": f"continue: {token!r} was not given by this list"}


async def test_an_unreadable_selector_is_refused() -> None:
    async with client(application(Harness())) as asking:
        answer = await asking.get("/debug/cache?labelSelector=a in b")

    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("labelSelector 'a in b': unable to parse")
