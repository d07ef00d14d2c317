"""Groups of groups, from their first pod to the last bind (1.37 spec N11)."""

from collections.abc import Sequence
from typing import Any

import pytest

from berth.kube.objects.pod_group import CompositePodGroup, GroupKey, PodGroup
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.group_hierarchy import GroupHierarchy
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code
from berth.scheduler.pod_group.validation import change_of
from berth.scheduler.queue.sub_queues import SubQueue
from berth_plugins.gang_scheduling import GangScheduling
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.asking import entry, everybody, harness
from tests.scheduler.pod_group.building import (
    composite,
    condition_of,
    group,
    group_harness,
    harness_of_entities,
    member,
    members,
    told,
)
from tests.scheduler.pod_group.test_entities import counts
from tests.scheduler.pod_group.test_post_filter import metric

GATES = ("TopologyAwareWorkloadScheduling", "CompositePodGroup")
NOT_READY = 'waiting for composite pod group "root" tree to meet quorum'
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
NO_PLACEMENT = "0/1 placements are available, first placement status: pod group is unschedulable"


def harness_of_composites(*gates: str, **options: Any) -> Harness:
    return harness_of_entities(*GATES, *gates, **options)


def child(name: str, number: int, **fields: Any) -> PodGroup:
    """Make the group of this *number* below the root, in order of age."""
    fields.setdefault("parent", "root")
    return group(name, created=f"2026-01-0{number}T00:00:00Z", **fields)


def told_of(harness: Harness, name: str) -> tuple[str, str] | None:
    condition = condition_of(harness, name)
    return None if condition is None else (condition.reason, condition.message)


def entity_counts(harness: Harness) -> dict[tuple[str, str], int]:
    found = harness.queue.sub_queues.entity_counts()
    return {key: number for key, number in found.items() if number}


async def test_all_groups_below_a_composite_are_tried_in_one_cycle() -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="8"), composite(min_count=2))
    harness.put(child("a", 1, min_count=2), child("b", 2, min_count=1))
    harness.put(*members("a1", "a2", of="a", cpu="1"))
    await harness.until_idle()
    assert counts(harness) == {"gated": 2}
    assert entity_counts(harness) == {("gated", "compositepodgroup"): 1}
    harness.put(member("b1", "b", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {"a1": "n", "a2": "n", "b1": "n"}
    assert told_of(harness, "a") == told_of(harness, "b") == ("Scheduled", "")
    assert not counts(harness)
    incoming = harness.queue.incoming_entity_counts()
    assert incoming["active", "UnscheduledPodAdd", "compositepodgroup"] == 1
    harness.core.check_invariants()


async def test_without_room_for_enough_groups_none_starts() -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="2"), composite(min_count=2))
    harness.put(child("a", 1, min_count=2), child("b", 2, min_count=2))
    harness.put(*members("a1", "a2", of="a", cpu="1"), *members("b1", "b2", of="b", cpu="1"))
    await harness.until_idle()
    assert harness.placements() == {}
    assert not harness.cache.table.requested.any()
    of_root = f"{NO_PLACEMENT}, minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    of_b = f"{NO_PLACEMENT}, minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    assert told_of(harness, "a") == ("Unschedulable", f"{of_root}, {NO_VICTIMS}")
    assert told_of(harness, "b") == ("Unschedulable", of_b)
    assert told(harness, "a1") == f"{of_root}, {NO_VICTIMS}"
    assert told(harness, "b1") == "0/1 nodes are available: 1 Insufficient cpu."
    assert told(harness, "b2") == of_b
    assert counts(harness) == {"unschedulable": 4}
    [entity] = harness.queue.sub_queues.entities(SubQueue.UNSCHEDULABLE)
    assert entity.unschedulable_plugins == {"NodeResourcesFit", "GangScheduling"}
    assert entity.attempts == 1
    harness.put(node("m", cpu="2"))
    await harness.until_idle()
    assert len(harness.placements()) == 4


async def test_of_more_groups_than_are_needed_those_start_that_fit() -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="2"), composite(min_count=1))
    harness.put(child("a", 1, min_count=3), child("b", 2, min_count=2))
    harness.put(*members("a1", "a2", "a3", of="a", cpu="1"))
    harness.put(*members("b1", "b2", of="b", cpu="1"))
    await harness.until_idle()
    assert set(harness.placements()) == {"b1", "b2"}
    assert told_of(harness, "b") == ("Scheduled", "")
    condition = condition_of(harness, "a")
    assert condition is not None
    assert condition.status == "False"
    harness.put(node("m", cpu="3"))
    await harness.until_idle()
    assert len(harness.placements()) == 5


