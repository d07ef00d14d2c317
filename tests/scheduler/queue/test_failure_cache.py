"""Pods of a signature that is known to fit nowhere are not tried one by one, and lose nothing."""

from collections.abc import Sequence
from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import ClusterEventWithHint
from berth.scheduler.framework.interface import EnqueueExtensions
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Status
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import affinities, node, pod, pod_affinity, pod_term
from tests.harness import Harness, RecordedEvent, with_plugins

FULL = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


@pytest.fixture
def harness() -> Harness:
    return Harness()


def not_tried(harness: Harness) -> int:
    """Return how many failures stood for an attempt."""
    return sum(1 for record in harness.scheduler.decisions.all() if record.answered_by)


def hopeless(n: int, **more: Any) -> Pod:
    return pod(f"hopeless-{n}", cpu=100, **more)


async def test_a_crowd_that_fits_nowhere_costs_one_attempt(harness: Harness) -> None:
    harness.put(node("n1", cpu=4))
    for n in range(30):
        harness.put(hopeless(n))
        if n % 10 == 0:
            harness.put(pod(f"fits-{n}", cpu=1))
    await harness.until_idle()

    assert harness.placements() == dict.fromkeys(["fits-0", "fits-10", "fits-20"], "n1")
    assert not_tried(harness) == 29
    (profile,) = harness.scheduler.profiles.values()
    assert profile.evaluations["Filter"]["NodeResourcesFit"] == 4


async def test_each_of_them_is_told_as_if_it_had_been_tried(harness: Harness) -> None:
    harness.put(node("n1", cpu=4), *(hopeless(n) for n in range(3)))
    await harness.until_idle()

    keys = [f"default/hopeless-{n}" for n in range(3)]
    assert harness.cluster.events == [
        RecordedEvent(key, "Warning", "FailedScheduling", FULL) for key in keys
    ]
    conditions = [harness.cluster.conditions[key] for key in keys]
    assert {(c.type, c.status, c.reason, c.message) for c in conditions} == {
        ("PodScheduled", "False", "Unschedulable", FULL)
    }
    waiting = [harness.queue.sub_queues.get(key) for key in keys]
    assert [(q.attempts, q.unschedulable_count, q.unschedulable_plugins) for q in waiting if q] == [
        (1, 1, {"NodeResourcesFit"})
    ] * 3
    assert {harness.queue.sub_queues.place_of(key) for key in keys} == {SubQueue.UNSCHEDULABLE}
    sample = "scheduler_schedule_attempts_total"
    labels = {"profile": "default-scheduler", "result": "unschedulable"}
    assert harness.registry.get_sample_value(sample, labels) == 3


async def test_their_records_name_the_pod_that_was_tried(harness: Harness) -> None:
    harness.put(node("n1", cpu=4), *(hopeless(n) for n in range(2)))
    await harness.until_idle()

    records = harness.scheduler.decisions.all()
    assert [(r.pod, r.number, r.attempt, r.message, r.answered_by) for r in records] == [
        ("default/hopeless-0", 1, 1, FULL, ""),
        ("default/hopeless-1", 2, 1, FULL, "default/hopeless-0"),
    ]


async def test_what_helps_one_helps_all(harness: Harness) -> None:
    harness.put(node("n1", cpu=4), *(pod(f"p{n}", cpu=5) for n in range(3)))
    await harness.until_idle()
    assert harness.placements() == {}

    harness.put(node("n2", cpu=10))
    await harness.until_idle()

    assert harness.placements() == {"p0": "n2", "p1": "n2"}


async def test_a_lesser_pod_that_came_meanwhile_is_evicted(harness: Harness) -> None:
    """No event wakes who could evict it, but a new pod is tried and would (spec §6)."""
    harness.put(node("n1", cpu=3), pod("firm", cpu=1, priority=9, node="n1"))
    harness.put(pod("high-0", cpu=3, priority=5))
    await harness.until_idle()
    harness.put(pod("low", cpu=2, priority=0))
    await harness.until_idle()
    assert harness.placements() == {"firm": "n1", "low": "n1"}
    harness.put(node("n2", cpu=2), pod("high-1", cpu=2, priority=5))
    await harness.until_idle()
    harness.put(pod("high-2", cpu=2, priority=5))
    await harness.until_idle()

    assert harness.placements() == {"firm": "n1", "high-1": "n2", "high-2": "n1"}


