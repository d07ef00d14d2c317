"""Groups as entities of the queue, from their first pod to the last bind (1.37 spec N8)."""

from typing import Any

import pytest

from berth.kube.objects.pod_group import GroupKey
from berth.scheduler.framework.pod_info import QueuedPodGroupInfo
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import node, pod, pod_anti_affinity, pod_term
from tests.harness import Harness
from tests.scheduler.pod_group.building import (
    condition_of,
    group,
    harness_of_entities,
    member,
    members,
    told,
)

UNSCHEDULABLE = "pod group is unschedulable"


def told_of_group(harness: Harness, name: str = "g") -> tuple[str, str, str, str]:
    condition = condition_of(harness, name)
    assert condition is not None
    return condition.type, condition.status, condition.reason, condition.message


def counts(harness: Harness) -> dict[str, int]:
    """Return how many pods wait in each sub-queue that has any."""
    return {name: n for name, n in harness.queue.sub_queues.pending_counts().items() if n}


async def test_all_pods_of_a_group_are_bound_in_one_cycle() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.bind_at_once()
    assert harness.placements() == {"a": "n", "b": "n", "c": "n"}
    assert told_of_group(harness) == ("PodGroupInitiallyScheduled", "True", "Scheduled", "")
    assert not counts(harness)


async def test_pods_are_incomplete_until_their_group_exists() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert counts(harness) == {"incomplete": 3}
    assert harness.queue.sub_queues.place_of("default/a") is SubQueue.INCOMPLETE
    assert not harness.cluster.conditions
    harness.put(group(min_count=3))
    await harness.until_idle()
    assert len(harness.placements()) == 3


async def test_a_group_that_is_deleted_makes_its_pods_incomplete() -> None:
    harness = harness_of_entities()
    the_group = group(min_count=3)
    harness.put(node("n", cpu="2"), the_group, *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    harness.delete(the_group)
    assert counts(harness) == {"incomplete": 3}
    harness.put(node("m", cpu="2"), the_group)
    await harness.until_idle()
    assert len(harness.placements()) == 3


async def test_a_gang_is_gated_until_it_is_large_enough() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), group(min_count=3), *members("a", "b", cpu="1"))
    await harness.until_idle()
    assert counts(harness) == {"gated": 2}
    assert harness.queue.sub_queues.entity_counts()["gated", "podgroup"] == 1
    harness.put(member("c", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 3


async def test_a_gang_that_loses_a_pod_is_gated_again() -> None:
    harness = harness_of_entities()
    a, b, c = members("a", "b", "c", cpu="1")
    harness.put(node("n", cpu="8"), group(min_count=3), a, b, c)
    harness.delete(c)
    assert counts(harness) == {"gated": 2}


async def test_a_gang_without_room_waits_for_an_event_that_helps() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="2"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert not harness.cache.table.requested.any()
    refused = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    preemption = "pod group preemption: No preemption victims found for incoming preemptor"
    text = f"{UNSCHEDULABLE}, {refused}, {preemption}"
    assert told_of_group(harness)[1:] == ("False", "Unschedulable", text)
    assert sorted(told(harness, name) for name in "abc") == [
        "0/1 nodes are available: 1 Insufficient cpu.",
        text,
        text,
    ]
    assert counts(harness) == {"unschedulable": 3}
    [entity] = harness.queue.sub_queues.entities(SubQueue.UNSCHEDULABLE)
    assert entity.unschedulable_plugins == {"NodeResourcesFit", "GangScheduling"}
    assert (entity.attempts, entity.unschedulable_count) == (1, 1)

    await harness.pass_time(20)
    assert entity.attempts == 1  # nothing has happened that might help
    harness.put(node("small", cpu="500m"))
    await harness.until_idle()
    assert entity.attempts == 1
    harness.put(node("m", cpu="2"))
    await harness.until_idle()
    assert len(harness.placements()) == 3


async def test_pods_beyond_the_minimum_are_tried_in_the_same_cycle_and_at_once_again() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="3"), group(min_count=2))
    harness.put(*members("a", "b", "c", "d", cpu="1"))
    await harness.bind_at_once()
    assert set(harness.placements()) == {"a", "b", "c"}
    assert counts(harness) == {"active": 1}
    [left] = harness.queue.sub_queues.entities(SubQueue.ACTIVE)
    assert left.timestamp == 0.0 or left.timestamp == harness.clock.now()
    await harness.until_idle()
    assert told_of_group(harness)[1] == "True"  # what comes later does not change it
    assert counts(harness) == {"unschedulable": 1}
    assert told(harness, "d") == "0/1 nodes are available: 1 Insufficient cpu."


async def test_a_basic_group_binds_what_fits() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="1"), group(), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 1
    assert told_of_group(harness)[1] == "True"
    harness.put(node("m", cpu="1"))
    await harness.pass_time(3)
    assert len(harness.placements()) == 2


async def test_two_gangs_that_do_not_fit_together_do_not_block_each_other() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="4"), group("g", min_count=3), group("h", min_count=3))
    for number in range(3):
        harness.put(member(f"g{number}", "g", cpu="1"), member(f"h{number}", "h", cpu="1"))
    await harness.until_idle()
    assert sorted(harness.placements()) in (["g0", "g1", "g2"], ["h0", "h1", "h2"])


async def test_groups_and_pods_are_tried_by_priority() -> None:
    harness = harness_of_entities()
    harness.put(group("low", min_count=1, priority=1), group("high", min_count=1, priority=9))
    harness.put(member("a", "low", priority=1), pod("alone", priority=5))
    harness.put(member("b", "high", priority=9))
    order = [harness.queue.pop() for _ in range(3)]
    assert [each.pod.metadata.name for each in order if each is not None] == ["b", "alone", "a"]


