"""MoveAll, the flushers, and waiting for work (spec §3.4, §3.6, §3.7)."""

import asyncio
from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
)
from berth.scheduler.queue.flushers import run_flushers
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import pod
from tests.scheduler.queue.world import PROFILE, World, listens


def test_an_event_moves_the_pods_that_it_helps_and_asks_for_no_others() -> None:
    asked: list[str] = []

    def hint(waiting: Pod, _old: Any, _new: Any) -> QueueingHint:
        asked.append(waiting.metadata.name)
        return QueueingHint.QUEUE if waiting.metadata.name == "small" else QueueingHint.SKIP

    world = World(
        listens("Fit", NODE_ADD, hint),
        listens("Ports", ASSIGNED_POD_DELETE),
        listens("Spread", NODE_ADD, hint),
    )
    world.reject(pod("small"), "Fit", "Spread")
    world.reject(pod("large"), "Fit")
    world.reject(pod("elsewhere"), "Ports")
    world.reject(pod("failed"))
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)

    assert asked == ["small", "large"]
    assert world.places() == {
        "small": "backoff",
        "large": "unschedulable",
        "elsewhere": "unschedulable",
        "failed": "backoff",
    }
    assert world.hints_called == [("Fit", "NodeAdd", "Queue"), ("Fit", "NodeAdd", "QueueSkip")]
    assert world.queue.incoming_counts()["backoff", "NodeAdd"] == 1


def test_an_event_that_nobody_registered_moves_nobody() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("p"), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_ADD)

    assert world.places() == {"p": "unschedulable"}


def test_the_pre_check_keeps_pods_out() -> None:
    world = World(listens("Fit", ASSIGNED_POD_DELETE))
    world.reject(pod("low", priority=1), "Fit")
    world.reject(pod("high", priority=9), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(
        ASSIGNED_POD_DELETE, pre_check=lambda waiting: waiting.priority <= 5
    )

    assert world.places() == {"low": "backoff", "high": "unschedulable"}


def test_the_wildcard_event_moves_whoever_waits_for_anything() -> None:
    world = World()
    world.reject(pod("a"), "Fit")
    world.reject(pod("b"), "Ports")
    world.queue.move_all_to_active_or_backoff_queue(UNSCHEDULABLE_TIMEOUT)

    assert world.places() == {"a": "backoff", "b": "backoff"}


def test_hints_of_another_profile_do_not_count() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("p", scheduler="another"), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)

    assert world.places() == {"p": "unschedulable"}
    assert world.queue.sub_queues.rejected_counts() == {("Fit", "another"): 1}


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(300.0, ("unschedulable", False), id="five minutes are not too long"),
        pytest.param(300.1, ("active", True), id="more than five minutes are"),
    ],
)
def test_leftovers_are_flushed(after: float, want: tuple[str, bool]) -> None:
    world = World()
    queued = world.reject(pod("p"), "Fit")
    world.clock.advance(after)
    world.queue.flush_unschedulable_pods_leftover()

    assert (world.places()["p"], queued.was_flushed_from_unschedulable) == want
    moved = world.queue.incoming_counts().get(("active", "UnschedulableTimeout"), 0)
    assert moved == int(want[1])


async def turn() -> None:
    """Let tasks run until they wait for the clock again."""
    for _ in range(5):
        await asyncio.sleep(0)


async def advance(clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    await turn()


async def test_the_flushers_run_at_whole_seconds() -> None:
    world = World()
    world.clock.advance(0.25)
    flushers = asyncio.create_task(run_flushers(world.queue, world.clock), name="flushers")
    await turn()
    world.reject(pod("failed"))
    places = []
    for seconds in (0.75, 0.99, 0.01):
        await advance(world.clock, seconds)
        places.append((world.clock.now(), world.places()["failed"]))
    flushers.cancel()
    await asyncio.gather(flushers, return_exceptions=True)

    assert places == [(1001.0, "backoff"), (1001.99, "backoff"), (1002.0, "active")]


async def test_the_flushers_look_for_leftovers_every_thirty_seconds() -> None:
    world = World()
    world.reject(pod("p"), "Fit")
    flushers = asyncio.create_task(run_flushers(world.queue, world.clock), name="flushers")
    await turn()
    moved_at = None
    while moved_at is None:
        await advance(world.clock, 1.0)
        if world.places()["p"] == "active":
            moved_at = world.clock.now()
    flushers.cancel()
    await asyncio.gather(flushers, return_exceptions=True)

    assert moved_at == 1330.0


@pytest.mark.parametrize("entrance", ["add", "backoff", "flush"])
async def test_whoever_waits_for_work_wakes_up(entrance: str) -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("rejected"), "Fit")
    world.reject(pod("failed"))
    waiter = asyncio.create_task(world.queue.wait_ready(), name="waiter")
    await turn()
    assert not waiter.done()

    match entrance:
        case "add":
            world.add(pod("new"))
        case "backoff":
            world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        case "flush":
            world.clock.advance(10)
            world.queue.flush_backoff_completed()
    assert await waiter
    assert world.queue.pop() is not None


async def test_failed_pods_at_rest_are_no_work() -> None:
    world = World()
    world.reject(pod("p"), "Fit")
    waiter = asyncio.create_task(world.queue.wait_ready(), name="waiter")
    world.reject(pod("failed"))
    await turn()

    assert not waiter.done()
    world.queue.close()
    assert not await waiter


async def test_a_closed_queue_gives_out_nothing() -> None:
    world = World()
    world.add(pod("p"))
    assert await world.queue.wait_ready()
    world.queue.close()

    assert not await world.queue.wait_ready()
    assert world.queue.pop() is None
    assert world.places() == {"p": "active"}


def test_sub_queues_can_be_listed() -> None:
    world = World()
    world.reject(pod("unschedulable"), "Fit")
    world.reject(pod("failed"))
    world.add(pod("low"), pod("high", priority=1))

    listed = {
        where: [q.pod.metadata.name for q in world.queue.sub_queues.pods(where)]
        for where in SubQueue
    }
    assert listed == {
        SubQueue.ACTIVE: ["high", "low"],
        SubQueue.BACKOFF: ["failed"],
        SubQueue.UNSCHEDULABLE: ["unschedulable"],
        SubQueue.GATED: [],
        SubQueue.INCOMPLETE: [],
        SubQueue.PENDING: [],
    }
    assert world.queue.sub_queues.rejected_counts() == {("Fit", PROFILE): 1}
