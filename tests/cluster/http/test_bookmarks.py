"""Bookmarks: a client that goes on from one has seen all that was written before it."""

from collections.abc import AsyncGenerator

import msgspec
import pytest

from berth.cluster.http.list_options import ListOptions
from berth.cluster.http.metrics import WatchSeries
from berth.cluster.http.negotiation import Representation
from berth.cluster.http.reads import asked
from berth.cluster.http.rendering import Renderer
from berth.cluster.http.watches import (
    BOOKMARK_SECONDS,
    LAST_BOOKMARK_SECONDS,
    Frames,
    Watch,
)
from berth.cluster.storage.store import Store
from berth.runtime.clock import FakeClock
from tests.cluster import serving as kinds
from tests.cluster.serving import pod


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def write(store: Store, name: str) -> None:
    store.create("pods", pod(name, namespace="default"))


def watch(store: Store, options: ListOptions, clock: FakeClock) -> AsyncGenerator[bytes, None]:
    render = Renderer(kinds.PODS, Representation(), include_object="", clock=clock)
    wanted = asked(kinds.PODS, "default", {})[0]
    watching = Watch(
        store,
        wanted,
        options,
        clock=clock,
        render=render,
        frames=Frames(),
        series=WatchSeries(("", "v1", "pods")),
        seconds=options.timeout_seconds or 3600,
        pace=None,
    )
    made = watching.lines(lambda: True)
    assert isinstance(made, AsyncGenerator)
    return made


async def event(lines: AsyncGenerator[bytes, None]) -> tuple[str, str, str]:
    """Return type, name and version of the next event, which must be a chunk of its own."""
    said = msgspec.json.decode(await anext(lines))
    metadata = said["object"]["metadata"]
    return said["type"], metadata.get("name", ""), metadata["resourceVersion"]


async def test_what_is_written_before_the_first_line_is_sent_comes_after_the_initial_state(
    store: Store, clock: FakeClock
) -> None:
    write(store, "a")
    lines = watch(store, ListOptions(allow_watch_bookmarks=True), clock)
    write(store, "b")

    assert [await event(lines) for _ in range(3)] == [
        ("ADDED", "a", "2"),
        ("BOOKMARK", "", "2"),
        ("ADDED", "b", "3"),
    ]


async def test_what_is_written_while_a_change_is_sent_comes_after_the_bookmark(
    store: Store, clock: FakeClock
) -> None:
    lines = watch(store, ListOptions(resource_version="1", allow_watch_bookmarks=True), clock)
    write(store, "a")
    assert await event(lines) == ("ADDED", "a", "2")
    write(store, "b")
    clock.advance(BOOKMARK_SECONDS)

    assert [await event(lines) for _ in range(2)] == [("BOOKMARK", "", "2"), ("ADDED", "b", "3")]


async def test_the_last_bookmark_comes_shortly_before_the_end(
    store: Store, clock: FakeClock
) -> None:
    options = ListOptions(resource_version="1", allow_watch_bookmarks=True, timeout_seconds=30)
    lines = watch(store, options, clock)
    write(store, "a")
    assert await event(lines) == ("ADDED", "a", "2")
    clock.advance(30 - LAST_BOOKMARK_SECONDS)
    store.wake_due(clock.monotonic())
    assert await event(lines) == ("BOOKMARK", "", "2")
    clock.advance(LAST_BOOKMARK_SECONDS)
    store.wake_due(clock.monotonic())
    assert [line async for line in lines] == []
