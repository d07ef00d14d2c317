"""``/snapshot`` and ``/simulate``, asked in process; the worker is a function here."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from io import BytesIO
from typing import Any

import httpx
import jsonschema
import pytest
from fastapi import FastAPI

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.service.server.bodies import JSON
from berth.service.server.scheduler.simulate import (
    EXAMPLES,
    LINES,
    MOST_BYTES,
    simulate_endpoints,
)
from berth.service.server.scheduler.simulation_process import (
    SIZE,
    WANTS_SNAPSHOT,
    SimulationError,
    SimulationFailedError,
    SimulationTooLargeError,
    TooManySimulationsError,
)
from berth.service.server.scheduler.snapshot import snapshot_endpoints
from berth.service.simulation_worker import work
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot
from tests.loop_turns import watched_loop

LIVE = snapshot(node("live", cpu="1"), pod("waiting", cpu="1"))


async def take_live() -> Snapshot:
    return LIVE


OTHER = snapshot(node("uploaded", cpu="1"))


Live = Callable[[], Awaitable[Iterable[bytes]]]


class Asking(BytesIO):
    """Gives the worker the live cluster when it has asked for it."""

    def __init__(self, question: bytes, live: Live) -> None:
        super().__init__(SIZE.pack(len(question)) + question)
        self._live = live

    def read(self, size: int | None = -1, /) -> bytes:
        if size != -1:
            return super().read(size)
        with pytest.raises(StopIteration) as ended:  # it waits for nothing
            next(self._live().__await__())
        return b"".join(ended.value.value)


def asked_of_worker(question: bytes, live: Live) -> tuple[int, bytes]:
    """Return the worker's exit status, and what it says but for its wish for the cluster."""
    target = BytesIO()
    status = work(Asking(question, live), target, IN_TREE)
    return status, target.getvalue().removeprefix(WANTS_SNAPSHOT)


class World:
    """What the endpoints ask."""

    def __init__(self) -> None:
        self.is_synced = True
        self.fails_with: SimulationError | None = None
        self.tells: list[bytes] = []

    async def simulate(
        self,
        ask: Callable[[], Awaitable[bytes]],
        live: Live,
        tell: Callable[[bytes], None],
    ) -> bytes:
        question = await ask()
        for line in self.tells:
            tell(line)
            await asyncio.sleep(0)
        if self.fails_with is not None:
            raise self.fails_with
        status, said = asked_of_worker(question, live)
        if status:
            raise SimulationError(said.decode())
        return said


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(snapshot_endpoints(take_live, is_synced=lambda: world.is_synced))
    app.include_router(
        simulate_endpoints(take_live, world.simulate, is_synced=lambda: world.is_synced)
    )
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as made:
        yield made


def upload() -> Any:
    return json.loads(b"".join(OTHER.encode()))


async def test_a_snapshot_is_what_can_be_read_back(client: httpx.AsyncClient) -> None:
    answer = await client.get("/snapshot")
    assert answer.headers["Content-Type"] == "application/json"
    assert decode(answer.content, source="") == LIVE


async def test_the_question_is_about_the_cluster_as_it_is(client: httpx.AsyncClient) -> None:
    question = {"templates": [{"manifest": deployment(), "replicas": 2}]}
    answer = await client.post("/simulate", json=question)
    assert answer.status_code == httpx.codes.OK
    assert Answer.model_validate_json(answer.content) == ask(LIVE, **question)


