"""Clients that give up on a request close the connection, and that is noticed."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from berth.kube.client.errors import FencedError
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import self_signed, server_context
from berth.runtime.http_server import HttpServer
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.metrics.recorders import ExtenderServerMetrics
from berth.service.server.disconnection import disconnection
from berth.service.server.extender.application import extender_application
from berth.service.server.extender.endpoints import ExtenderEndpoints
from berth.service.server.health import extender_probes
from tests.builders import node, pod
from tests.service.extender_server.world import World

BIND = {"PodName": "a", "PodNamespace": "default", "PodUID": "a", "Node": "n1"}


@asynccontextmanager
async def serving(world: World, *, encrypted: bool) -> AsyncIterator[HttpServer]:
    endpoints = ExtenderEndpoints(
        world.answers,
        is_ready=lambda: True,
        metrics=ExtenderServerMetrics(CollectorRegistry()),
        clock=world.harness.clock,
    )
    probes = extender_probes(is_synced=lambda: True, is_terminating=lambda: False)
    pair = self_signed(["localhost"], now=datetime.now(UTC), name="test")
    server = HttpServer(
        extender_application(endpoints.router(), probes=probes),
        tls=server_context(pair) if encrypted else None,
    )
    await server.start(LOOPBACK, 0)
    try:
        yield server
    finally:
        await server.stop()


@pytest.mark.wall
@pytest.mark.parametrize("encrypted", [False, True], ids=["HTTP", "HTTPS"])
async def test_a_bind_is_not_wanted_any_more_once_its_client_has_hung_up(
    monkeypatch: pytest.MonkeyPatch, *, encrypted: bool
) -> None:
    world = World()
    world.harness.put(node("n1", cpu=2), pod("a", uid="a", cpu=1))
    waiting, given_up = asyncio.Event(), asyncio.Event()

    async def bind(pod: PodInfo, node_name: str, *, is_wanted: Callable[[], bool]) -> None:
        waiting.set()
        await until(lambda: not is_wanted())
        given_up.set()
        raise FencedError("not sent")

    monkeypatch.setattr(world.api, "bind", bind)
    body = msgspec.json.encode(BIND)
    lines = (
        "POST /extender/bind HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "\r\n",
    )
    async with serving(world, encrypted=encrypted) as server, asyncio.timeout(60):
        _, writer = await asyncio.open_connection(
            LOOPBACK, server.port, ssl=anybody() if encrypted else None
        )
        writer.write("\r\n".join(lines).encode() + body)
        await waiting.wait()
        assert world.harness.cache.is_assumed("a")
        assert not given_up.is_set()

        writer.close()
        await given_up.wait()
        await until(lambda: not world.harness.cache.is_assumed("a"))


async def until(is_so: Callable[[], bool]) -> None:
    while True:
        if is_so():
            return
        await asyncio.sleep(0.01)


def anybody() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def test_what_is_not_a_disconnection_is_not_taken_for_one() -> None:
    messages: asyncio.Queue[dict[str, object]] = asyncio.Queue()
    async with disconnection(messages.get) as gone:
        messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        for _ in range(3):
            await asyncio.sleep(0)
        assert not gone.done()
        messages.put_nowait({"type": "http.disconnect"})
        await asyncio.wait([gone])
        assert gone.done()


async def test_nobody_listens_any_more_after_the_block() -> None:
    async with disconnection(asyncio.Queue[dict[str, object]]().get) as gone:
        pass
    assert gone.cancelled()
