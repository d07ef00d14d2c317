"""Pods that a plugin wants placed in one step; what gangs are for is in tests/examples."""

from typing import Any

import pytest

from berth.scheduler.framework.cycle_state import CycleState, Gang
from berth.scheduler.framework.interface import PreFilterPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness, with_plugins
from tests.scheduler.asking import entry, everybody
from tests.scheduler.extender.fakes import FakeNetwork


class Pairs(PreFilterPlugin):
    """Places ``a`` with ``b``, and fails on ``broken``."""

    NAME = "Pairs"
    members = ("default/a", "default/b")

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Any) -> Status | None:
        if pod.key in self.members:
            state.gang = Gang("pair", self.members, self.NAME)
        return Status.error("no idea") if pod.labels.get("is") == "broken" else None


@pytest.fixture
def harness() -> Harness:
    return with_plugins(Pairs)


def told(harness: Harness) -> dict[str, str]:
    events = harness.cluster.events
    return {e.pod: e.note for e in events if e.reason == "FailedScheduling"}


async def test_the_companion_comes_before_whoever_was_next(harness: Harness) -> None:
    harness.put(node("n1", cpu="2"))
    other = pod("other", cpu="1", priority=5, preemption_policy="Never")
    harness.put(pod("a", cpu="1", priority=9), other, pod("b", cpu="1"))
    await harness.until_idle()

    assert harness.placements() == {"a": "n1", "b": "n1"}


async def test_each_attempt_is_counted_and_recorded(harness: Harness) -> None:
    harness.put(node("n1"), pod("a"), pod("b"))
    await harness.until_idle()

    records = harness.scheduler.decisions.all()
    assert sorted((r.pod, r.attempt, r.node) for r in records) == [
        ("default/a", 1, "n1"),
        ("default/b", 1, "n1"),
    ]


async def test_one_that_breaks_fails_all_as_an_error(harness: Harness) -> None:
    harness.put(node("n1"), pod("a"), pod("b", labels={"is": "broken"}))
    await harness.until_idle(attempts=50)

    why = (
        "pair: 1 of 2 members fit; first blocker default/b:"
        ' running PreFilter plugin "Pairs": no idea'
    )
    assert told(harness)["default/a"] == why
    assert harness.placements() == {}
    assert harness.queue.sub_queues.pending_counts()["backoff"] == 2


async def test_one_that_is_not_there_is_missed(harness: Harness) -> None:
    harness.put(node("n1"), pod("a"))
    await harness.until_idle()

    assert told(harness) == {"default/a": "pair: 1 of 2 members fit; missing: default/b"}
    assert harness.placements() == {}


async def test_one_that_is_being_deleted_is_missed(harness: Harness) -> None:
    harness.put(node("n1"), pod("a"), pod("b", deleted="2026-01-01T00:00:00Z"))
    await harness.until_idle()

    assert harness.placements() == {}
    assert told(harness)["default/a"].endswith("missing: default/b")


async def test_extenders_cannot_be_asked_about_all_at_once() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Pairs"}]}}}],
        "extenders": [entry(filterVerb="filter")],
    }
    network = FakeNetwork({"/filter": everybody})
    harness = Harness(config=config, registry={**IN_TREE, "Pairs": Pairs}, network=network)
    harness.put(node("n1"), pod("a"), pod("b"), pod("alone"))
    await harness.until_idle(attempts=50)

    assert harness.placements() == {"alone": "n1"}
    assert told(harness)["default/a"] == (
        "pair: extenders cannot be called while a gang is scheduled in one step"
    )
