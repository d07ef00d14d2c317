"""Watches: what is streamed, to whom, and when it ends."""

import asyncio
import random
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.access.users import ADMIN, User, service_account
from berth.cluster.http import in_flight
from berth.cluster.http.in_flight import MOST_LASTING, InFlight, InFlightLimits
from berth.cluster.http.list_options import ListOptions
from berth.cluster.http.metrics import WatchSeries
from berth.cluster.http.negotiation import Representation
from berth.cluster.http.reads import asked
from berth.cluster.http.rendering import Renderer
from berth.cluster.http.watches import (
    FRAME_BYTES,
    LEAST_SECONDS,
    MOST_SECONDS,
    Frames,
    Watch,
    lasting,
    type_for,
)
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.storage.log import Change, ChangeType
from berth.cluster.storage.store import Store
from berth.cluster.storage.stored import Stored
from berth.runtime.clock import FakeClock
from tests.cluster import serving as kinds
from tests.cluster.access.secured import Secured
from tests.cluster.serving import Serving, pod, status

PODS = "/api/v1/namespaces/default/pods"
WATCH = f"{PODS}?watch=1&timeoutSeconds=10"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def serving() -> Serving:
    return Serving()


def nothing() -> None:
    """Nothing happens."""


def said(events: list[Any]) -> list[tuple[str, str, str]]:
    """Return type, name and version of each event."""
    return [
        (
            e["type"],
            e["object"]["metadata"].get("name", ""),
            e["object"]["metadata"]["resourceVersion"],
        )
        for e in events
    ]


async def test_changes_are_streamed_in_order(serving: Serving) -> None:
    async def life() -> None:
        await serving.pods("p")
        body = {"metadata": {"labels": {"a": "b"}}}
        await serving.request("PATCH", f"{PODS}/p", body, **MERGE)
        await serving.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await serving.post("/api/v1/namespaces/other/pods", pod("q"))
        await serving.request("DELETE", f"{PODS}/p")

    events = await serving.watch(WATCH, life, seconds=10)
    assert said(events) == [("ADDED", "p", "2"), ("MODIFIED", "p", "3"), ("DELETED", "p", "6")]
    assert events[0]["object"]["kind"] == "Pod"
    assert events[2]["object"]["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param("", [("ADDED", "a", "2"), ("ADDED", "b", "3")], id="what is there first"),
        pytest.param(
            "&resourceVersion=0", [("ADDED", "a", "2"), ("ADDED", "b", "3")], id="any version"
        ),
        pytest.param("&resourceVersion=2", [("ADDED", "b", "3")], id="what came after"),
        pytest.param("&resourceVersion=3", [], id="nothing came after"),
        pytest.param(
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            [("ADDED", "a", "2"), ("ADDED", "b", "3"), ("BOOKMARK", "", "3")],
            id="a list that streams, and its end",
        ),
        pytest.param(
            "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", [], id="no list at all"
        ),
    ],
)
async def test_where_a_watch_begins(serving: Serving, query: str, want: Any) -> None:
    await serving.pods("a", "b")
    assert said(await serving.watch(WATCH + query, nothing, seconds=10)) == want


async def test_the_end_of_the_initial_state_is_marked(serving: Serving) -> None:
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    assert await serving.watch(WATCH + query, nothing, seconds=10) == [
        {
            "type": "BOOKMARK",
            "object": {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": "1",
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
                "spec": {"containers": None},
                "status": {},
            },
        }
    ]


