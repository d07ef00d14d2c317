"""What if: a form, its answer, and an address for both."""

import re
from typing import Final

import pytest
from playwright.async_api import Page, expect

from tests.service.ui.chromium import OpenPage, assert_told_apart, take_pictures

pytestmark = [pytest.mark.slow, pytest.mark.wall]

MOST_MILLISECONDS: Final = 60_000
"""A simulation starts a process, which may have to wait for others."""
SETTLED: Final = """async () => {
  const { items } = await (await fetch("../debug/queue")).json();
  return items.length <= 2 && items.some(({ pod }) => pod === "shop/too-large");
}"""
"""Whether all pods of the sample but those that have to wait have nodes."""


FORGET: Final = """() => {
  for (const said of document.querySelectorAll("output.headline")) said.textContent = "";
}"""


async def simulate(page: Page) -> str:
    """Ask what the form says, and return the answer in one sentence, not the one before."""
    await page.evaluate(FORGET)
    await page.get_by_role("button", name="Simulate", exact=True).click()
    said = page.locator("output.headline")
    await expect(said).to_have_text(re.compile(r"\.$"), timeout=MOST_MILLISECONDS)
    return await said.inner_text()


async def test_replicas_that_do_not_fit_a_weight_and_a_link(open_page: OpenPage) -> None:
    page = await open_page("#/what-if?ask=other")
    model = await page.locator("#known-nodes option").first.get_attribute("value")
    # Two empty nodes, and nothing else that counts: what the cluster does meanwhile is no matter.
    await page.get_by_label("Add copies of").fill(str(model))
    await page.get_by_label("How many", exact=True).fill("2")
    await page.get_by_label("Cordon").fill("*")
    await page.get_by_label("Place pods that wait now, too").uncheck()
    await page.get_by_role("radio", name="By size").check()
    await page.get_by_label("Replicas", exact=True).fill("50")
    await page.get_by_label("CPU", exact=True).fill("3")
    await page.get_by_label("Memory", exact=True).fill("1Gi")
    assert await simulate(page) == "2 of 50 pods fit, 48 do not."
    await expect(page.get_by_role("table", name="Without a node")).to_contain_text(
        "2 Insufficient cpu"
    )

    # With the keyboard: from weights of 1 to 0, then all nodes are alike and the first is taken.
    await page.get_by_label("Replicas", exact=True).fill("2")
    await page.get_by_text("Weights of score plugins").press("Enter")
    for plugin in ("NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        slider = page.get_by_label(f"Weight of {plugin}", exact=True)
        await slider.focus()
        await slider.press("ArrowLeft")
        await expect(page.get_by_label(f"Weight of {plugin}, as a number")).to_have_value("0")
    await page.get_by_label("CPU", exact=True).fill("100m")
    await page.get_by_label("CPU", exact=True).press("Enter")
    said = page.locator("output.headline")
    await expect(said).to_have_text(
        "As configured: All 2 pods fit. NodeResourcesFit 0, NodeResourcesBalancedAllocation 0:"
        " All 2 pods fit. 1 pod placed differently.",
        timeout=MOST_MILLISECONDS,
    )
    placements = page.get_by_role("table", name="Placements")
    moved = placements.get_by_role("row", name="default/what-if-1")
    await expect(moved.get_by_role("cell")).to_have_text(
        ["default/what-if-1", "new", f"{model}-2", f"{model}-1", "differs"]
    )
    await expect(page.locator(".sources")).to_contain_text(
        "--compare-weight default-scheduler/NodeResourcesFit=0"
    )

    other = await open_page(page.url.partition("/ui/")[2])
    assert await simulate(other) == await said.inner_text()
    again = other.get_by_role("table", name="Placements")
    assert await again.inner_text() == await placements.inner_text()
    await expect(other.get_by_label("Weight of NodeResourcesFit", exact=True)).to_have_value("0")
    await expect(other.get_by_label("CPU", exact=True)).to_have_value("100m")


async def test_refusals_are_told_at_their_field(open_page: OpenPage) -> None:
    page = await open_page("#/what-if?pod=shop/nobody")
    await page.get_by_role("button", name="Simulate", exact=True).click()
    pod = page.get_by_label("Pod to copy")
    await expect(pod).to_have_attribute("aria-invalid", "true", timeout=MOST_MILLISECONDS)
    await expect(page.locator("#pod-error")).to_have_text(
        "templates[0].like: 'shop/nobody': there is no such pod"
    )
    await pod.fill("")
    await expect(page.locator("#pod-error")).to_be_empty()
    await page.get_by_role("radio", name="Manifests").check()
    text = page.get_by_label("YAML or JSON")
    await text.fill("kind: Pod")
    await page.get_by_role("button", name="Simulate", exact=True).click()
    await expect(page.locator("#text-error")).to_contain_text("apiVersion: needed")
    await expect(text).to_be_focused()


async def test_a_manifest_is_part_of_the_address(open_page: OpenPage) -> None:
    page = await open_page("#/what-if?source=text")
    text = page.get_by_label("YAML or JSON")
    manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: ü}\n" + "# comment\n" * 1_000
    await text.fill(manifest)
    await expect(page).to_have_url(re.compile(r"[?&]text=[\w-]+"))
    other = await open_page(page.url.partition("/ui/")[2])
    await expect(other.get_by_label("YAML or JSON")).to_have_value(manifest)

    # What cannot be compressed is not part of it.
    await text.fill("".join(chr(0x4E00 + i * 7919 % 20_000) for i in range(6_000)))
    await expect(page.locator("#text-error")).to_contain_text("The address does not have it")
    damaged = await open_page("#/what-if?source=text&text=AAAA")
    await expect(damaged.locator("#text-error")).to_contain_text("is damaged")


