"""Clients that take their answers slowly, or not at all: what is kept for them is bounded."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from berth.cluster.access.users import ADMIN, User, service_account
from berth.cluster.http.chunks import taking_turns
from berth.cluster.http.outgoing import (
    FLOW_BYTES,
    LOOK_SECONDS,
    PIECE,
    SLOW_SECONDS,
    Outgoing,
    Pace,
)
from berth.cluster.shares import Shares
from berth.runtime.clock import FakeClock
from berth.runtime.connection_limit import ConnectionLimit
from berth.runtime.http_server import SEAT
from tests.cluster.access.secured import Secured
from tests.cluster.http.test_intake import EVERYTHING, NODES

EVE, ALICE = User("eve"), User("alice")
LARGE = bytes(FLOW_BYTES + 1)


class Client:
    """Takes what it is sent when it is let."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.takes = asyncio.Event()

    async def send(self, message: Any) -> None:
        await self.takes.wait()
        self.taken.append(message)


def body(content: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("more", [False, True])
async def test_a_body_is_sent_in_pieces(*, more: bool) -> None:
    client, outgoing = Client(), Outgoing(FakeClock())
    client.takes.set()
    content = bytes(range(256)) * (PIECE // 100)
    await outgoing.send(body(content, more=more), EVE, client.send)
    assert b"".join(each["body"] for each in client.taken) == content
    assert max(len(each["body"]) for each in client.taken) == PIECE
    assert client.taken[-1]["more_body"] is more
    assert all(each["more_body"] for each in client.taken[:-1])
    assert outgoing.size(EVE) == 0
    assert outgoing._holders == {}


async def test_what_several_are_sent_is_counted_once_for_a_flow() -> None:
    outgoing = Outgoing(FakeClock())
    first, second, client = service_account("n", "a"), service_account("n", "b"), Client()
    asked = [(LARGE, first), (LARGE, second), (bytes(PIECE), first), (bytes(1), EVE)]
    sending = [asyncio.create_task(outgoing.send(body(c), u, client.send)) for c, u in asked]
    await settle()
    assert outgoing.size(first) == outgoing.size(second) == len(LARGE) + PIECE
    assert [outgoing.is_full(user) for user in (first, second, EVE)] == [True, True, False]
    sending[0].cancel()
    await settle()
    assert outgoing.is_full(first)
    client.takes.set()
    await asyncio.gather(*sending[1:])
    assert (outgoing._sizes, outgoing._holders) == ({}, {})


async def test_nothing_more_is_made_while_there_is_much_to_take() -> None:
    clock = FakeClock()
    outgoing, client = Outgoing(clock), Client()
    sending = asyncio.create_task(outgoing.send(body(LARGE), EVE, client.send))
    trusted = asyncio.create_task(outgoing.send(body(LARGE), ADMIN, client.send))
    await settle()
    assert await outgoing.has_room(ALICE)
    assert await outgoing.has_room(ADMIN)

    waiting = asyncio.create_task(outgoing.has_room(EVE))
    for _ in range(int(SLOW_SECONDS) + 1):
        await settle()
        clock.advance(1)
    await settle()
    assert not await waiting

    waiting = asyncio.create_task(outgoing.has_room(EVE))
    await settle()
    client.takes.set()
    await asyncio.gather(sending, trusted)
    clock.advance(LOOK_SECONDS)
    assert await waiting


async def test_who_takes_nothing_is_refused_more() -> None:
    secured = Secured()
    await secured.grant(EVE.name, EVERYTHING)
    await secured.grant(ALICE.name, EVERYTHING)
    outgoing = secured.server._endpoints._services.outgoing
    sending = asyncio.create_task(outgoing.send(body(LARGE), EVE, Client().send))
    await settle()

    def get(user: User) -> asyncio.Task[Any]:
        headers = {"authorization": f"Bearer {secured.tokens.issue(user)}"}
        return asyncio.create_task(secured.http.get(NODES, headers=headers))

    assert (await get(ALICE)).status_code == 200
    asking = get(EVE)
    for _ in range(int(SLOW_SECONDS) + 2):
        await settle()
        secured.clock.advance(1)
    assert (await asking).status_code == 429
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    assert (await get(EVE)).status_code == 200


async def test_a_list_for_a_client_that_is_too_slow_ends_with_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secured = Secured()
    await secured.grant(EVE.name, EVERYTHING)
    for number in range(4):
        annotations = {"a": "x" * 200_000}
        body_of = {"metadata": {"name": f"n{number}", "annotations": annotations}}
        assert (await secured.ask("POST", NODES, body_of))[0] == 201
    seat, sent = ConnectionLimit().enter(), list[Any]()
    assert seat is not None
    gone = asyncio.Event()
    seat.hang_up = gone.set
    headers = [(b"authorization", f"Bearer {secured.tokens.issue(EVE)}".encode())]
    scope = {
        "type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "path": NODES,
        "query_string": b"", "headers": headers, "state": {SEAT: seat},
    }  # fmt: skip

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("body"):
            monkeypatch.setattr(Outgoing, "is_full", lambda *_: True)

    answering = asyncio.create_task(secured.server.app(scope, receive, send))
    while not answering.done():
        await settle()
        secured.clock.advance(1)
    await answering
    assert gone.is_set()
    assert all(message.get("more_body", True) for message in sent)


async def test_what_is_made_for_a_tenant_is_charged() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    pace = Pace(EVE, Outgoing(clock), shares, clock)

    def slow() -> Iterator[bytes]:
        for piece in (b"a", b"b"):
            clock.advance(1.0)
            yield piece

    made = taking_turns(slow(), pace)
    assert await anext(made) == b"a"
    waiting = asyncio.ensure_future(anext(made))
    await settle()
    assert not waiting.done()
    clock.advance(1.0)
    await settle()
    assert await waiting == b"b"
    await asyncio.wait_for(shares.turn(ALICE), 60)
