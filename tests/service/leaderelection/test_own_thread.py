"""A thread of its own keeps the lease: for a loop that is late, but not for one that is stuck."""

import asyncio
import random
import time

import pytest

from berth.kube.client.contact import Contact
from berth.kube.client.from_thread import ContactFromThread, ObserverFromThread
from berth.runtime.clock import FakeClock, RealClock, cpu_time_of_this_thread
from berth.runtime.loop_thread import LoopThread
from berth.scheduler.metrics.recorders import RequestMetrics
from berth.service.leaderelection.build import LoopWatch
from berth.service.leaderelection.candidate import Timing
from berth.service.leaderelection.elector import LeaderElector, LeadershipLostError
from tests.service.leaderelection.lease_api import TIMING, LeaseApi, lead_for_ever, lock_of, settle

SHORT = Timing(lease_duration=1.0, renew_deadline=0.6, retry_period=0.1)


@pytest.mark.wall
async def test_a_loop_that_has_no_turn_keeps_its_lease() -> None:
    clock, leads = RealClock(), asyncio.Event()
    api = LeaseApi(clock)

    async def lead() -> None:
        leads.set()
        await lead_for_ever()

    with LoopThread("lease") as thread:
        elector = LeaderElector(
            lock_of(api, clock), identity="me", timing=SHORT, clock=clock,
            rng=random.Random(1), thread=thread,
        )  # fmt: skip
        running = asyncio.create_task(elector.run(lead), name="elector")
        await leads.wait()
        before = api.spec["renewTime"]
        time.sleep(2 * SHORT.lease_duration)  # noqa: ASYNC251 - the loop is to have no turn
        assert elector.may_write()
        assert api.spec["renewTime"] > before

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert api.spec["holderIdentity"] == ""


@pytest.mark.wall
async def test_a_lease_that_is_lost_ends_the_work_in_its_own_loop() -> None:
    clock, here = RealClock(), asyncio.get_running_loop()
    api = LeaseApi(clock)
    ended: list[asyncio.AbstractEventLoop] = []
    leads = asyncio.Event()

    async def lead() -> None:
        leads.set()
        try:
            await lead_for_ever()
        finally:
            ended.append(asyncio.get_running_loop())

    with LoopThread("lease") as thread:
        elector = LeaderElector(
            lock_of(api, clock), identity="me", timing=SHORT, clock=clock,
            rng=random.Random(1), thread=thread,
        )  # fmt: skip
        running = asyncio.create_task(elector.run(lead), name="elector")
        await leads.wait()
        api.put(holderIdentity="other", leaseDurationSeconds=15)
        with pytest.raises(LeadershipLostError, match="other holds it"):
            await running
    assert ended == [here]


class Loop:
    """The clocks of a loop that is watched, asked every two seconds."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cpu = 0.0
        self.watch = LoopWatch(
            asyncio.get_running_loop(), timing=TIMING, clock=self.clock, cpu=lambda: self.cpu
        )

    def ask(self, times: int, *, share: float, seconds: float = 2.0) -> str:
        """Ask while the loop has no turn and gets a *share* of a core; return the first reason."""
        for _ in range(times):
            self.clock.advance(seconds)
            self.cpu += share * seconds
            if why := self.watch.why_stuck():
                return why
        return ""


@pytest.mark.parametrize(
    ("share", "seconds", "why"),
    [
        pytest.param(1.0, 2.0, "the event loop has computed for 16 s without a turn", id="loops"),
        pytest.param(0.0, 2.0, "the event loop has not turned for 62 s", id="is blocked"),
        pytest.param(0.05, 2.0, "the event loop has not turned for 62 s", id="starves for long"),
        pytest.param(0.0, 600.0, "the event loop has not turned for 64 s", id="stood still"),
    ],
)
async def test_a_loop_that_is_stuck(share: float, seconds: float, why: str) -> None:
    loop = Loop()
    assert loop.watch.why_stuck() == ""
    assert loop.ask(100, share=share, seconds=seconds) == why


async def test_a_loop_that_is_late_is_not_stuck() -> None:
    loop = Loop()
    for _ in range(20):
        assert loop.ask(25, share=0.05) == ""
        await settle()


def test_the_cpu_time_of_a_thread_is_known_to_others() -> None:
    ask = cpu_time_of_this_thread()
    before = ask()
    sum(range(200_000))
    assert ask() > before


@pytest.mark.wall
async def test_what_a_client_in_a_thread_notices_is_told_in_the_loop() -> None:
    loop, clock = asyncio.get_running_loop(), FakeClock()
    contact, metrics = Contact(clock), RequestMetrics()
    there = ContactFromThread(contact, loop, clock)
    observer = ObserverFromThread(metrics, loop)

    async def notice() -> None:
        there.missed()
        there.answered(200)
        observer.held_back("host", "PUT", seconds=0.0)
        observer.answered("host", "PUT", 200, seconds=0.1, sent=10, received=10)
        observer.unanswered("host", "PUT", seconds=0.1)
        observer.watching("host", 200)

    clock.advance(60)
    with LoopThread("other") as thread:
        await thread.call(notice)
    assert contact.recoveries == 1
    counted = {
        tuple(sample.labels.values()): sample.value
        for family in metrics.collect()
        if family.name == "rest_client_requests"
        for sample in family.samples
    }
    assert counted == {
        ("200", "host", "PUT"): 1, ("<error>", "host", "PUT"): 1, ("200", "host", "GET"): 1
    }  # fmt: skip
