"""From a pod that waits to the reason, and from one that runs to why it runs there."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.clients.cluster import kubectl, until_nothing
from tests.service.ui.chromium import OpenPage, assert_told_apart, take_pictures

pytestmark = [pytest.mark.slow, pytest.mark.wall]

TELEPHONE: Final = 375
MOST_TABS: Final = 60
"""Presses of the Tab key after which a link is out of reach."""
URGENT: Final = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: most-urgent}
value: 1000000000
---
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: shop}
spec:
  priorityClassName: most-urgent
  tolerations: [{operator: Exists}]
  containers:
    - {name: main, image: example.com/main, resources: {requests: {cpu: 3900m}}}
"""


async def press(page: Page, name: str) -> None:
    """Go to the link *name* with the Tab key, and follow it."""
    link = page.get_by_role("link", name=name, exact=True)
    await expect(link).to_be_visible()
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        if await link.evaluate("element => element === document.activeElement"):
            await page.keyboard.press("Enter")
            return
    raise AssertionError(f"{name} is not reached")


async def get(page: Page, path: str) -> Any:
    """Return what an endpoint says, asked with the session of *page*."""
    return await page.evaluate("path => fetch(`../${path}`).then(answer => answer.json())", path)


async def fits_a_telephone(page: Page) -> bool:
    await page.set_viewport_size({"width": TELEPHONE, "height": 800})
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def test_from_the_page_to_the_reason_with_the_keyboard(open_page: OpenPage) -> None:
    page = await open_page()
    await press(page, "Pending")
    group = page.get_by_role("listitem").filter(has_text="shop/too-large")
    await expect(group.get_by_role("heading", level=2)).to_contain_text("pod/too-large in shop")
    await expect(group).to_contain_text("Insufficient cpu")
    await expect(group).to_contain_text("Smallest change: node-")
    # A number of pods is told once.
    assert re.findall(r"\b\d+\b(?= pods?\b| unschedulable\b)", await group.inner_text()) == []
    await assert_told_apart(page)
    await take_pictures(page, "pending")
    await press(page, "shop/too-large")

    await expect(page.get_by_role("heading", level=1)).to_have_text("shop/too-large")
    told = await get(page, "explain/pods/shop/too-large")
    await expect(page.get_by_text(told["evaluation"]["nearestMiss"]["words"])).to_be_visible()
    rows = page.get_by_role("region", name="Filters").get_by_role("row")
    for step in told["evaluation"]["funnel"]:
        row = rows.filter(has_text=step["plugin"])
        cells = await row.get_by_role("cell").all_inner_texts()
        assert cells[:2] == [str(step["numRejected"]), str(step["numLeft"])]
    await assert_told_apart(page)
    await take_pictures(page, "pod")
    assert await fits_a_telephone(page)


async def test_a_group_is_opened_and_has_an_address(open_page: OpenPage) -> None:
    page = await open_page("#/pending")
    group = page.get_by_role("listitem").filter(has_text="Gated")
    await group.get_by_text("All pods").click()
    table = page.get_by_role("table", name="Pods")
    await expect(table.get_by_role("link", name="shop/gated")).to_be_visible()
    assert "group=" in page.url
    await page.reload()
    await expect(table.get_by_role("link", name="shop/gated")).to_be_visible()
    assert await fits_a_telephone(page)


