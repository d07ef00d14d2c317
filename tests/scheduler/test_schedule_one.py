"""Scheduling through the whole scheduler: placing, waiting, being woken, failing to bind."""

import asyncio

import pytest

from berth.kube.client.errors import FencedError
from berth.runtime.tasks import TURN_SECONDS
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PermitPlugin, ReservePlugin
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Status
from berth.scheduler.schedule_one import ATTEMPTS_PER_TURN
from tests.builders import node, pod, taint, toleration
from tests.harness import Harness, RecordedEvent, with_plugins


@pytest.fixture
def harness() -> Harness:
    return Harness()


async def test_a_full_node_is_skipped(harness: Harness) -> None:
    harness.put(node("full", cpu=1), node("free", cpu=1), pod("old", cpu="900m", node="full"))
    harness.put(pod("new", cpu="500m"))
    await harness.until_idle()

    assert harness.placements() == {"old": "full", "new": "free"}
    assert harness.cluster.events == [
        RecordedEvent(
            "default/new", "Normal", "Scheduled", "Successfully assigned default/new to free"
        )
    ]


async def test_a_pod_counts_from_the_moment_it_is_placed(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), node("n2", cpu=1))
    harness.put(*(pod(f"p{i}", cpu="600m") for i in range(3)))
    await harness.until_idle()

    placed = harness.placements()
    assert sorted(placed.values()) == ["n1", "n2"]
    assert len(placed) == 2


async def test_a_pod_that_fits_nowhere_is_told_why(harness: Harness) -> None:
    harness.put(node("small", cpu=1), node("kept", cpu=8, taints=[taint("dedicated")]))
    harness.put(pod("big", cpu=4))
    await harness.until_idle()

    why = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new"
        " claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful"
        " for scheduling."
    )
    assert harness.placements() == {}
    assert harness.cluster.events == [
        RecordedEvent("default/big", "Warning", "FailedScheduling", why)
    ]
    condition = harness.cluster.conditions["default/big"]
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "Unschedulable",
        why,
    )
    assert harness.queue.sub_queues.pending_counts()["unschedulable"] == 1


async def test_without_nodes_the_message_says_so(harness: Harness) -> None:
    harness.put(pod("p"))
    await harness.until_idle()

    assert harness.cluster.conditions["default/p"].message == (
        "no nodes available to schedule pods"
    )


async def test_a_waiting_pod_is_woken_by_room(harness: Harness) -> None:
    old = pod("old", cpu=1, node="n1")
    harness.put(node("n1", cpu=1), old, pod("new", cpu=1))
    await harness.until_idle()
    assert harness.placements() == {"old": "n1"}

    harness.delete(old)
    await harness.until_idle()

    assert harness.placements() == {"new": "n1"}


async def test_a_waiting_pod_is_woken_by_a_removed_taint(harness: Harness) -> None:
    harness.put(node("n1", taints=[taint("dedicated")]), pod("p"))
    await harness.until_idle()
    assert harness.placements() == {}

    harness.put(node("n1"))
    await harness.until_idle()

    assert harness.placements() == {"p": "n1"}


async def test_a_gated_pod_waits_without_an_attempt(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", gates=["example.com/wait"]))
    await harness.until_idle()
    assert harness.placements() == {}
    assert harness.cluster.events == []
    assert harness.queue.sub_queues.pending_counts()["gated"] == 1

    harness.put(pod("p", version="2"))
    await harness.until_idle()

    assert harness.placements() == {"p": "n1"}


async def test_higher_priority_goes_first(harness: Harness) -> None:
    harness.put(pod("low", cpu=1, priority=1), pod("high", cpu=1, priority=2))
    harness.put(node("n1", cpu=1))
    await harness.until_idle()

    assert harness.placements() == {"high": "n1"}


async def test_a_failed_bind_gives_the_room_back_and_retries(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), pod("p", cpu=1))
    harness.cluster.bind_error = OSError("connection refused")
    queued = harness.queue.pop()
    assert queued is not None
    (binding,) = harness.scheduler.scheduling_cycle(queued)
    await harness.scheduler.binding_cycle.run(binding)

    assert harness.cache.counts()["assumed_pods"] == 0
    condition = harness.cluster.conditions["default/p"]
    assert condition.reason == "SchedulerError"
    assert 'running Bind plugin "DefaultBinder"' in condition.message
    assert "connection refused" in condition.message

    harness.cluster.bind_error = None
    harness.clock.advance(3)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()

    assert harness.placements() == {"p": "n1"}


async def test_a_failed_bind_wakes_who_waits_for_the_room(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), pod("p", cpu=1))
    queued = harness.queue.pop()
    assert queued is not None
    (binding,) = harness.scheduler.scheduling_cycle(queued)
    harness.put(pod("waiting", cpu=1))
    await harness.until_idle()
    assert harness.placements() == {}

    harness.cluster.bind_error = OSError("connection refused")
    await harness.scheduler.binding_cycle.run(binding)
    harness.cluster.bind_error = None
    await harness.until_idle()

    assert harness.placements() == {"waiting": "n1"}


async def test_a_pod_of_another_scheduler_is_left_alone(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), pod("theirs", cpu=1, scheduler="other"))
    await harness.until_idle()
    assert harness.placements() == {}

    harness.put(pod("theirs", cpu=1, scheduler="other", node="n1"), pod("ours", cpu=1))
    await harness.until_idle()

    assert harness.placements() == {"theirs": "n1"}


