"""Answers to bodies that have not ended, on real sockets: also a client that sends on gets them."""

import asyncio
import ssl
from datetime import UTC, datetime
from typing import Final

import pytest

from berth.cluster.access.users import User
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import self_signed, server_context
from berth.runtime.http_server import HttpServer
from tests.cluster.access.secured import Secured
from tests.runtime.test_many_connections import on_both_loops, run

pytestmark = pytest.mark.wall

PAIR: Final = self_signed([LOOPBACK], now=datetime.now(UTC), name="test")
EVE: Final = User("eve")
BODY: Final = 8_000_000
"""Bytes: more than the API server reads, and than the kernel keeps."""


@on_both_loops
@pytest.mark.parametrize("framing", [f"Content-Length: {BODY}", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_a_client_that_sends_all_before_it_reads(loop: str, framing: str, *, tls: bool) -> None:
    async def test() -> None:
        secured = Secured()
        await secured.grant(EVE.name, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
        server = HttpServer(secured.server.app, tls=server_context(PAIR) if tls else None)
        await server.start(LOOPBACK, 0)
        trusted = ssl.create_default_context(cadata=PAIR.certificate.decode()) if tls else None
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=trusted)
        try:
            writer.write(
                "POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {secured.tokens.issue(EVE)}\r\n{framing}\r\n\r\n".encode()
            )
            for _ in range(BODY // 8_000):
                if "chunked" in framing:
                    writer.write(b"%x\r\n%b\r\n" % (8_000, b"x" * 8_000))
                else:
                    writer.write(b"x" * 8_000)
                await writer.drain()
            if "chunked" in framing:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 413 ")
            assert b"connection: close" in head
            await reader.readuntil(b"RequestEntityTooLarge")
        finally:
            writer.close()
            await server.stop()

    run(loop, test)
