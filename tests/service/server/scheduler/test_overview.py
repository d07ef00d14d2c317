"""``/debug/overview`` and its stream, of samples that a test takes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.scheduler.metrics.overview import Sample
from berth.service.overview.sampler import Sampler
from berth.service.server.application import Application
from berth.service.server.scheduler import overview as overview_module
from berth.service.server.scheduler.overview import overview_endpoints
from tests.builders import pod
from tests.harness import Harness
from tests.service.overview.world import sampler


@pytest.fixture
def harness() -> Harness:
    return Harness()


@pytest.fixture
def sampling(harness: Harness) -> Sampler:
    return sampler(harness)


def asking(sampling: Sampler, *, most_streams: int = 2) -> httpx.AsyncClient:
    app = Application()
    app.include_router(overview_endpoints(sampling, most_streams=most_streams))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://berth")


@pytest.fixture
async def served(sampling: Sampler) -> AsyncIterator[HttpServer]:
    """A server with two streams at most; ASGITransport would wait for the end of a stream."""
    app = Application()
    app.include_router(overview_endpoints(sampling, most_streams=2))
    server = HttpServer(app)
    await server.start(LOOPBACK, 0)
    yield server
    sampling.end()
    await server.stop()


async def event(lines: AsyncIterator[str]) -> dict[str, str]:
    """Return the fields of the next event."""
    fields: dict[str, str] = {}
    async for line in lines:
        if not line:
            return fields
        name, _, value = line.partition(": ")
        fields[name] = value
    return fields


async def test_the_overview(harness: Harness, sampling: Sampler) -> None:
    harness.put(pod("a"))
    sampling.take(0.002)
    async with asking(sampling) as client:
        answer = await client.get("/debug/overview?seconds=60")
    told: dict[str, Any] = answer.json()

    assert answer.status_code == 200
    assert told["now"]["number"] == 1
    assert told["now"]["numbers"]["active"] == 1
    assert told["now"]["numbers"]["loopLagSeconds"] == 0.002
    assert told["series"]["stepSeconds"] == 1
    assert told["series"]["times"] == [told["now"]["time"]]
    assert told["series"]["numbers"].keys() == told["now"]["numbers"].keys()
    assert told["series"]["numbers"]["loopLagSeconds"] == [0.002]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("seconds=0", 422, id="of no time"),
        pytest.param("seconds=3601", 422, id="of longer than is kept"),
        pytest.param("second=60", 422, id="a parameter that is misspelt"),
    ],
)
async def test_refused(sampling: Sampler, query: str, status: int) -> None:
    sampling.take(0.0)
    async with asking(sampling) as client:
        assert (await client.get(f"/debug/overview?{query}")).status_code == status


async def test_nobody_waits_for_the_first_sample(sampling: Sampler) -> None:
    async with asking(sampling) as client:
        answer = await client.get("/debug/overview")
    assert (answer.status_code, answer.json()["now"]["number"]) == (200, 1)


@pytest.mark.wall
async def test_streams_share_events_and_end_with_the_scheduler(
    sampling: Sampler, served: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = []

    def as_json(sample: Sample, *, by_alias: bool) -> bytes:
        encoded.append(sample.number)
        return b'{"number":%d}' % sample.number

    monkeypatch.setattr(overview_module, "_as_json", as_json)
    sampling.take(0.0)
    async with httpx.AsyncClient(base_url=served.url) as client:
        path = "/debug/overview/stream"
        async with client.stream("GET", path) as one, client.stream("GET", path) as other:
            assert one.headers["content-type"].startswith("text/event-stream")
            assert one.headers["cache-control"] == "no-store"
            refused = await client.get(path)
            streams = [one.aiter_lines(), other.aiter_lines()]
            told = [[await event(stream), await event(stream)] for stream in streams]
            sampling.take(0.0)
            for each, events in zip(streams, told, strict=True):
                events.append(await event(each))
            sampling.end()
            rest = [[line async for line in stream] for stream in streams]

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
    assert refused.json()["detail"] == "2 streams are open already"
    wanted = [{"retry": "2000"}, *({"id": str(n), "data": f'{{"number":{n}}}'} for n in (1, 2))]
    assert told == [wanted, wanted]
    assert rest == [[], []]
    assert encoded == [1, 2]


async def test_a_place_is_free_again_when_a_reader_has_gone(
    sampling: Sampler,
) -> None:
    streams = overview_module._Streams(sampling)
    events = streams.events()
    await anext(events)
    assert streams.open == 1
    await events.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert streams.open == 0


async def test_a_reader_that_comes_back_late_gets_one_event(sampling: Sampler) -> None:
    events = overview_module._Streams(sampling).events()
    await anext(events)
    for _ in range(5):
        sampling.take(0.0)
    first = await anext(events)
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    assert first.startswith(b"id: 5\n")
    assert json.loads(first.split(b"data: ")[1])["number"] == 5
    assert not waiting.done()
    sampling.end()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_heartbeat_shows_that_the_connection_lives(
    sampling: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview_module, "HEARTBEAT_SECONDS", 0.0)
    events = overview_module._Streams(sampling).events()
    assert [await anext(events), await anext(events)] == [
        overview_module.RETRY,
        overview_module.HEARTBEAT,
    ]
