"""Pods that Permit plugins hold back."""

import asyncio

from berth.runtime.clock import FakeClock
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.profile.waiting_pod import WaitingPod
from tests.builders import pod


def waiting(**waits: float) -> WaitingPod:
    return WaitingPod(PodInfo(pod()), waits)


async def ending(one: WaitingPod, clock: FakeClock, *, after: float = 0.0) -> Status | None:
    """Return what a wait comes to that goes on for so many seconds."""
    task = asyncio.create_task(one.wait(clock))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.advance(after)
    return await asyncio.wait_for(task, 60)


async def test_the_last_one_to_allow_it_lets_the_pod_go() -> None:
    one = waiting(A=10, B=20)
    one.allow("A")
    assert one.pending_plugins == {"B"}
    one.allow("B")
    assert await ending(one, FakeClock()) is None


async def test_anybody_may_turn_it_away() -> None:
    one = waiting(A=10, B=20)
    one.allow("A")
    one.reject("B", "no")
    one.reject("A", "too late")
    assert await ending(one, FakeClock()) == Status(Code.UNSCHEDULABLE, ("no",), "B")


async def test_time_runs_out_for_the_most_impatient() -> None:
    says = "rejected due to timeout after waiting 1m30s at plugin A"
    assert await ending(waiting(A=90, B=100), FakeClock(), after=95) == Status(
        Code.UNSCHEDULABLE, (says,), "A"
    )


async def test_who_has_allowed_the_pod_cannot_time_out() -> None:
    one = waiting(A=5, B=10)
    one.allow("A")
    refusal = await ending(one, FakeClock(), after=11)
    assert refusal is not None
    assert refusal.plugin == "B"


async def test_nobody_waits_longer_than_a_quarter_of_an_hour() -> None:
    says = "rejected due to timeout after waiting 15m0s at plugin A"
    assert await ending(waiting(A=5_000), FakeClock(), after=900) == Status(
        Code.UNSCHEDULABLE, (says,), "A"
    )


async def test_a_preempted_pod_has_failed() -> None:
    one = waiting(A=10)
    one.preempt("DefaultPreemption")
    assert await ending(one, FakeClock()) == Status(
        Code.ERROR, ("waiting on permit for pod: preempted",), "DefaultPreemption"
    )