async def test_preemptors_of_a_signature_are_tried_once_there_is_somebody_to_evict(
    harness: Harness,
) -> None:
    harness.put(node("n1", cpu=2), pod("firm", cpu=1, priority=9, node="n1"))
    harness.put(pod("high-0", cpu=2, priority=5), pod("high-1", cpu=2, priority=5))
    await harness.until_idle()
    assert not_tried(harness) == 1

    harness.put(pod("low", cpu=1, priority=0), pod("high-2", cpu=2, priority=5))
    queued = harness.queue.pop()
    assert queued is not None
    assert queued.key == "default/high-2"
    assert harness.scheduler.apply_cached_failure(queued)
    assert not_tried(harness) == 2
    low = harness.queue.pop()
    assert low is not None
    assert harness.scheduler.scheduling_cycle(low)
    harness.put(pod("high-3", cpu=2, priority=5))
    late = harness.queue.pop()
    assert late is not None

    assert not harness.scheduler.apply_cached_failure(late), (
        "a lesser pod was assumed, so high-3 is tried"
    )


async def test_a_pod_that_attracts_others_does_so_before_it_is_bound(harness: Harness) -> None:
    near = affinities(pod_affinity(required=[pod_term({"app": "magnet"})]))
    harness.put(node("n1", zone="a"), pod("follower-0", affinity=near))
    await harness.until_idle()
    harness.put(pod("magnet", labels={"app": "magnet"}))
    magnet = harness.queue.pop()
    assert magnet is not None
    assert harness.scheduler.scheduling_cycle(magnet)
    harness.put(pod("follower-1", affinity=near))
    follower = harness.queue.pop()
    assert follower is not None

    assert not harness.scheduler.apply_cached_failure(follower)
    assert harness.scheduler.scheduling_cycle(follower)


async def test_one_attempt_stands_for_others_beside_nominated_pods(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    harness.put(node("n1", cpu=2), pod("low", cpu=2, node="n1"), pod("high", cpu=2, priority=9))
    await harness.until_idle()
    assert harness.cluster.pods["default/high"].status.nominated_node_name == "n1"

    harness.put(*(hopeless(n) for n in range(3)))
    await harness.until_idle()
    assert not_tried(harness) == 2


async def test_each_is_tried_again_once_a_nomination_was_given_up(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    harness.put(node("n1", cpu=2), pod("low", cpu=2, node="n1"), pod("high", cpu=2, priority=9))
    harness.put(hopeless(0))
    await harness.until_idle()
    harness.queue.nominator.delete_nominated_pod_if_exists(
        harness.cluster.pods["default/high"].metadata.uid
    )
    harness.put(hopeless(1))
    await harness.until_idle()
    assert not_tried(harness) == 0


async def test_a_nominated_pod_that_gets_its_node_gives_nothing_up(harness: Harness) -> None:
    harness.put(node("n1", cpu=2), pod("low", cpu=2, node="n1"), pod("high", cpu=2, priority=9))
    await harness.until_idle()
    assert harness.placements()["high"] == "n1"
    assert harness.queue.nominator.given_up == 0


class Picky(ScalarFilter, EnqueueExtensions):
    """Looks at the name of the pod."""

    NAME = "Picky"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        return None if pod.name.endswith("2") else Status.unschedulable("wrong name")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return ()


class Strict(Picky):
    """Refuses everybody, and promises to."""

    NAME = "Strict"
    DECIDES_BY_SIGNATURE = True

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("no")


async def test_a_plugin_that_promises_nothing_is_asked_about_each_pod() -> None:
    harness = with_plugins(Picky)
    harness.put(node("n1"), *(pod(f"p{n}") for n in range(4)))
    await harness.until_idle()

    assert harness.placements() == {"p2": "n1"}
    assert not_tried(harness) == 0


async def test_a_plugin_that_decides_by_signature_is_asked_once() -> None:
    harness = with_plugins(Strict)
    harness.put(node("n1"), *(pod(f"p{n}") for n in range(4)))
    await harness.until_idle()

    assert not_tried(harness) == 3


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(hopeless(1, labels={"app": "b"}), id="of another signature"),
        pytest.param(hopeless(1, priority=1), id="of another priority"),
    ],
)
async def test_others_are_tried(harness: Harness, changed: Pod) -> None:
    harness.put(node("n1", cpu=4), hopeless(0), changed)
    await harness.until_idle()

    assert not_tried(harness) == 0


async def test_without_nodes_each_pod_is_tried(harness: Harness) -> None:
    """That is no rejection by plugins: kube-scheduler lets such pods rest and tries them again."""
    harness.put(hopeless(0), hopeless(1))
    for _ in range(2):
        queued = harness.queue.pop()
        assert queued is not None
        assert not harness.scheduler.apply_cached_failure(queued)
        harness.scheduler.scheduling_cycle(queued)


async def test_a_failure_ends_when_the_number_of_nodes_is_another(harness: Harness) -> None:
    """It counts them, and no event tells of a node that could not help."""
    harness.put(node("n1", cpu=4), hopeless(0))
    await harness.until_idle()
    harness.put(node("n2", cpu=4), hopeless(1), hopeless(2))
    await harness.until_idle()

    told = [harness.cluster.conditions[f"default/hopeless-{n}"].message[:3] for n in range(3)]
    assert told == ["0/1", "0/2", "0/2"]
    assert not_tried(harness) == 1
