"""Pods on their way to a node: they wait for Permit plugins, and may lose the room again."""

import asyncio
from typing import ClassVar

from berth.scheduler.binding import Binding
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PermitPlugin, PreBindPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import WAIT, Status
from tests.builders import node, pod
from tests.harness import Harness, RecordedEvent, with_plugins


class Hesitant(PermitPlugin):
    """Holds back pods of low priority for ten seconds."""

    NAME = "Hesitant"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return (None, 0.0) if pod.priority else (WAIT, 10.0)


class Slow(PreBindPlugin):
    """Prepares pods of low priority for ever."""

    NAME = "Slow"
    begun: ClassVar[list[str]] = []

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if not pod.priority:
            self.begun.append(pod.key)
            await asyncio.Event().wait()
        return None


def reserved(harness: Harness) -> Binding:
    queued = harness.queue.pop()
    assert queued is not None
    (binding,) = harness.scheduler.scheduling_cycle(queued)
    return binding


async def begun(harness: Harness, binding: Binding) -> asyncio.Task[None]:
    task = asyncio.create_task(harness.scheduler.binding_cycle.run(binding))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_pod_is_bound_when_it_is_permitted() -> None:
    harness = with_plugins(Hesitant)
    harness.put(node("n1"), pod("p"))
    binding = reserved(harness)
    task = await begun(harness, binding)
    assert harness.placements() == {}
    assert binding.waiting is not None

    binding.waiting.allow("Hesitant")
    await task
    assert harness.placements() == {"p": "n1"}


async def test_a_pod_that_waits_in_vain_is_rejected_like_any_other() -> None:
    harness = with_plugins(Hesitant)
    harness.put(node("n1"), pod("p"))
    task = await begun(harness, reserved(harness))
    harness.clock.advance(10)
    await task

    condition = harness.cluster.conditions["default/p"]
    assert condition.reason == "Unschedulable"
    assert condition.message == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Hesitant."
    )
    assert harness.cache.counts()["assumed_pods"] == 0
    queued = harness.queue.sub_queues.get("default/p")
    assert queued is not None
    assert queued.unschedulable_plugins == {"Hesitant"}


async def test_a_pod_that_is_deleted_while_it_waits_gives_all_back_at_once() -> None:
    harness = with_plugins(Hesitant)
    harness.put(node("n1", cpu=1), pod("p", cpu=1))
    task = await begun(harness, reserved(harness))

    harness.delete(pod("p", cpu=1))
    await task
    assert harness.cache.counts() == {"nodes": 1, "pods": 0, "assumed_pods": 0}
    assert harness.queue.sub_queues.get("default/p") is None

    harness.put(pod("next", cpu=1, priority=1))
    await harness.until_idle()
    assert harness.placements() == {"next": "n1"}


def preempted(victim: str) -> RecordedEvent:
    note = "Preempted by pod pod-default-high on node n1 (in kube-scheduler memory)."
    return RecordedEvent(f"default/{victim}", "Normal", "Preempted", note)


async def test_a_pod_that_waits_makes_room_at_once() -> None:
    harness = with_plugins(Hesitant)
    harness.put(node("n1", cpu=1), pod("low", cpu=1))
    task = await begun(harness, reserved(harness))

    harness.put(pod("high", cpu=1, priority=9))
    await harness.until_idle()
    assert preempted("low") in harness.cluster.events
    await task
    condition = harness.cluster.conditions["default/low"]
    assert condition.reason == "SchedulerError"
    assert condition.message == "waiting on permit for pod: preempted"

    await harness.until_idle()
    assert harness.placements() == {"high": "n1"}
    assert "default/low" in harness.cluster.pods


async def test_a_pod_that_is_being_prepared_makes_room_at_once() -> None:
    harness = with_plugins(Slow)
    harness.put(node("n1", cpu=1), pod("low", cpu=1))
    task = await begun(harness, reserved(harness))
    assert Slow.begun == ["default/low"]

    harness.put(pod("high", cpu=1, priority=9))
    await harness.until_idle()
    assert preempted("low") in harness.cluster.events
    await task
    condition = harness.cluster.conditions["default/low"]
    assert (condition.reason, condition.message) == (
        "SchedulerError",
        'running PreBind plugin "Slow": preempted by DefaultPreemption',
    )

    await harness.until_idle()
    assert harness.placements() == {"high": "n1"}
    assert "default/low" in harness.cluster.pods


async def test_a_binding_that_is_cancelled_otherwise_stays_cancelled() -> None:
    harness = with_plugins(Slow)
    Slow.begun.clear()
    harness.put(node("n1", cpu=1), pod("low", cpu=1))
    task = await begun(harness, reserved(harness))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert harness.cache.counts()["assumed_pods"] == 0
