"""What is said of groups that are parts of other groups (1.37 spec N11)."""

from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.kube.objects.pod_group import CompositeKey
from tests.builders import node
from tests.harness import Harness
from tests.insight.explain.asking import explain, explainer
from tests.insight.explain.groups.asking import explain_group, lines
from tests.scheduler.pod_group.building import composite, group, group_harness, member, members

GATES = ("TopologyAwareWorkloadScheduling", "CompositePodGroup")


def explain_tree(harness: Harness, name: str = "root") -> PodGroupExplanation:
    found = explainer(harness).explain_pod_group(CompositeKey("default", name), limit=None)
    assert found is not None, name
    return found


def tree_of_two(cpu: str) -> Harness:
    """Make a root that needs both of its groups, each of two pods, and one node."""
    harness = group_harness(*GATES, release="1.37")
    harness.put(node("n", cpu=cpu), composite(min_count=2))
    harness.put(group("g", min_count=2, parent="root", created="2026-01-01T00:00:00Z"))
    harness.put(group("h", min_count=2, parent="root", created="2026-01-02T00:00:00Z"))
    return harness


OF_ROOT = (
    "0/1 placements are available, first placement status: pod group is unschedulable, minCount (2)"
    " cannot be satisfied: 1 scheduled, 0 remaining"
)


async def test_a_tree_that_is_not_ready() -> None:
    harness = tree_of_two("8")
    harness.put(*members("g1", "g2", of="g", cpu="1"), member("h1", "h", cpu="1"))
    await harness.until_idle()
    why = (
        "compositepodgroup default/root: 1 of 2 groups is ready, and 2 must be before any pod is"
        " tried; too few pods exist of default/h"
    )
    root, g = explain_tree(harness), explain_group(harness, "g")
    assert root.summary == why
    assert (root.kind, root.num_pods, root.can_start) == ("compositepodgroup", 3, False)
    assert [(each.name, each.depth, each.is_ready) for each in root.groups] == [
        ("default/root", 0, False),
        ("default/g", 1, True),
        ("default/h", 1, False),
    ]
    assert g.part_of is not None
    assert g.part_of.summary == why
    assert g.summary.endswith(f"; it is part of {why}")
    assert not g.can_start
    state = explain(harness, "default/g1").state
    assert state is not None
    assert state.words == (
        'gated by GangScheduling: waiting for composite pod group "root" tree to meet quorum'
    )
    assert "scheduling.k8s.io/CompositePodGroup/Add" in state.woken_by["GangScheduling"]
    assert "default/g gang 2 2 0 yes" in " ".join(lines(root))


async def test_a_tree_without_room() -> None:
    harness = tree_of_two("3")
    harness.put(*members("g1", "g2", of="g", cpu="1"), *members("h1", "h2", of="h", cpu="1"))
    await harness.until_idle()
    before = harness.queue.incoming_counts()
    why = (
        f"compositepodgroup default/root: it cannot start: {OF_ROOT}; default/h2 has none: 0/1"
        " nodes are available: 1 Insufficient cpu; tried again in 300 s at the latest"
    )
    assert explain_tree(harness).summary == why
    assert explain_group(harness, "g").summary == (
        "podgroup default/g: 2 of 2 waiting pods can get nodes now, and 2 are needed together; it"
        f" is part of {why}"
    )
    assert explain(harness, "default/g1").summary.endswith(why)
    assert not harness.cache.table.requested.any()
    assert harness.queue.incoming_counts() == before
    harness.core.check_invariants()

    harness.put(node("m", cpu="1"))
    root, h = explain_tree(harness), explain_group(harness, "h")
    assert root.summary == (
        "compositepodgroup default/root: 4 of 4 waiting pods can get nodes now: default/g and"
        " default/h will start"
    )
    assert h.can_start
    assert h.summary == (
        "podgroup default/h: 2 of 2 waiting pods can get nodes now: the group will start; it is"
        f" part of {root.summary}"
    )
    await harness.until_idle()
    assert explain_tree(harness).summary == "compositepodgroup default/root: all 4 pods have nodes"


async def test_a_group_whose_parent_is_unknown() -> None:
    harness = group_harness(*GATES, release="1.37")
    harness.put(node("n"), group("g", parent="root"), member("g1", "g", cpu="1"))
    await harness.until_idle()
    state = explain(harness, "default/g1").state
    assert state is not None
    assert state.words == (
        "gated by GangScheduling: failed to build hierarchy snapshot:"
        ' compositepodgroup.scheduling.k8s.io "root" not found'
    )
    assert explainer(harness).explain_pod_group(CompositeKey("default", "root"), limit=0) is None


async def test_the_priority_of_the_root_is_what_is_wrong() -> None:
    harness = group_harness(*GATES, release="1.37")
    harness.put(node("n"), composite(priority=5), group("g", parent="root"))
    harness.put(member("g1", "g", cpu="1"))
    await harness.until_idle()
    problem = (
        "all pods in a single pod group should have the same priority as the pod group's priority,"
        " got 0 and 5"
    )
    root = explain_tree(harness)
    assert root.summary.startswith(f"compositepodgroup default/root: {problem}; tried again in")
    assert explain_group(harness, "g").notes == (problem,)


async def test_a_composite_in_another() -> None:
    harness = group_harness(*GATES, release="1.37")
    harness.put(node("n", cpu="2"), composite(min_count=2), composite("mid", parent="root"))
    # A PodGroup may have the name of a CompositePodGroup.
    harness.put(group("mid", parent="root", min_count=1), group("g", parent="mid"))
    harness.put(member("g1", "g", cpu="1"), member("m1", "mid", cpu="2"))
    await harness.until_idle()
    for found in (explain_tree(harness, "mid"), explain_group(harness, "mid")):
        assert found.part_of is not None
        assert found.part_of.name == "default/root"
        assert not found.can_start
    assert [(each.kind, each.name, each.depth) for each in explain_tree(harness).groups] == [
        ("compositepodgroup", "default/root", 0),
        ("compositepodgroup", "default/mid", 1),
        ("podgroup", "default/g", 2),
        ("podgroup", "default/mid", 1),
    ]
    harness.put(node("m", cpu="2"))
    assert explain_tree(harness, "mid").can_start
    assert explain_group(harness, "mid").can_start
