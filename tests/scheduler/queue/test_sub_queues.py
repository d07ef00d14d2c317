"""What can be seen of the queue without changing it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.queue.heap import PodHeap
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import node, pod
from tests.harness import Harness

NAMES = [f"default/p{i}" for i in range(12)]


def heap_of(priorities: list[int]) -> PodHeap:
    """A heap of p0, p1, ..., by priority."""
    heap = PodHeap(lambda queued: -queued.pod_info.priority)
    for i, priority in enumerate(priorities):
        heap.add(QueuedPodInfo(PodInfo(pod(f"p{i}", priority=priority)), timestamp=0.0))
    return heap


@given(st.lists(st.integers(0, 3), max_size=12), st.sets(st.sampled_from(NAMES)), st.data())
async def test_who_is_ahead_is_who_comes_out_before(
    priorities: list[int], asked: set[str], data: st.DataObject
) -> None:
    heap = heap_of(priorities)
    for name in data.draw(st.sets(st.sampled_from(NAMES))):
        heap.remove(name)

    order = [queued.key for queued in heap.in_order()]
    ahead = {key: order.index(key) for key in asked if key in order}
    assert await heap.all_ahead_of(asked) == ahead
    assert {key: heap.ahead_of(key) for key in ahead} == ahead
    first = heap.first()
    assert (first and first.key) == (order[0] if order else None)


async def test_when_a_pod_is_tried_next_at_the_latest() -> None:
    harness = Harness()
    harness.cluster.bind_error = OSError("refused")
    harness.put(node("n1", cpu=1), pod("broken"))
    await harness.until_idle()
    harness.put(pod("big", cpu=2), pod("gated", gates=["x"]))
    await harness.until_idle()
    harness.put(pod("active"))

    now, queue = harness.clock.now(), harness.queue
    found = {
        queued.pod_info.name: (name, queue.sub_queues.next_try(queued))
        for name in SubQueue
        for queued in queue.sub_queues.in_any_order(name)
    }
    assert found == {
        "active": (SubQueue.ACTIVE, None),
        "broken": (SubQueue.BACKOFF, now + 2),
        "big": (SubQueue.UNSCHEDULABLE, now + 300),
        "gated": (SubQueue.GATED, None),
    }


@pytest.mark.parametrize("sub_queue", list(SubQueue))
async def test_the_same_pods_are_seen_in_order_and_without(sub_queue: SubQueue) -> None:
    harness = Harness()
    harness.put(*(pod(f"p{i}", priority=i % 3) for i in range(9)), pod("g", gates=["x"]))
    seen = {queued.key for queued in harness.queue.sub_queues.in_any_order(sub_queue)}

    assert seen == {queued.key for queued in harness.queue.sub_queues.pods(sub_queue)}
