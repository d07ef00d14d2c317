"""Groups that preempt as one (spec G9, G19 10-13)."""

import asyncio
from typing import Any

import pytest

from berth.kube.client.errors import UnavailableError
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.core.scheduler_state import state_of
from berth.scheduler.pod_group import victims as victim_search
from berth.scheduler.pod_group.trial import PodGroupTrial
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import disruption_budget, node, pod, selector
from tests.harness import Harness, RecordedEvent
from tests.scheduler.pod_group.building import (
    group,
    group_harness,
    lesser,
    member,
    members,
    told,
    told_of_group,
)

GATE = "WorkloadAwarePreemption"
TOPOLOGY = "TopologyAwareWorkloadScheduling"
UNSCHEDULABLE = "pod group is unschedulable"
WAITS = "pod group is unschedulable, pod group is waiting for preemption to complete"
HELD = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled,"
    " one or more plugins asked to wait and no plugin rejected pod"
)
ALONE = (
    "no new claims to deallocate, preemption: not eligible due to workload aware preemption enabled"
)


def attempts(harness: Harness, result: str) -> float:
    labels = {"result": result, "profile": "default-scheduler"}
    name = "scheduler_podgroup_schedule_attempts_total"
    pod_groups = harness.metrics.pod_groups
    for family in pod_groups.collect():
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return 0


async def test_a_group_takes_the_room_of_pods_of_lower_priority() -> None:
    harness = group_harness(GATE)
    the_group = group(min_count=3, priority=100)
    harness.put(node("n", cpu="4"), the_group, *lesser("low0", "low1", "low2"))
    harness.put(*members("a", "b", "c", cpu="1", priority=0))
    await harness.until_idle()

    assert told_of_group(harness) == ("True", "Scheduled", "")
    assert sorted(harness.placements()) == ["a", "b", "c", "low0"]
    evicted = [event for event in harness.cluster.events if event.reason == "Preempted"]
    note = "Preempted by podgroup uid-g on node cluster"
    assert evicted == [
        RecordedEvent("default/low1", "Normal", "Preempted", note),
        RecordedEvent("default/low2", "Normal", "Preempted", note),
    ]
    assert [each.metadata.name for each in harness.cluster.related] == ["g", "g"]
    assert attempts(harness, "waiting_on_preemption") == 1
    assert harness.registry.get_sample_value("scheduler_preemption_victims_sum") == 2
    assert harness.registry.get_sample_value("scheduler_preemption_victims_count") == 1


async def test_what_is_told_while_victims_leave() -> None:
    harness = group_harness(GATE)
    harness.cluster.lets_victims_linger = True
    lows = lesser("low0", "low1")
    harness.put(node("n", cpu="3"), group(min_count=3, priority=100), *lows)
    harness.put(*members("a", "b", "c", cpu="1", priority=0))
    while await harness.core.step() and not harness.cluster.events:
        pass
    await harness.core.step()
    assert told_of_group(harness) == ("False", "Unschedulable", UNSCHEDULABLE)
    [feasible] = [name for name in "abc" if told(harness, name) == UNSCHEDULABLE]
    infeasible = [name for name in "abc" if name != feasible]
    for name in infeasible:
        assert told(harness, name) == f"0/1 nodes are available: 1 Insufficient cpu. {ALONE}"
    nominated = harness.queue.nominator.nominated_pods()
    assert sorted(each.name for each in nominated["n"]) == ["a", "b", "c"]
    assert [
        (found.type, found.reason, found.message)
        for found in harness.cluster.pods["default/low1"].status.conditions
    ] == [
        (
            "DisruptionTarget",
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority podgroup",
        )
    ]

    await harness.pass_time(10)  # the group tries again, and evicts nobody else
    assert told_of_group(harness) == ("False", "Unschedulable", WAITS)
    assert len([event for event in harness.cluster.events if event.reason == "Preempted"]) == 2
    assert len(harness.queue.nominator) == 3

    harness.delete(*lows)
    await harness.pass_time(10)
    assert sorted(harness.placements()) == ["a", "b", "c"]


async def test_victims_that_linger_are_known_after_a_restart() -> None:
    harness = group_harness(GATE)
    left = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = pod(
        "low", cpu="1", node="n", priority=10, deleted="2026-01-01T00:00:00Z", conditions=[left]
    )
    harness.put(node("n", cpu="1"), node("m", cpu="1"), group(min_count=1, priority=100))
    harness.put(leaving, *lesser("other", on="m"))
    harness.put(member("a", cpu="1", nominated="n"))
    await harness.pass_time(5)
    assert told_of_group(harness)[2] == WAITS
    assert "other" in harness.placements()


