"""Several requests on one connection, sent before the first is answered."""

import asyncio

import pytest

from berth.kube.client.connections import Connections
from berth.kube.client.errors import UnavailableError
from berth.kube.client.transport import Headers, Response
from tests.kube.client.wire import HANG_UP, OK, Wire, pool

SECOND = b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
ANSWERED = Response(200, None, b"ok")
REFUSED = Response(409, None, b"no")
UNTOLD, BROKEN = "not answered", "broke off"
Answers = list[Response | UnavailableError]


async def posted(
    connections: Connections, count: int = 3, *, timeout: float = 10.0
) -> "asyncio.Task[Answers]":
    """Begin to post "0", "1" and so on, and return that once they are sent."""
    posts = [(f"/{n}", str(n).encode()) for n in range(count)]
    posting = asyncio.create_task(
        connections.post_all(posts, headers=Headers({}, b""), timeout=timeout, guard=lambda: None)
    )
    await asyncio.sleep(0)
    return posting


def wired() -> tuple[Connections, Wire]:
    connections = pool()
    wire = Wire(connections)
    connections.give_back(wire.connection)
    return connections, wire


def known(answers: Answers) -> list[Response | str]:
    """Say of an answer that is missing whether it had begun."""
    return [
        (UNTOLD if answer.sent is None else BROKEN)
        if isinstance(answer, UnavailableError)
        else answer
        for answer in answers
    ]


async def test_all_are_sent_at_once() -> None:
    connections, wire = wired()
    posting = await posted(connections, 2)

    assert wire.sent == b"".join(
        b"POST /base/%d HTTP/1.1\r\nHost: server:8001\r\nContent-Length: 1\r\n\r\n%d" % (n, n)
        for n in range(2)
    )
    wire.say(OK + OK)
    assert await posting == [ANSWERED, ANSWERED]
    assert (wire.is_open, connections.idle) == (True, 1)


@pytest.mark.parametrize(
    ("script", "want", "is_kept"),
    [
        pytest.param([OK, SECOND, OK], [ANSWERED, REFUSED, ANSWERED], True, id="one by one"),
        pytest.param(
            [byte.to_bytes() for byte in OK + SECOND + OK],
            [ANSWERED, REFUSED, ANSWERED],
            True,
            id="in bytes",
        ),
        pytest.param([OK, SECOND[:9], HANG_UP], [ANSWERED, BROKEN, UNTOLD], False, id="within"),
        pytest.param([HANG_UP], [UNTOLD] * 3, False, id="hung up at once"),
        pytest.param([OK, OK, LAST], [ANSWERED] * 3, False, id="the server closes after the last"),
        pytest.param([OK, b"nonsense\r\n"], [ANSWERED, BROKEN, UNTOLD], False, id="garbled"),
        pytest.param([OK * 4], [ANSWERED] * 3, False, id="one more than asked for"),
    ],
)
async def test_answers(script: list[bytes], want: list[Response | str], *, is_kept: bool) -> None:
    connections, wire = wired()
    posting = await posted(connections)
    wire.say(*script)

    assert known(await posting) == want
    assert (wire.is_open, connections.idle) == (is_kept, int(is_kept))


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([LAST], id="says so"),
        pytest.param([OK, HANG_UP], id="does so"),
    ],
)
async def test_what_a_server_that_hangs_up_left_is_sent_over_another_connection(
    first: list[bytes],
) -> None:
    connections = pool()
    wires = [Wire(connections) for _ in range(3)]
    for wire in reversed(wires):
        connections.give_back(wire.connection)
    posting = await posted(connections)

    for wire in wires:
        assert not posting.done()
        wire.say(*first)
        await asyncio.sleep(0)
    assert await posting == [ANSWERED] * 3
    assert [wire.sent.count(b"POST") for wire in wires] == [3, 2, 1]
    assert wires[2].sent == wires[0].sent[-len(wires[2].sent) :]


async def test_what_a_server_that_hangs_up_again_left_is_not_answered() -> None:
    connections = pool()
    wires = [Wire(connections) for _ in range(2)]
    for wire in reversed(wires):
        connections.give_back(wire.connection)
    posting = await posted(connections)
    wires[0].say(OK, HANG_UP)
    await asyncio.sleep(0)
    wires[1].say(HANG_UP)

    assert known(await posting) == [ANSWERED, UNTOLD, UNTOLD]


@pytest.mark.parametrize("in_time", [0, 1, 2])
async def test_all_that_wait_behind_a_slow_one_are_given_up_with_it(in_time: int) -> None:
    connections, wire = wired()
    posting = await posted(connections, timeout=0.0)
    wire.say(*[OK] * in_time)

    assert known(await posting) == [ANSWERED] * in_time + [UNTOLD] * (3 - in_time)
    assert wire.sent.count(b"POST") == 3, "nothing is sent again"
    assert (wire.is_open, connections.idle) == (False, 0)


async def test_a_connection_whose_posts_were_given_up_is_closed() -> None:
    connections, wire = wired()
    posting = await posted(connections)
    wire.say(OK)
    posting.cancel()
    await asyncio.gather(posting, return_exceptions=True)

    assert posting.cancelled()
    assert (wire.is_open, connections.idle) == (False, 0)
