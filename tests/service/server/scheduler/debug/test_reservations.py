"""``/debug/nominated``, ``/debug/waiting`` and ``/debug/inflight``."""

import asyncio

import pytest

from tests.builders import node, pod
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import START, all_pages, get, permitted


async def test_nominations() -> None:
    harness = Harness()
    harness.put(
        node("n1", cpu=1),
        node("n2", cpu=1),
        pod("old", cpu=1, node="n1", deleted=START),
        pod("b", cpu=1, nominated="n1", priority=7),
        pod("a", cpu=1, nominated="n2"),
    )

    first = {
        "pod": "default/a",
        "uid": "pod-default-a",
        "node": "n2",
        "priority": 0,
        "leaving": [],
    }
    second = {
        "pod": "default/b",
        "uid": "pod-default-b",
        "node": "n1",
        "priority": 7,
        "leaving": ["default/old"],
    }
    assert await all_pages(harness, "/debug/nominated", limit=1) == [first, second]
    assert await all_pages(harness, "/debug/nominated?node=n1", limit=1) == [second]


async def test_pods_that_wait_for_permit_are_told_until_when() -> None:
    harness, bindings = permitted("q", "p")
    harness.clock.advance(5)
    wait = {
        "uid": "pod-default-p",
        "pod": "default/p",
        "node": "n1",
        "profile": "default-scheduler",
        "since": START,
        "waitsFor": [{"plugin": "Hesitant", "deadline": None, "secondsLeft": None}],
    }
    assert (await get(harness, "/debug/waiting"))["items"][0] == wait

    (binding,) = (binding for binding in bindings if binding.pod.name == "p")
    task = asyncio.create_task(harness.scheduler.binding_cycle.run(binding), name="bind p")
    await asyncio.sleep(0)
    harness.clock.advance(20)
    (told, _) = await all_pages(harness, "/debug/waiting?plugin=Hesitant&node=n1", limit=1)
    assert told["waitsFor"] == [
        {"plugin": "Hesitant", "deadline": "2001-09-09T01:47:45Z", "secondsLeft": 40.0}
    ]
    assert binding.waiting is not None
    binding.waiting.allow("Hesitant")
    await task
    assert [item["pod"] for item in (await get(harness, "/debug/waiting"))["items"]] == [
        "default/q"
    ]


@pytest.mark.parametrize("query", ["plugin=Other", "node=n2"])
async def test_others_do_not_wait(query: str) -> None:
    harness, _ = permitted("p")

    assert (await get(harness, f"/debug/waiting?{query}"))["items"] == []


async def test_pods_in_flight_and_the_events_kept_for_them() -> None:
    harness, _ = permitted("p")
    harness.put(pod("tried", cpu=9))
    assert harness.queue.pop() is not None
    harness.put(node("n2"))

    told = await get(harness, "/debug/inflight")
    assert told == {
        "items": [
            {
                "pod": "default/p",
                "uid": "pod-default-p",
                "events": 1,
                "node": "n1",
                "since": START,
            },
            {
                "pod": "default/tried",
                "uid": "pod-default-tried",
                "events": 1,
                "node": "",
                "since": None,
            },
        ],
        "continue": "",
        "events": {"NodeAdd": 1, "PodPopped": 2},
    }
