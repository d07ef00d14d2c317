"""Which browsers get to see the page that a process of this machine serves."""

from collections.abc import Mapping
from itertools import count

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.runtime.same_machine import SameMachine
from berth.service.ui.local_page import Page
from berth.service.ui.sessions import MOST_SESSIONS, Sessions

URL = "http://127.0.0.1:10263"
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}
JSON = {"Content-Type": "application/json"}


async def endpoints(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    await JSONResponse({"method": request.method, "path": request.url.path})(scope, receive, send)


class World:
    """A page, and how often its link was renewed. Secrets are numbers: their order is known."""

    def __init__(self) -> None:
        numbers = count(1)
        self.renewed = 0
        self.sessions = Sessions(
            Page(endpoints),
            program="berth up",
            renewed=self._renew,
            new_secret=lambda: f"secret-{next(numbers)}",
        )
        self.application: ASGIApp = SameMachine(self.sessions)

    def browser(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.application)
        return httpx.AsyncClient(transport=transport, base_url=URL)

    def _renew(self) -> None:
        self.renewed += 1


@pytest.fixture
def world() -> World:
    return World()


async def test_a_link_opens_one_session(world: World) -> None:
    async with world.browser() as browser:
        opened = await browser.get("/", params={"token": world.sessions.token})
        assert (opened.status_code, opened.headers["location"]) == (303, "ui/")
        assert (await browser.get("/debug/queue")).json()["path"] == "/debug/queue"
    attributes = opened.headers["set-cookie"].lower().split("; ")
    assert attributes[0] == "berth-10263=secret-2"
    assert set(attributes[1:]) == {"httponly", "samesite=strict", "path=/", "max-age=604800"}
    assert world.renewed == 1


async def test_a_link_that_was_used_is_of_no_use(world: World) -> None:
    token = world.sessions.token
    async with world.browser() as browser, world.browser() as thief:
        await browser.get("/", params={"token": token})
        stolen = await thief.get("/", params={"token": token})
        assert stolen.status_code == 401
        assert "This link does not work any more" in stolen.text
        assert "berth up" in stolen.text
        assert (await thief.get("/debug/queue")).status_code == 401
        assert (await browser.get("/", params={"token": token})).status_code == 303
        assert (await thief.get("/", params={"token": world.sessions.token})).status_code == 303
    assert world.renewed == 2


@pytest.mark.parametrize(
    "cookie",
    [
        pytest.param("", id="none"),
        pytest.param("berth-10263=", id="an empty one"),
        pytest.param("berth-10263=secret-1", id="the token in place of the session"),
        pytest.param("berth-10264=secret-2", id="the session of another port"),
        pytest.param("berth-10263=secret-22", id="a longer one"),
        pytest.param("berth-10263=\xe9", id="letters that are not ASCII"),
        pytest.param("=;;==; =", id="nonsense"),
    ],
)
async def test_cookies_that_are_no_session(world: World, cookie: str) -> None:
    async with world.browser() as browser:
        await browser.get("/", params={"token": world.sessions.token})
    async with world.browser() as other:
        headers = {b"Cookie": cookie.encode("latin-1")}
        answer = await other.get("/debug/queue", headers=headers)
        assert (answer.status_code, answer.text) == (
            401,
            "401 no session: open the page by its link\n",
        )
        page = await other.get("/ui/", headers=headers)
        assert page.status_code == 401
        assert "This browser has no session" in page.text


@pytest.mark.parametrize("token", ["", "x", "secret-", "secret-11", "\N{SNOWMAN}"])
async def test_tokens_that_are_wrong(world: World, token: str) -> None:
    async with world.browser() as browser:
        answer = await browser.get("/", params={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert world.renewed == 0


async def test_asking_for_the_head_of_a_link_does_not_use_it(world: World) -> None:
    async with world.browser() as browser:
        await browser.head("/", params={"token": world.sessions.token})
        assert world.renewed == 0


async def test_the_oldest_session_ends_when_there_are_too_many(world: World) -> None:
    async with world.browser() as first:
        await first.get("/", params={"token": world.sessions.token})
        for _ in range(MOST_SESSIONS):
            assert (await first.get("/debug/queue")).status_code == 200
            async with world.browser() as other:
                await other.get("/", params={"token": world.sessions.token})
        assert (await first.get("/debug/queue")).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("GET", "/debug/queue", {}, 200, id="reading"),
        pytest.param("HEAD", "/metrics", {}, 200, id="reading the head"),
        pytest.param("POST", "/simulate", JSON, 200, id="a what-if question"),
        pytest.param("POST", "/simulate", {}, 415, id="a form of another page"),
        pytest.param("POST", "/debug/queue", JSON, 405, id="posting elsewhere"),
        pytest.param("DELETE", "/metrics", {}, 405, id="resetting metrics"),
        pytest.param("PUT", "/debug/flags/v", JSON, 405, id="setting the log level"),
        pytest.param("PATCH", "/simulate", JSON, 405, id="another method"),
        pytest.param("OPTIONS", "/simulate", {}, 405, id="a preflight is not answered"),
        pytest.param("GET", "/debug/queue", {"Host": "evil.example"}, 421, id="DNS rebinding"),
        pytest.param(
            "POST", "/simulate", {**JSON, "Origin": "https://evil.example"}, 403,
            id="another origin",
        ),
        pytest.param("POST", "/simulate", {**JSON, **CROSS_SITE}, 403, id="another site"),
        pytest.param(
            "POST", "/simulate", {**JSON, "Sec-Fetch-Site": "same-site"}, 403,
            id="another port of this machine",
        ),
        pytest.param(
            "GET", "/snapshot", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403,
            id="a script element on another port",
        ),
        pytest.param(
            "GET", "/snapshot", {**CROSS_SITE, "Sec-Fetch-Mode": "navigate"}, 200, id="a link"
        ),
        pytest.param(
            "POST", "/simulate", {**JSON, "Sec-Fetch-Site": "same-origin"}, 200, id="the page"
        ),
    ],
)  # fmt: skip
async def test_what_a_session_may_do(
    world: World, method: str, path: str, headers: Mapping[str, str], status: int
) -> None:
    async with world.browser() as browser:
        await browser.get("/", params={"token": world.sessions.token})
        answer = await browser.request(method, path, headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


async def test_a_link_on_another_site_leads_to_the_page(world: World) -> None:
    """Browsers keep the cookie back until the page itself asks for something."""
    async with world.browser() as browser:
        assert (await browser.get("/ui/")).status_code == 401
        assert (await browser.get("/ui/", headers=CROSS_SITE)).status_code != 401


async def test_who_has_a_session_gets_to_the_page_from_the_root(world: World) -> None:
    async with world.browser() as browser:
        assert (await browser.get("/")).status_code == 401
        await browser.get("/", params={"token": world.sessions.token})
        assert (await browser.get("/")).headers["location"] == "ui/"


def test_secrets_are_long_and_random() -> None:
    tokens = {Sessions(endpoints, program="", renewed=lambda: None).token for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 43