@pytest.mark.parametrize(
    ("path", "cells"),
    [
        pytest.param("/api/v1/configmaps", ["", 0, "<unknown>"], id="plain cells"),
        pytest.param(
            "/api/v1/pods",
            ["", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"],
            id="cells of what a bookmark has not",
        ),
    ],
)
async def test_the_end_of_the_initial_state_is_marked_in_the_row_of_a_table(
    path: str, cells: list[Any]
) -> None:
    serving = Serving(resources=RESOURCES)
    serving.http.headers["accept"] = "application/json;as=Table;v=v1;g=meta.k8s.io"
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=5"
    (event,) = await serving.watch(
        f"{path}?{query}&allowWatchBookmarks=true", lambda: None, seconds=5
    )
    table = event["object"]
    assert (event["type"], table["kind"], len(table["rows"])) == ("BOOKMARK", "Table", 1)
    row = table["rows"][0]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert row["cells"] == cells


async def test_bookmarks_come_every_minute(serving: Serving) -> None:
    async def wait() -> None:
        for _ in range(2):
            await serving.post("/api/v1/nodes", {"metadata": {"generateName": "n"}})
            serving.clock.advance(61)
            serving.store.wake_due(serving.clock.monotonic())
            await serving.settle()

    path = f"{PODS}?watch=true&timeoutSeconds=150&allowWatchBookmarks=true&resourceVersion=1"
    events = await serving.watch(path, wait, seconds=100)
    assert said(events) == [("BOOKMARK", "", "2"), ("BOOKMARK", "", "3")]


async def test_an_object_that_leaves_a_selection_is_deleted_for_it(serving: Serving) -> None:
    async def move() -> None:
        for value in ("x", "x", "y", "x"):
            body = {"metadata": {"labels": {"app": value}, "annotations": {"v": value * 2}}}
            await serving.request("PATCH", f"{PODS}/p", body, **MERGE)
        await serving.request("DELETE", f"{PODS}/p")

    await serving.pods("p")
    path = f"{WATCH}&labelSelector=app%3Dx&resourceVersion=2"
    events = await serving.watch(path, move, seconds=10)
    assert said(events) == [
        ("ADDED", "p", "3"),
        ("DELETED", "p", "4"),
        ("ADDED", "p", "5"),
        ("DELETED", "p", "6"),
    ]
    assert events[1]["object"]["metadata"]["labels"] == {"app": "x"}


async def test_field_selectors_follow_a_pod_to_its_node(serving: Serving) -> None:
    async def bind() -> None:
        for name in ("a", "b"):
            target = {"target": {"name": f"node-{name}"}}
            await serving.post(f"{PODS}/{name}/binding", target)

    await serving.pods("a", "b")
    path = f"{WATCH}&fieldSelector=spec.nodeName%3Dnode-b"
    assert said(await serving.watch(path, bind, seconds=10)) == [("ADDED", "b", "5")]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        pytest.param("2", "too old resource version: 2 (5)", id="forgotten"),
        pytest.param("99", "resource version 99 is yet to come: 7", id="of another life"),
    ],
)
async def test_a_watch_that_cannot_begin_there_says_so_in_an_event(
    version: str, message: str
) -> None:
    serving = Serving(log_capacity=2)
    await serving.pods(*"abcdef")
    events = await serving.watch(f"{WATCH}&resourceVersion={version}", nothing, seconds=0)
    assert events == [{"type": "ERROR", "object": status(410, "Expired", message)[1]}]


async def test_a_list_that_streams_is_not_of_the_future(serving: Serving) -> None:
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9"
    code, answer = await serving.request("GET", WATCH + query)
    assert (code, answer["reason"]) == (504, "Timeout")


async def test_a_watcher_that_falls_behind_is_ended(serving: Serving) -> None:
    serving = Serving(log_capacity=2)

    def burst() -> None:
        for name in "abcdef":
            serving.store.create("pods", pod(name, namespace="default"))

    assert await serving.watch(WATCH, burst, seconds=0) == []


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/api/v1/watch/pods", ["a", "b", "c"], id="of all"),
        pytest.param("/api/v1/watch/namespaces/default/pods", ["a", "b"], id="of a namespace"),
        pytest.param("/api/v1/watch/namespaces/default/pods/b", ["b"], id="of one"),
        pytest.param(f"{PODS}?watch=1&fieldSelector=metadata.name%3Db", ["b"], id="by its name"),
        pytest.param("/api/v1/watch/nodes", [], id="of a kind without namespaces"),
    ],
)
async def test_watches_by_path(serving: Serving, path: str, want: list[str]) -> None:
    async def life() -> None:
        await serving.pods("b")
        await serving.post("/api/v1/namespaces/other/pods", pod("c"))

    await serving.pods("a")
    join = "&" if "?" in path else "?"
    events = await serving.watch(f"{path}{join}timeoutSeconds=10", life, seconds=10)
    assert [event["object"]["metadata"]["name"] for event in events] == want


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/api/v1/watch/pods", 405),
        ("DELETE", "/api/v1/watch/namespaces/default/pods/p", 405),
        ("GET", "/api/v1/watch/namespaces/default/pods/p/status", 404),
        ("GET", "/api/v1/watch", 404),
        ("GET", "/api/v1/watch/teapots", 404),
    ],
)
async def test_paths_that_are_no_watches(
    serving: Serving, method: str, path: str, code: int
) -> None:
    assert (await serving.request(method, path))[0] == code


