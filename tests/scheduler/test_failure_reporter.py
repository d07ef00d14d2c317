"""When failures are reported, if that can wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from berth.kube.client.events.recorder import shortened
from berth.scheduler.failure_reporter import BATCH, PATIENCE, PAUSE, TRICKLE
from tests.builders import node, pod
from tests.harness import Harness

CROWD = BATCH + 5
"""One pod is tried, and reported at once; the failures of the others are known."""


@pytest.fixture
def harness() -> Harness:
    """Many pods that fit nowhere; the failures of all but one are deferred."""
    harness = Harness()
    harness.put(node("n1", cpu=4), *(pod(f"p{n}", cpu=100) for n in range(CROWD + 1)))
    while (queued := harness.queue.pop()) is not None:
        if not harness.scheduler.apply_cached_failure(queued):
            harness.scheduler.scheduling_cycle(queued)
    assert told(harness) == ["p0"]
    harness.cluster.events.clear()
    return harness


@asynccontextmanager
async def reporting(harness: Harness) -> AsyncIterator[None]:
    task = asyncio.create_task(harness.failure_reporter.run(), name="failure reporter")
    yield
    assert not task.done(), "it never ends by itself"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def told(harness: Harness) -> list[str]:
    return [event.pod.removeprefix("default/") for event in harness.cluster.events]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def pass_time(harness: Harness, seconds: float) -> None:
    for _ in range(round(seconds / PAUSE)):
        harness.clock.advance(PAUSE)
        await settle()


async def test_when_nothing_is_urgent_all_are_told_in_order(harness: Harness) -> None:
    async with reporting(harness):
        await settle()

        assert told(harness) == [f"p{n}" for n in range(1, CROWD + 1)]
        assert len(harness.failure_reporter) == 0


async def test_it_waits_for_bindings_but_not_for_long(harness: Harness) -> None:
    harness.cluster.is_binding = True
    async with reporting(harness):
        await pass_time(harness, PATIENCE - 2 * PAUSE)
        assert told(harness) == []

        await pass_time(harness, 3 * PAUSE)
        assert 0 < len(told(harness)) <= 2 * TRICKLE

        harness.cluster.is_binding = False
        await pass_time(harness, 3 * PAUSE)
        assert told(harness) == [f"p{n}" for n in range(1, CROWD + 1)]


async def test_it_waits_for_pods_that_are_to_be_tried(harness: Harness) -> None:
    harness.put(pod("fits", cpu=1))
    async with reporting(harness):
        await pass_time(harness, 1)
        assert told(harness) == []

        await harness.until_idle()
        assert sorted(told(harness)) == sorted(["fits", *(f"p{n}" for n in range(1, CROWD + 1))])


async def test_it_waits_for_its_own_writes_however_long(harness: Harness) -> None:
    harness.cluster.is_behind = True
    async with reporting(harness):
        await pass_time(harness, 2 * PATIENCE)
        assert told(harness) == []

        harness.cluster.is_behind = False
        await pass_time(harness, 2 * PAUSE)
        assert len(told(harness)) == CROWD


async def test_who_is_gone_or_another_by_now_is_told_nothing(harness: Harness) -> None:
    harness.delete(harness.cluster.pods["default/p1"])
    harness.delete(harness.cluster.pods["default/p2"])
    harness.put(pod("p2", uid="another", gates=["later"]))
    bound = harness.cluster.pods["default/p3"]
    harness.put(
        msgspec.structs.replace(bound, spec=msgspec.structs.replace(bound.spec, node_name="n1"))
    )
    async with reporting(harness):
        await settle()

        assert told(harness) == [f"p{n}" for n in range(4, CROWD + 1)]


async def test_who_is_tried_again_is_told_the_outcome_of_that(harness: Harness) -> None:
    harness.put(node("n2", cpu=100))
    async with reporting(harness):
        await harness.until_idle()

        (winner,) = harness.placements()
        assert told(harness).count(winner) == 1
        assert sorted(told(harness)) == sorted(f"p{n}" for n in range(CROWD + 1))


@pytest.mark.parametrize(
    ("message", "note"),
    [
        pytest.param("0/1 nodes", "0/1 nodes", id="plain"),
        pytest.param("disk at 95%.", "disk at 95%.", id="percent signs stay"),
        pytest.param("x" * 1200, "x" * 1020 + " ...", id="shortened"),
    ],
)
async def test_the_event_as_kube_scheduler_words_it(message: str, note: str) -> None:
    harness = Harness()
    a_pod = pod("p")
    harness.put(a_pod)
    harness.failure_reporter.record_event(
        a_pod, harness.scheduler.profiles["default-scheduler"], message
    )
    assert [shortened(event.note) for event in harness.cluster.events] == [note]
