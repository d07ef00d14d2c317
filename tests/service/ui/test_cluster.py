"""The cluster as a map of nodes."""

import random
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.builders import HOSTNAME
from tests.service.ui.chromium import OpenPage, Tabs, chromium, take_pictures
from tests.service.ui.many_nodes import page_with

pytestmark = [pytest.mark.slow, pytest.mark.wall]

ALL: Final = "20 nodes in 3 groups"
MANY: Final = 2_000
START: Final = 30_000
"""Milliseconds until all nodes and pods of the sample are there."""
LAYOUTS: Final = 40

LAY_OUT: Final = """
async (cases) => {
  const { cellOf, layOut, placeAt, placeBeside } = await import("./js/cluster/layout.js");
  return cases.map(([counts, width, height]) => {
    const layout = layOut(counts, { width, height });
    const places = [...Array(counts.reduce((a, b) => a + b, 0)).keys()];
    return {
      layout,
      cells: places.map((place) => { const { x, y } = cellOf(layout, place); return [x, y]; }),
      areFound: places.every((place) => {
        const { x, y } = cellOf(layout, place);
        return placeAt(layout, x + 0.5, y + 0.5) === place;
      }),
      right: places.map((place) => placeBeside(layout, place, 1, 0)),
    };
  });
}
"""


@pytest.fixture
async def open_large() -> AsyncIterator[OpenPage]:
    """Yield what opens the page of a scheduler with MANY nodes."""
    async with chromium() as browser, page_with(MANY) as link:
        context = await browser.new_context(locale="en-GB", timezone_id="UTC")
        tabs = Tabs(context, f"{link.partition('?')[0]}ui/")
        first = await context.new_page()
        await first.goto(link)
        yield tabs.open
        await context.close()
        assert not tabs.errors


def told(page: Page, text: str | re.Pattern[str]) -> Any:
    """Return the line below the map, which says what has the focus, if it has *text*."""
    return page.locator(".map").get_by_role("status").filter(has_text=text)


async def test_from_the_map_to_why_a_pod_is_pending(open_page: OpenPage) -> None:
    page = await open_page("#/cluster")
    canvas = page.get_by_role("application")
    legend = page.get_by_role("complementary", name="Legend")
    await expect(canvas).to_have_accessible_name(ALL, timeout=START)

    await page.get_by_label("Colour by").select_option("memory")
    await expect(legend).to_contain_text("memory: requested of allocatable")
    await expect(page).to_have_url(re.compile("color=memory"))
    await page.get_by_label("Pending pod").fill("shop/too-large")
    await page.keyboard.press("Enter")
    await expect(legend).to_contain_text("0/20 nodes are available")
    await expect(legend).to_contain_text(re.compile("NodeResourcesFit ?20"))

    await canvas.focus()
    await page.keyboard.press("Home")
    first = await told(page, "node-").inner_text()
    await page.keyboard.press("ArrowRight")
    await expect(told(page, first)).to_have_count(0)
    await expect(told(page, "rejected by NodeResourcesFit")).to_be_visible()

    await page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Node")
    await expect(panel.get_by_role("heading", level=2).first).to_be_focused()
    await expect(panel).to_contain_text("shop/too-large is rejected by NodeResourcesFit")
    await expect(page).to_have_url(re.compile("node=node-"))
    await panel.get_by_role("link", name="shop/web").first.click()
    await expect(page).to_have_url(re.compile("#/pods/shop/web-"))