async def test_an_object_is_got_though_it_is_to_be_watched(serving: Serving) -> None:
    await serving.pods("p")
    assert (await serving.get(f"{PODS}/p?watch=true"))["metadata"]["name"] == "p"


async def test_equal_watchers_get_equal_bytes(serving: Serving) -> None:
    """And those who watch otherwise get their own."""

    async def life() -> None:
        await serving.pods("p")
        for value in "xy":
            await serving.request(
                "PATCH", f"{PODS}/p", {"metadata": {"labels": {"app": value}}}, **MERGE
            )

    metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    asked = [
        (WATCH, "application/json"),
        (WATCH, "application/json"),
        (f"{WATCH}&labelSelector=app%3Dx", "application/json"),
        (WATCH, metadata),
    ]
    watching = [
        asyncio.create_task(serving.http.get(path, headers={"accept": accept}))
        for path, accept in asked
    ]
    await serving.settle()
    await life()
    await serving.settle()
    serving.clock.advance(10)
    serving.store.wake()
    every, same, some, partial = [each.content for each in await asyncio.gather(*watching)]
    assert every == same
    assert [msgspec.json.decode(line)["type"] for line in every.splitlines()] == [
        "ADDED",
        "MODIFIED",
        "MODIFIED",
    ]
    assert [msgspec.json.decode(line)["type"] for line in some.splitlines()] == ["ADDED", "DELETED"]
    assert b"PartialObjectMetadata" in partial


async def test_many_changes_at_once(serving: Serving) -> None:
    def burst() -> None:
        for number in range(700):
            serving.store.create("pods", pod(f"p{number:04}", namespace="default"))

    events = await serving.watch(WATCH, burst, seconds=10)
    assert [event["object"]["metadata"]["name"] for event in events] == [
        f"p{number:04}" for number in range(700)
    ]


async def test_tables_say_their_columns_once(serving: Serving) -> None:
    serving.http.headers["accept"] = "application/json;as=Table;v=v1;g=meta.k8s.io"
    await serving.pods("a", "b")
    events = await serving.watch(WATCH, nothing, seconds=10)
    assert [event["object"]["kind"] for event in events] == ["Table", "Table"]
    assert [event["object"]["columnDefinitions"] for event in events] == [[], None]
    rows = [row["object"]["metadata"]["name"] for e in events for row in e["object"]["rows"]]
    assert rows == ["a", "b"]


async def test_the_server_ends_watches_when_it_stops(serving: Serving) -> None:
    await serving.pods("p")
    assert said(await serving.watch(f"{PODS}?watch=1", serving.server.stop, seconds=0)) == [
        ("ADDED", "p", "2")
    ]


def large(size: int, version: int = 0) -> dict[str, Any]:
    return pod("p", namespace="default", annotations={"a": f"{version}".ljust(size, "x")})


def test_a_cursor_takes_few_large_changes() -> None:
    store = Store()
    cursor = store.watch("pods", store.version)
    store.create("pods", large(1_000))
    for version in range(9):
        store.update("pods", large(1_000, version))
    taken = [(len(cursor.take(100, size)), cursor.is_at_end) for size in (0, 1, 3_600, 10**6)]
    assert taken == [(1, False), (1, False), (3, False), (5, True)]
    assert cursor.take(100, 0) == []


def test_frames_that_are_kept_are_bounded_by_their_bytes() -> None:
    store, frames = Store(), Frames()
    render = Renderer(kinds.PODS, Representation(), include_object="", clock=FakeClock())
    cursor = store.watch("pods", store.version)
    size = FRAME_BYTES // 20
    store.create("pods", large(size))
    for version in range(40):
        store.update("pods", large(size, version))
        for change in cursor.take(1):
            assert frames.frame(change, change.type, render) is frames.frame(
                change, change.type, render
            )
    assert frames.size <= FRAME_BYTES
    assert len(frames._kept) >= 3

    alone = Change(ChangeType.ADDED, Stored(large(2 * FRAME_BYTES), 1), None)
    frame = frames.frame(alone, alone.type, render)
    assert frames.frame(alone, alone.type, render) is frame  # whoever comes next gets it, too
    assert len(frames._kept) == 1