async def test_a_group_needs_fewer_pods_than_before() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="2"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {}
    harness.put(group(min_count=4))
    await harness.pass_time(3)
    assert harness.placements() == {}
    harness.put(group(min_count=2))
    await harness.pass_time(3)
    assert len(harness.placements()) == 2


async def test_pods_that_run_count() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="2"), group(min_count=2))
    harness.put(member("a", cpu="1", node="n"), member("b", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {"a": "n", "b": "n"}


async def test_a_pod_whose_binding_fails_comes_back_as_its_group() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), group(min_count=2), *members("a", "b", cpu="1"))
    harness.cluster.bind_errors["b"] = RuntimeError("broken")
    await harness.bind_at_once()
    assert harness.placements() == {"a": "n"}
    assert counts(harness) == {"backoff": 1}
    harness.cluster.bind_errors.clear()
    await harness.pass_time(3)
    assert harness.placements() == {"a": "n", "b": "n"}


VALID = group(min_count=2, priority=7)
SCHEDULER = "all pods in a single pod group should have the same .spec.schedulerName set, got: "
PRIORITY = (
    "all pods in a single pod group should have the same priority as the pod group's priority, got "
)
POLICY = "all pods in a single pod group should have the same preemption policy"


@pytest.mark.parametrize(
    ("pods", "gates", "problem"),
    [
        pytest.param(
            [member("a", priority=7), member("b", priority=7, scheduler="other")],
            (),
            f'{SCHEDULER}"other" and "default-scheduler"',
            id="of two schedulers",
        ),
        pytest.param(
            [member("a", priority=7), member("b", priority=6)],
            (),
            f"{PRIORITY}6 and 7",
            id="a pod has another priority",
        ),
        pytest.param(
            [member("a"), member("b")], (), f"{PRIORITY}0 and 7", id="no pod has a priority"
        ),
        pytest.param(
            [member("a", priority=7), member("b", priority=7), member("c", node="n")],
            (),
            f"{PRIORITY}0 and 7",
            id="a pod that runs has another priority",
        ),
        pytest.param(
            [member("a", priority=7), member("b", priority=7, preemption_policy="Never")],
            (),
            f"{POLICY}, got Never and PreemptLowerPriority",
            id="of two policies",
        ),
        pytest.param(
            [member(n, priority=7, preemption_policy="Never") for n in "ab"],
            ("PodGroupPreemptionPolicy",),
            f"{POLICY} as the pod group's preemption policy, got Never and PreemptLowerPriority",
            id="another policy than the group",
        ),
        pytest.param(
            [member(n, priority=7, preemption_policy="Never") for n in "ab"], (), "", id="alike"
        ),
    ],
)
async def test_validation(pods: list[Any], gates: tuple[str, ...], problem: str) -> None:
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
    harness = harness_of_entities(*gates, profiles=profiles)
    harness.put(node("n", cpu="8"), VALID, *pods)
    await harness.until_idle()
    if not problem:
        assert told_of_group(harness)[1] == "True"
        return
    assert told_of_group(harness)[1:] == ("False", "SchedulerError", problem)
    assert {told(harness, name) for name in "ab"} == {problem}
    assert counts(harness) == {"backoff": 2}


async def test_a_group_that_is_gone_when_it_is_tried_has_no_condition() -> None:
    harness = harness_of_entities()
    the_group = group(min_count=1)
    harness.put(node("n"), the_group, member("a"))
    popped = harness.queue.pop()
    assert isinstance(popped, QueuedPodGroupInfo)
    harness.delete(the_group)
    await harness.scheduler.schedule_one(popped)
    assert told(harness, "a") == 'podgroup.scheduling.k8s.io "g" not found'
    assert counts(harness) == {"incomplete": 1}
    harness.core.check_invariants()


async def test_pods_that_are_deleted_are_left_out_of_the_trial() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), group(min_count=1), *members("a", "b", cpu="1"))
    harness.put(member("b", cpu="1", deleted="2026-01-01T00:00:00Z"))
    await harness.until_idle()
    assert set(harness.placements()) == {"a"}


async def test_a_pod_that_comes_while_its_group_is_tried_waits_for_it() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), group(min_count=1), member("a", cpu="1"))
    popped = harness.queue.pop()
    assert isinstance(popped, QueuedPodGroupInfo)
    harness.put(member("b", cpu="1"))
    assert harness.queue.sub_queues.place_of("default/b") is SubQueue.PENDING
    for binding in await harness.scheduler.schedule_one(popped):
        await harness.scheduler.binding_cycle.run(binding)
    assert counts(harness) == {"active": 1}
    await harness.until_idle()
    assert harness.placements() == {"a": "n", "b": "n"}


async def test_members_see_the_affinity_of_those_before_them() -> None:
    harness = harness_of_entities()
    labels = {"app": "x"}
    apart = pod_anti_affinity(required=[pod_term(labels)])
    harness.put(node("n", cpu="8"), node("m", cpu="8"), group(min_count=3))
    harness.put(*(member(name, labels=labels, affinity=apart) for name in "abc"))
    await harness.until_idle()
    assert harness.placements() == {}
    harness.put(node("o", cpu="8"))
    await harness.pass_time(3)
    assert sorted(harness.placements().values()) == ["m", "n", "o"]


def test_states_of_groups_follow_their_pods() -> None:
    harness = harness_of_entities()
    a, b = members("a", "b", cpu="1")
    harness.put(group(min_count=3), a, b)
    key = GroupKey("default", "g")
    assert harness.core.handle.pod_groups.snapshot()[key][0] == {a.metadata.uid, b.metadata.uid}
    harness.delete(a, b)
    assert not counts(harness)
    assert not len(harness.core.handle.pod_groups)
    harness.core.check_invariants()
