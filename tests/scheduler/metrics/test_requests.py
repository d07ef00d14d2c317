"""What is counted of requests to the API server, by a client that sends them."""

from contextlib import aclosing
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from berth.kube.client.connect import connect
from berth.kube.client.errors import NotFoundError, UnavailableError
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from tests.kube.client.serving import serving
from tests.scheduler.metrics.reading import counted, summed

pytestmark = pytest.mark.wall


async def handle(request: web.BaseRequest) -> web.Response:
    if request.path == "/missing":
        return web.Response(status=404, body=b"{}")
    return web.Response(body=b"12345\n")


async def test_requests_and_watches() -> None:
    registry = CollectorRegistry()
    async with serving(handle) as client:
        client.observer = SchedulerMetrics(registry).requests
        await client.request("POST", "/things", body=b"123")
        with pytest.raises(NotFoundError):
            await client.request("GET", "/missing")
        async with aclosing(client.watch("/things", {})) as lines:
            assert [line async for line in lines] == [b"", b"12345"]
        host = urlsplit(client.url).netloc

    assert counted(registry, "rest_client_requests_total") == {
        ("200", host, "POST"): 1,
        ("404", host, "GET"): 1,
        ("200", host, "GET"): 1,
    }
    exchanges = {(host, "POST"): 1, (host, "GET"): 1}
    assert counted(registry, "rest_client_request_duration_seconds") == exchanges
    assert counted(registry, "rest_client_rate_limiter_duration_seconds") == {
        (host, "POST"): 1,
        (host, "GET"): 2,
    }
    assert summed(registry, "rest_client_request_size_bytes") == {
        (host, "POST"): 3,
        (host, "GET"): 0,
    }
    assert summed(registry, "rest_client_response_size_bytes") == {
        (host, "POST"): 6,
        (host, "GET"): 2,
    }


async def test_a_request_that_nobody_answers(unused_tcp_port: int) -> None:
    registry = CollectorRegistry()
    host = f"127.0.0.1:{unused_tcp_port}"
    client = await connect(kubeconfig=None, master=f"http://{host}")
    client.observer = SchedulerMetrics(registry).requests
    try:
        with pytest.raises(UnavailableError):
            await client.request("GET", "/things")
    finally:
        await client.close()

    assert counted(registry, "rest_client_requests_total") == {("<error>", host, "GET"): 1}
    assert counted(registry, "rest_client_request_duration_seconds") == {(host, "GET"): 1}