async def test_the_map_as_it_is_in_the_documentation(open_page: OpenPage) -> None:
    page = await open_page("#/cluster?node=node-17")
    await expect(page.get_by_role("application")).to_have_accessible_name(ALL, timeout=START)
    panel = page.get_by_role("complementary", name="Node")
    await expect(panel).to_contain_text("dedicated=gpu:NoSchedule")
    await expect(panel.get_by_role("link", name="shop/training").first).to_be_visible()
    await take_pictures(page, "cluster")

    await page.get_by_label("Colour by").select_option("taints")
    legend = page.get_by_role("complementary", name="Legend")
    await expect(legend).to_contain_text(re.compile("dedicated=gpu:NoSchedule ?3"))
    await page.get_by_label("Group by").select_option("-")
    await expect(page.get_by_role("application")).to_have_accessible_name("20 nodes in 1 group")
    await page.get_by_label("Search").fill("node-1")
    await expect(page.get_by_text("Search: 10 found")).to_be_visible()
    await panel.get_by_role("button", name="Close node-17").click()
    await expect(panel).to_be_hidden()


async def test_moving_on_a_large_map(open_large: OpenPage) -> None:
    page = await open_large("#/cluster?group=-")
    canvas = page.get_by_role("application")
    await expect(canvas).to_have_accessible_name("2,000 nodes in 1 group")
    await canvas.focus()
    await page.keyboard.press("End")
    await expect(told(page, "node-1999, cpu")).to_be_visible()
    await page.keyboard.press("+")
    await expect(page).to_have_url(re.compile(r"zoom=1\.5&x=.*&y="))

    box = await canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await page.mouse.click(x, y)
    panel = page.get_by_role("complementary", name="Node")
    await expect(panel.get_by_role("heading", level=2).first).to_have_text(re.compile(r"^node-"))
    chosen = await panel.get_by_role("heading", level=2).first.inner_text()
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x - 90, y - 45, steps=3)
    await page.mouse.up()
    await page.mouse.move(x - 90, y - 45)
    await expect(page.locator(".tip")).to_have_text(re.compile(f"^{chosen}, "))
    await page.get_by_role("button", name="Show all nodes").click()
    await expect(page).not_to_have_url(re.compile("zoom="))

    await page.get_by_label("Group by").select_option(HOSTNAME)
    await expect(page.get_by_text("2,000 groups are too many for headings.")).to_be_visible()


async def test_an_address_that_names_what_is_not_there_says_so(open_page: OpenPage) -> None:
    page = await open_page("#/cluster?group=nothing&pod=default/nobody&node=nowhere")
    await expect(page.get_by_text("no node has the label 'nothing'")).to_be_visible()
    await expect(
        page.get_by_text("'default/nobody': not found, or it has finished")
    ).to_be_visible()
    await expect(page.get_by_text("The scheduler has no such node.")).to_be_visible()


async def test_every_node_has_a_cell_of_its_own(open_page: OpenPage) -> None:
    page = await open_page("#/cluster")
    cases = list(layout_cases())
    found = await page.evaluate(LAY_OUT, cases)
    for (counts, width, _), each in zip(cases, found, strict=True):
        cells = [tuple(cell) for cell in each["cells"]]
        assert len({*cells}) == len(cells) == sum(counts), counts
        layout = each["layout"]
        assert all(0 <= x < layout["width"] and 0 <= y < layout["height"] for x, y in cells)
        assert layout["width"] * layout["pitch"] <= width
        assert each["areFound"], counts
        assert each["right"] == beside(cells), counts


def layout_cases() -> Iterator[tuple[list[int], int, int]]:
    """Yield numbers of nodes by group, and sizes of the viewport in pixels."""
    rng = random.Random(7)
    yield [1], 375, 300
    yield [], 375, 300
    yield [1] * 400, 800, 600
    for _ in range(LAYOUTS):
        most = rng.choice([1, 5, 60, 300])
        counts = [rng.randint(1, most) for _ in range(rng.randint(1, 12))]
        yield counts, rng.randint(300, 1600), rng.randint(200, 1000)


def beside(cells: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each cell the next one to the right in the same row; itself if it is the last."""
    following = [*range(len(cells))]
    by_row = sorted(following, key=lambda place: (cells[place][1], cells[place][0]))
    for place, right in pairwise(by_row):
        if cells[place][1] == cells[right][1]:
            following[place] = right
    return following
