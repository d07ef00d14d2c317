"""The page on loopback, over real connections."""

import re
import socket

import httpx
import pytest
from starlette.responses import JSONResponse

from berth.runtime.addresses import LOOPBACK
from berth.service.ui.local_page import local_page

pytestmark = pytest.mark.wall

ENDPOINTS = JSONResponse({"items": []})


async def test_a_link_is_told_and_another_one_when_it_was_used() -> None:
    said: list[str] = []
    async with local_page(ENDPOINTS, port=0, program="berth up", say=said.append) as page:
        server = page.server
        (link,) = [line.removeprefix("page at ") for line in said]
        assert link.startswith(f"http://127.0.0.1:{server.port}/?token=")
        async with httpx.AsyncClient() as browser:
            opened = await browser.get(link)
            assert opened.status_code == 303
            assert "frame-ancestors 'none'" in opened.headers["content-security-policy"]
            answer = await browser.get(f"{server.url}/debug/queue")
            assert (answer.status_code, answer.json()) == (200, {"items": []})
            assert answer.headers["x-content-type-options"] == "nosniff"
        async with httpx.AsyncClient() as other:
            assert (await other.get(link)).status_code == 401
            assert (await other.get(f"{server.url}/debug/queue")).status_code == 401
            assert len(said) == 2
            assert (await other.get(said[1].removeprefix("page at "))).status_code == 303


async def test_a_taken_port_is_told_and_another_one_used() -> None:
    said: list[str] = []
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        async with local_page(ENDPOINTS, port=port, program="berth up", say=said.append) as page:
            assert page.server.port != port
    assert said[0] == f"--ui-port {port} is not available; the page has another one"
    assert re.match(rf"page at http://127\.0\.0\.1:{page.server.port}/\?token=\S{{43}}", said[1])
