"""Gangs from their first pod to the last bind (spec G19)."""

import pytest

from berth.kube.objects.pod_group import GroupKey
from berth.scheduler.framework.events import EventResource
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.pod_group.building import (
    condition_of,
    group,
    group_harness,
    member,
    members,
)

HELD = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled,"
    " one or more plugins asked to wait and no plugin rejected pod"
)
WAITS = "pod group is unschedulable, pod group is waiting for preemption to complete"


def told(harness: Harness, name: str) -> str | None:
    """Return the message of a pod's PodScheduled condition."""
    found = harness.cluster.conditions.get(f"default/{name}")
    return None if found is None else found.message


def room(harness: Harness) -> tuple[object, ...]:
    """Return what counts on the nodes."""
    table = harness.cache.table
    return (
        table.requested.tolist(), table.non_zero_requested.tolist(), table.pod_count.tolist(),
        [sorted(pods) for pods in table.pods],
    )  # fmt: skip


async def test_pods_wait_in_silence_for_their_group() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="8"), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert harness.queue.sub_queues.pending_counts()["gated"] == 3
    assert not harness.cluster.conditions
    assert not harness.cluster.events

    harness.put(group(min_count=3))
    await harness.until_idle()
    assert harness.placements() == {"a": "n", "b": "n", "c": "n"}
    condition = condition_of(harness)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("True", "Scheduled", "")


async def test_pods_wait_until_the_gang_is_large_enough() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="8"), group(min_count=3), *members("a", "b", cpu="1"))
    await harness.pass_time(2)
    assert harness.queue.sub_queues.pending_counts()["gated"] == 2

    harness.put(member("c", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 3


async def test_a_gang_without_room_leaves_nothing_behind() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=3))
    before = room(harness)
    harness.put(*members("a", "b", "c", cpu="1"))
    await harness.until_idle()

    assert harness.placements() == {}
    assert room(harness) == before
    assert sorted(told(harness, name) or "" for name in "abc") == [
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1"
        " nodes are available: 1 No preemption victims found for incoming pod.",
        HELD,
        HELD,
    ]
    assert not len(harness.queue.nominator)
    condition = condition_of(harness)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert condition.message == "pod group is unschedulable"

    harness.put(node("m", cpu="2"))
    await harness.pass_time(3)
    assert len(harness.placements()) == 3


async def test_an_idle_cluster_tries_a_gang_only_after_its_backoff() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.pass_time(10)
    tries = [record.attempt for record in harness.scheduler.decisions.of("default/a")]
    assert len(tries) <= 5  # after 0, 1, 3 and 7 seconds, and never because nothing else is to do


async def test_pods_beyond_the_minimum_are_tried_in_the_same_cycle() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="3"), group(min_count=2), *members("a", "b", "c", "d", cpu="1"))
    await harness.until_idle()
    assert set(harness.placements()) == {"a", "b", "c"}
    assert "Insufficient cpu" in (told(harness, "d") or "")
    await harness.pass_time(5)
    condition = condition_of(harness)
    assert condition is not None
    assert condition.status == "True"  # the last pod's own failures do not change it


async def test_a_basic_group_binds_what_fits() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="1"), group(), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 1
    condition = condition_of(harness)
    assert condition is not None
    assert condition.status == "True"


async def test_members_must_name_one_scheduler() -> None:
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
    harness = group_harness(profiles=profiles)
    harness.put(node("n", cpu="8"), group(min_count=2))
    harness.put(member("a", cpu="1"), member("b", cpu="1", scheduler="other"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert told(harness, "a") == told(harness, "b")
    assert (told(harness, "a") or "").startswith(
        "all pods in a single pod group should have the same .spec.schedulerName set, got: "
    )
    assert condition_of(harness) is None


async def test_two_gangs_that_do_not_fit_together_do_not_block_each_other() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="4"), group("g", min_count=3), group("h", min_count=3))
    for number in range(3):
        harness.put(member(f"g{number}", "g", cpu="1"), member(f"h{number}", "h", cpu="1"))
    await harness.pass_time(5)
    placed = sorted(harness.placements())
    assert placed in (["g0", "g1", "g2"], ["h0", "h1", "h2"])


