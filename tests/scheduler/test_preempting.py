"""Preemption through the whole scheduler: who is evicted, who waits, who gets the room."""

import asyncio
import random

import msgspec
import pytest

from berth.kube.client.errors import FencedError, UnavailableError
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from tests.builders import disruption_budget, node, pod, selector
from tests.harness import Harness, RecordedEvent


@pytest.fixture
def harness() -> Harness:
    return Harness()


async def wait_out_backoff(harness: Harness) -> None:
    harness.clock.advance(20)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()


def evictions(harness: Harness) -> int:
    return sum(event.reason == "Preempted" for event in harness.cluster.events)


async def test_the_least_pod_makes_room_for_a_more_important_one(harness: Harness) -> None:
    harness.put(
        node("n1", cpu=2),
        pod("low", cpu=1, priority=1, node="n1"),
        pod("middle", cpu=1, priority=5, node="n1"),
        pod("high", cpu=1, priority=9),
    )
    await harness.until_idle()

    assert harness.placements() == {"middle": "n1", "high": "n1"}
    assert harness.cluster.events == [
        RecordedEvent(
            "default/high",
            "Warning",
            "FailedScheduling",
            "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement"
            " for pod on node n1, preempting 1 victims",
        ),
        RecordedEvent(
            "default/low",
            "Normal",
            "Preempted",
            "Preempted by pod pod-default-high on node n1",
        ),
        RecordedEvent(
            "default/high", "Normal", "Scheduled", "Successfully assigned default/high to n1"
        ),
    ]


