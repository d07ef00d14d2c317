"""From a chosen node to a bound pod: what others are told, and what plugins may get wrong."""

import asyncio
import logging
from typing import Any, ClassVar

import pytest

from berth.scheduler.binding import Binding
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, WAIT, Code, Status
from berth.scheduler.framework.verdict import Verdict
from tests.builders import node, pod
from tests.harness import Harness, with_plugins


def reserved(harness: Harness) -> Binding:
    queued = harness.queue.pop()
    assert queued is not None
    (binding,) = harness.scheduler.scheduling_cycle(queued)
    return binding


def nominated(harness: Harness) -> str:
    return harness.cluster.pods["default/p"].status.nominated_node_name


# What others are told while a binding takes long.


class Hesitant(PermitPlugin):
    """Wants every pod to wait."""

    NAME = "Hesitant"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return WAIT, 10.0


class Preparing(PreBindPlugin):
    """Has something to do for pods of priority; notes what their nomination was then."""

    NAME = "Preparing"
    cluster: ClassVar[Any]
    seen: ClassVar[list[str]]

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None if pod.priority else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.seen.append(self.cluster.pods[pod.key].status.nominated_node_name)
        return None


async def test_a_pod_that_waits_on_permit_tells_its_node_and_takes_it_back_on_failure() -> None:
    harness = with_plugins(Hesitant)
    harness.put(node("n1"), pod("p"))
    binding = reserved(harness)
    assert binding.waiting is not None
    task = asyncio.create_task(harness.scheduler.binding_cycle.run(binding))
    for _ in range(5):
        await asyncio.sleep(0)
    assert nominated(harness) == "n1"

    binding.waiting.reject("Hesitant", "no")
    await task
    assert nominated(harness) == ""


@pytest.mark.parametrize(
    ("priority", "seen"),
    [
        pytest.param(1, ["n1"], id="work to do: told before it is begun"),
        pytest.param(0, [], id="nothing to do"),
    ],
)
async def test_a_pod_that_has_to_be_prepared_tells_its_node(priority: int, seen: list[str]) -> None:
    harness = with_plugins(Preparing)
    Preparing.cluster, Preparing.seen = harness.cluster, []
    harness.put(node("n1"), pod("p", priority=priority))
    await harness.until_idle()

    assert Preparing.seen == seen
    assert nominated(harness) == "".join(seen)
    assert harness.placements() == {"p": "n1"}


# Plugins that break their word.


class Undecided(PreBindPlugin):
    """Rejects where that is too late."""

    NAME = "Undecided"

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Status.unschedulable("too late")

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        raise AssertionError("never asked")


class Postponing(PreFilterPlugin):
    """Says Pending where that means nothing."""

    NAME = "Postponing"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return Status(Code.PENDING, ("later",))


class Failing(FilterPlugin):
    """Cannot evaluate one of the nodes."""

    NAME = "Failing"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        return Verdict.reject(Status.error("no idea"), where=nodes.rows_named(["n1"]))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        pytest.param(
            Undecided,
            'running PreBindPreFlight plugin "Undecided": too late',
            id="PreBindPreFlight",
        ),
        pytest.param(Postponing, 'running PreFilter plugin "Postponing": later', id="PreFilter"),
        pytest.param(Failing, 'running "Failing" filter plugin: no idea (node n1)', id="Filter"),
    ],
)
async def test_an_answer_that_is_not_allowed_is_an_error(kind: type[Plugin], message: str) -> None:
    harness = with_plugins(kind)
    harness.put(node("n1"), node("n2"), pod("p"))
    await harness.until_idle()

    condition = harness.cluster.conditions["default/p"]
    assert (condition.reason, condition.message) == ("SchedulerError", message)
    assert harness.queue.sub_queues.pending_counts()["backoff"] == 1
    assert harness.cache.counts()["assumed_pods"] == 0


class Careful(ReservePlugin):
    """Notes for which pods it gave back what it had reserved."""

    NAME = "Careful"
    returned: ClassVar[list[str]]

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.returned.append(pod.key)


class Careless(ReservePlugin):
    """Refuses, and then fails to give back."""

    NAME = "Careless"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Status.unschedulable("nothing left")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise ZeroDivisionError


async def test_a_plugin_that_fails_to_give_back_keeps_no_other_from_it() -> None:
    harness = with_plugins(Careful, Careless)
    Careful.returned = []
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()

    assert Careful.returned == ["default/p"]
    assert harness.cache.counts()["assumed_pods"] == 0
    assert harness.cluster.conditions["default/p"].message == (
        "0/1 nodes are available: 1 nothing left."
    )


async def test_a_pod_that_the_cache_has_already_is_not_placed_again() -> None:
    harness = Harness()
    harness.put(node("n1"), pod("p"))
    harness.cache.add_pod(PodInfo(pod("p", node="n1")))
    await harness.until_idle()

    condition = harness.cluster.conditions["default/p"]
    assert condition.reason == "SchedulerError"
    assert condition.message.endswith("is in the cache, it cannot be assumed")
    assert harness.queue.sub_queues.pending_counts()["backoff"] == 1
    assert harness.placements() == {}


class Breaking(PreBindPlugin):
    """Fails, for pods of priority because they are deleted meanwhile."""

    NAME = "Breaking"
    harness: ClassVar[Harness]

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if pod.priority:
            self.harness.delete(pod.pod)
        return Status.error("no answer")


@pytest.mark.parametrize(
    ("priority", "said"),
    [
        pytest.param(
            0, ["error scheduling pod, retrying"], id="an error, if the pod is still there"
        ),
        pytest.param(1, [], id="nothing, if the pod is gone"),
    ],
)
async def test_what_the_log_says_of_a_binding_that_broke(
    caplog: pytest.LogCaptureFixture, priority: int, said: list[str]
) -> None:
    harness = Breaking.harness = with_plugins(Breaking)
    harness.put(node("n1"), pod("p", priority=priority))
    with caplog.at_level(logging.INFO):
        await harness.until_idle()

    assert [r.message for r in caplog.records if r.name == "berth.scheduler.failure"] == said
    assert harness.cache.counts()["assumed_pods"] == 0
