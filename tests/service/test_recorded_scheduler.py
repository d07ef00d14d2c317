"""A recording answers as a scheduler does, at whatever moment is chosen."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from berth.insight.recording import lines
from berth.insight.recording.runs import RecordedRun, runs
from berth.runtime.clock import FakeClock
from berth.service.plugin_sources import KnownPlugins
from berth.service.recorded_scheduler import RecordedScheduler
from tests.insight.recording.world import RecordedWorld, sealed

ATTEMPTS = 40


@pytest.fixture(scope="module")
def recorded() -> list[bytes]:
    world = RecordedWorld(seed=5, plain=True, faults=0.0)
    asyncio.run(world.live(attempts=ATTEMPTS))
    return world.lines


@pytest.fixture
def run(recorded: list[bytes], tmp_path: Path) -> RecordedRun:
    path = tmp_path / "day.json"
    path.write_bytes(sealed(*recorded))
    (run,) = runs([path])
    return run


@pytest.fixture
async def client(run: RecordedRun) -> AsyncIterator[httpx.AsyncClient]:
    scheduler = RecordedScheduler([run], KnownPlugins(), clock=FakeClock(0.0))
    transport = httpx.ASGITransport(scheduler)
    async with httpx.AsyncClient(transport=transport, base_url="http://recording") as client:
        yield client
    await scheduler.close()


async def move(client: httpx.AsyncClient, **to: float) -> Any:
    answer = await client.post("/debug/recording", json=to)
    assert answer.status_code == 200, answer.text
    return answer.json()


def attempts_of(recorded: list[bytes]) -> list[lines.Attempt]:
    return [line for line in map(lines.decode, recorded) if isinstance(line, lines.Attempt)]


async def test_it_begins_at_the_end(client: httpx.AsyncClient, recorded: list[bytes]) -> None:
    position = (await client.get("/debug/recording")).json()
    number = len(attempts_of(recorded))
    assert (position["made"], position["attempts"]) == (number, number)
    assert position["next"] is None


async def test_each_moment_shows_what_was_decided_up_to_it(
    client: httpx.AsyncClient, recorded: list[bytes]
) -> None:
    made = attempts_of(recorded)
    for number in (7, 8, 20, 3, 0):  # onwards, and back
        position = await move(client, made=number)
        coming = made[number]
        decision = coming.decisions[0]
        assert position["made"] == number
        assert position["next"]["pod"] == coming.pod
        assert position["next"]["node"] == decision.node
        decided = (await client.get("/debug/decisions", params={"limit": 100})).json()["items"]
        before = [each for attempt in made[:number] for each in attempt.decisions]
        assert [(each["pod"], each["node"]) for each in decided] == [
            (each.pod, each.node) for each in reversed(before)
        ]
        explained = (await client.get(f"/explain/pods/{coming.pod}")).json()
        assert explained["state"]["node"] == ""


async def test_a_time_is_a_moment_too(client: httpx.AsyncClient, recorded: list[bytes]) -> None:
    third = attempts_of(recorded)[2]
    later = await move(client, time=third.t)
    assert later["made"] >= 3
    assert (await move(client, time=third.t - 1e-6))["made"] < later["made"]


async def test_a_stream_goes_on_though_nothing_happens(run: RecordedRun) -> None:
    scheduler = RecordedScheduler([run], KnownPlugins(), clock=AutoClock())
    await scheduler.move(made=5)
    numbers = []
    async for event in events(scheduler, "/debug/overview/stream"):
        numbers += [line for line in event.splitlines() if line.startswith(b"id: ")]
        if len(numbers) == 3:
            scheduler.end()
    assert len(numbers) == 3
    assert len(set(numbers)) == 1
    await scheduler.close()


class AutoClock(FakeClock):
    """Time passes as soon as somebody waits for it."""

    def __init__(self) -> None:
        super().__init__(0.0)

    async def sleep(self, _seconds: float) -> None:
        await asyncio.sleep(0)


async def events(scheduler: RecordedScheduler, path: str) -> AsyncIterator[bytes]:
    """Yield pieces of a response that is a stream."""
    sent: asyncio.Queue[Message] = asyncio.Queue()
    never = asyncio.Event()

    async def receive() -> Message:
        await never.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await sent.put(message)

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [], "http_version": "1.1", "scheme": "http",
        "server": ("recording", 80), "client": ("test", 1), "root_path": "",
    }  # fmt: skip
    answering = asyncio.create_task(scheduler(scope, receive, send))
    assert (await sent.get())["status"] == 200
    while (message := await sent.get()).get("more_body"):
        yield message["body"]
    await answering


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param({}, "one of them is needed", id="no moment"),
        pytest.param({"made": 1, "time": 2.0}, "one of them is needed", id="two moments"),
        pytest.param({"time": 1.0}, "begins after that time", id="before the recording"),
        pytest.param({"made": -1}, "greater than or equal to 0", id="no number of attempts"),
    ],
)
async def test_what_is_no_moment_is_refused(
    client: httpx.AsyncClient, body: dict[str, float], why: str
) -> None:
    answer = await client.post("/debug/recording", json=body)
    assert answer.status_code == 422
    assert why in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/debug/cache", "/debug/cluster", "/debug/config", "/debug/devices", "/debug/overview",
        "/debug/podgroups", "/debug/queue", "/debug/queue/groups", "/snapshot",
    ],
)  # fmt: skip
async def test_the_screens_have_what_they_ask_for(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.json()


async def test_there_is_no_api_server_to_compare_with(client: httpx.AsyncClient) -> None:
    answer = await client.get("/debug/compare")
    assert (answer.status_code, answer.json()["detail"]) == (
        503,
        "there is no API server to compare with",
    )
