"""What is seen at the sizes of a screen and of a telephone, and when there is nothing to see."""

from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.service.ui.chromium import assert_told_apart
from tests.service.ui.static_page import ANSWERS, AT, START, static_page

pytestmark = [pytest.mark.slow, pytest.mark.wall]

PHONE: Final = {"width": 390, "height": 844}
MESSAGE: Final = (
    "0/5000 nodes are available: 4000 Insufficient cpu, 900 node(s) didn't match Pod's node"
    " affinity/selector, 100 node(s) had untolerated taint(s). no new claims to deallocate,"
    " preemption: 0/5000 nodes are available: 5000 Preemption is not helpful for scheduling."
)
POD: Final = "production-payments/payments-reconciliation-worker-7f5f69d894-rvlwg"
NODE: Final = "ip-10-0-132-217.eu-central-1.compute.internal"
ROOM: Final = {"allocatable": 4000, "requested": 3000, "free": 1000}
FULL: Final[dict[str, Any]] = ANSWERS | {
    "debug/queue": {
        "counts": {},
        "items": [
            {
                "pod": POD, "queue": "unschedulable", "ageSeconds": 5000, "attempts": 12,
                "priority": 1000, "podsAhead": None, "nextTryInSeconds": 60, "gatingPlugin": "",
                "rejectingPlugins": ["NodeResourcesFit", "NodeAffinity", "TaintToleration"],
                "pendingPlugins": [], "nominatedNode": "", "message": MESSAGE,
            }
        ],
    },
    "debug/decisions": {
        "items": [
            {
                "number": 123456, "secondsAgo": 5000, "pod": POD, "result": "unschedulable",
                "node": "", "numFeasible": 0, "numNodes": 5000, "tookSeconds": 0.0123,
                "attempt": 12, "plugins": ["NodeResourcesFit", "NodeAffinity", "TaintToleration"],
                "profile": "default-scheduler", "message": MESSAGE,
            }
        ],
    },
    "debug/cache": ANSWERS["debug/cache"]
    | {
        "items": [
            {
                "node": NODE, "zone": "eu-central-1a", "unschedulable": False, "assumed": [],
                "nominated": [], "taints": ["dedicated=gpu:NoSchedule"],
                "resources": {"pods": ROOM, "cpu": ROOM, "memory": ROOM},
            }
        ]
    },
    "debug/queue/groups": {
        "at": AT,
        "numPods": 40,
        "numGroups": 1,
        "items": [
            {
                "id": "x", "cause": "Rejected", "plugins": ["NodeResourcesFit"],
                "reasons": ["Insufficient cpu"],
                "words": "40 pods fit on no node: Insufficient cpu",
                "message": MESSAGE, "numPods": 40, "counts": {"unschedulable": 40},
                "highestPriority": 0, "oldestAgeSeconds": 5000, "numWorkloads": 1,
                "workloads": [
                    {"namespace": "shop", "workload": "deployment/web", "numPods": 40}
                ],
                "pods": [{"pod": POD, "ageSeconds": 5000}],
            }
        ],
    },
    f"explain/pods/{POD}": {
        "evaluation": {"nearestMiss": {"words": "n: free 1 more cpu", "isComplete": True}}
    },
}  # fmt: skip
SCREENS: Final = (
    "overview", "cluster", "pending", "what-if", "queue", "nodes", "decisions", "groups",
    "devices", "shards", "configuration",
)  # fmt: skip
FITS: Final = "document.documentElement.scrollWidth <= innerWidth"
IS_CUT: Final = """
element => {
  const box = element.getBoundingClientRect();
  const scroll = element.closest(".scroll").getBoundingClientRect();
  return element.scrollHeight > element.clientHeight + 1
    || element.scrollWidth > element.clientWidth + 1
    || box.right > scroll.right + 1;
}
"""
MESSAGES: Final = {"queue": MESSAGE, "decisions": MESSAGE}


@pytest.mark.parametrize("width", [1440, 390])
async def test_messages_are_not_cut_off(width: int) -> None:
    async with static_page(FULL, width=width) as tab:
        for screen, message in MESSAGES.items():
            page = await tab.open(f"#/{screen}")
            cell = page.get_by_role("cell", name=message)
            await expect(cell).to_be_visible()
            assert not await cell.evaluate(IS_CUT), screen


