"""Pods are taken before their turn, for those that are to be placed with another."""

from berth.scheduler.framework.pod_info import QueuedPodInfo
from tests.builders import node, pod
from tests.harness import Harness


async def waiting_everywhere() -> Harness:
    """Return a harness with a pod in each sub-queue, called by its name."""
    harness = Harness()
    harness.cluster.bind_error = OSError("refused")
    harness.put(node("n1", cpu=1), pod("backoff"))
    await harness.until_idle()
    harness.put(pod("unschedulable", cpu=2), pod("gated", gates=["x"]))
    await harness.until_idle()
    harness.put(pod("active"))
    return harness


async def test_a_pod_is_taken_from_wherever_it_waits() -> None:
    harness = await waiting_everywhere()
    queue = harness.queue

    taken = [
        queue.pop_specific_pod(f"default/{name}") for name in ("active", "backoff", "unschedulable")
    ]

    assert [(t.pod_info.name, t.attempts) for t in taken if t is not None] == [
        ("active", 1),
        ("backoff", 2),
        ("unschedulable", 2),
    ]
    assert queue.sub_queues.pending_counts() == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 0,
        "gated": 1,
    }
    assert all(queue.is_in_flight(t.uid) for t in taken if t is not None)
    queue.check_invariants()


async def test_what_is_gated_stays_so_and_who_does_not_wait_is_not_there() -> None:
    harness = await waiting_everywhere()

    assert harness.queue.pop_specific_pod("default/gated") is None
    assert harness.queue.pop_specific_pod("default/nobody") is None
    assert harness.queue.sub_queues.pending_counts()["gated"] == 1
    harness.queue.check_invariants()


async def test_a_taken_pod_comes_back_like_a_popped_one() -> None:
    harness = await waiting_everywhere()
    taken = harness.queue.pop_specific_pod("default/active")
    assert isinstance(taken, QueuedPodInfo)

    taken.unschedulable_plugins = {"NodeResourcesFit"}
    assert harness.queue.add_unschedulable_if_not_present(taken)

    assert not harness.queue.is_in_flight(taken.uid)
    assert harness.queue.sub_queues.pending_counts()["unschedulable"] == 2
