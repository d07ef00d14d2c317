"""Bodies that are slow, never end, or are too many: they hold nobody up but their sender."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from berth.cluster.access.users import ADMIN, User, service_account
from berth.cluster.http.in_flight import MOST_MUTATING
from berth.cluster.http.intake import (
    BODY_SECONDS,
    GRACE_SECONDS,
    LEAST_RATE,
    BodiesFullError,
    BodyTimeoutError,
    Intake,
)
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock
from tests.cluster.access.secured import Secured

EVE, ALICE = User("eve"), User("alice")
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
EVERYTHING: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
NODES = "/api/v1/nodes"


class Sender:
    """A client that sends pieces, one when asked, and as many seconds apart."""

    def __init__(self, clock: FakeClock, size: int, seconds: float) -> None:
        self._clock = clock
        self._size = size
        self._seconds = seconds

    async def receive(self) -> Any:
        await self._clock.sleep(self._seconds)
        return {"type": "http.request", "body": bytes(self._size), "more_body": True}


async def _seconds_until_late(size: int, seconds: float) -> float:
    clock = FakeClock()
    intake = Intake(clock)
    reading = intake.begin(ADMIN)
    sender = Sender(clock, size, seconds)

    async def read() -> None:
        while True:
            await intake.receive(reading, sender.receive)

    start = clock.now()
    task = asyncio.create_task(read())
    while not task.done():
        for _ in range(5):
            await asyncio.sleep(0)
        clock.advance(1.0)
        intake.tick()
    with pytest.raises(BodyTimeoutError):
        await task
    intake.end(reading)
    assert intake.size == 0
    return clock.now() - start


@pytest.mark.parametrize(
    ("size", "seconds", "want"),
    [
        pytest.param(0, 1_000.0, GRACE_SECONDS, id="nothing comes"),
        pytest.param(1, 1.0, GRACE_SECONDS, id="a byte every second"),
        pytest.param(LEAST_RATE // 2, 1.0, 2 * GRACE_SECONDS, id="half as fast as it must be"),
        pytest.param(LEAST_RATE * 2, 1.0, BODY_SECONDS, id="fast enough, without an end"),
    ],
)
async def test_how_long_a_body_may_take(size: int, seconds: float, want: float) -> None:
    assert abs(await _seconds_until_late(size, seconds) - want) <= 2


async def hold(intake: Intake, user: User, size: int) -> Any:
    reading = intake.begin(user)

    async def receive() -> Any:
        return {"type": "http.request", "body": bytes(size), "more_body": False}

    await intake.receive(reading, receive)
    return reading


async def test_bytes_are_counted_by_flow_until_the_answer() -> None:
    intake = Intake(FakeClock(), most=100, of_flow=50)
    first = await hold(intake, service_account("n", "a"), 30)
    with pytest.raises(BodiesFullError):
        await hold(intake, service_account("n", "b"), 30)
    await hold(intake, EVE, 50)
    await hold(intake, ALICE, 20)
    with pytest.raises(BodiesFullError):
        await hold(intake, ALICE, 25)  # more than there is, and than is fair
    await hold(intake, User("bob"), 20)  # more than there is, but fair
    await hold(intake, ADMIN, 1_000)
    intake.end(first)
    assert intake.size == 1_090


class Clients:
    """Those who send requests to a server that knows them."""

    def __init__(self) -> None:
        self.secured = Secured()
        self.end = asyncio.Event()

    async def grant(self, *users: User) -> None:
        for user in users:
            await self.secured.grant(user.name, EVERYTHING)

    def post(self, user: User, path: str, content: Any) -> asyncio.Task[httpx.Response]:
        headers = {
            "authorization": f"Bearer {self.secured.tokens.issue(user)}",
            "content-type": "application/json",
        }
        asking = self.secured.http.post(path, content=content, headers=headers)
        return asyncio.create_task(asking)

    async def unended(self) -> AsyncIterator[bytes]:
        yield b'{"metadata":'
        await self.end.wait()
        yield b'{"name":"n"}}'


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_bodies_that_never_end_take_no_slots() -> None:
    clients = Clients()
    await clients.grant(EVE, ALICE)
    silent = [clients.post(EVE, REVIEWS, clients.unended()) for _ in range(MOST_MUTATING + 5)]
    await settle()
    answer = await clients.post(ALICE, NODES, b'{"metadata":{"name":"a"}}')
    assert answer.status_code == 201

    for _ in range(int(GRACE_SECONDS) + 1):
        clients.secured.clock.advance(1.0)
        clients.secured.server._endpoints.tick()
    answers = await asyncio.gather(*silent)
    assert {(each.status_code, each.json()["reason"]) for each in answers} == {(408, "Timeout")}
    assert {each.headers["connection"] for each in answers} == {"close"}
    assert clients.secured.server._endpoints._intake.size == 0


async def test_a_body_that_comes_slowly_is_read() -> None:
    clients = Clients()
    await clients.grant(EVE)
    asking = clients.post(EVE, NODES, clients.unended())
    await settle()
    clients.secured.clock.advance(GRACE_SECONDS - 1)
    clients.secured.server._endpoints.tick()
    clients.end.set()
    assert (await asking).status_code == 201
