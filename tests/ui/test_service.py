"""``berth ui --service``: through an API server to a pod, with the credentials of a kubeconfig.

The API server is one that forwards ports as kube-apiserver and kubelets do; ours does not.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from aiohttp import web
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from berth.addresses import LOOPBACK
from berth.certificates import KeyPair, self_signed, server_context
from berth.client.connect import Endpoint
from berth.client.port_forward import PROTOCOL, service_tunnel
from berth.client.service_pods import ServicePort
from berth.http_server import HttpServer
from berth.ui.forwarder import TunnelTransport, forwarder

pytestmark = pytest.mark.wall

SERVICE = ServicePort("berth", "berth")
NAME = "berth.berth.svc"
TOKEN = "Bearer of-the-kubeconfig"
POD = {"metadata": {"name": "pod"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


async def bearer() -> str:
    return TOKEN


@dataclass
class ApiServer:
    """Has one Service with one pod, whose port is *port* of this machine."""

    port: int
    status: int = 101
    problem: str = ""
    """What the kubelet says in place of forwarding."""
    tokens: list[str | None] = field(default_factory=list)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/v1/namespaces/berth/services/berth", self._service),
            web.get("/api/v1/namespaces/berth/pods", self._pods),
            web.get("/api/v1/namespaces/berth/pods/pod/portforward", self._forward),
        ]

    async def _service(self, _request: web.Request) -> web.Response:
        spec = {"ports": [{"port": 10259, "targetPort": self.port}], "selector": {"a": "b"}}
        return web.json_response({"spec": spec})

    async def _pods(self, _request: web.Request) -> web.Response:
        return web.json_response({"items": [POD]})

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization"))
        if self.status != 101:
            return web.json_response({"kind": "Status"}, status=self.status)
        socket = web.WebSocketResponse(protocols=[PROTOCOL])
        await socket.prepare(request)
        port = int(request.query["ports"])
        for channel in (b"\0", b"\1"):
            await socket.send_bytes(channel + port.to_bytes(2, "little"))
        if self.problem:
            await socket.send_bytes(b"\1" + self.problem.encode())
        else:
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            back = asyncio.create_task(self._back(reader, socket))
            async for message in socket:
                assert message.data[:1] == b"\0"
                writer.write(message.data[1:])
            writer.close()
            back.cancel()
        return socket

    async def _back(self, reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1000):
                await socket.send_bytes(b"\0" + data)
            await socket.close()


@dataclass
class World:
    api: ApiServer
    endpoint: Endpoint
    authority: bytes
    asked: list[Scope]

    @asynccontextmanager
    async def browser(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """Yield what asks the scheduler through the tunnel; without *tls* nothing is verified."""
        if tls is None:
            tls = ssl.create_default_context()
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        scheduler = Endpoint(f"https://{NAME}", tls=tls, authorization=bearer)
        async with (
            service_tunnel(self.endpoint, SERVICE) as tunnel,
            forwarder(scheduler, transport=TunnelTransport(tunnel, tls)) as forwards,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(forwards), base_url="http://127.0.0.1"
            ) as browser,
        ):
            assert tunnel.path.parent.stat().st_mode & 0o077 == 0
            yield browser


@pytest.fixture
def pair() -> KeyPair:
    return self_signed([NAME], now=datetime.now(UTC), name="berth")


@pytest.fixture
async def world(pair: KeyPair) -> AsyncIterator[World]:
    asked: list[Scope] = []

    async def scheduler(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope)
        await JSONResponse({"items": ["x" * 100_000]})(scope, receive, send)

    server = HttpServer(scheduler, tls=server_context(pair))
    await server.start(LOOPBACK, 0)
    api = ApiServer(server.port)
    application = web.Application()
    application.add_routes(api.routes())
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
    yield World(api, Endpoint(url, authorization=bearer), pair.certificate, asked)
    await runner.cleanup()
    await server.stop()


async def test_the_scheduler_learns_who_asks(world: World) -> None:
    async with world.browser() as browser:
        answers = await asyncio.gather(*(browser.get("/debug/queue") for _ in range(3)))
    assert [answer.json() for answer in answers] == [{"items": ["x" * 100_000]}] * 3
    assert set(world.api.tokens) == {TOKEN}
    for scope in world.asked:
        assert (b"authorization", TOKEN.encode()) in scope["headers"]
        assert (b"host", NAME.encode()) in scope["headers"]


async def test_its_certificate_can_be_verified(world: World) -> None:
    trusted = ssl.create_default_context(cadata=world.authority.decode())
    async with world.browser(trusted) as browser:
        assert (await browser.get("/debug/queue")).status_code == 200
    async with world.browser(ssl.create_default_context()) as browser:
        answer = await browser.get("/debug/queue")
        assert answer.status_code == 502
        assert "CERTIFICATE_VERIFY_FAILED" in answer.json()["detail"]
    assert len(world.asked) == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param(
            {"status": 403},
            "forbidden: you may not get and create pods/portforward in namespace berth (403)",
            id="without the right",
        ),
        pytest.param({"status": 500}, "pod berth/pod: 500 ", id="a broken API server"),
        pytest.param(
            {"problem": "connection refused"}, "the port cannot be forwarded: connection refused",
            id="nobody listens",
        ),
    ],
)  # fmt: skip
async def test_why_it_does_not_work(world: World, changes: dict[str, Any], why: str) -> None:
    for name, value in changes.items():
        setattr(world.api, name, value)
    async with world.browser() as browser:
        answer = await browser.get("/debug/queue")
    assert answer.status_code == 502
    assert answer.json()["detail"].startswith(f"no scheduler answers at https://{NAME}: {why}")