async def test_it_is_drawn(open_page: OpenPage) -> None:
    wide = "#/what-if?source=size&replicas=20&cpu=1&memory=2Gi&preset=binpack"
    page = await open_page("#/what-if")
    await page.wait_for_function(SETTLED, timeout=MOST_MILLISECONDS)
    await page.goto(f"{page.url.partition('#')[0]}{wide}")
    await simulate(page)
    await assert_told_apart(page)
    await take_pictures(page, "what-if")
    # A button that is pointed at can still be read.
    button = page.get_by_role("button", name="Simulate", exact=True)
    color = "element => getComputedStyle(element).backgroundColor"
    away = await button.evaluate(color)
    await button.hover()
    assert await button.evaluate(color) == away
    narrow = await open_page("#/what-if?pod=shop/too-large", width=375)
    assert await simulate(narrow) == "The pod does not fit."
    assert await narrow.evaluate("document.documentElement.scrollWidth") == 375


async def test_questions_are_ready_to_be_asked(open_page: OpenPage) -> None:
    page = await open_page("#/what-if")
    await page.wait_for_function(SETTLED, timeout=MOST_MILLISECONDS)
    await expect(page.get_by_label("The zone that fails")).to_have_value("zone-1")
    await take_pictures(page, "what-if-questions")
    assert re.fullmatch(r"\d+ of \d+ pods fit, \d+ do not\.", await simulate(page))
    await expect(page.locator(".sources")).to_contain_text(
        "--remove-node-selector topology.kubernetes.io/zone=zone-1"
    )

    await page.get_by_role("radio", name="Which nodes can go?").check()
    assert re.fullmatch(r"\d+ of 20 nodes can go\.", await simulate(page))
    await expect(page.get_by_role("table", name="Nodes that can go")).to_contain_text("node-")

    await page.get_by_role("radio", name="How many nodes does this need?").check()
    await page.get_by_label("Replicas", exact=True).fill("2")
    await page.get_by_label("CPU", exact=True).fill("3900m")
    await page.get_by_label("Node selector").fill("kubernetes.io/hostname=nowhere")
    assert await simulate(page) == "Not even 1,000 more nodes would be enough."
    await page.get_by_label("Node selector").fill("")
    assert await simulate(page) == "2 more nodes are needed."
    await expect(page.get_by_role("table", name="Tried")).to_contain_text("yes")

    await page.get_by_role("radio", name="Will this release fit?").check()
    await expect(page.get_by_label("YAML or JSON")).to_have_value(re.compile("kind: Deployment"))
    assert await simulate(page) == "All 10 pods fit."

    # What another question has left in the form does not count in this one.
    await page.get_by_role("radio", name="What if a zone fails?").check()
    await expect(page.locator(".sources")).not_to_contain_text("template")
    await expect(page).to_have_url(re.compile(r"\?ask=zone&zone=zone-1$"))
