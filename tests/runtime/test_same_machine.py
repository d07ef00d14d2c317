"""What a listener on loopback answers, and what it takes for the word of a web page."""

from collections.abc import Mapping

import httpx
import pytest
from starlette.responses import PlainTextResponse

from berth.runtime.same_machine import SameMachine

JSON = {"Content-Type": "application/json"}


async def ask(method: str = "GET", **headers: str) -> int:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx.ASGITransport(SameMachine(PlainTextResponse("yes")))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        return (await client.request(method, "/", headers=said)).status_code


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("127.0.0.1", 200, id="as kube-scheduler asks"),
        pytest.param("127.0.0.1:10262", 200, id="with a port"),
        pytest.param("localhost:10262", 200, id="by name"),
        pytest.param("LocalHost", 200, id="in capitals"),
        pytest.param("[::1]:10262", 200, id="IPv6"),
        pytest.param("127.0.0.2", 200, id="another address of loopback"),
        pytest.param("evil.example:10262", 421, id="a name that was made to lead here"),
        pytest.param("localhost.evil.example", 421, id="one that begins alike"),
        pytest.param("127.0.0.1.evil.example", 421, id="one that begins like the address"),
        pytest.param("10.0.0.1", 421, id="an address of others"),
        pytest.param("", 421, id="none"),
        pytest.param("[::1", 421, id="no host"),
    ],
)
async def test_hosts(host: str, status: int) -> None:
    assert await ask(host=host) == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(JSON, 200, id="JSON"),
        pytest.param({"Content-Type": "application/vnd.kubernetes.protobuf"}, 200, id="protobuf"),
        pytest.param({}, 415, id="nothing, as of navigator.sendBeacon"),
        pytest.param({"Content-Type": "text/plain"}, 415, id="text"),
        pytest.param({"Content-Type": "Text/Plain;charset=UTF-8"}, 415, id="text of a charset"),
        pytest.param({"Content-Type": "application/x-www-form-urlencoded"}, 415, id="a form"),
        pytest.param({"Content-Type": "multipart/form-data; boundary=x"}, 415, id="parts"),
        pytest.param({**JSON, "Origin": "https://evil.example"}, 403, id="from elsewhere"),
        pytest.param({**JSON, "Origin": "null"}, 403, id="from a sandbox or a file"),
        pytest.param({**JSON, "Origin": "http://localhost:3000"}, 200, id="from this machine"),
    ],
)
async def test_what_is_posted(headers: Mapping[str, str], status: int) -> None:
    assert await ask("POST", **headers) == status


async def test_two_hosts_are_none() -> None:
    transport = httpx.ASGITransport(SameMachine(PlainTextResponse("yes")))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        twice = [("Host", "127.0.0.1"), ("Host", "evil.example")]
        assert (await client.get("/", headers=twice)).status_code == 421
