"""The server on a real port, and the client that asks it."""

import asyncio

import pytest

from app.server.application import make_application
from app.server.asking import AskError, ask_about_pod
from app.server.listening import LoopbackServer
from tests.builders import node, pod
from tests.explain.asking import explain, explainer
from tests.harness import Harness

pytestmark = pytest.mark.wall


def serving(harness: Harness) -> LoopbackServer:
    return LoopbackServer(make_application(explainer(harness), is_ready=lambda: True))


async def test_a_pod_is_explained_over_http() -> None:
    harness = Harness()
    harness.put(node("n1"), pod("p", cpu=16))
    server = serving(harness)
    await server.start(0)
    try:
        told = await asyncio.to_thread(ask_about_pod, server.url, "default/p", nodes="all")
        with pytest.raises(AskError, match="pod default/q: there is none, or it has finished"):
            await asyncio.to_thread(ask_about_pod, server.url, "default/q", nodes="all")
    finally:
        await server.stop()

    assert told == explain(harness, "default/p")
    with pytest.raises(AskError, match=f"no scheduler answers at {server.url}"):
        ask_about_pod(server.url, "default/p", nodes="all")


async def test_a_taken_port_is_an_error_and_another_can_be_tried() -> None:
    first, second = serving(Harness()), serving(Harness())
    await first.start(0)
    port = int(first.url.rpartition(":")[2])
    try:
        with pytest.raises(OSError, match="in use"):
            await second.start(port)
        await second.start(0)
    finally:
        await first.stop()
        await second.stop()

    assert first.url.startswith("http://127.0.0.1:")
    assert first.url != second.url


async def test_a_server_that_was_never_started_can_be_stopped() -> None:
    await serving(Harness()).stop()
