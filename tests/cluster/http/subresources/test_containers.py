"""Commands in containers, what they write, and what listens there, through the API server."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.http.subresources.port_forward import HttpConnection
from berth.cluster.http.subresources.spdy import DICTIONARY, SpdyConnection, SpdyError
from berth.cluster.kubelet.processes.shell import HttpAnswer, HttpRequest
from tests.cluster.controllers.live import Cluster, running

pytestmark = pytest.mark.wall

CORE = "/api/v1/namespaces/default"
EXEC_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running() as cluster:
        yield cluster


async def start(cluster: Cluster, image: str, *args: str, **more: Any) -> None:
    """Run the pod ``p``, and wait until it runs."""
    container = {"name": "c", "image": image, "args": list(args), **more}
    body = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "node-0", "containers": [container], "restartPolicy": "Never"},
    }
    await cluster.ask("POST", f"{CORE}/pods", body)
    while True:
        if (await cluster.ask("GET", f"{CORE}/pods/p"))["status"]["phase"] != "Pending":
            return
        await asyncio.sleep(0.02)


class Remote:
    """A WebSocket to a container: what came on each channel."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.channels = {1: "", 2: "", 3: ""}

    async def receive(self) -> int:
        """Take a message; return its channel, 0 at the end."""
        message = await self.socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            return 0
        self.channels[message.data[0]] += message.data[1:].decode()
        return int(message.data[0])

    async def to_the_end(self) -> tuple[str, str, int]:
        """Return what was written to both outputs, and the exit code."""
        while await self.receive():
            pass
        status = json.loads(self.channels[3])
        if status["status"] == "Success":
            return self.channels[1], self.channels[2], 0
        assert status["reason"] == "NonZeroExitCode"
        return self.channels[1], self.channels[2], int(status["details"]["causes"][0]["message"])


class Connecting:
    """``async with``: a WebSocket to a subresource of the pod."""

    def __init__(self, cluster: Cluster, how: str, query: Sequence[tuple[str, str]], **more: Any):
        self._url = f"{cluster.url}{CORE}/pods/p/{how}"
        self._query, self._more = query, {"protocols": EXEC_PROTOCOLS, **more}

    async def __aenter__(self) -> Remote:
        self._session = aiohttp.ClientSession()
        try:
            socket = await self._session.ws_connect(self._url, params=self._query, **self._more)
        except aiohttp.WSServerHandshakeError:
            await self._session.close()
            raise
        return Remote(socket)

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()


def command(*words: str, **flags: str) -> list[tuple[str, str]]:
    query = [("stdout", "true"), ("stderr", "true"), *flags.items()]
    return query + [("command", word) for word in words]


async def test_commands(cluster: Cluster) -> None:
    await start(cluster, "nginx")
    for words, want in (
        (("hostname",), ("p\n", "", 0)),
        (("sh", "-c", "echo out; echo err >&2; exit 4"), ("out\n", "err\n", 4)),
        (("no-such", "thing"), ("", "sh: no-such: not found\n", 127)),
        (("sh", "-c", "echo $HOSTNAME > /tmp/f; sleep 0.1"), ("", "", 0)),
        (("cat", "/tmp/f"), ("p\n", "", 0)),
        (("echo", "$(HOSTNAME)"), ("$(HOSTNAME)\n", "", 0)),
        (("ls", "/usr/share/nginx/html"), ("index.html\n", "", 0)),
    ):
        async with Connecting(cluster, "exec", command(*words)) as remote:
            assert await remote.to_the_end() == want


async def test_a_command_reads_what_comes(cluster: Cluster) -> None:
    await start(cluster, "busybox", "sleep", "60")
    async with Connecting(cluster, "exec", command("cat", stdin="true")) as remote:
        await remote.socket.send_bytes(b"\x00one\n")
        while remote.channels[1] != "one\n":
            await remote.receive()
        await remote.socket.send_bytes(b"\x00two\n")
        await remote.socket.send_bytes(b"\xff\x00")
        assert await remote.to_the_end() == ("one\ntwo\n", "", 0)


async def test_attach_and_logs_go_on_to_the_end(cluster: Cluster) -> None:
    await start(cluster, "busybox", "sh", "-c", "read=$(cat); echo got $read; exit 3", stdin=True)
    async with (
        Connecting(cluster, "attach", command(stdin="true")) as remote,
        aiohttp.ClientSession() as session,
        session.get(f"{cluster.url}{CORE}/pods/p/log?follow=true") as logs,
    ):
        await remote.socket.send_bytes(b"\x00me")
        await remote.socket.send_bytes(b"\xff\x00")
        assert await remote.to_the_end() == ("got me\n", "", 0)
        assert await logs.text() == "got me\n"


