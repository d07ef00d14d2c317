"""Servers that break off under TLS: one error that says why, and no traceback in the log."""

import asyncio
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
import uvloop

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import Endpoint, client_of
from berth.kube.client.errors import ApiError, UnavailableError
from berth.runtime.certificates import self_signed, server_context
from berth.runtime.clock import RealClock
from berth.runtime.loop_errors import log_loop_error

pytestmark = pytest.mark.wall

PAIR = self_signed(["localhost"], now=datetime.now(UTC), name="localhost")
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MOMENT = 0.05
"""Seconds in which the client reads what has been sent."""
LARGE = b"x" * 1_000_000
"""More than fits into the buffers of a connection, so that the client is still writing."""


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    connection.close()


def end(connection: socket.socket) -> None:
    os.close(connection.detach())  # without telling, as TLS would


def garbage(connection: socket.socket) -> None:
    os.write(connection.fileno(), b"\x00 neither TLS nor anything else")
    time.sleep(MOMENT)
    end(connection)


def sends(data: bytes, then: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    def send(connection: socket.socket) -> None:
        connection.sendall(data)
        time.sleep(MOMENT)
        then(connection)

    return send


def encrypted(then: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    def serve(plain: socket.socket) -> None:
        connection = server_context(PAIR).wrap_socket(plain, server_side=True)
        connection.recv(4096)
        then(connection)

    return serve


def after_hello(then: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    def serve(plain: socket.socket) -> None:
        plain.recv(10)
        then(plain)

    return serve


FAULTS: list[Any] = [
    pytest.param(after_hello(reset), "reset", id="reset in the handshake"),
    pytest.param(after_hello(end), "reset|closed", id="the end in the handshake"),
    pytest.param(
        after_hello(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n", end)), "SSL", id="no TLS at all"
    ),
    pytest.param(encrypted(reset), "reset", id="reset before the answer"),
    pytest.param(encrypted(end), "reset|closed", id="the end before the answer"),
    pytest.param(encrypted(garbage), "SSL", id="garbage in place of TLS"),
    pytest.param(encrypted(sends(b"what?\r\n\r\n", end)), "garbled", id="garbage in TLS"),
    pytest.param(encrypted(sends(HEAD + b"zz\r\n", end)), "garbled", id="no size of a chunk"),
    pytest.param(encrypted(sends(HEAD + b"5\r\nab", reset)), "broke off", id="reset within"),
    pytest.param(encrypted(sends(HEAD + b"5\r\nab", end)), "broke off", id="the end within"),
    pytest.param(encrypted(sends(HEAD + b"5\r\nab", garbage)), "SSL", id="garbage within"),
]


async def write(client: ApiClient) -> object:
    return await client.request("POST", "/pods", body=LARGE, timeout=5)


async def watch(client: ApiClient) -> object:
    return [line async for line in client.watch("/pods", {"timeoutSeconds": "5"})]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("asks", [write, watch])
@pytest.mark.parametrize(("fault", "why"), FAULTS)
def test_a_fault_of_tls_is_one_error(
    fault: Callable[[socket.socket], None],
    why: str,
    asks: Callable[[ApiClient], Awaitable[object]],
    run: Callable[[Coroutine[Any, Any, ApiError]], ApiError],
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        fault(connection)

    serving = threading.Thread(target=serve)
    serving.start()
    tls = ssl.create_default_context(cadata=PAIR.certificate.decode())
    endpoint = Endpoint(f"https://localhost:{listener.getsockname()[1]}", tls=tls)

    async def ask() -> ApiError:
        asyncio.get_running_loop().set_exception_handler(log_loop_error)
        client = client_of(endpoint, qps=0, burst=1, user_agent="test", clock=RealClock())
        with pytest.raises(UnavailableError, match=why) as raised:
            await asks(client)
        await client.close()
        await asyncio.sleep(MOMENT)  # for what the loop may still have to say
        return raised.value

    try:
        error = run(ask())
    finally:
        serving.join()
        listener.close()
    assert "\n" not in str(error)
    assert not [record for record in caplog.records if record.exc_info]