async def test_victims_are_evicted_only_if_that_lets_the_gang_start() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="3"), group(min_count=3))
    harness.put(*[pod(f"low{i}", cpu="1", node="n", priority=0) for i in range(3)])
    harness.put(*members("a", "b", "c", cpu="1", priority=10))
    await harness.until_idle()
    assert told(harness, "a") != WAITS  # it preempts: its own message stays
    condition = condition_of(harness)
    assert condition is not None
    assert condition.message == WAITS
    await harness.pass_time(5)
    assert sorted(harness.placements()) == ["a", "b", "c"]


async def test_no_victim_for_a_gang_that_cannot_start_even_so() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=3))
    harness.put(*[pod(f"low{i}", cpu="1", node="n", priority=0) for i in range(2)])
    harness.put(*members("a", "b", "c", cpu="1", priority=10))
    await harness.pass_time(5)
    assert sorted(harness.placements()) == ["low0", "low1"]
    assert not len(harness.queue.nominator)


async def test_pods_that_run_count_after_a_restart() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=2))
    harness.put(member("a", cpu="1", node="n"), member("b", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {"a": "n", "b": "n"}


async def test_a_deleted_group_gates_its_pods_again() -> None:
    harness = group_harness()
    the_group = group(min_count=3)
    harness.put(node("n", cpu="2"), the_group, *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    harness.delete(the_group)
    await harness.pass_time(5)
    assert harness.queue.sub_queues.pending_counts()["gated"] == 3


async def test_states_of_groups_follow_their_pods() -> None:
    harness = group_harness()
    a, b = members("a", "b", cpu="1")
    harness.put(node("n", cpu="1"), a, b)
    groups = harness.core.handle.pod_groups
    key = GroupKey("default", "g")
    assert groups.snapshot() == {key: (frozenset({a.metadata.uid, b.metadata.uid}), frozenset())}
    harness.put(member("a", cpu="1", node="n"))
    assert groups.snapshot() == {key: (frozenset({b.metadata.uid}), frozenset({a.metadata.uid}))}
    harness.delete(member("a", cpu="1", node="n"), b)
    assert not len(groups)


@pytest.mark.parametrize("gates", [(), ("GenericWorkload",)], ids=["all off", "no gangs"])
async def test_without_the_gate_groups_mean_nothing(gates: tuple[str, ...]) -> None:
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "emulatedVersion": "1.36",
            "featureGates": dict.fromkeys(gates, True),
        }
    )
    watched = {kind.event for kind in harness.core.handlers}
    assert (EventResource.POD_GROUP in watched) is bool(gates)
    harness.put(node("n", cpu="1"), *members("a", "b", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 1


@pytest.mark.parametrize(
    ("gates", "starts"),
    [
        pytest.param((), False, id="as in kube-scheduler"),
        pytest.param(("GangReplacementPods",), True, id="with GangReplacementPods"),
    ],
)
async def test_a_replacement_after_others_have_finished(
    gates: tuple[str, ...], starts: bool
) -> None:
    harness = group_harness(*gates)
    harness.put(node("n", cpu="8"), group(min_count=3), *members("a", "b", "c", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 3

    for name in "ab":  # one has finished, the other has failed
        harness.delete(harness.cluster.pods[f"default/{name}"])
    harness.put(member("instead-of-b", cpu="1"))
    await harness.pass_time(60)
    assert ("instead-of-b" in harness.placements()) is starts


async def test_a_gang_that_has_not_started_waits_for_all_in_any_case() -> None:
    harness = group_harness("GangReplacementPods")
    harness.put(node("n", cpu="8"), group(min_count=3), *members("a", "b", cpu="1"))
    await harness.pass_time(60)
    assert harness.placements() == {}