@pytest.mark.parametrize(
    ("given", "nodes"),
    [
        pytest.param({"snapshot": upload()}, {"uploaded"}, id="a snapshot that came along"),
        pytest.param(
            {"snapshot": {"apiVersion": "v1", "kind": "List", "items": [manifest(node("item"))]}},
            {"item"},
            id="a List",
        ),
        pytest.param({"snapshot": None}, {"live"}, id="null is none"),
    ],
)
async def test_what_it_is_about(
    client: httpx.AsyncClient, given: dict[str, Any], nodes: set[str]
) -> None:
    asked = {"pods": [manifest(pod("p", priority=1))], **given}
    answer = await client.post("/simulate", json=asked)
    assert set(answer.json()["placements"].values()) == nodes


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"{", "not a JSON object: Input data was truncated", id="no JSON"),
        pytest.param(b"[]", "not a JSON object: Expected `object`, got `array`", id="a list"),
        pytest.param(b"[" * 50_000, "not a JSON object: ", id="deep brackets"),
        pytest.param(b'{"pods": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "", id="deep lists"),
        pytest.param(b'{"snapshot": []}', "snapshot", id="a snapshot that is no object"),
        pytest.param(b'{"podz": []}', "podz", id="an unknown field"),
        pytest.param(b'{"templates": [{}]}', "manifest", id="a template without a manifest"),
        pytest.param(
            b'{"snapshot": {"kind": "Pod"}}',
            "snapshot: a berth/v1 Snapshot or a List is needed, got apiVersion '', kind 'Pod'",
            id="no snapshot",
        ),
        pytest.param(
            b'{"removeNodes": {"names": ["x"]}}',
            "removeNodes.names[0]: 'x': there is no such node",
            id="no such node",
        ),
        pytest.param(
            b'{"config": {"kind": "x"}}', "couldn't decode as Kube", id="no configuration"
        ),
    ],
)
async def test_what_is_wrong_is_named(client: httpx.AsyncClient, body: bytes, says: str) -> None:
    answer = await client.post(
        "/simulate", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert says in str(answer.json()["detail"])


@pytest.mark.parametrize("given", ["", "text/plain", "application/json, text/plain"])
async def test_another_type_of_content_is_refused(client: httpx.AsyncClient, given: str) -> None:
    """Among them all that web pages may send to other places without being asked."""
    headers = {"Content-Type": given} if given else {}
    answer = await client.post("/simulate", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()) == (
        415,
        {"detail": f"Content-Type: {given!r}: must be application/json"},
    )


async def test_a_charset_may_be_named(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert (await client.post("/simulate", content=b"{}", headers=headers)).status_code == 200


async def test_too_much_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/simulate", json={"snapshot": {"x": "x" * MOST_BYTES}})
    assert (answer.status_code, answer.json()) == (
        413,
        {"detail": f"body is larger than {MOST_BYTES} bytes"},
    )


def wrong(number: int) -> bytes:
    return b'{"templates": [' + b",".join([b'{"x": "secret"}'] * number) + b"]}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(
            wrong(500),
            "templates[0].x: Extra inputs are not permitted; templates[1].x: Extra inputs",
            id="many problems",
        ),
        pytest.param(wrong(5_000), "templates: List should have at most 1000 items", id="a list"),
        pytest.param(
            b'{"snapshot": [' + b'"secret",' * 200_000 + b"0]}", "snapshot: not an obj",
            id="a long snapshot that is no object",
        ),
        pytest.param(b'{"' + b"x" * 100_000 + b'": 0}', "xxx…: Extra inputs", id="a long name"),
        pytest.param(
            b'{"removeNodes": {"selector": "' + b"-" * 100_000 + b'"}}', "removeNodes.selector: '-",
            id="a long selector",
        ),
        pytest.param(
            b'{"config": {"kind": "' + b"x" * 100_000 + b'"}}', "xxx", id="a long kind"
        ),
        pytest.param(
            b'{"pods": [{"metadata": {"name": "' + b"x" * 1_000 + b'"}}]}',
            "pods[0].metadata.name: must be no more than 253 characters",
            id="a long name of a pod",
        ),
    ],
)  # fmt: skip
async def test_a_refusal_has_an_end_and_no_input(
    client: httpx.AsyncClient, body: bytes, says: str
) -> None:
    answer = await client.post("/simulate", content=body, headers={"Content-Type": JSON})
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert says in detail
    assert len(answer.content) < 5_000
    assert "secret" not in detail


@pytest.mark.parametrize("body", [wrong(8_000), b'{"snapshot": [' + b"0," * 1_000_000 + b"0]}"])
async def test_a_wrong_question_keeps_nobody_waiting(
    client: httpx.AsyncClient, world: World, body: bytes
) -> None:
    """The worker, which would be another process, is left out."""

    async def longest(content: bytes) -> float:
        async with watched_loop() as turns:
            await client.post("/simulate", content=content, headers={"Content-Type": JSON})
        return turns.longest

    ordinary = json.dumps({"templates": [{"manifest": deployment(), "replicas": 2}]}).encode()
    world.fails_with = SimulationFailedError("left out")
    await longest(ordinary)
    usual = max([await longest(ordinary) for _ in range(5)])
    assert min([await longest(body) for _ in range(3)]) < 10 * usual


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(TooManySimulationsError("busy"), 429, id="too many at once"),
        pytest.param(SimulationError("too long"), 422, id="it takes too long"),
        pytest.param(SimulationTooLargeError("huge"), 507, id="it takes too much memory"),
        pytest.param(SimulationFailedError("died"), 500, id="the worker dies"),
    ],
)
async def test_a_simulation_that_is_not_done(
    client: httpx.AsyncClient, world: World, error: SimulationError, status: int
) -> None:
    world.fails_with = error
    answer = await client.post("/simulate", json={})
    assert (answer.status_code, answer.json()) == (status, {"detail": str(error)})


