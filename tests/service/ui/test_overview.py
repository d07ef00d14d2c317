"""The overview in a browser: whether the scheduler is healthy, as it changes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Locator, Page, expect

from tests.clients.cluster import kubectl
from tests.service.ui.chromium import OpenPage, take_pictures

pytestmark = [pytest.mark.slow, pytest.mark.wall]

PODS: Final = ("overview-a", "overview-b")
ANYWHERE: Final = '{"spec": {"tolerations": [{"operator": "Exists"}]}}'
"""Also on nodes that the sample taints."""


@pytest.fixture
def kubeconfig(sample_cluster: tuple[Path, str, str]) -> Iterator[Path]:
    """Yield the kubeconfig; the pods that a test makes are gone after it."""
    path = sample_cluster[0]
    yield path
    kubectl(path, "delete", "pods", "--ignore-not-found", "--wait=false", *PODS)


def figure(page: Page, title: str) -> Locator:
    """Return the part of the overview with that heading."""
    heading = page.get_by_role("heading", name=title, exact=True)
    return page.locator("section.card").filter(has=heading)


async def test_figures_change_and_a_chart_is_read_with_the_keyboard(
    open_page: OpenPage, kubeconfig: Path
) -> None:
    page = await open_page("#/overview", height=1250)
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    bound = figure(page, "Bound pods").locator(".figure")
    await expect(bound).to_have_text(re.compile(r"^[1-9]\d*$"))
    before = int(await bound.inner_text())
    for name in PODS:
        kubectl(kubeconfig, "run", name, "--image=example.com/x:1", f"--overrides={ANYWHERE}")
    await expect(bound).to_have_text(str(before + len(PODS)))
    oldest = figure(page, "Oldest pending pod").get_by_role("link")
    await expect(oldest).to_have_attribute("href", re.compile("^#/pods/shop/"))
    await take_pictures(page, "overview")

    await page.set_viewport_size({"width": 375, "height": 800})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 375
    chart = figure(page, "Pending pods").get_by_role("slider")
    await chart.focus()
    await expect(chart).to_have_attribute(
        "aria-valuetext", re.compile(r"Unschedulable [1-9]\d*, Gated 1$")
    )
    await chart.press("Home")
    earliest = await chart.get_attribute("aria-valuetext")
    assert earliest is not None
    await expect(figure(page, "Pending pods").get_by_text(earliest.split(": ")[0])).to_be_visible()


async def test_a_lost_connection_is_told(open_page: OpenPage) -> None:
    page = await open_page("#/configuration")
    await page.route("**/debug/overview/stream", lambda route: route.abort())
    await page.get_by_role("link", name="Overview", exact=True).click()
    await expect(page.get_by_text("Reconnecting. Last updated at")).to_be_visible()
    await expect(figure(page, "Pending pods").get_by_text("and 1 gated")).to_be_visible()