async def test_victims_are_told_why_and_leave_in_their_own_time(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    low = pod("low", cpu=1, node="n1")
    harness.put(node("n1", cpu=1), low, pod("high", cpu=1, priority=9))
    await harness.until_idle()

    (told,) = harness.cluster.pods["default/low"].status.conditions
    assert (told.type, told.status, told.reason, told.message) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert harness.placements() == {"low": "n1"}
    assert harness.cluster.pods["default/high"].status.nominated_node_name == "n1"

    await wait_out_backoff(harness)
    assert evictions(harness) == 1

    harness.delete(low)
    await wait_out_backoff(harness)
    assert harness.placements() == {"high": "n1"}


async def test_a_nominated_pod_is_not_robbed_of_its_room(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    low = pod("low", cpu=1, node="n1")
    harness.put(node("n1", cpu=1), low, pod("high", cpu=1, priority=9))
    await harness.until_idle()

    harness.put(pod("late", cpu=1, priority=5))
    harness.delete(low)
    await wait_out_backoff(harness)
    assert harness.placements() == {"high": "n1"}


async def test_two_preemptors_do_not_take_the_same_room(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    lows = [pod(f"low-{i}", cpu=1, node=f"n{i}") for i in range(2)]
    harness.put(node("n0", cpu=1), node("n1", cpu=1), *lows)
    harness.put(pod("a", cpu=1, priority=9), pod("b", cpu=1, priority=9))
    await harness.until_idle()

    nominated = {p.status.nominated_node_name for p in harness.cluster.pods.values()}
    assert nominated == {"", "n0", "n1"}

    harness.delete(*lows)
    await wait_out_backoff(harness)
    assert sorted(harness.placements()) == ["a", "b"]


async def test_a_pod_of_even_higher_priority_takes_the_node_over(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    leaving, staying = pod("leaving", cpu=1, node="n1"), pod("staying", cpu=1, node="n1")
    harness.put(node("n1", cpu=2), leaving, staying, pod("high", cpu=1, priority=8))
    await harness.until_idle()
    assert harness.cluster.pods["default/high"].status.nominated_node_name == "n1"

    harness.put(pod("higher", cpu=2, priority=9))
    await harness.until_idle()

    assert harness.cluster.pods["default/high"].status.nominated_node_name == ""
    harness.delete(leaving, staying)
    await wait_out_backoff(harness)
    assert harness.placements() == {"higher": "n1"}


async def test_a_budget_is_respected_where_there_is_another_way(harness: Harness) -> None:
    web = selector({"app": "web"})
    harness.cluster.listers.pod_disruption_budgets.on_add(disruption_budget(selects=web))
    harness.put(
        node("n1", cpu=1),
        node("n2", cpu=1),
        pod("web", cpu=1, priority=0, node="n1", labels={"app": "web"}),
        pod("batch", cpu=1, priority=5, node="n2", labels={"app": "batch"}),
        pod("high", cpu=1, priority=9),
    )
    await harness.until_idle()
    assert harness.placements() == {"web": "n1", "high": "n2"}

    harness.put(pod("higher", cpu=1, priority=9))
    await harness.until_idle()
    assert harness.placements() == {"higher": "n1", "high": "n2"}


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(
            pod("p", cpu=1, priority=9, preemption_policy="Never"), id="it never preempts"
        ),
        pytest.param(pod("p", cpu=1, priority=1), id="it is no more important"),
        pytest.param(pod("p", cpu=2, priority=9), id="it would not fit even so"),
    ],
)
async def test_nobody_is_evicted_in_vain(harness: Harness, waiting: Pod) -> None:
    harness.put(node("n1", cpu=1), pod("low", cpu=1, priority=1, node="n1"), waiting)
    await harness.until_idle()
    assert harness.placements() == {"low": "n1"}
    assert {event.reason for event in harness.cluster.events} == {"FailedScheduling"}


async def test_an_eviction_that_fails_is_tried_again(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), pod("low", cpu=1, node="n1"), pod("high", cpu=1, priority=9))
    harness.cluster.evict_error = UnavailableError("connection refused", sent=False)
    queued = harness.queue.pop()
    assert queued is not None
    assert not harness.scheduler.scheduling_cycle(queued)
    pending = harness.preemptions.take()
    assert pending is not None
    preparing = asyncio.create_task(
        harness.preemptions.prepare_candidate(pending, harness.queue), name="prepare candidate"
    )
    await asyncio.sleep(0)
    assert harness.queue.sub_queues.pending_counts()["active"] == 0

    harness.cluster.evict_error = None
    harness.clock.advance(1)
    await preparing
    await harness.until_idle()
    assert harness.placements() == {"high": "n1"}


async def test_a_preemptor_is_true_to_the_node_that_victims_are_leaving(harness: Harness) -> None:
    """Also when the API has not heard of its nomination yet."""
    harness.cluster.lets_victims_linger = True
    lows = [pod(f"low-{i}", cpu=1, node=f"n{i}") for i in range(3)]
    harness.put(*(node(f"n{i}", cpu=1) for i in range(3)), *lows, pod("high", cpu=1, priority=9))
    await harness.until_idle()
    high = harness.cluster.pods["default/high"]
    forgetful = msgspec.structs.replace(high.status, nominated_node_name="")
    harness.cluster.pods["default/high"] = msgspec.structs.replace(high, status=forgetful)

    harness.queue.activate([harness.cluster.pods["default/high"]])
    await harness.until_idle()

    assert evictions(harness) == 1


async def test_the_preemptor_is_gated_until_its_last_victim_goes(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    first, last = (pod(name, cpu=1, node="n1") for name in ("first", "last"))
    high = pod("high", cpu=2, priority=9)
    harness.put(node("n1", cpu=2), first, last, high)
    await harness.until_idle()
    chosen = Candidate(0, "n1", (PodInfo(first), PodInfo(last)), 0)
    profile = high.spec.scheduler_name
    harness.preemptions.prepare_candidate_async(PodInfo(high), profile=profile, chosen=chosen)
    pending = harness.preemptions.take()
    assert pending is not None
    harness.delete(first)
    assert harness.queue.sub_queues.pending_counts()["gated"] == 1

    pending.last_victim = PodInfo(last)
    harness.delete(last)
    assert harness.queue.sub_queues.pending_counts()["gated"] == 0
    await harness.preemptions.prepare_candidate(pending, harness.queue)

    await wait_out_backoff(harness)
    assert harness.placements() == {"high": "n1"}


@pytest.mark.parametrize(
    "lingers", [pytest.param(False, id="gone at once"), pytest.param(True, id="in its own time")]
)
async def test_nobody_else_is_evicted_before_the_watch_has_told_of_the_victim(
    harness: Harness, *, lingers: bool
) -> None:
    """In between, the node looks full, and as if nobody left it."""
    harness.cluster.tells_of_evictions_late = True
    harness.cluster.lets_victims_linger = lingers
    lows = [pod(f"low-{i}", cpu=1, node=f"n{i}") for i in range(2)]
    unrelated = pod("unrelated", priority=20, node="n0")
    harness.put(node("n0", cpu=1), node("n1", cpu=1), *lows, unrelated)
    harness.put(pod("high", cpu=1, priority=9))
    await harness.until_idle()

    harness.delete(unrelated)
    await harness.until_idle()
    assert evictions(harness) == 1
    assert not harness.preemptions.is_idle

    await harness.cluster.tell_of_evictions()
    await harness.until_idle()
    if lingers:
        leaving = [
            each for each in harness.cluster.pods.values() if each.metadata.deletion_timestamp
        ]
        harness.delete(*leaving)
        await wait_out_backoff(harness)
    assert evictions(harness) == 1
    assert "high" in harness.placements()
    assert harness.preemptions.is_idle


@pytest.mark.parametrize("evicted", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
async def test_the_next_leader_goes_on_where_the_last_one_evicted(evicted: int, seed: int) -> None:
    """Two nodes are as good as each other. The first leader ends after some of three evictions."""
    first = Harness()
    first.cluster.lets_victims_linger = True
    lows = [pod(f"low-{node}-{i}", cpu=1, node=node) for node in ("a", "b") for i in range(3)]
    first.put(node("a", cpu=3), node("b", cpu=3), *lows, pod("high", cpu=3, priority=9))
    allowed = evicted
    evict = first.cluster.evict

    async def evict_while_leading(
        victim: Pod, condition: Condition, *, nominated: Pod | None = None
    ) -> bool:
        nonlocal allowed
        if not allowed:
            raise FencedError("another replica may lead by now")
        allowed -= 1
        return await evict(victim, condition, nominated=nominated)

    first.cluster.evict = evict_while_leading  # type: ignore[assignment, method-assign]
    bindings = await first.core.schedule_next()
    assert bindings == ()
    carrying = asyncio.create_task(first.core.step())
    for _ in range(20):
        await asyncio.sleep(0)
    carrying.cancel()
    await asyncio.wait([carrying])
    chosen = first.cluster.pods["default/high"].status.nominated_node_name
    leaving = [each for each in first.cluster.pods.values() if each.metadata.deletion_timestamp]
    assert [each.spec.node_name for each in leaving] == evicted * [chosen]

    second = Harness(rng=random.Random(seed))
    second.cluster.lets_victims_linger = True
    second.put(node("a", cpu=3), node("b", cpu=3), *first.cluster.pods.values())
    for _ in range(3):
        await wait_out_backoff(second)
        pods = second.cluster.pods.values()
        second.delete(*[each for each in pods if each.metadata.deletion_timestamp])
    await wait_out_backoff(second)
    assert second.placements()["high"] == chosen
    assert len(second.placements()) == 4