async def test_a_terminating_pod_is_skipped(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", deleted="2026-01-01T00:00:00Z"))
    await harness.until_idle()

    assert harness.placements() == {}
    assert harness.cluster.events == [
        RecordedEvent(
            "default/p", "Warning", "FailedScheduling", "skip schedule deleting pod: default/p"
        )
    ]


async def test_a_pod_deleted_while_being_bound_frees_its_room(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), pod("p", cpu=1))
    queued = harness.queue.pop()
    assert queued is not None
    assert harness.scheduler.scheduling_cycle(queued)
    assert harness.cache.counts()["assumed_pods"] == 1
    harness.put(pod("waiting", cpu=1))
    await harness.until_idle()

    harness.delete(pod("p", cpu=1))
    assert harness.cache.counts() == {"nodes": 1, "pods": 0, "assumed_pods": 0}

    await harness.until_idle()
    assert harness.placements() == {"waiting": "n1"}


class Broken(ScalarFilter):
    """A plugin with a bug."""

    NAME = "Broken"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        raise ZeroDivisionError(node_info.name)


class Stingy(ReservePlugin):
    """Refuses to reserve anything."""

    NAME = "Stingy"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Status.unschedulable("nothing left")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        state.write("unreserved", node_name)


class Denying(PermitPlugin):
    """Refuses every pod at the last moment."""

    NAME = "Denying"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return Status.unschedulable("not now"), 0.0


async def test_a_plugin_with_a_bug_fails_the_attempt_only() -> None:
    harness = with_plugins(Broken)
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()

    condition = harness.cluster.conditions["default/p"]
    assert condition.reason == "SchedulerError"
    assert condition.message == "running \"Broken\" filter plugin: ZeroDivisionError('n1')"
    assert harness.queue.sub_queues.pending_counts()["backoff"] == 1


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        pytest.param(Stingy, "nothing left", id="Reserve says no"),
        pytest.param(Denying, "not now", id="Permit says no"),
    ],
)
async def test_a_late_refusal_gives_the_room_back(kind: type[Stingy | Denying], why: str) -> None:
    harness = with_plugins(kind)
    harness.put(node("n1"), node("n2"), pod("p"))
    await harness.until_idle()

    assert harness.cache.counts()["assumed_pods"] == 0
    condition = harness.cluster.conditions["default/p"]
    assert condition.message == f"0/1 nodes are available: 1 {why}."
    assert condition.reason == "Unschedulable"


async def test_tolerations_open_a_tainted_node(harness: Harness) -> None:
    harness.put(node("n1", taints=[taint("dedicated", "gpu")]))
    harness.put(pod("p", tolerations=[toleration("dedicated", value="gpu")]))
    await harness.until_idle()

    assert harness.placements() == {"p": "n1"}


async def test_nothing_is_decided_far_ahead_of_what_is_written(harness: Harness) -> None:
    """Another scheduler may take the room meanwhile, so decisions must not grow old."""
    harness.cluster.room.clear()
    harness.put(node("n1"), pod("first"), pod("second"))
    running = asyncio.create_task(harness.scheduler.run(), name="scheduling")
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(harness.scheduler.bindings) == 0
    assert harness.queue.sub_queues.pending_counts()["active"] == 2

    harness.cluster.room.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert harness.placements() == {"first": "n1", "second": "n1"}
    running.cancel()
    await asyncio.wait([running])


async def test_what_was_fenced_off_is_done_when_writes_may_leave_again() -> None:
    """A leader that was too slow to renew writes nothing for a while, and then leads on."""
    harness = Harness()
    fenced = FencedError("POST: not sent, another replica may lead by now")
    harness.cluster.bind_error = fenced
    harness.put(node("n1", cpu=2), pod("a", cpu=1), pod("b", cpu=1))
    await harness.pass_time(12)
    assert harness.placements() == {}

    harness.cluster.bind_error = None
    await harness.pass_time(12)
    assert harness.placements() == {"a": "n1", "b": "n1"}


@pytest.mark.parametrize(
    ("seconds", "most"),
    [
        pytest.param(0.0, ATTEMPTS_PER_TURN, id="short attempts share a turn"),
        pytest.param(2 * TURN_SECONDS, 1, id="what searches for long has a turn of its own"),
    ],
)
async def test_attempts_leave_turns_of_the_event_loop_to_others(seconds: float, most: int) -> None:
    asked: list[str] = []

    class Slow(ScalarFilter):
        NAME = "Slow"

        def filter_node(
            self, state: CycleState, pod: PodInfo, node_info: NodeInfo
        ) -> Status | None:
            asked.append(pod.name)
            made.clock.advance(seconds)
            return None

    made = with_plugins(Slow)
    made.put(node("n1"), *(pod(f"p{number}") for number in range(3 * ATTEMPTS_PER_TURN)))
    running = asyncio.create_task(made.scheduler.run(), name="scheduling")
    in_turns = []
    while len(asked) < 3 * ATTEMPTS_PER_TURN:
        before = len(asked)
        await asyncio.sleep(0)
        in_turns.append(len(asked) - before)
    running.cancel()
    await asyncio.wait([running])

    assert max(in_turns) == most