async def test_priorities_of_pods_play_no_role() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="2"), group(min_count=2), *lesser("low0", "low1"))
    harness.put(*members("a", "b", cpu="1", priority=100))
    await harness.pass_time(5)
    assert sorted(harness.placements()) == ["low0", "low1"]
    assert told_of_group(harness) == (
        "False",
        "Unschedulable",
        f"{UNSCHEDULABLE}, No preemption victims found for incoming preemptor",
    )
    assert attempts(harness, "waiting_on_preemption") == 0


@pytest.mark.parametrize(
    ("mode", "evicted"),
    [("PodGroup", {"v0", "v1", "v2", "v3"}), ("Pod", {"v3"})],
    ids=["as a whole", "pod by pod"],
)
async def test_a_group_is_evicted_as_its_disruption_mode_says(mode: str, evicted: set[str]) -> None:
    harness = group_harness(GATE)
    names = ["v0", "v1", "v2", "v3"]
    harness.put(*(node(f"n{number}", cpu="1") for number in range(4)))
    harness.put(group("v", min_count=4, priority=5, disruption_mode=mode))
    for number, name in enumerate(names):
        started = f"2026-01-01T00:0{number}:00Z"
        harness.put(member(name, "v", cpu="1", node=f"n{number}", priority=5, started=started))
    harness.put(group(min_count=1, priority=100), member("a", cpu="1"))
    await harness.until_idle()
    assert {*names} - harness.placements().keys() == evicted
    assert "a" in harness.placements()


async def test_the_priority_of_a_whole_group_is_its_own() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="1"))
    harness.put(group("v", min_count=1, priority=200, disruption_mode="PodGroup"))
    harness.put(member("v0", "v", cpu="1", node="n", priority=0))
    harness.put(group(min_count=1, priority=100), member("a", cpu="1"))
    await harness.pass_time(3)
    assert set(harness.placements()) == {"v0"}
    assert told_of_group(harness)[2].endswith("No preemption victims found for incoming preemptor")


async def test_a_pod_that_never_preempts_keeps_its_group_from_it() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="2"), group(min_count=2, priority=100), *lesser("low0", "low1"))
    harness.put(member("a", cpu="1"), member("b", cpu="1", preemption_policy="Never"))
    await harness.pass_time(5)
    assert sorted(harness.placements()) == ["low0", "low1"]
    assert told_of_group(harness)[2] == (
        f"{UNSCHEDULABLE}, not eligible due to preemptionPolicy=Never."
    )


async def test_no_victims_for_a_group_that_has_no_room_even_so() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="3"), group(min_count=3, priority=100), *lesser("low0", "low1"))
    harness.put(pod("mighty", cpu="1", node="n", priority=1_000))
    harness.put(*members("a", "b", "c", cpu="1"))
    await harness.pass_time(5)
    assert sorted(harness.placements()) == ["low0", "low1", "mighty"]
    assert told_of_group(harness)[2] == f"{UNSCHEDULABLE}, {UNSCHEDULABLE}"
    assert not len(harness.queue.nominator)


async def test_a_group_is_not_made_smaller_to_spare_a_victim() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="4"), group(min_count=2, priority=100))
    harness.put(*lesser("low0", "low1", "low2", "low3"), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["a", "b", "c", "low0"]


async def test_pods_of_the_group_that_run_are_no_victims() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="1"), group(min_count=2, priority=100))
    harness.put(member("a", cpu="1", node="n", priority=0), member("b", cpu="1", priority=0))
    await harness.pass_time(3)
    assert set(harness.placements()) == {"a"}


async def test_budgets_are_kept_if_others_can_go() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="3"), group(min_count=1, priority=100))
    harness.put(disruption_budget(selects=selector({"app": "kept"})))
    harness.put(pod("kept", cpu="1", node="n", priority=0, labels={"app": "kept"}))
    harness.put(
        pod("other", cpu="1", node="n", priority=50), pod("x", cpu="1", node="n", priority=99)
    )
    harness.put(member("a", cpu="1"))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["a", "kept", "x"]


async def test_the_end_of_evictions_wakes_the_group() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100), *lesser("low"))
    harness.cluster.evict_error = UnavailableError("connection refused", sent=False)
    harness.put(member("a", cpu="1"))
    assert await harness.core.step()
    queued = harness.queue.sub_queues
    assert queued.pending_counts()["gated"] == 1
    gate = harness.core.handle
    assert gate.is_preempting("uid-g")
    pending = harness.preemptions.take()
    assert pending is not None
    harness.cluster.evict_error = None
    await harness.preemptions.prepare_candidate(pending, harness.queue)
    assert queued.pending_counts()["active"] == 1
    await harness.until_idle()
    assert set(harness.placements()) == {"a"}


