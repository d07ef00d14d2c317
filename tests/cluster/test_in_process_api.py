"""The API without a socket: what goes in and comes out is what it is over HTTP."""

import asyncio
from typing import Any

import msgspec
import pytest
from starlette.types import Receive, Scope, Send

from berth.cluster.in_process_api import (
    HOST,
    MOST_CHUNKS,
    REQUESTS_PER_TURN,
    InProcessApi,
    Turns,
)
from berth.kube.client.errors import (
    ConflictError,
    FencedError,
    InvalidError,
    NotFoundError,
    ServerError,
    UnavailableError,
)
from berth.runtime.clock import FakeClock
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def serving() -> Serving:
    return Serving()


def api_of(serving: Serving) -> InProcessApi:
    return InProcessApi(serving.server.app, user_agent="tests", turns=Turns(), clock=FakeClock())


def body(obj: Any) -> bytes:
    return msgspec.json.encode(obj)


async def test_objects_are_written_and_read(serving: Serving) -> None:
    api = api_of(serving)
    made = msgspec.json.decode(await api.request("POST", PODS, body=body(pod("p"))))
    assert msgspec.json.decode(await api.request("GET", f"{PODS}/p")) == made
    patch = body({"metadata": {"labels": {"a": ""}, "annotations": {"b": "ü/%2F"}}})
    kind = "application/merge-patch+json"
    await api.request("PATCH", f"{PODS}/p", body=patch, content_type=kind)
    selected = await api.request("GET", PODS, params={"labelSelector": "a", "limit": "1"})
    assert [p["metadata"]["annotations"] for p in msgspec.json.decode(selected)["items"]] == [
        {"b": "ü/%2F"}
    ]


