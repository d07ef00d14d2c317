"""Tokens do not get into the log, not even by way of a server that repeats what it was sent."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import msgspec
import pytest
from aiohttp import web

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime import log as logs
from berth.runtime.clock import RealClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.e2e.replicas import until

pytestmark = [pytest.mark.wall, pytest.mark.usefixtures("root_logger")]

TOKEN = "Zm9ydHktdHdvIGlzIHRoZSB0b2tlbg"


@asynccontextmanager
async def indiscreet_server() -> AsyncIterator[tuple[str, list[str]]]:
    """Serve kinds, but refuse everything else in words that have the request's token in them."""
    sent: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        authorization = request.headers["Authorization"]
        sent.append(authorization)
        if "watch" not in request.query and "limit" not in request.query:
            return web.json_response({"resources": []}, status=503 if len(sent) < 3 else 200)
        message = f"{authorization} is not known to {request.headers!r}"
        body = {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": message}
        return web.json_response(body, status=401)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", sent
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("format", ["text", "json"])
async def test_a_refused_token_is_not_told(format: str) -> None:
    stream = StringIO()
    logs.setup_by_flags(10, format=format, stderr=stream)

    async def authorization() -> str:
        return f"Bearer {TOKEN}"

    async with indiscreet_server() as (url, sent):
        endpoint = Endpoint(url, authorization=authorization)
        client = client_of(endpoint, qps=0, burst=1, user_agent="test", clock=RealClock())
        config = default_configuration(args_models(IN_TREE))
        service = SchedulerService(client, config, clock=RealClock(), rng=random.Random(0))
        running = asyncio.create_task(service.run(), name="scheduler")
        await until(lambda: "is not known" in stream.getvalue(), "it is refused")
        running.cancel()
        await asyncio.wait([running])
        await client.close()

    assert set(sent) == {f"Bearer {TOKEN}"}
    assert TOKEN not in stream.getvalue()
    assert "[redacted]" in stream.getvalue()
    if format == "json":
        for line in stream.getvalue().splitlines():
            assert {"ts", "caller", "msg"} <= msgspec.json.decode(line).keys()