async def test_the_scores_are_those_of_the_decision(open_page: OpenPage) -> None:
    page = await open_page("#/pending")
    decisions = await get(page, "debug/decisions?result=scheduled&limit=1000")
    past = next(
        item  # a pod of the sample: those of other tests come and go
        for item in decisions["items"]
        if len(item["best"]) > 1 and item["pod"].startswith("shop/")
    )
    page = await open_page(f"#/pods/{past['pod']}")
    await expect(page.get_by_text("As recorded when it was decided")).to_be_visible()
    rows = page.get_by_role("table", name="Scores by plugin and node").get_by_role("row")
    heads = [
        text.split("\n")[0]
        for text in await rows.first.get_by_role("columnheader").all_inner_texts()
    ]
    assert heads == ["Plugin", *(each["node"] for each in past["best"]), "Difference"]
    assert heads[1] == past["node"]
    for plugin in past["best"][0]["plugins"]:
        row = rows.filter(has=page.get_by_role("rowheader", name=plugin))
        scores = [each["plugins"][plugin] for each in past["best"]]
        shown = await row.get_by_role("cell").all_inner_texts()
        assert shown[: len(scores)] == [
            f"{s['raw']} → {s['normalized']} × {s['weight']} = {s['weighted']}" for s in scores
        ]
    totals = await rows.last.get_by_role("cell").all_inner_texts()
    assert totals[: len(past["best"])] == [str(each["total"]) for each in past["best"]]
    await assert_told_apart(page)
    await take_pictures(page, "why-here")

    await page.get_by_role("button", name="Now").click()
    await expect(page.get_by_text("as if the pod had no node yet")).to_be_visible()
    assert page.url.endswith("scores=now")
    assert await fits_a_telephone(page)


async def test_whom_a_pod_has_preempted(
    open_page: OpenPage, sample_cluster: tuple[Path, str, str], tmp_path: Path
) -> None:
    kubeconfig = sample_cluster[0]
    manifest = tmp_path / "urgent.yaml"
    manifest.write_text(URGENT)
    kubectl(kubeconfig, "apply", "-f", str(manifest))
    try:
        page = await open_page("#/pods/shop/urgent")
        section = page.get_by_role("region", name="Preemption")
        await expect(section).to_be_visible(timeout=20_000)
        await expect(page.get_by_text("State").locator("+ dd")).to_contain_text("bound to")
        told = await get(page, "explain/pods/shop/urgent")
        (found,) = (each["preemption"] for each in told["history"] if each["preemption"])
        await expect(section.get_by_text(found["words"])).to_be_visible()
        for victim in found["chosen"]["victims"]:
            row = section.get_by_role("row").filter(has_text=victim["pod"])
            await expect(row).to_contain_text(f"{victim['priority']:,}")
        await section.evaluate("element => element.scrollIntoView()")
        await assert_told_apart(page)
        await take_pictures(page, "preemption")
        kubectl(kubeconfig, "delete", "pod", "urgent", "-n", "shop")
        await expect(page.get_by_text("There is no pod shop/urgent")).to_be_visible(timeout=20_000)
        await expect(section).to_be_visible()
    finally:
        kubectl(kubeconfig, "delete", "--ignore-not-found", "-f", str(manifest))
        until_nothing(
            lambda: (
                kubectl(
                    kubeconfig,
                    "get",
                    "pods",
                    "-n",
                    "shop",
                    "--no-headers",
                    "--field-selector=metadata.name=urgent",
                ).stdout
            )
        )


WITHOUT_CLAIM = """
apiVersion: v1
kind: Pod
metadata: {name: without-claim, namespace: shop}
spec:
  containers: [{name: main, image: registry.example.com/main:1}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: lost}}]
"""


async def test_what_would_help_a_pod_that_no_node_can(
    open_page: OpenPage, sample_cluster: tuple[Path, str, str], tmp_path: Path
) -> None:
    kubeconfig = sample_cluster[0]
    manifest = tmp_path / "without-claim.yaml"
    manifest.write_text(WITHOUT_CLAIM)
    kubectl(kubeconfig, "apply", "-f", str(manifest))
    try:
        page = await open_page("#/pods/shop/without-claim")
        section = page.get_by_role("region", name="What would help")
        await expect(section).to_contain_text("lost")
        await expect(page.get_by_text("What is held against")).to_have_count(0)
        await assert_told_apart(page)
    finally:
        kubectl(kubeconfig, "delete", "--ignore-not-found", "-f", str(manifest))


async def test_a_pod_that_nobody_knows(open_page: OpenPage) -> None:
    page = await open_page("#/pods/shop/nobody")
    await expect(
        page.get_by_text("There is no pod shop/nobody, or it has finished.")
    ).to_be_visible()
    await page.get_by_role("link", name="All pending pods").click()
    await expect(page.get_by_role("heading", name="Pending")).to_be_visible()
