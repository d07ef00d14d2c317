"""Replicas that share a cluster, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection

import pytest

from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.scheduler.shards.slots import Slots
from berth.tools.bench.shards.world import START, World

Scenario = Callable[[World], Awaitable[None]]


@pytest.fixture
def play() -> Callable[..., None]:
    """Run a scenario in a world with so many nodes and replicas."""

    def run(
        scenario: Scenario,
        *,
        nodes: int,
        replicas: int,
        slots: int | Slots = 8,
        gates: Collection[str] = (),
    ) -> None:
        clock = VirtualClock(START)

        async def whole() -> None:
            async with World(clock, slots=slots, gates=gates) as world:
                await world.create_nodes(nodes)
                for _ in range(replicas):
                    world.start_replica()
                await clock.sleep(30.0)
                await scenario(world)

        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
            runner.run(whole())

    return run
