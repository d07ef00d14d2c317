"""A plan is made beside the event loop, and what no longer holds then is not done."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from berth.kube.objects.meta import KubeStruct
from berth.tools.autoscaler.actions import (
    Action,
    MarkUnneeded,
    NotTriggered,
    RemoveNode,
    ScaleUp,
    Utilization,
)
from berth.tools.autoscaler.autoscaler import Planner, still_valid
from berth.tools.autoscaler.cluster_view import ClusterView
from berth.tools.autoscaler.planning_thread import GivenUpError, InTurn, PlanningThread
from berth.tools.autoscaler.simulation import Simulation
from berth_plugins.registry import IN_TREE
from tests.loop_turns import watched_loop
from tests.tools.autoscaler.live import World, run
from tests.tools.autoscaler.planning import (
    DEFAULTS,
    NOW,
    group,
    member,
    plan,
    planner,
    running,
    states,
    unschedulable,
    view,
)
from tests.tools.autoscaler.test_live import group as live_group

T = TypeVar("T")

UP = ScaleUp("general", 1, 2, 5, ["default/w"])
USE = Utilization(0.1, 0.1)
DRAIN = RemoveNode("a", "general", USE, [running("x", "a")])
DELETE = RemoveNode("a", "general", USE)
THEN: list[KubeStruct] = [member("a"), member("b"), running("x", "a"), unschedulable("w")]


def with_node(name: str, **fields: Any) -> list[KubeStruct]:
    return [member(name, **fields), *(e for e in THEN if e.metadata.name != name)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("action", "now", "holds"),
    [
        pytest.param(UP, THEN, True, id="a pod waits still"),
        pytest.param(UP, [*THEN[:3], running("w", "b")], False, id="the pod has a node"),
        pytest.param(UP, THEN[:3], False, id="the pod is gone"),
        pytest.param(ScaleUp("general", 3, 4, 5, ["default/w"]), THEN, False, id="another size"),
        pytest.param(NotTriggered("default/w", "why"), THEN, True, id="no group helps it"),
        pytest.param(NotTriggered("default/w", "why"), THEN[:3], False, id="it is gone"),
        pytest.param(DRAIN, THEN, True, id="nothing has changed"),
        pytest.param(DRAIN, [*THEN, running("y", "a")], False, id="a pod came to the node"),
        pytest.param(DELETE, [*THEN, running("y", "a")], False, id="one came to an empty node"),
        pytest.param(DRAIN, [*THEN, running("y", "b")], True, id="a pod came to another node"),
        pytest.param(DRAIN, [*THEN, unschedulable("y")], False, id="another wants the room"),
        pytest.param(DELETE, [*THEN, unschedulable("y")], True, id="nobody has to move"),
        pytest.param(DRAIN, with_node("a", unschedulable=True), False, id="the node is cordoned"),
        pytest.param(DRAIN, THEN[1:], False, id="the node is gone"),
        pytest.param(MarkUnneeded("a", unneeded=True), THEN, True, id="a node to mark"),
        pytest.param(MarkUnneeded("a", unneeded=True), THEN[1:], False, id="which is gone"),
    ],
)
def test_what_still_holds(action: Action, now: list[KubeStruct], *, holds: bool) -> None:
    found = still_valid([action], planned=view(*THEN), now=view(*now), target_size=lambda _: 1)
    assert found == ([action] if holds else [])


def crowd(number: int) -> ClusterView:
    waiting = (unschedulable(f"w{i}", labels={"n": str(i)}) for i in range(number))
    return view(*(member(f"n{i}") for i in range(20)), *waiting)


@pytest.mark.wall
async def test_the_event_loop_goes_on_while_a_plan_is_made() -> None:
    """It took one turn of the loop for the whole plan."""
    seen, thread = crowd(80), PlanningThread()
    simulation = Simulation(lambda: IN_TREE, thread.goes_on)
    groups = states(seen, group(max_size=200))
    plans = Planner(DEFAULTS, simulation, rng=random.Random(1))
    took = 0.0

    def work() -> object:
        nonlocal took
        began = time.thread_time()
        found = plans.plan(seen, groups, monotonic=0.0, now=NOW)
        took = time.thread_time() - began
        return found

    async with watched_loop() as turns:
        found = await thread.run(work)
    assert found == plan(seen, groups, by=planner())
    assert turns.longest < took / 4


@pytest.mark.wall
async def test_a_plan_that_nobody_waits_for_ends() -> None:
    thread, has_ended = PlanningThread(), threading.Event()

    def work() -> None:
        try:
            while True:
                thread.goes_on()
        except GivenUpError:
            has_ended.set()

    planning = asyncio.create_task(thread.run(work))
    await asyncio.sleep(0.01)
    planning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await planning
    assert await asyncio.to_thread(has_ended.wait, 10)


class Slowly(InTurn):
    """Something happens between the look at the cluster and the end of the plan."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], Any] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        made = work()
        if self.meanwhile is not None:
            await self.meanwhile()
        return made


def test_no_machine_comes_for_pods_that_went_while_it_was_planned() -> None:
    slowly = Slowly()

    async def scenario(world: World) -> None:
        await world.until_nodes("general-0")

        async def meanwhile() -> None:
            if await world.items("/api/v1/namespaces/default/pods"):
                await world.scale("web", 0)
                await world.until("/api/v1/namespaces/default/pods", lambda pods: not pods)

        slowly.meanwhile = meanwhile
        await world.deployment("web", replicas=9, cpu="1")
        await world.clock.sleep(60.0)
        assert await world.items("/api/v1/namespaces/default/pods") == {}
        assert await world.events("TriggeredScaleUp") == []
        assert set(await world.items("/api/v1/nodes")) == {"general-0"}

    run(scenario, live_group(min_size=1, initial_size=1), beside=slowly)