async def test_logs_of_the_start_before(cluster: Cluster) -> None:
    await start(cluster, "busybox", "sh", "-c", "echo $RANDOM; exit 1", restartPolicy="Always")
    async with aiohttp.ClientSession() as session:
        url = f"{cluster.url}{CORE}/pods/p/log"
        async with session.get(url, params={"previous": "true"}) as answer:
            before = await answer.text()
        async with session.get(url, params={"timestamps": "true"}) as answer:
            time, number = (await answer.text()).split()
    assert time.endswith("Z")
    assert number.isdigit()
    assert before.strip().isdigit()


async def test_a_client_that_does_not_upgrade(cluster: Cluster) -> None:
    await start(cluster, "nginx")
    async with aiohttp.ClientSession() as session:
        for how in ("exec?command=ls", "attach", "portforward?ports=80"):
            async with session.get(f"{cluster.url}{CORE}/pods/p/{how}") as answer:
                assert (answer.status, (await answer.json())["message"]) == (
                    400,
                    "Upgrade request required",
                )
    with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
        await Connecting(cluster, "exec", command("ls"), protocols=("v9",)).__aenter__()


async def test_what_listens(cluster: Cluster) -> None:
    await start(cluster, "agnhost", "netexec", "--http-port=8090")
    async with aiohttp.ClientSession() as session:
        for path, want in (
            ("p:8090/proxy/hostname", (200, "p")),
            ("p:8090/proxy/echo?msg=hi&code=418", (418, "hi")),
            ("p:8090/proxy/no", (404, "404 page not found\n")),
        ):
            async with session.get(f"{cluster.url}{CORE}/pods/{path}") as answer:
                assert (answer.status, await answer.text()) == want
        async with session.get(f"{cluster.url}{CORE}/pods/p:80/proxy/") as answer:
            assert answer.status == 503


async def test_ports_by_channels(cluster: Cluster) -> None:
    await start(cluster, "httpd")
    query = [("ports", "80,81")]
    async with Connecting(
        cluster, "portforward", query, protocols=("v4.channel.k8s.io",)
    ) as remote:
        ports = [await remote.socket.receive_bytes() for _ in range(4)]
        assert ports == [bytes([number, 80 + number // 2, 0]) for number in range(4)]
        refused = await remote.socket.receive_bytes()
        assert refused.startswith(b"\x03error forwarding port 81 to pod p")
        await remote.socket.send_bytes(
            b"\x00GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n"
        )
        answer = await remote.socket.receive_bytes()
        assert answer.startswith(b"\x00HTTP/1.1 200 OK\r\n")
        assert b"It works!" in answer


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    head = b"\x80\x03" + kind.to_bytes(2, "big") + bytes([flags])
    return head + len(payload).to_bytes(3, "big") + payload


def test_a_stream_of_spdy() -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    pairs = b"\0\0\0\1\0\0\0\4port\0\0\0\00280"
    block = deflate.compress(pairs) + deflate.flush(zlib.Z_SYNC_FLUSH)
    sent = (
        frame(1, 0, b"\0\0\0\1\0\0\0\0\0\0" + block) + b"\0\0\0\1\1\0\0\2hi" + frame(6, 0, b"ping")
    )
    spdy = SpdyConnection()
    events = [event for byte in sent for event in spdy.receive(bytes([byte]))]
    assert events == [(1, {"port": "80"}), (1, b"hi", True)]
    assert spdy.outgoing == frame(6, 0, b"ping")


@given(st.lists(st.binary(max_size=64)))
def test_any_bytes_are_spdy_or_none(chunks: list[bytes]) -> None:
    spdy = SpdyConnection()
    try:
        for chunk in chunks:
            list(spdy.receive(b"\x80\x03\0\1\0\0\0" + chunk))
    except SpdyError:
        pass


@pytest.mark.parametrize(
    ("sent", "want", "is_closed"),
    [
        pytest.param(
            b"GET /a%20b?x=1 HTTP/1.1\r\n\r\n", b"GET /a b {'x': '1'} b''", False, id="GET"
        ),
        pytest.param(
            b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", b"POST / {} b'hi'", True, id="POST"
        ),
        pytest.param(b"no http\r\n\r\n", b"HTTP/1.1 400 Bad Request", True, id="something else"),
    ],
)
def test_http_on_a_connection(sent: bytes, want: bytes, is_closed: bool) -> None:
    def answer(request: HttpRequest) -> HttpAnswer:
        return HttpAnswer(f"{request.method} {request.path} {request.query} {request.body!r}")

    connection = HttpConnection(answer)
    answers = b"".join(connection.feed(bytes([byte])) for byte in sent)
    assert want in answers
    assert connection.is_closed is is_closed
