"""What is told of bindings and status patches while they wait, and when they are made (G12)."""

import asyncio
import random
from collections import Counter

import pytest

from berth.kube.client.errors import ConflictError
from berth.kube.client.writes.async_calls import POD_BINDING, POD_STATUS_PATCH, counted
from berth.kube.client.writes.lanes import Limits
from berth.kube.client.writes.pod_status import PodStatusWriter
from berth.kube.objects.meta import Condition
from berth.runtime.clock import FakeClock
from tests.builders import pod
from tests.kube.client.fake_api import FakeApi
from tests.kube.client.slow_server import Server, running_lanes, settle

ONE_AT_A_TIME = Limits(workers=1, status=0, event=0)
FAILED = Condition(type="PodScheduled", status="False", message="no room")


class Told:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.waiting = Counter[str]()
        self.made: list[tuple[str, bool, float]] = []

    def waits(self, call_type: str, change: int) -> None:
        self.waiting[call_type] += change

    def executed(self, call_type: str, *, failed: bool, seconds: float) -> None:
        self.made.append((call_type, failed, seconds))


async def test_a_binding_waits_for_its_turn_and_is_made() -> None:
    told, clock, server = Told(), FakeClock(), Server()
    async with running_lanes(ONE_AT_A_TIME) as lanes:
        bindings = [
            asyncio.create_task(
                counted(told, POD_BINDING, server.held(name), lanes.bind, clock=clock)
            )
            for name in "ab"
        ]
        await settle()
        assert (server.began, told.waiting[POD_BINDING]) == (["a"], 1)
        clock.advance(2)
        server.release("a")
        await settle()
        server.release("b")
        assert await asyncio.gather(*bindings) == ["a done", "b done"]
    assert told.waiting[POD_BINDING] == 0
    assert told.made == [(POD_BINDING, False, 2), (POD_BINDING, False, 0)]


async def test_a_binding_that_fails() -> None:
    async def write() -> None:
        raise ConflictError(409, "Conflict", "no")

    told = Told()
    async with running_lanes(ONE_AT_A_TIME) as lanes:
        with pytest.raises(ConflictError):
            await counted(told, POD_BINDING, write, lanes.bind, clock=FakeClock())
    assert told.made == [(POD_BINDING, True, 0)]


async def test_a_binding_that_is_given_up_while_it_waits() -> None:
    told, server = Told(), Server()
    async with running_lanes(ONE_AT_A_TIME) as lanes:
        busy = asyncio.create_task(lanes.bind(server.held("busy")))
        await settle()
        given_up = asyncio.create_task(
            counted(told, POD_BINDING, server.quick("late"), lanes.bind, clock=FakeClock())
        )
        await settle()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        server.release("busy")
        await busy
    assert (told.waiting[POD_BINDING], told.made) == (0, [])


async def test_status_patches() -> None:
    told, api, clock = Told(), FakeApi(), FakeClock()
    async with running_lanes(Limits(workers=2, status=1, event=0)) as lanes:
        writer = PodStatusWriter(
            api, lanes, exists=lambda _: True, clock=clock, rng=random.Random(1), calls=told
        )
        for message in ("no room", "still no room"):
            condition = Condition(type="PodScheduled", status="False", message=message)
            writer.submit(pod("merged"), condition=condition)
        writer.submit(pod("nothing-new", nominated="n1"), nominated_node_name="n1")
        writer.submit(pod("bound"), condition=FAILED)
        writer.withdraw(pod("bound").metadata.uid)
        assert told.waiting[POD_STATUS_PATCH] == 2
        await settle()
    assert told.waiting[POD_STATUS_PATCH] == 0
    assert [call_type for call_type, *_ in told.made] == [POD_STATUS_PATCH]
    assert len(api.requests) == 1
