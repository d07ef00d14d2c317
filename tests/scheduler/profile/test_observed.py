"""How long extension points and plugins took, and in which cycles plugins are timed at all."""

import random

import numpy as np
import pytest

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    FilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, WAIT, Code, Status
from berth.scheduler.framework.verdict import PASS, Rejection, Verdict
from berth.scheduler.metrics.recorders import SAMPLED
from berth.scheduler.profile.observed import label_of
from tests.builders import node, pod
from tests.harness import Harness, with_plugins
from tests.scheduler.metrics.reading import attempts, counted, summed

PLUGIN_DURATION = "scheduler_plugin_execution_duration_seconds"
POINT_DURATION = "scheduler_framework_extension_point_duration_seconds"
PROFILE = "default-scheduler"


class Dice(random.Random):
    """Fall as they are told."""

    def __init__(self, *falls: float) -> None:
        super().__init__()
        self._falls = list(falls)

    def random(self) -> float:
        return self._falls.pop(0)


YES, NO = 0.0, SAMPLED


class Slow(PreEnqueuePlugin, FilterPlugin, ScorePlugin):
    """Takes one, two and four seconds."""

    NAME = "Slow"

    def _spend(self, seconds: float) -> None:
        assert self.handle is not None
        self.handle.clock.advance(seconds)  # type: ignore[attr-defined] # the tests' clock

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self._spend(1)
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        self._spend(2)
        return PASS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores | Status:
        self._spend(4)
        return np.zeros(nodes.size, np.int64)


async def after_one_pod(*falls: float) -> Harness:
    """Return a harness that has placed a pod; the dice fall when it is queued, then when tried."""
    harness = with_plugins(Slow, dice=Dice(*falls))
    harness.put(node("n1"), node("n2"), pod("p"))
    await harness.until_idle()
    assert attempts(harness) == {"scheduled": 1}
    return harness


async def test_points_are_timed_in_every_cycle() -> None:
    harness = await after_one_pod(NO, NO)
    times = {point: s for (point, _, _), s in summed(harness.registry, POINT_DURATION).items() if s}
    assert times == {"PreEnqueue": 1, "Filter": 2, "Score": 4}


async def test_plugins_are_timed_in_sampled_cycles() -> None:
    harness = await after_one_pod(NO, YES)
    times = summed(harness.registry, PLUGIN_DURATION)
    assert {labels: seconds for labels, seconds in times.items() if seconds} == {
        ("Filter", "Slow", "Success"): 2,
        ("Score", "Slow", "Success"): 4,
    }
    points = {point for point, _, _ in times}
    assert points == {
        "PreFilter", "Filter", "PreScore", "Score", "ScoreExtensionNormalize", "Reserve",
        "PreBindPreFlight", "Bind",
    }  # fmt: skip


async def test_plugins_are_timed_in_sampled_ways_into_the_queue() -> None:
    harness = await after_one_pod(YES, NO)
    assert summed(harness.registry, PLUGIN_DURATION) == {
        ("PreEnqueue", plugin, "Success"): 1.0 if plugin == "Slow" else 0.0
        for plugin in ("DefaultPreemption", "DynamicResources", "SchedulingGates", "Slow")
    }


async def test_otherwise_they_are_not() -> None:
    harness = await after_one_pod(NO, NO)
    assert counted(harness.registry, PLUGIN_DURATION) == {}


class Broken(FilterPlugin):
    """Cannot filter."""

    NAME = "Broken"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        raise ValueError("no idea")


async def test_a_plugin_that_breaks() -> None:
    harness = with_plugins(Broken, dice=Dice(NO, YES, NO))
    harness.put(node("n1"), pod("p"))
    await harness.until_idle(attempts=2)

    assert attempts(harness) == {"error": 1}
    plugins = counted(harness.registry, PLUGIN_DURATION)
    assert plugins["Filter", "Broken", "Error"] == 1
    points = counted(harness.registry, POINT_DURATION)
    assert points["Filter", PROFILE, "Error"] == 1
    message = harness.cluster.conditions["default/p"].message
    assert message == "running \"Broken\" filter plugin: ValueError('no idea')"


SOME = np.array([True])


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        pytest.param(None, "Success", id="nothing to say"),
        pytest.param(PASS, "Success", id="all nodes pass"),
        pytest.param(
            Verdict(
                (
                    Rejection("a", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, SOME),
                    Rejection("b", Code.UNSCHEDULABLE, SOME),
                )
            ),
            "UnschedulableAndUnresolvable",
            id="nodes are rejected for two reasons: the first",
        ),
        pytest.param(Status.unschedulable("full"), "Unschedulable", id="a status"),
        pytest.param(SKIP, "Skip", id="a skip"),
        pytest.param((WAIT, 5.0), "Wait", id="permit after a while"),
        pytest.param((None, 0.0), "Success", id="permit at once"),
        pytest.param(PostFilterResult(None, "n1"), "Success", id="room was made"),
        pytest.param(
            PostFilterResult(Status.unschedulable("no")), "Unschedulable", id="no room was made"
        ),
    ],
)
def test_the_code_of_an_answer(answer: object, label: str) -> None:
    assert label_of(answer) == label
