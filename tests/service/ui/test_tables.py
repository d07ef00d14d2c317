"""Queue, nodes, decisions, groups and devices: searched, turned over, and linked."""

import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.service.ui.chromium import OpenPage, take_pictures

pytestmark = [pytest.mark.slow, pytest.mark.wall]


async def test_from_the_search_of_the_queue_to_a_pod(open_page: OpenPage) -> None:
    page = await open_page("#/queue")
    await expect(page.get_by_text(re.compile(r"[1-9]\d* unschedulable, 1 gated"))).to_be_visible()
    await take_pictures(page, "queue")
    pods = page.get_by_role("row").filter(has=page.get_by_role("link", name=re.compile("^shop.")))
    await expect(pods).not_to_have_count(1)
    await page.keyboard.press("/")
    await page.keyboard.type("too-lar")
    await expect(pods).to_have_count(1)
    assert page.url.endswith("#/queue?name=too-lar")

    await page.reload()
    await expect(page.get_by_label("Search namespace/name")).to_have_value("too-lar")
    await page.get_by_role("link", name="TaintToleration").click()
    await expect(page.get_by_label("Plugin")).to_have_value("TaintToleration")
    await expect(page.get_by_label("Search namespace/name")).to_have_value("")
    await page.get_by_role("link", name="shop/too-large").click()
    await expect(page).to_have_url(re.compile("#/pods/shop/too-large$"))


async def one_by_one(page: Page) -> None:
    """Have the server put one item on each page."""

    async def small(route: Route) -> None:
        await route.continue_(url=route.request.url.replace("limit=100", "limit=1"))

    await page.route("**/debug/*limit=100*", small)


async def test_nodes_page_by_page(open_page: OpenPage) -> None:
    page = await open_page("#/configuration")
    await one_by_one(page)
    await page.get_by_role("link", name="Nodes", exact=True).click()
    node = page.get_by_role("table").get_by_role("link", name=re.compile("^node-"))
    await expect(node).to_have_count(1)
    first = await node.inner_text()
    await page.get_by_role("button", name="Next page").click()
    await expect(node).not_to_have_text(first)
    second = await node.inner_text()
    await page.reload()
    await expect(node).to_have_text(second)
    await page.get_by_role("button", name="First page").click()
    await expect(node).to_have_text(first)
    await expect(node).to_have_attribute("href", f"#/cluster?node={first}")


async def test_every_table_is_shown(open_page: OpenPage) -> None:
    page = await open_page("#/nodes")
    for screen, shown in {
        "nodes": "of 4 ",
        "decisions": "unschedulable",
        "groups": "No pod group matches.",
        "devices": "No device matches.",
    }.items():
        await page.get_by_role("link", name=screen.capitalize(), exact=True).click()
        await expect(page.get_by_role("main")).to_contain_text(shown)
        await expect(page.get_by_text("/debug/")).to_be_visible()
        await take_pictures(page, screen)
        await page.set_viewport_size({"width": 375, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 375
        await page.set_viewport_size({"width": 1280, "height": 800})
