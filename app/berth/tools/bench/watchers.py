"""Clients of an embedded cluster that cost little: many watchers, and one who lists all pods."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import closing
from http.client import OK, HTTPSConnection
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from berth.kube.client.connect import Endpoint
from berth.tools.bench.process import BenchError

MIB: Final = 2**20


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class ListOfAny(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


class Watcher:
    """Counts the events of a watch of all pods. Reads bytes: a client that is cheap."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._reading: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._count = 0
        self._more = asyncio.Event()

    async def start(self, version: str) -> None:
        """Watch from *version* on; return when the server has accepted the watch."""
        url = urlsplit(self._endpoint.url)
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port, ssl=self._endpoint.tls, limit=4 * MIB
        )
        self._writer = writer
        writer.write(
            f"GET /api/v1/pods?watch=1&resourceVersion={version} HTTP/1.1\r\n"
            f"Host: {url.netloc}\r\nAccept: application/json\r\n"
            f"Authorization: {await self._endpoint.authorization()}\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.splitlines()[0]:
            raise BenchError(f"watch: {head.decode()}")
        self._reading = asyncio.create_task(self._read(reader), name="watcher")

    async def seen(self, count: int) -> None:
        """Return when there were so many events."""
        while self._count < count:
            self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b'{"type":"MODIFIED"'):
                self._count += 1
                self._more.set()


def read_pages(endpoint: Endpoint, headers: Mapping[str, str], limit: int) -> int:
    """List all pods; return the bytes of all answers."""
    assert isinstance(endpoint.tls, ssl.SSLContext)
    size, continue_token = 0, ""
    with closing(HTTPSConnection(urlsplit(endpoint.url).netloc, context=endpoint.tls)) as http:
        while True:
            asked = {"limit": limit, "continue": continue_token} if limit else {}
            http.request("GET", f"/api/v1/pods?{urlencode(asked)}", headers=dict(headers))
            answer = http.getresponse()
            if answer.status != OK:
                raise BenchError(f"list: {answer.status} {answer.read()!r:.500}")
            if not limit:
                while part := answer.read(MIB):
                    size += len(part)
                return size
            page = answer.read()
            size += len(page)
            continue_token = msgspec.json.decode(page, type=ListOfAny).metadata.continue_
            if not continue_token:
                return size
