"""The server on a real port, and the client that asks it."""

import asyncio

import pytest

from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.service.scheduler_client import AskError, RunningScheduler, ask_about_pod
from berth.service.server.application import Application
from berth.service.server.scheduler.explain import explain_endpoints
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain, explainer

pytestmark = pytest.mark.wall


def serving(harness: Harness) -> HttpServer:
    app = Application()
    app.include_router(explain_endpoints(explainer(harness)))
    return HttpServer(app)


async def test_a_pod_is_explained_over_http() -> None:
    harness = Harness()
    harness.put(node("n1"), pod("p", cpu=16))
    server = serving(harness)
    await server.start(LOOPBACK, 0)
    try:
        told = await asyncio.to_thread(
            ask_about_pod, RunningScheduler(server.url), "default/p", nodes="all"
        )
        with pytest.raises(AskError, match="pod default/q: not found, or it has finished"):
            await asyncio.to_thread(
                ask_about_pod, RunningScheduler(server.url), "default/q", nodes="all"
            )
    finally:
        await server.stop()

    assert told == explain(harness, "default/p")
    with pytest.raises(AskError, match=f"no scheduler answers at {server.url}"):
        ask_about_pod(RunningScheduler(server.url), "default/p", nodes="all")


async def test_a_taken_port_is_an_error_and_another_can_be_tried() -> None:
    first, second = serving(Harness()), serving(Harness())
    await first.start(LOOPBACK, 0)
    port = int(first.url.rpartition(":")[2])
    try:
        with pytest.raises(OSError, match="in use"):
            await second.start(LOOPBACK, port)
        await second.start(LOOPBACK, 0)
    finally:
        await first.stop()
        await second.stop()

    assert first.url.startswith("http://127.0.0.1:")
    assert first.url != second.url


async def test_a_server_that_was_never_started_can_be_stopped() -> None:
    await serving(Harness()).stop()