async def test_what_is_not_known_yet_is_not_told(client: httpx.AsyncClient, world: World) -> None:
    world.is_synced = False
    assert (await client.get("/snapshot")).status_code == 503
    assert (await client.post("/simulate", json={})).status_code == 503
    assert (await client.post("/simulate", json={"snapshot": upload()})).status_code == 200


@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_examples_work_and_follow_the_schema(
    client: httpx.AsyncClient, name: str
) -> None:
    described = (await client.get("/openapi.json")).json()
    operation = described["paths"]["/simulate"]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    asked = content["examples"][name]["value"]
    answer = await client.post("/simulate", json=asked)

    assert answer.status_code == httpx.codes.OK, answer.text
    told = operation["responses"]["200"]["content"]["application/json"]["schema"]
    for instance, schema in ((asked, content["schema"]), (answer.json(), told)):
        jsonschema.validate(instance, {**described, **schema})


async def test_nobody_simulates_for_a_client_that_has_gone() -> None:
    """As when its page is told to cancel; the server finds nobody to send the answer to."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def simulate(
        ask: Callable[[], Awaitable[bytes]],
        live: Live,
        tell: Callable[[bytes], None],
    ) -> bytes:
        assert await ask() == b"{}"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return b"".join(await live())

    app = FastAPI()
    app.include_router(simulate_endpoints(take_live, simulate, is_synced=lambda: True))
    received: asyncio.Queue[Any] = asyncio.Queue()
    received.put_nowait({"type": "http.request", "body": b"{}", "more_body": False})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", JSON.encode())]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/simulate",
        "headers": headers,
    }
    scope |= {"query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": ""}
    answering = asyncio.create_task(app(scope, received.get, send))
    await begun.wait()
    assert not ended.is_set()
    received.put_nowait({"type": "http.disconnect"})
    await answering
    assert ended.is_set()
    assert sent[0]["status"] == httpx.codes.BAD_REQUEST


TOLD = [b'{"progress":{"stage":"placing","done":%d,"of":9}}\n' % i for i in (3, 6)]
LINES_ONLY = {"Accept": LINES}


async def lines_of(client: httpx.AsyncClient, question: Any) -> tuple[int, str, list[Any]]:
    answer = await client.post("/simulate", json=question, headers=LINES_ONLY)
    lines = [json.loads(line) for line in answer.content.splitlines()]
    return answer.status_code, answer.headers["Content-Type"], lines


async def test_the_progress_is_told_in_lines_to_who_wants_them(
    client: httpx.AsyncClient, world: World
) -> None:
    world.tells = TOLD
    status, kind, lines = await lines_of(client, {})
    assert (status, kind) == (httpx.codes.OK, LINES)
    assert lines[:-1] == [json.loads(line) for line in TOLD]
    assert Answer.model_validate(lines[-1]["answer"]) == ask(LIVE)
    answer = await client.post("/simulate", json={})
    assert (answer.headers["Content-Type"], answer.json()) == (JSON, lines[-1]["answer"])


async def test_a_failure_after_the_first_line_is_a_line(
    client: httpx.AsyncClient, world: World
) -> None:
    world.tells, world.fails_with = TOLD[:1], SimulationTooLargeError("too large")
    _, _, lines = await lines_of(client, {})
    assert lines[1:] == [{"error": {"status": 507, "detail": "too large"}}]


async def test_what_is_answered_or_refused_at_once_is_no_line(
    client: httpx.AsyncClient, world: World
) -> None:
    status, kind, [told] = await lines_of(client, {})
    assert (status, kind, Answer.model_validate(told)) == (httpx.codes.OK, JSON, ask(LIVE))
    world.fails_with = TooManySimulationsError("2 are being done")
    assert (await lines_of(client, {}))[0] == httpx.codes.TOO_MANY_REQUESTS
