"""A snapshot that is taken in turns is of the moment at which it was begun."""

from collections.abc import Callable

import pytest

from berth.insight.whatif.live import LiveSnapshots
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import node, pod
from tests.harness import Harness


async def cluster() -> Harness:
    """Pods that run, wait, were rejected and are gated."""
    harness = Harness()
    harness.put(node("n1", cpu="4"), node("n2", cpu="4"))
    harness.put(*(pod(f"runs{number}", cpu="1") for number in range(3)))
    harness.put(pod("elsewhere", node="n3"), pod("gated", gates=["a"]))
    await harness.until_idle()
    harness.put(pod("large", cpu="99"), pod("low", cpu="4", nominated="n2"))
    await harness.until_idle()
    harness.put(pod("new"))
    return harness


def _all_go(harness: Harness) -> None:
    harness.delete(*harness.cluster.pods.values())


def _a_node_comes(harness: Harness) -> None:
    harness.put(node("n4", cpu="128"))
    harness.clock.advance(1_000)
    harness.queue.flush_unschedulable_pods_leftover()


@pytest.mark.parametrize("happens", [_all_go, _a_node_comes])
async def test_it_stays_as_it_was_begun(happens: Callable[[Harness], None]) -> None:
    harness = await cluster()
    snapshots = LiveSnapshots(harness.core)
    at_once = snapshots.take()
    taking = snapshots._taking()
    next(taking)
    happens(harness)
    await harness.until_idle()
    while True:
        try:
            next(taking)
        except StopIteration as end:
            in_turns = end.value
            break

    assert b"".join(in_turns.encode()) == b"".join(at_once.encode())
    assert b"".join(snapshots.take().encode()) != b"".join(at_once.encode())


async def test_it_is_taken_in_turns() -> None:
    harness = await cluster()
    taken = await LiveSnapshots(harness.core).take_in_turns()

    assert taken == LiveSnapshots(harness.core).take()
    assert taken.scheduler is not None
    assert {each.queue for each in taken.scheduler.waiting} == {
        SubQueue.ACTIVE,
        SubQueue.UNSCHEDULABLE,
        SubQueue.GATED,
    }