async def test_a_late_group_starts_beside_those_that_run() -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="4"), composite(min_count=1), child("a", 1, min_count=1))
    harness.put(member("a1", "a", cpu="1"))
    await harness.until_idle()
    harness.put(child("b", 2, min_count=2), *members("b1", "b2", of="b", cpu="1"))
    await harness.until_idle()
    assert len(harness.placements()) == 3
    assert told_of(harness, "b") == ("Scheduled", "")


RACKS = [("a1", "a", "r1"), ("a2", "a", "r2"), ("b1", "b", "r3"), ("b2", "b", "r4")]


@pytest.mark.parametrize(
    ("zone", "rack", "placed"),
    [
        pytest.param("zone", "rack", 4, id="a zone for all, and a rack for each group"),
        pytest.param("rack", "", 0, id="one rack for all is too small"),
        pytest.param("", "rack", 4, id="a rack for each group, anywhere"),
    ],
)
async def test_each_level_has_a_topology_of_its_own(zone: str, rack: str, placed: int) -> None:
    harness = harness_of_composites()
    for name, its_zone, its_rack in RACKS:
        labels = {"zone": its_zone, "rack": its_rack}
        harness.put(node(name, cpu="2" if its_zone == "b" else "1", labels=labels))
    harness.put(composite(min_count=2, topology=zone))
    harness.put(
        child("g", 1, min_count=2, topology=rack), child("h", 2, min_count=2, topology=rack)
    )
    harness.put(*members("g1", "g2", of="g", cpu="1"), *members("h1", "h2", of="h", cpu="1"))
    await harness.until_idle()
    nodes = harness.placements()
    assert len(nodes) == placed
    if placed:
        assert set(nodes.values()) == {"b1", "b2"}
        assert nodes["g1"] == nodes["g2"] != nodes["h1"] == nodes["h2"]


# Before the trial.


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param(
            [group("a", parent="root")],
            'failed to build hierarchy snapshot: compositepodgroup.scheduling.k8s.io "root" not'
            " found",
            id="no parent yet",
        ),
        pytest.param(
            [group("a", parent="mid"), composite("mid", parent="root")],
            'failed to build hierarchy snapshot: compositepodgroup.scheduling.k8s.io "root" not'
            " found",
            id="no grandparent yet",
        ),
        pytest.param(
            [group("a", parent="mid"), composite("mid", parent="mid")],
            "failed to build hierarchy snapshot: composite pod group default/mid is its own"
            " ancestor",
            id="a ring",
        ),
        pytest.param(
            [group("a", parent="root", min_count=2), composite()],
            NOT_READY,
            id="too few pods of its only group",
        ),
        pytest.param(
            [group("a", parent="root"), group("b", parent="root"), composite(min_count=2)],
            NOT_READY,
            id="a group without pods",
        ),
        pytest.param(
            [group("a", parent="root"), composite()], "", id="basic: one of one is enough"
        ),
        pytest.param(
            [
                group("a", parent="mid"),
                composite("mid", parent="root", min_count=1),
                group("b", parent="root", min_count=9),
                composite(min_count=1),
            ],
            "",
            id="one of two groups is needed, and is ready",
        ),
        pytest.param([group("a")], "", id="a group by itself"),
    ],
)
async def test_pre_enqueue_waits_for_the_whole_tree(objects: Sequence[PodGroup], want: str) -> None:
    harness = harness_of_composites()
    harness.put(*objects, member("p", "a"))
    plugin = GangScheduling(None, harness.core.handle)
    status = plugin.pre_enqueue(PodInfo(member("p", "a")))
    assert (status.message if status else "") == want
    if status is not None:
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert counts(harness) == {"gated": 1}
    harness.core.check_invariants()