async def test_groups_with_constraints_do_not_preempt() -> None:
    harness = group_harness(GATE, TOPOLOGY)
    harness.put(node("n", cpu="1", labels={"rack": "a"}), *lesser("low"))
    harness.put(group(min_count=1, priority=100, topology="rack"), member("a", cpu="1"))
    await harness.pass_time(3)
    assert told_of_group(harness)[2] == (
        f"0/1 placements are available, first placement status: {UNSCHEDULABLE}, workload aware"
        " preemption is not supported for pod groups with scheduling constraints"
    )


async def test_without_a_constraint_a_group_preempts_also_where_others_have_one() -> None:
    harness = group_harness(GATE, TOPOLOGY)
    harness.put(node("n", cpu="1", labels={"rack": "a"}), *lesser("low"))
    harness.put(group(min_count=1, priority=100), member("a", cpu="1"))
    await harness.until_idle()
    assert set(harness.placements()) == {"a"}


async def test_without_the_plugin_groups_do_not_preempt() -> None:
    off = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}
    harness = group_harness(GATE, profiles=[off])
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100), *lesser("low"))
    harness.put(member("a", cpu="1"))
    await harness.pass_time(3)
    assert told_of_group(harness)[2] == (
        f"{UNSCHEDULABLE}, default preemption plugin is not registered, workload aware preemption"
        " is disabled"
    )


async def test_pods_that_fit_wait_for_the_others() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="2"), group(min_count=3, priority=100))
    harness.put(*members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert sorted(told(harness, name) for name in "abc") == [
        f"0/1 nodes are available: 1 Insufficient cpu. {ALONE}",
        HELD,
        HELD,
    ]


async def during_the_search(harness: Harness, gone: Pod | PodGroup) -> None:
    """Make the first attempt, and delete *gone* when it has begun to look for victims."""
    attempt = asyncio.create_task(harness.core.schedule_next(), name="attempt")
    await asyncio.sleep(0)
    assert not attempt.done()
    harness.delete(gone)
    await attempt
    harness.core.check_invariants()


@pytest.mark.parametrize("what", ["the group", "a pod of it"])
async def test_nobody_is_evicted_for_what_is_deleted_during_the_search(what: str) -> None:
    harness = group_harness(GATE)
    the_group, pods = group(min_count=2, priority=100), members("a", "b", cpu="1")
    harness.put(node("n", cpu="2"), the_group, *lesser("low0", "low1"), *pods)
    await during_the_search(harness, the_group if what == "the group" else pods[0])
    await harness.pass_time(3)
    assert set(harness.placements()) == {"low0", "low1"}


async def test_a_node_may_go_during_the_search() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="2"), node("m", cpu="1"), *lesser("low0", "low1"))
    harness.put(*lesser("low2", on="m"), group(min_count=2, priority=100))
    harness.put(*members("a", "b", cpu="1"))
    attempt = asyncio.create_task(harness.core.schedule_next(), name="attempt")
    await asyncio.sleep(0)
    harness.delete(node("m", cpu="1"))
    await attempt
    await harness.until_idle()
    assert {harness.placements()[name] for name in "ab"} == {"n"}


async def test_a_group_that_waits_for_evictions_is_one_to_be_tried_elsewhere() -> None:
    harness = group_harness(GATE)
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100), *lesser("low"))
    harness.put(member("a", cpu="1"))
    await harness.core.schedule_next()
    assert harness.queue.sub_queues.pending_counts()["gated"] == 1
    [waiting] = state_of(harness.core).waiting
    assert (waiting.queue, waiting.gating_plugin) == (SubQueue.ACTIVE, "")


async def test_an_attempt_makes_so_many_trials_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(victim_search, "MOST_DECISIONS", 0)
    monkeypatch.setattr(victim_search, "LEAST_TRIALS", 6)
    trials = []
    run = PodGroupTrial.run

    def counted(*args: Any, **kwargs: Any) -> Any:
        trials.append(args)
        return run(*args, **kwargs)

    monkeypatch.setattr(PodGroupTrial, "run", counted)
    harness = group_harness(GATE)
    names = [f"low{number}" for number in range(30)]
    harness.put(*(node(f"n{number}", cpu="2") for number in range(15)))
    for number, name in enumerate(names):
        harness.put(*lesser(name, on=f"n{number % 15}"))
    harness.put(group(min_count=2, priority=100), member("a", cpu="1"), member("b", cpu="2"))
    await harness.core.schedule_next()
    assert len(trials) <= 1 + 6 + 2  # that of the cycle, those, and what they come to
    await harness.until_idle()
    assert harness.placements().keys() >= {"a", "b"}
    assert len(harness.placements()) >= 20, "far more were evicted than need be"
