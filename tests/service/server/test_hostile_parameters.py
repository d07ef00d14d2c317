"""Every parameter of every endpoint, given what nobody should give it."""

import base64
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.applications import scheduler_application
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE


def token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


VALUES = (
    "9" * 5_000, "-" + "9" * 5_000, "1e5000", "nan", "inf", "-0", "0x10", "1_0", "٣", " 1 ", "",
    "[" * 5_000, "a" * 5_000, "\0", "\r\nX: y", "\x1b[31m", "%ff", "'", "a=b,a!=b," * 500,
    "a in (" + "b," * 2_000, token("9" * 3_000), token("-1"), token("1.5"), token("null"),
    token('["a"]'), token('["a", "b", "c"]'), token("[" * 3_000), token("\ud7ff"), "=" * 5_000,
)  # fmt: skip
EXCLUDED = {"/debug/pprof/profile", "/debug/compare"}
"""What takes as long as it is asked to, and what asks an API server."""
PROBES = ("/healthz", "/livez", "/readyz")
LONGEST = 5_000
"""Bytes of a refusal, which never repeats what was sent."""


async def test_each_is_taken_or_refused() -> None:
    clock = FakeClock()
    api = client_of(Endpoint("http://127.0.0.1:1"), qps=0, burst=1, user_agent="test", clock=clock)
    config = default_configuration(args_models(IN_TREE))
    app = scheduler_application(SchedulerService(api, config, clock=clock, rng=random.Random(0)))
    asked: set[str] = set()
    wrong = []
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
        for path, name, place in parameters(app.openapi()):
            asked.add(name)
            for value in VALUES:
                answer = await client.send(request(client, path, name, place, value))
                is_probe = path.startswith(PROBES)  # which say what is not well yet
                is_broken = answer.status_code >= 500 and not is_probe
                if is_broken or (answer.is_error and len(answer.content) > LONGEST):
                    wrong.append((path, name, value[:50], answer.status_code))
    await api.close()
    assert not wrong
    assert {"limit", "continue", "nodes", "minAge", "labelSelector", "pod", "verbose"} <= asked


def parameters(described: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield path, name and place of all parameters of GET."""
    for path, operations in described["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            if path not in EXCLUDED:
                yield path, parameter["name"], parameter["in"]


def request(
    client: httpx.AsyncClient, path: str, name: str, place: str, value: str
) -> httpx.Request:
    if place == "query":
        return client.build_request("GET", path, params={name: value})
    if place == "header":
        return client.build_request("GET", path, headers=[(name.encode(), value.encode())])
    return client.build_request("GET", path.replace(f"{{{name}}}", quote(value, safe="")))
