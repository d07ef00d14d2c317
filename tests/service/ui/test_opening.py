"""How the page of ``berth ui`` is opened: by its link, once, from wherever the link is."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from berth.cli import ui
from berth.cli.ui import parse
from tests.service.ui.chromium import chromium
from tests.service.ui.conftest import LINK

pytestmark = [pytest.mark.slow, pytest.mark.wall]

CONFIGURATION = "#/configuration"

FETCH = """([url, method]) => fetch(url, {method, credentials: "include"}).then(
    (answer) => answer.text(), (error) => error.name)"""
FRAME = """(url) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.onload = () => resolve(frame.contentDocument === null);
    frame.src = url;
    document.body.append(frame);
})"""
"""Whether what is framed is out of reach."""


@pytest.fixture
async def links(
    sample_cluster: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[asyncio.Queue[str]]:
    """Run ``berth ui`` for the cluster; yield the links that it prints."""
    printed: asyncio.Queue[str] = asyncio.Queue()

    def say(line: str) -> None:
        found = LINK.match(line)
        if found:
            printed.put_nowait(found[1])

    monkeypatch.setattr(ui, "say", say)
    flags = ["--kubeconfig", str(sample_cluster[0]), "--ui-port=0", "--no-browser"]
    running = asyncio.create_task(ui.serve(parse(flags)))
    yield printed
    running.cancel()
    await asyncio.wait([running])


async def expect_data(page: Page) -> None:
    """Wait until *page*, whose address is CONFIGURATION, shows what the scheduler has answered."""
    shown = page.get_by_label("Configuration", exact=True)
    await expect(shown).to_contain_text('"profiles"')


async def test_a_link_opens_the_page_once(links: asyncio.Queue[str]) -> None:
    link = await links.get()
    async with chromium() as browser:
        mine = await (await browser.new_context()).new_page()
        await mine.goto(f"{link}{CONFIGURATION}")
        await expect_data(mine)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/ui/#/configuration", mine.url)

        other = await (await browser.new_context()).new_page()
        await other.goto(link)
        await expect(other.get_by_role("heading")).to_have_text("This link does not work any more")
        await other.goto(f"{await links.get()}{CONFIGURATION}")
        await expect_data(other)


async def test_another_site_can_link_to_the_page_but_not_read_it(
    links: asyncio.Queue[str],
) -> None:
    link = await links.get()
    root = link.partition("?")[0]
    async with chromium() as browser:
        page = await (await browser.new_context()).new_page()
        for href in (f"{link}{CONFIGURATION}", f"{root}ui/{CONFIGURATION}"):
            await page.goto("data:text/html,<a>open</a>")
            await page.eval_on_selector("a", "(a, href) => { a.href = href; }", href)
            async with page.expect_request(lambda each: "/ui/" in each.url) as asked:
                await page.get_by_text("open").click()
            sent = await (await asked.value).all_headers()
            assert sent["sec-fetch-site"] == "cross-site"
            assert "cookie" not in sent, "the page itself sends it, later"
            await expect_data(page)

        await page.goto("data:text/html,<title>another</title>")
        for method, path in (("GET", "debug/queue"), ("GET", "ui/"), ("POST", "simulate")):
            assert await page.evaluate(FETCH, [root + path, method]) == "TypeError", path
        assert await page.evaluate(FRAME, f"{root}ui/")
        assert "berth" not in await page.frames[1].content()