async def test_permit_waits_for_the_whole_tree() -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="8"), composite(min_count=2))
    harness.put(child("a", 1), child("b", 2))
    a, b = member("a1", "a", cpu="1"), member("b1", "b", cpu="1")
    harness.put(a, b)
    plugin = GangScheduling(None, harness.core.handle)
    groups, state = harness.core.handle.pod_groups, CycleState()
    groups.put(PodInfo(a))
    status, seconds = plugin.permit(state, PodInfo(a), "n")
    assert status is not None
    assert (status.code, status.message, seconds) == (Code.WAIT, NOT_READY, 300.0)
    assert set(state.pods_to_activate) == {"default/b1"}
    groups.put(PodInfo(b))
    assert plugin.permit(CycleState(), PodInfo(b), "n") == (None, 0.0)


@pytest.mark.parametrize(
    ("event", "is_woken"),
    [
        pytest.param([member("b1", "b")], True, id="a pod of another group of the tree"),
        pytest.param([member("x", "x")], False, id="a pod of a group elsewhere"),
        pytest.param([group("c", parent="root"), member("c1", "c")], True, id="another group"),
        pytest.param([composite("root", min_count=1)], True, id="the root needs fewer"),
        pytest.param([composite("other")], False, id="a tree elsewhere"),
    ],
)
async def test_what_wakes_a_gated_tree(event: Sequence[Any], is_woken: bool) -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="8"), composite(min_count=2), group("x", min_count=9))
    harness.put(child("a", 1), child("b", 2), member("a1", "a", cpu="1"))
    await harness.until_idle()
    assert counts(harness) == {"gated": 1}
    harness.put(*event)
    await harness.until_idle()
    assert ("a1" in harness.placements()) is is_woken


@pytest.mark.parametrize(
    ("of_root", "of_child", "of_pods", "problem"),
    [
        pytest.param(5, 5, 5, "", id="all agree"),
        pytest.param(5, 7, 5, "", id="a child's own priority is not compared"),
        pytest.param(
            5,
            7,
            7,
            "all pods in a single pod group should have the same priority as the pod group's"
            " priority, got 7 and 5",
            id="pods have the priority of their group, and not of the root",
        ),
    ],
)
async def test_the_priority_of_the_root_counts(
    of_root: int, of_child: int, of_pods: int, problem: str
) -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="8"), composite(priority=of_root), child("a", 1, priority=of_child))
    harness.put(member("a1", "a", cpu="1", priority=of_pods))
    await harness.until_idle()
    assert (told_of(harness, "a") or ("", ""))[1] == problem
    assert bool(harness.placements()) is not bool(problem)


def hierarchy(*groups: PodGroup) -> GroupHierarchy:
    composites: Lister[CompositePodGroup] = Lister(
        each for each in groups if isinstance(each, CompositePodGroup)
    )
    return GroupHierarchy(
        Lister(each for each in groups if not isinstance(each, CompositePodGroup)), composites
    )


BEFORE = (composite(), group("a", parent="root"), group("b", parent="root"))


@pytest.mark.parametrize(
    ("now", "want"),
    [
        pytest.param(BEFORE, "", id="as it was"),
        pytest.param(
            BEFORE[:2],
            "different number of children in composite pod group between snapshot (1) and queued"
            " entity (2)",
            id="a group is gone",
        ),
        pytest.param(
            (*BEFORE, composite("c", parent="root")),
            "different number of children in composite pod group between snapshot (3) and queued"
            " entity (2)",
            id="another group has come",
        ),
        pytest.param(
            (composite(parent="top"), *BEFORE[1:]),
            "different parent in composite pod group between snapshot (top) and queued entity"
            " ([unset])",
            id="the root was made again, as a part of another",
        ),
        pytest.param(
            (composite(), group("a"), group("b", parent="root"), group("c", parent="root")),
            "different parent in pod group between snapshot ([unset]) and queued entity (root)",
            id="a group was made again, by itself",
        ),
        pytest.param(
            BEFORE[1:],
            'compositepodgroup.scheduling.k8s.io "root" not found',
            id="the root is gone",
        ),
    ],
)
def test_what_has_changed_since_the_tree_was_popped(now: Sequence[PodGroup], want: str) -> None:
    before = tuple(hierarchy(*BEFORE).tree(BEFORE[0]))
    assert change_of(before, hierarchy(*now)) == want


# Preemption.


