"""``/debug/decisions``: what became of attempts."""

import pytest

from tests.builders import node, pod
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import START, all_pages, get


@pytest.fixture
async def harness() -> Harness:
    """Attempts 1 to 3: one pod is placed, one fits nowhere, one is placed."""
    made = Harness()
    made.put(node("n1"), pod("a", priority=3), pod("b", priority=2, cpu=9), pod("c"))
    await made.until_idle()
    return made


async def test_an_attempt_that_failed(harness: Harness) -> None:
    harness.clock.advance(3)

    _, failed, _ = (await get(harness, "/debug/decisions"))["items"]
    assert failed == {
        "number": 2,
        "result": "unschedulable",
        "at": START,
        "pod": "default/b",
        "uid": "pod-default-b",
        "profile": "default-scheduler",
        "attempt": 1,
        "secondsAgo": 3.0,
        "tookSeconds": 0.0,
        "node": "",
        "message": "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate,"
        " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        "reasons": {"Insufficient cpu": 1},
        "plugins": ["NodeResourcesFit"],
        "nominatedNode": "",
        "preemption": None,
        "numNodes": 1,
        "numFeasible": 0,
        "choice": None,
        "gang": "",
        "answeredBy": "",
        "best": [],
    }


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        pytest.param("", [3, 2, 1], id="all, the newest first"),
        pytest.param("pod=default/a", [1], id="of a pod"),
        pytest.param("name=lt/a", [1], id="by a part of namespace and name"),
        pytest.param("node=n1", [3, 1], id="on a node"),
        pytest.param("result=scheduled", [3, 1], id="that found a node"),
        pytest.param("result=unschedulable", [2], id="that found none"),
        pytest.param("result=error", [], id="that broke"),
        pytest.param("plugin=NodeResourcesFit", [2], id="that a plugin refused"),
        pytest.param("profile=other", [], id="of no such profile"),
    ],
)
async def test_filters(harness: Harness, query: str, numbers: list[int]) -> None:
    found = await all_pages(harness, f"/debug/decisions?{query}", limit=1)

    assert [each["number"] for each in found] == numbers


async def test_new_attempts_do_not_come_twice_into_older_pages(harness: Harness) -> None:
    first = await get(harness, "/debug/decisions?limit=1")
    harness.put(pod("d"))
    await harness.until_idle()

    rest = await get(harness, f"/debug/decisions?continue={first['continue']}")
    assert [each["number"] for each in (*first["items"], *rest["items"])] == [3, 2, 1]
