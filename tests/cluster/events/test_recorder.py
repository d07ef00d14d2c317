"""The one who writes events: in order, bounded, and never in the way."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import BURST, PER_SECOND, QUEUED, EventBroadcaster
from berth.kube.client.errors import ApiError, NotFoundError, UnavailableError
from berth.runtime.clock import FakeClock

POD = Reference("v1", "Pod", "default", "p", "uid-p")


class Api:
    """Remembers requests; fails those that it is told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.errors: dict[str, ApiError] = {}

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        self.requests.append((method, path.rpartition("/")[0]))
        if method in self.errors:
            raise self.errors[method]
        return b"{}"

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nobody watches events here")

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.requests]


@asynccontextmanager
async def running(broadcaster: EventBroadcaster) -> AsyncIterator[None]:
    task = asyncio.create_task(broadcaster.run(), name="events under test")
    await settle()
    yield
    task.cancel()
    await asyncio.wait([task])


async def settle(turns: int = 100) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def tell(broadcaster: EventBroadcaster, *messages: str) -> None:
    recorder = broadcaster.recorder("kubelet", host="n1")
    for message in messages:
        recorder.event(POD, reason="Pulled", message=message)


async def test_events_are_written() -> None:
    api, clock = Api(), FakeClock()
    broadcaster = EventBroadcaster(api, clock=clock)
    tell(broadcaster, "early")
    async with running(broadcaster):
        tell(broadcaster, "a", "b", "a")
        await settle()

    assert api.methods == ["POST", "POST", "POST", "PATCH"]


async def test_an_event_that_expired_starts_anew() -> None:
    api, clock = Api(), FakeClock()
    broadcaster = EventBroadcaster(api, clock=clock)
    api.errors = {"PATCH": NotFoundError(404, "NotFound", "")}
    async with running(broadcaster):
        tell(broadcaster, "a", "a")
        await settle()

    assert api.methods == ["POST", "PATCH", "POST"]
    assert broadcaster.lost == 0


async def test_a_server_that_refuses_or_is_away_stops_nothing() -> None:
    api, clock = Api(), FakeClock()
    broadcaster = EventBroadcaster(api, clock=clock)
    api.errors = {"POST": UnavailableError("away", sent=False)}
    async with running(broadcaster):
        tell(broadcaster, "a", "b")
        await settle()

    assert (api.methods, broadcaster.lost) == (["POST", "POST"], 2)


async def test_a_flood_is_slow_and_loses_what_does_not_fit() -> None:
    api, clock = Api(), FakeClock()
    broadcaster = EventBroadcaster(api, clock=clock)
    for number in range(QUEUED + 7):
        pod = POD._replace(uid=f"uid-{number}")
        broadcaster.recorder("kubelet").event(pod, reason="Pulled", message="m")
    async with running(broadcaster):
        await settle(10_000)
        at_once = len(api.requests)
        clock.advance(1.0)
        await settle(10_000)

    assert broadcaster.lost == 7
    assert at_once == BURST
    assert len(api.requests) <= BURST + PER_SECOND + 1