@pytest.mark.parametrize(
    ("of_root", "of_mid", "of_leaf", "evicted"),
    [
        pytest.param("Pod", "Pod", "Pod", 1, id="each pod by itself"),
        pytest.param("Pod", "Pod", "PodGroup", 2, id="the group"),
        pytest.param("Pod", "PodGroup", "Pod", 3, id="two groups"),
        pytest.param("PodGroup", "Pod", "PodGroup", 4, id="all groups: the highest counts"),
    ],
)
async def test_what_is_evicted_together(
    of_root: str, of_mid: str, of_leaf: str, evicted: int
) -> None:
    harness = harness_of_composites()
    harness.put(*(node(f"n{number}", cpu="1") for number in range(4)))
    harness.put(composite(priority=1, disruption_mode=of_root))
    harness.put(composite("mid", parent="root", disruption_mode=of_mid))
    harness.put(child("a", 1, parent="mid", disruption_mode=of_leaf))
    harness.put(child("b", 2, parent="mid"), child("c", 3))
    of = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
    for number, (name, its) in enumerate(of.items()):
        started = f"2026-01-01T00:0{9 - number}:00Z"  # the first is the least important
        fields = {"node": f"n{number}", "priority": 1, "started": started}
        harness.put(member(name, its, cpu="1", **fields))
    harness.put(group(priority=100, min_count=1), member("p", cpu="1", priority=100))
    await harness.until_idle()
    gone = of.keys() - harness.placements().keys()
    assert len(gone) == evicted
    assert "p" in harness.placements()
    disruptions = metric(harness, "preemption_workload_disruptions_sum", preemptor="podgroup")
    assert disruptions == (evicted > 1)


async def test_a_tree_preempts_as_one() -> None:
    harness = harness_of_composites()
    harness.put(node("n", cpu="1"), node("m", cpu="1"))
    harness.put(pod("x", cpu="1"), pod("y", cpu="1"))
    await harness.until_idle()
    harness.put(composite(min_count=2, priority=9))
    harness.put(child("a", 1), child("b", 2))
    high = {"cpu": "1", "priority": 9}
    harness.put(member("a1", "a", **high), member("b1", "b", **high))
    await harness.until_idle()
    assert set(harness.placements()) == {"a1", "b1"}
    assert told_of(harness, "a") == told_of(harness, "b") == ("Scheduled", "")


# The gate.


def test_the_gate_needs_topologies() -> None:
    with pytest.raises(ConfigError) as caught:
        group_harness("CompositePodGroup", release="1.37")
    assert (
        "CompositePodGroup is enabled, but depends on features that are disabled:"
        " [TopologyAwareWorkloadScheduling]"
    ) in str(caught.value)


async def test_without_the_gate_parents_mean_nothing() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="8"), group("a", parent="root"), member("a1", "a", cpu="1"))
    await harness.until_idle()
    assert set(harness.placements()) == {"a1"}
    assert all(kind != "compositepodgroup" for _, kind in harness.queue.sub_queues.entity_counts())
    assert harness.core.handle.pod_groups.hierarchy.root_key(GroupKey("default", "a")) == GroupKey(
        "default", "a"
    )


@pytest.mark.parametrize(
    ("gone", "want"),
    [
        pytest.param(
            child("b", 2),
            "different number of children in composite pod group between snapshot (1) and queued"
            " entity (2)",
            id="a group",
        ),
        pytest.param(composite(), "", id="the root: there is nobody to tell"),
    ],
)
async def test_a_tree_that_changes_while_extenders_answer_is_not_tried(
    gone: PodGroup, want: str
) -> None:
    asked: list[str] = []

    def answer(body: Any) -> Any:
        asked.append(body["Pod"]["metadata"]["name"])
        if len(asked) == 1:
            made.delete(gone)
        return everybody(body)

    gates = dict.fromkeys(("GenericWorkload", *GATES), True)
    made, _ = harness({"/filter": answer}, entry(filterVerb="filter"), featureGates=gates)
    made.put(node("n", cpu="8"), composite(), child("a", 1), child("b", 2))
    made.put(member("a1", "a", cpu="1"), member("b1", "b", cpu="1"))
    assert await made.core.schedule_next() == ()
    assert made.placements() == {}
    assert (told_of(made, "a") or ("", ""))[1] == want
    made.core.check_invariants()
    made.put(gone)
    await made.pass_time(20)  # the backoff of an error
    assert set(made.placements()) == {"a1", "b1"}
