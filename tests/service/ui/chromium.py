"""A Chromium that tests drive through the page of a running ``berth up``."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    async_playwright,
    expect,
)

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PICTURES: Final = Path(__file__).parents[3] / "docs/pictures/ui"
WRITE_PICTURES: Final = "BERTH_SCREENSHOTS"
"""The environment variable that has pictures for the documentation written."""
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SMALLEST_PICTURE: Final = 5_000
"""Bytes; an empty screen of that size has fewer."""
EXPECTED_MILLISECONDS: Final = 20_000
"""For what a page is to show, on a machine that others use, too."""
REFUSED: Final = "Failed to load resource"
"""What a browser says of answers that are not 2xx, which tests may be after."""

expect.set_options(timeout=EXPECTED_MILLISECONDS)


class OpenPage(Protocol):
    """Opens an address of the page, as in ``#/pending``, in a new tab."""

    async def __call__(
        self, address: str = "", *, width: int = 1280, height: int = 800
    ) -> Page: ...


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Yield a browser; skip the test where none is installed."""
    async with async_playwright() as playwright:
        own = playwright.chromium.executable_path
        path = next(filter(None, map(shutil.which, (*NAMES, own))), None)
        if path is None:
            pytest.skip("NO CHROMIUM: install one, or run `playwright install chromium`")
        is_root = os.geteuid() == 0
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox"] if is_root else [],  # it refuses to start for root with one
        )
        yield browser
        await browser.close()


class Tabs:
    """Tabs of one *context*, whose errors are kept."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self._context = context
        self._url = url
        self.errors: list[str] = []
        """Exceptions, what the page logs as an error, and violations of its security policy."""

    async def open(self, address: str = "", *, width: int = 1280, height: int = 800) -> Page:
        page = await self._context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._listen)
        await page.set_viewport_size({"width": width, "height": height})
        await page.goto(f"{self._url}{address}")
        return page

    def _listen(self, message: ConsoleMessage) -> None:
        is_answer = message.text.startswith(REFUSED) and "/ui/" not in message.location["url"]
        if message.type == "error" and not is_answer:
            self.errors.append(f"{message.location['url']}: {message.text}")


CONFUSING: Final = """
() => {
  const name = (element) => element.getAttribute("aria-label")
    ?? document.getElementById(element.getAttribute("aria-labelledby"))?.textContent;
  const seen = [...document.querySelectorAll("section, aside, nav, form, [role=region]")]
    .filter((element) => element.checkVisibility()).map(name).filter(Boolean);
  const empty = [...document.querySelectorAll("th")].filter((each) => !each.textContent.trim());
  const twice = seen.filter((each, i) => seen.indexOf(each) < i);
  return [...twice, ...empty.map((each) => each.outerHTML)];
}
"""
"""Finds landmarks of the same name, and headings of tables without text."""


async def assert_told_apart(page: Page) -> None:
    """A reader of screens is told what each part of *page* and each column is."""
    assert await page.evaluate(CONFUSING) == []


async def take_pictures(page: Page, name: str) -> None:
    """Draw *page* in light and dark; for the documentation if WRITE_PICTURES is set."""
    taken = set()
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        picture = await page.screenshot(animations="disabled")
        assert len(picture) > SMALLEST_PICTURE, f"{name} is empty"
        taken.add(picture)
        if os.environ.get(WRITE_PICTURES):
            PICTURES.mkdir(parents=True, exist_ok=True)
            (PICTURES / f"{name}-{scheme}.png").write_bytes(picture)
    await page.emulate_media(color_scheme=None)
    assert len(taken) == len(SCHEMES), f"{name} is the same in light and dark"
