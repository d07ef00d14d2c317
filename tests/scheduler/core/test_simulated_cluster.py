"""A simulation goes on as long as anything can come of it, and not longer."""

from typing import Any

import pytest

from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import API_VERSION, KIND
from berth.scheduler.core.simulated_cluster import (
    MOST_ATTEMPTS,
    SimulatedCluster,
    SimulationOptions,
    run_simulation,
)
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Verdict
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod

START = 1_000_000_000.0


def cluster(*plugins: type[Plugin], **options: Any) -> SimulatedCluster:
    registry = {**IN_TREE, **{plugin.NAME: plugin for plugin in plugins}}
    enabled = [{"name": plugin.NAME} for plugin in plugins]
    written = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    config = from_object(written, source="test", args_models=args_models(registry))
    return SimulatedCluster(config, registry, SimulationOptions(start=START, **options))


def placed(made: SimulatedCluster) -> dict[str, str]:
    return {key: each.spec.node_name for key, each in made.pods.items() if each.spec.node_name}


async def run(made: SimulatedCluster) -> None:
    await made.run_until_quiet()
    made.core.check_invariants()


async def test_nothing_happens_on_an_empty_cluster() -> None:
    made = cluster()
    await run(made)
    assert made.clock.now() == START


async def test_who_fits_nowhere_is_tried_once() -> None:
    made = cluster()
    made.put(node("n1", cpu=1))
    made.put(pod("huge", cpu=9))
    await run(made)
    assert [record.attempt for record in made.core.scheduler.decisions.all()] == [1]
    assert made.clock.now() == START


class Deaf(FilterPlugin, EnqueueExtensions):
    """Wants a pod to be there first, and hears of none: only time brings another attempt."""

    NAME = "Deaf"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        if pod.name != "second" or any(nodes.pods):
            return Verdict()
        return Verdict.reject(Status.unschedulable("too early"), where=nodes.exists)

    def events_to_register(self) -> list[Any]:
        return []


async def test_who_is_woken_by_nothing_is_tried_again_after_five_minutes() -> None:
    made = cluster(Deaf)
    made.put(node("n1"))
    made.put(pod("second", priority=1))
    made.put(pod("first"))
    await run(made)
    assert placed(made) == {"default/second": "n1", "default/first": "n1"}
    assert 300 < made.clock.now() - START <= 330


class Breaking(FilterPlugin):
    """Breaks at the first attempts, and each time the pod rests."""

    NAME = "Breaking"
    attempts = 0

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        self.attempts += 1
        if pod.name == "unlucky" and self.attempts < 3:
            raise OSError("no route")
        return Verdict()


async def test_the_clock_is_moved_to_the_end_of_a_backoff() -> None:
    made = cluster(Breaking)
    made.put(node("n1"))
    made.put(pod("unlucky", priority=1))
    made.put(pod("other"))  # its binding is a change after which the first is worth another look
    await run(made)
    assert "default/other" in placed(made)
    assert START < made.clock.now() < START + 330


class Waits(PermitPlugin):
    """Holds the leader back until the follower has come, for ten seconds at most."""

    NAME = "Waits"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        if pod.name == "leader":
            return Status(Code.WAIT), 10.0
        for binding in scheduler_of_test.core.scheduler.bindings:
            if binding.waiting is not None:
                binding.waiting.allow(self.NAME)
        return None, 0.0


scheduler_of_test: SimulatedCluster


@pytest.mark.parametrize(
    ("follows", "want"),
    [
        pytest.param(True, {"default/leader": "n1", "default/follower": "n1"}, id="it comes"),
        pytest.param(False, {}, id="it does not come, and time is up"),
    ],
)
async def test_a_pod_waits_on_permit_in_simulated_time(
    follows: bool,
    want: dict[str, str],
) -> None:
    global scheduler_of_test
    scheduler_of_test = made = cluster(Waits)
    made.put(node("n1"))
    made.put(pod("leader", priority=1))
    if follows:
        made.put(pod("follower"))
    await run(made)
    assert placed(made) == want
    assert (made.clock.now() > START) is not follows


class Restless(FilterPlugin, EnqueueExtensions):
    """Rejects everybody, and has all others tried again at once, for ever."""

    NAME = "Restless"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        queue = scheduler_of_test.core.queue
        queue.activate([queued.pod for queued in queue.sub_queues if queued.key != pod.key])
        return Verdict.reject(Status.unschedulable("no"), where=nodes.exists)

    def events_to_register(self) -> list[Any]:
        return []


async def test_pods_that_wake_each_other_for_ever_come_to_an_end() -> None:
    global scheduler_of_test
    scheduler_of_test = made = cluster(Restless)
    made.put(node("n1"))
    for name in "abc":
        made.put(pod(name))
    await run(made)
    assert placed(made) == {}
    assert made.core.scheduler.decisions.made <= MOST_ATTEMPTS * 4 + 1


class Outward(PreBindPlugin, PostBindPlugin):
    """Would do something to the world outside."""

    NAME = "Outward"

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        raise AssertionError("not in a simulation")

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        raise AssertionError("not in a simulation")

    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise AssertionError("not in a simulation")


async def test_what_plugins_do_to_the_world_outside_is_left_out() -> None:
    made = cluster(Outward)
    made.put(node("n1"))
    made.put(pod("p"))
    await run(made)
    assert placed(made) == {"default/p": "n1"}


async def test_binds_are_undone_and_the_cluster_is_as_it_was() -> None:
    made = cluster()
    made.put(node("n1", cpu=2))
    made.put(pod("running", cpu=1, node="n1"))
    made.put(pod("p", cpu=1))
    await run(made)
    made.undo_binds()
    made.core.check_invariants()
    assert placed(made) == {"default/running": "n1"}
    await run(made)
    assert placed(made) == {"default/running": "n1"}, "it does not wait any more"
    made.wait_anew(made.pods["default/p"])
    await run(made)
    assert placed(made) == {"default/running": "n1", "default/p": "n1"}


async def test_preemption_can_be_left_out() -> None:
    for preempts in (True, False):
        made = cluster(preempts=preempts)
        made.put(node("n1", cpu=1))
        made.put(pod("low", cpu=1, node="n1", priority=0))
        made.put(pod("high", cpu=1, priority=9))
        await run(made)
        assert ("default/high" in placed(made)) is preempts
        assert [victim.pod.key for victim in made.victims] == ["default/low"] * preempts


async def test_a_simulation_runs_where_an_event_loop_runs_already() -> None:
    async def answer() -> int:
        return 42

    assert run_simulation(answer()) == 42
