"""Extenders that bind (spec §9.6)."""

from typing import Any

import httpx
import msgspec
import pytest

from tests.builders import container, node, pod
from tests.harness import Harness
from tests.scheduler.asking import entry, harness
from tests.scheduler.extender.fakes import FakeNetwork

LOST = httpx.ReadError("reset")
UNREACHED = httpx.ConnectError("refused")


class Binder:
    """Binds, or not, and then says what it is told to say."""

    def __init__(self, answer: Any, *, binds: bool, **fields: Any) -> None:
        self._reply, self._binds = answer, binds
        self.harness: Harness
        self.network: FakeNetwork
        self.harness, self.network = harness(
            {"/bind": self._answer}, entry(bindVerb="bind", **fields)
        )
        self.harness.cluster.bind_error = RuntimeError("the Bind plugins were asked")

    def _answer(self, asked: Any) -> Any:
        if self._binds:
            cluster = self.harness.cluster
            current = cluster.pods[f"{asked['PodNamespace']}/{asked['PodName']}"]
            spec = msgspec.structs.replace(current.spec, node_name=asked["Node"])
            cluster.put(msgspec.structs.replace(current, spec=spec))
        return self._reply


def events(made: Harness) -> list[tuple[str, str]]:
    return [(event.reason, event.note) for event in made.cluster.events]


async def test_it_binds_in_place_of_the_plugins_and_the_rest_is_as_ever() -> None:
    world = Binder({"Error": ""}, binds=True)
    world.harness.put(node("a"), pod("p"))
    await world.harness.until_idle()

    assert world.network.requests == [
        (
            "/bind",
            {"PodName": "p", "PodNamespace": "default", "PodUID": "pod-default-p", "Node": "a"},
        )
    ]
    assert events(world.harness) == [("Scheduled", "Successfully assigned default/p to a")]
    assert world.harness.scheduler.binding_cycle.scheduled == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(LOST, id="the answer was lost"),
        pytest.param({"Error": "timed out"}, id="it says that it failed"),
        pytest.param(500, id="it failed after that"),
    ],
)
async def test_a_pod_that_is_bound_in_spite_of_the_answer_is_bound(answer: Any) -> None:
    world = Binder(answer, binds=True)
    world.harness.put(node("a"), pod("p"))
    await world.harness.until_idle()

    assert events(world.harness) == [("Scheduled", "Successfully assigned default/p to a")]
    assert not world.harness.cache.is_assumed("pod-default-p")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({"Error": "taken"}, "taken", id="it says that it failed"),
        pytest.param(LOST, 'Post "http://one/bind": reset', id="the answer was lost"),
        pytest.param(UNREACHED, 'Post "http://one/bind": refused', id="it is not there"),
    ],
)
async def test_a_failure_gives_the_room_back_and_is_an_error(answer: Any, message: str) -> None:
    world = Binder(answer, binds=False)
    world.harness.put(node("a", cpu=1), pod("p", cpu=1))
    await world.harness.until_idle()

    condition = world.harness.cluster.conditions["default/p"]
    assert (condition.reason, condition.message) == ("SchedulerError", message)
    assert world.harness.cache.pod("pod-default-p") is None


@pytest.mark.parametrize(
    ("answer", "binds"),
    [
        pytest.param(UNREACHED, False, id="it is not there"),
        pytest.param({"Error": "no"}, False, id="it says that it failed"),
        pytest.param(LOST, True, id="the answer was lost, and it has bound the pod"),
    ],
)
async def test_one_that_may_be_ignored_gives_way_to_the_plugins(answer: Any, binds: bool) -> None:
    world = Binder(answer, binds=binds, ignorable=True)
    if not binds:
        world.harness.cluster.bind_error = None
    world.harness.put(node("a"), pod("p"))
    await world.harness.until_idle()
    assert world.harness.placements() == {"p": "a"}


async def test_nobody_looks_what_came_of_a_request_that_did_not_arrive() -> None:
    world = Binder(UNREACHED, binds=True)  # by somebody else, at the same moment
    world.harness.put(node("a"), pod("p"))
    await world.harness.until_idle()
    assert events(world.harness) == [("FailedScheduling", 'Post "http://one/bind": refused')]


async def test_pods_of_no_interest_are_bound_by_the_plugins() -> None:
    world = Binder(500, binds=False, managedResources=[{"name": "e.com/gpu"}])
    world.harness.cluster.bind_error = None
    world.harness.put(node("a"), pod("p"))
    await world.harness.until_idle()
    assert (world.harness.placements(), world.network.requests) == ({"p": "a"}, [])


@pytest.mark.parametrize(
    ("alone", "wants", "placements"),
    [
        pytest.param(True, "e.com/gpu", {"p": "a"}, id="the extender's alone"),
        pytest.param(True, "e.com/own", {}, id="it takes the place of what is configured"),
        pytest.param(False, "e.com/gpu", {}, id="not alone"),
        pytest.param(False, "e.com/own", {"p": "a"}, id="what is configured holds"),
    ],
)
async def test_resources_that_nobody_but_the_extender_looks_at(
    alone: bool, wants: str, placements: dict[str, str]
) -> None:
    made, _ = harness(
        {},
        entry(managedResources=[{"name": "e.com/gpu", "ignoredByScheduler": alone}]),
        profiles=[
            {
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["e.com/own"]}}
                ]
            }
        ],
    )
    made.put(node("a"), pod("p", containers=[container(requests={wants: 1})]))
    await made.until_idle()
    assert made.placements() == placements
