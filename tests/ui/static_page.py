"""The page with answers that tests make up: no scheduler runs."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from playwright.async_api import Page, Route

from berth.ui.files import INDEX, MEDIA_TYPES
from berth.ui.headers import SECURITY_HEADERS
from tests.ui.chromium import chromium

ORIGIN: Final = "http://berth.test/"
STATIC: Final = resources.files("berth.ui") / "static"


class StaticPage:
    """Answers what a page of ORIGIN asks: its files, and *answers* by path.

    What has no answer is never answered; None is a lost connection.
    """

    def __init__(self, page: Page, answers: Mapping[str, Any]) -> None:
        self.page = page
        self.answers = dict(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []
        """The endpoints that were asked, with their parameters."""
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def open(self, address: str = "") -> Page:
        await self.page.goto(f"{ORIGIN}ui/{address}")
        return self.page

    async def handle(self, route: Route) -> None:
        parts = urlsplit(route.request.url)
        if parts.path.startswith("/ui/"):
            name = parts.path.removeprefix("/ui/") or INDEX
            headers = {**SECURITY_HEADERS, "Content-Type": MEDIA_TYPES[name.rpartition(".")[2]]}
            await route.fulfill(body=STATIC.joinpath(name).read_bytes(), headers=headers)
            return
        path = parts.path.removeprefix("/")
        self.asked.append((path, dict(parse_qsl(parts.query))))
        if path not in self.answers:
            return
        answer = self.answers[path]
        if answer is None:
            await route.abort()
        elif isinstance(answer, int):
            await route.fulfill(status=answer, body="refused")
        else:
            await route.fulfill(body=json.dumps(answer), content_type="application/json")


@asynccontextmanager
async def static_page(
    answers: Mapping[str, Any], *, width: int = 1440, height: int = 900
) -> AsyncIterator[StaticPage]:
    """Yield a tab of a new browser; an exception in it fails the test at its end."""
    async with chromium() as browser:
        context = await browser.new_context(
            locale="en-GB", timezone_id="UTC", viewport={"width": width, "height": height}
        )
        tab = StaticPage(await context.new_page(), answers)
        await context.route(f"{ORIGIN}**", tab.handle)
        yield tab
        await context.close()
        assert not tab.errors