async def test_a_slow_watcher_of_large_objects_holds_few_of_them(serving: Serving) -> None:
    """As an object of 2.8 MB that is updated 200 times, which took 1.6 GB."""
    store = serving.store
    store.create("pods", large(1))
    watching = Watch(
        store,
        asked(kinds.PODS, "default", {})[0],
        ListOptions(resource_version=str(store.version)),
        clock=serving.clock,
        render=Renderer(kinds.PODS, Representation(), include_object="", clock=serving.clock),
        frames=Frames(),
        series=WatchSeries(("", "v1", "pods")),
        seconds=60,
        pace=None,
    )
    size = 400_000
    store._log_bytes = 0
    tracemalloc.start()
    try:
        lines = aiter(watching.lines(lambda: True))
        for version in range(100):
            store.update("pods", large(size, version))
        await anext(lines)  # and no more: the client is slow
        for version in range(100):
            store.update("pods", large(size, version))
            store._collections["pods"].log._forget(1)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    logged = sum(len(change.stored.body) for change in store._collections["pods"].log._changes)
    assert held < logged + 8 * size


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        pytest.param(0, LEAST_SECONDS, 2 * LEAST_SECONDS, id="nothing said"),
        pytest.param(10, 10, 10, id="a little"),
        pytest.param(999_999_999, MOST_SECONDS, MOST_SECONDS, id="for ever"),
    ],
)
def test_how_long_a_watch_lasts(asked: int, least: float, most: float) -> None:
    rng = random.Random(1)
    found = {lasting(asked, rng) for _ in range(20)}
    assert least <= min(found) <= max(found) <= most
    assert len(found) == (1 if asked else 20)


async def test_a_watch_ends_also_when_there_is_always_more(serving: Serving) -> None:
    def burst() -> None:
        for number in range(700):
            serving.store.create("pods", pod(f"p{number:04}", namespace="default"))
        serving.clock.advance(10)

    events = await serving.watch(WATCH, burst, seconds=0)
    assert len(events) == 500


EVE, ALICE = User("eve"), User("alice")


async def test_a_flow_has_a_part_of_all_watches() -> None:
    counts = InFlight(InFlightLimits())
    accounts = [service_account("n", f"a{number}") for number in range(MOST_LASTING + 1)]
    assert [counts.enter_lasting(user) for user in accounts] == [True] * MOST_LASTING + [False]
    assert counts.enter_lasting(EVE)
    assert all(counts.enter_lasting(ADMIN) for _ in range(2 * MOST_LASTING))
    counts.leave_lasting(accounts[0])
    assert counts.enter_lasting(accounts[-1])


async def test_a_watch_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "MOST_LASTING", 2)
    secured = Secured()
    everything: Any = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    await secured.grant(EVE.name, everything)
    await secured.grant(ALICE.name, everything)

    def watch(user: User) -> asyncio.Task[Any]:
        headers = {"authorization": f"Bearer {secured.tokens.issue(user)}"}
        return asyncio.create_task(secured.http.get(f"{PODS}?watch=1", headers=headers))

    watching = [watch(user) for user in (EVE, EVE, EVE, ALICE)]
    for _ in range(20):
        await asyncio.sleep(0)
    assert [task.done() for task in watching] == [False, False, True, False]
    assert watching[2].result().status_code == 429
    await secured.server.stop()
    assert [(await task).status_code for task in watching] == [200, 200, 429, 200]
    assert secured.server._endpoints._in_flight._lasting == {}


writes = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "x", "y"])), max_size=20)


@given(writes)
def test_who_follows_the_events_knows_the_list(steps: list[tuple[str, str]]) -> None:
    store = Store()
    cursor = store.watch("pods", store.version)
    wanted = asked(kinds.PODS, "default", {"labelSelector": "app=x"})[0]
    known: set[str] = set()
    for name, app in steps:
        is_there = name in {stored.name for stored in store.list("pods")}
        if not app:
            if is_there:
                store.delete("pods", "default", name)
            continue
        write = store.update if is_there else store.create
        write("pods", pod(name, namespace="default", labels={"app": app}))
    for change in cursor.take(100):
        match type_for(wanted, change):
            case "ADDED":
                assert change.stored.name not in known
                known.add(change.stored.name)
            case "MODIFIED":
                assert change.stored.name in known
            case "DELETED":
                known.remove(change.stored.name)
    assert known == {stored.name for stored in store.list("pods") if wanted.takes(stored)}
