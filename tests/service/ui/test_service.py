"""``berth ui --service``: through an API server to a pod, with the credentials of a kubeconfig."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from berth.kube.client.connect import Endpoint
from berth.kube.client.port_forward import service_tunnel
from berth.kube.client.service_pods import ServicePort
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import KeyPair, self_signed, server_context
from berth.runtime.http_server import HttpServer
from berth.service.ui.forwarder import TunnelTransport, forwarder
from tests.kube.client.forwarding_api import ApiServer

pytestmark = pytest.mark.wall

SERVICE = ServicePort("berth", "berth")
NAME = "berth.berth.svc"
TOKEN = "Bearer of-the-kubeconfig"


async def bearer() -> str:
    return TOKEN


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
    async with api.running() as url:
        yield World(api, Endpoint(url, authorization=bearer), pair.certificate, asked)
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