async def test_no_screen_is_wider_than_a_telephone() -> None:
    async with static_page(FULL, **PHONE) as tab:
        for screen in SCREENS:
            page = await tab.open(f"#/{screen}")
            await ready(page)
            assert await page.evaluate(FITS), screen
            await assert_told_apart(page)


async def ready(page: Page) -> None:
    await expect(page.locator(".screen")).not_to_contain_text("Loading")


async def test_a_telephone_tells_what_a_cell_is() -> None:
    async with static_page(FULL, **PHONE) as tab:
        page = await tab.open("#/nodes")
        cell = page.get_by_role("cell").filter(has_text="3 of 4").first
        title = await cell.evaluate("element => getComputedStyle(element, '::before').content")
        assert title == '"CPU requested"'


async def test_a_list_is_sorted_by_the_server() -> None:
    async with static_page(FULL) as tab:
        page = await tab.open("#/nodes")
        cpu = page.get_by_role("columnheader", name="CPU requested")
        await cpu.get_by_role("button").click()
        await expect(cpu).to_have_attribute("aria-sort", "descending")
        await expect(page.locator(".sources")).to_contain_text("sort=cpu&descending=true")
        first, second = (asked for path, asked in tab.asked if path == "debug/cache")
        assert (first["sort"], first["descending"]) == ("use", "true")
        assert (second["sort"], second["descending"]) == ("cpu", "true")


async def test_the_banner_names_reasons() -> None:
    async with static_page(FULL) as tab:
        page = await tab.open("#/overview")
        banner = page.get_by_role("status", name="State")
        await expect(banner).to_contain_text("40 pods fit on no node: Insufficient cpu")
        await banner.get_by_role("link", name="By workload").click()
        await expect(page.get_by_role("heading", name="deployment/web in shop")).to_be_visible()


async def test_axes_have_numbers() -> None:
    async with static_page(FULL) as tab:
        page = await tab.open("#/overview")
        scale = page.locator(".chart-scale").first
        await expect(scale.locator("span")).to_have_text(["10", "5", "0"])
        times = page.locator(".chart-times").first
        await expect(times.locator("span")).to_have_text(["−60s", "−30s", "now"])


EMPTY: Final = {
    "overview": "Nothing is wrong.",
    "cluster": "There are no nodes.",
    "pending": "No pod waits.",
    "queue": "No pod waits.",
    "nodes": "No node matches.",
    "decisions": "No attempt matches.",
    "groups": "No pod group matches.",
    "devices": "No device matches.",
}


async def test_there_is_nothing_to_see() -> None:
    none: dict[str, list[Any]] = {"names": [], "group": [], "groups": [], "taintSet": []}
    use: dict[str, list[Any]] = {"allocatable": [], "requested": []}
    answers = ANSWERS | {
        "debug/cluster": ANSWERS["debug/cluster"] | none,
        "debug/cluster/use": ANSWERS["debug/cluster/use"] | use,
    }
    async with static_page(answers) as tab:
        for screen, text in EMPTY.items():
            page = await tab.open(f"#/{screen}")
            await expect(page.get_by_text(text)).to_be_visible()


async def test_it_loads_and_the_connection_is_lost() -> None:
    async with static_page({}) as tab:
        for screen in SCREENS:
            page = await tab.open(f"#/{screen}")
            await expect(page.get_by_text("Loading …")).to_be_visible()
    async with static_page(dict.fromkeys(ANSWERS)) as tab:
        for screen in SCREENS:
            page = await tab.open(f"#/{screen}")
            await expect(page.get_by_role("alert").first).to_contain_text("No answer")
            await expect(page.get_by_role("button", name="Try again")).to_be_visible()


async def test_what_was_seen_stays_when_the_connection_is_lost() -> None:
    async with static_page(FULL) as tab:
        page = await tab.open("#/nowhere")
        await page.clock.install(time=START)
        for screen in ("cluster", "pending", "queue", "overview", "configuration"):
            tab.answers = dict(FULL)
            await page.evaluate("name => { location.hash = `#/${name}`; }", screen)
            await ready(page)
            tab.answers = dict.fromkeys(FULL)
            await page.clock.run_for(61_000)
            await expect(page.get_by_text("Not updated since")).to_be_visible()
            await expect(page.locator(".screen")).not_to_contain_text("No answer")