async def test_answers_may_be_wanted_in_another_form(serving: Serving) -> None:
    await serving.pods("p")
    api = api_of(serving)
    metadata = api.accepting("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert b"PartialObjectMetadata" in await metadata.request("GET", f"{PODS}/p")
    assert b"PartialObjectMetadata" not in await api.request("GET", f"{PODS}/p")


@pytest.mark.parametrize(
    ("method", "path", "sent", "error"),
    [
        ("GET", f"{PODS}/none", None, NotFoundError),
        ("PUT", f"{PODS}/p", {"metadata": {"name": "p", "resourceVersion": "1"}}, ConflictError),
        ("GET", f"{PODS}?resourceVersion=99", None, ServerError),
        ("POST", PODS, {"metadata": {"name": "q"}, "spec": {}}, InvalidError),
    ],
)
async def test_refusals_are_errors(
    serving: Serving, method: str, path: str, sent: Any, error: type[Exception]
) -> None:
    await serving.pods("p")
    target, _, query = path.partition("?")
    params = dict(part.split("=") for part in query.split("&")) if query else None
    with pytest.raises(error):
        await api_of(serving).request(
            method, target, params=params, body=None if sent is None else body(sent)
        )


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async def never(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    api = InProcessApi(never, user_agent="tests", turns=Turns(), clock=FakeClock())
    with pytest.raises(UnavailableError):
        await api.request("GET", PODS, timeout=0.001)


async def test_a_watch_yields_lines_as_they_come(serving: Serving) -> None:
    await serving.pods("a")
    lines = api_of(serving).watch(PODS, {"resourceVersion": "0"})
    assert await anext(lines) == b""
    seen = [msgspec.json.decode(await anext(lines))["object"]["metadata"]["name"]]
    await serving.pods("b")
    seen.append(msgspec.json.decode(await anext(lines))["object"]["metadata"]["name"])
    assert seen == ["a", "b"]
    await lines.aclose()
    assert b'verb="WATCH",version="v1"} 0.0' in (await serving.http.get("/metrics")).content


async def test_a_watch_ends_when_the_server_says_so(serving: Serving) -> None:
    lines = api_of(serving).watch(PODS, {"timeoutSeconds": "5"})
    assert await anext(lines) == b""
    await serving.settle()
    serving.clock.advance(5)
    serving.store.wake()
    assert [line async for line in lines] == []


@pytest.mark.parametrize(
    ("params", "lasts"),
    [
        pytest.param({"resourceVersion": "1"}, True, id="one that goes on from a version"),
        pytest.param(
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
            False,
            id="one that begins with what there is ends as asked",
        ),
    ],
)
async def test_a_watch_of_a_reflector(
    serving: Serving, params: dict[str, str], lasts: bool
) -> None:
    asked = {**params, "allowWatchBookmarks": "true", "timeoutSeconds": "300"}
    lines = api_of(serving).watch(PODS, asked)
    assert await anext(lines) == b""
    await serving.settle()

    serving.clock.advance(301)
    serving.store.wake()
    await serving.settle()
    await serving.pods("p")

    types = []
    async for line in lines:
        types.append(msgspec.json.decode(line)["type"])
        if types[-1] == "ADDED":
            break
    assert types == (["ADDED"] if lasts else ["BOOKMARK"])
    await lines.aclose()


async def test_a_watch_that_is_refused(serving: Serving) -> None:
    lines = api_of(serving).watch(PODS, {"resourceVersion": "x"})
    with pytest.raises(ServerError):
        await anext(lines)


async def test_a_slow_reader_holds_up_the_server_and_loses_nothing(serving: Serving) -> None:
    lines = api_of(serving).watch(PODS, {"resourceVersion": "1"})
    assert await anext(lines) == b""
    names = [f"p{number:02}" for number in range(3 * MOST_CHUNKS)]
    for name in names:
        await serving.pods(name)
        await serving.settle()
    found = [await anext(lines) for _ in names]
    assert [msgspec.json.decode(line)["object"]["metadata"]["name"] for line in found] == names
    await lines.aclose()


async def test_few_requests_begin_at_once() -> None:
    """So that whoever else needs the event loop gets it in between."""
    turns, begun = Turns(), []

    async def ask(number: int) -> None:
        await turns.take()
        begun.append(number)

    count = 5 * REQUESTS_PER_TURN
    asking = asyncio.gather(*(ask(number) for number in range(count)))
    most_at_once = 0
    while not asking.done():
        before = len(begun)
        await asyncio.sleep(0)
        most_at_once = max(most_at_once, len(begun) - before)
    assert sorted(begun) == list(range(count))
    assert most_at_once <= REQUESTS_PER_TURN


async def test_one_task_gives_others_their_turn() -> None:
    turns, seen = Turns(), 0

    async def ask() -> None:
        for _ in range(5 * REQUESTS_PER_TURN):
            await turns.take()

    asking = asyncio.create_task(ask())
    while not asking.done():
        seen += 1
        await asyncio.sleep(0)
    assert seen >= 5


class Observed:
    """Writes down what it is told of requests."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, int]] = []

    def held_back(self, host: str, method: str, *, seconds: float) -> None: ...

    def answered(
        self, host: str, method: str, status: int, *, seconds: float, sent: int, received: int
    ) -> None:
        self.told.append((host, method, status))

    def unanswered(self, host: str, method: str, *, seconds: float) -> None:
        self.told.append((host, method, 0))

    def watching(self, host: str, status: int) -> None:
        self.told.append((host, "WATCH", status))


async def test_a_scheduler_is_told_of_its_requests(serving: Serving) -> None:
    api = api_of(serving)
    api.observer = observed = Observed()
    await api.request("POST", PODS, body=body(pod("p")))
    with pytest.raises(NotFoundError):
        await api.fenced(lambda: True).request("GET", f"{PODS}/none")
    lines = api.watch(PODS, {})
    await anext(lines)
    await lines.aclose()
    assert observed.told == [(HOST, "POST", 201), (HOST, "GET", 404), (HOST, "WATCH", 200)]


async def test_a_fenced_write_does_not_leave_but_reads_do(serving: Serving) -> None:
    await serving.pods("p")
    api = api_of(serving).fenced(lambda: False, otherwise="somebody else may")
    with pytest.raises(FencedError, match=r"POST .*: not sent, somebody else may"):
        await api.request("POST", PODS, body=body(pod("q")))
    assert await api.request("GET", f"{PODS}/p")
