"""Which nodes are unneeded, which of them go, and when."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from berth.kube.objects.meta import KubeStruct, OwnerReference
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.duration import Duration
from berth.tools.autoscaler.actions import MarkUnneeded, RemoveNode
from berth.tools.autoscaler.autoscaler import Planner
from berth.tools.autoscaler.cluster_view import (
    ClusterView,
    DrainPod,
    DrainSpec,
    EmptyDir,
    LocalVolume,
)
from berth.tools.autoscaler.node_groups import NodeGroup
from berth.tools.autoscaler.options import AutoscalingOptions
from tests.builders import condition, disruption_budget, node, selector, taint
from tests.tools.autoscaler.planning import (
    group,
    member,
    planner,
    running,
    scan,
    states,
    unschedulable,
    view,
)

TEN_MINUTES = 600.0
GROUP = group(max_size=9)
DAEMON = OwnerReference("apps/v1", "DaemonSet", "agent", "ds", controller=True)
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def annotated(thing: Any, **annotations: str) -> Any:
    values = {key.replace("__", "/").replace("_", "-"): v for key, v in annotations.items()}
    names = {f"cluster-autoscaler.kubernetes.io/{key}": value for key, value in values.items()}
    return replace(thing, metadata=replace(thing.metadata, annotations=names))


def removed(
    seen: ClusterView,
    *groups: NodeGroup,
    by: Planner | None = None,
    options: AutoscalingOptions | None = None,
    after: float = TEN_MINUTES,
) -> list[RemoveNode]:
    """Return who goes in the second of two scans, some seconds apart."""
    used = by or planner(options or AutoscalingOptions())
    states_now = states(seen, *(groups or (GROUP,)))
    scan(seen, states_now, by=used)
    actions = scan(seen, states_now, by=used, at=after)
    return [action for action in actions if isinstance(action, RemoveNode)]


def names(*objects: KubeStruct, **more: Any) -> list[str]:
    return [each.node for each in removed(view(*objects), **more)]


@pytest.mark.parametrize(
    ("objects", "gone"),
    [
        pytest.param([member("a")], ["a"], id="an empty node"),
        pytest.param([node("a")], [], id="a node of no group"),
        pytest.param([member("a"), running("p", "a", cpu="1")], [], id="its pod fits nowhere else"),
        pytest.param(
            [member("a"), member("b"), running("p", "a", cpu="1"), running("q", "b", cpu="2")],
            ["a"],
            id="its pod fits on another node",
        ),
        pytest.param(
            [member("a"), member("b"), running("p", "a", cpu="2"), running("q", "b", cpu="3")],
            [],
            id="half of it is requested, which is not under the threshold",
        ),
        pytest.param(
            [member("a"), node("b"), running("p", "a", owner=DAEMON)],
            ["a"],
            id="pods of DaemonSets go with their node",
        ),
        pytest.param(
            [member("a"), node("b"), running("p", "a", owner=DAEMON, cpu="3")],
            [],
            id="but they count as utilization",
        ),
        pytest.param(
            [member("a"), node("b"), running("p", "a", owner=None)],
            [],
            id="a pod that nobody makes again",
        ),
        pytest.param(
            [
                member("a"),
                node("b"),
                annotated(running("p", "a", owner=None), safe_to_evict="true"),
            ],
            ["a"],
            id="a pod that is declared to be safe to evict",
        ),
        pytest.param(
            [member("a"), node("b"), annotated(running("p", "a"), safe_to_evict="false")],
            [],
            id="a pod that is declared not to be",
        ),
        pytest.param(
            [annotated(member("a"), scale_down_disabled="true")],
            [],
            id="a node that is declared to stay",
        ),
        pytest.param(
            [member("a", taints=[taint("ToBeDeletedByClusterAutoscaler")])],
            [],
            id="a node that somebody removes already",
        ),
        pytest.param(
            [member("a"), node("b"), running("p", "a", ns="kube-system")],
            [],
            id="a pod of kube-system without a budget",
        ),
        pytest.param(
            [
                member("a"),
                node("b"),
                running("p", "a", ns="kube-system", labels={"app": "dns"}),
                disruption_budget(ns="kube-system", selects=selector({"app": "dns"}), allows=1),
            ],
            ["a"],
            id="one with a budget that allows it",
        ),
        pytest.param(
            [
                member("a"),
                node("b"),
                running("p", "a", labels={"app": "web"}),
                disruption_budget(selects=selector({"app": "web"}), allows=0),
            ],
            [],
            id="a budget that allows nothing",
        ),
        pytest.param(
            [member("a"), unschedulable("p", cpu="9")],
            ["a"],
            id="who waits and fits nowhere keeps no node",
        ),
    ],
)
def test_who_goes(objects: list[KubeStruct], gone: list[str]) -> None:
    assert names(*objects) == gone


@pytest.mark.parametrize(
    ("volume", "annotations", "gone"),
    [
        pytest.param(LocalVolume("v", empty_dir=EmptyDir()), {}, [], id="emptyDir"),
        pytest.param(LocalVolume("v", host_path={"path": "/"}), {}, [], id="hostPath"),
        pytest.param(LocalVolume("v", empty_dir=EmptyDir("Memory")), {}, ["a"], id="in memory"),
        pytest.param(
            LocalVolume("v", empty_dir=EmptyDir()),
            {"safe_to_evict_local_volumes": "u, v"},
            ["a"],
            id="declared to be worth nothing",
        ),
        pytest.param(LocalVolume("v"), {}, ["a"], id="elsewhere"),
    ],
)
def test_local_storage_keeps_a_node(
    volume: LocalVolume, annotations: Mapping[str, str], gone: list[str]
) -> None:
    pod = annotated(running("p", "a"), **annotations)
    drain = {pod.key: DrainPod(pod.metadata, DrainSpec(volumes=(volume,)))}
    seen = view(member("a"), node("b"), pod, drain=drain)
    assert [each.node for each in removed(seen)] == gone
    careless = AutoscalingOptions(skip_nodes_with_local_storage=False)
    assert [each.node for each in removed(seen, options=careless)] == ["a"]


@pytest.mark.parametrize(
    ("after", "gone"),
    [
        pytest.param(TEN_MINUTES - 1.0, [], id="not yet"),
        pytest.param(TEN_MINUTES, ["a"], id="after the unneeded time"),
    ],
)
def test_a_node_must_be_unneeded_for_a_while(after: float, gone: list[str]) -> None:
    assert names(member("a"), after=after) == gone


def test_a_node_that_is_not_ready_gets_more_time() -> None:
    dead = member("a")
    status = replace(dead.status, conditions=(condition("Ready", "Unknown"),))
    dead = replace(dead, status=status)
    assert names(dead, after=2 * TEN_MINUTES - 1.0) == []
    assert names(dead, after=2 * TEN_MINUTES) == ["a"]


def test_a_node_that_was_needed_meanwhile_begins_again() -> None:
    used = planner()
    idle = view(member("a"), node("b"))
    busy = view(member("a"), node("b"), running("p", "a", cpu="3"))
    scan(idle, states(idle, GROUP), by=used)
    scan(busy, states(busy, GROUP), by=used, at=300.0)
    scan(idle, states(idle, GROUP), by=used, at=310.0)
    later = scan(idle, states(idle, GROUP), by=used, at=909.0)
    assert not any(isinstance(each, RemoveNode) for each in later)
    later = scan(idle, states(idle, GROUP), by=used, at=910.0)
    assert any(isinstance(each, RemoveNode) for each in later)


@pytest.mark.parametrize(
    ("event", "until"),
    [
        pytest.param("last_scale_up", 600.0, id="after nodes were added"),
        pytest.param("last_delete", 60.0, id="after a node was removed"),
        pytest.param("last_failure", 180.0, id="after a node could not be removed"),
    ],
)
def test_scale_down_pauses(event: str, until: float) -> None:
    used = planner(AutoscalingOptions(scale_down_delay_after_delete=Duration.of(60.0)))
    setattr(used.removals, event, 1_000.0)
    seen = view(member("a"))
    at = 1_000.0 + until - TEN_MINUTES
    for earlier, count in ((1.0, 0), (0.0, 1)):
        scan(seen, states(seen, GROUP), by=used, at=at - TEN_MINUTES)
        found = scan(seen, states(seen, GROUP), by=used, at=at + TEN_MINUTES - earlier)
        assert sum(isinstance(each, RemoveNode) for each in found) == count


def test_scale_down_may_be_disabled() -> None:
    assert names(member("a"), options=AutoscalingOptions(scale_down_enabled=False)) == []


def test_a_group_does_not_get_smaller_than_its_minimum() -> None:
    small = group(min_size=2, max_size=9)
    seen = view(*(member(name) for name in "abc"))
    assert len(removed(seen, small)) == 1
    coming = states(seen, small, upcoming={"general": 4})
    used = planner()
    scan(seen, coming, by=used)
    found = scan(seen, coming, by=used, at=TEN_MINUTES)
    assert sum(isinstance(each, RemoveNode) for each in found) == 1


def busy(name: str) -> tuple[Node, Pod]:
    return member(name), running(f"on-{name}", name, cpu="100m")


def test_so_many_nodes_go_at_a_time() -> None:
    empty = [member(f"e{i:02}") for i in range(12)]
    drained = [each for i in range(3) for each in busy(f"d{i}")]
    found = removed(view(*empty, *drained, node("other")), group(max_size=99))
    assert (len(found), sum(not each.is_empty for each in found)) == (10, 0)
    found = removed(view(*drained, node("other")))
    assert [(each.node, [p.key for p in each.pods]) for each in found] == [
        ("d0", ["default/on-d0"])
    ]


def test_nodes_that_are_being_removed_count_and_take_nobody() -> None:
    used = planner()
    seen = view(*busy("a"), *busy("b"), *busy("c"))
    first = removed(seen, by=used)
    used.removals.in_progress[first[0].node] = first[0]
    again = scan(seen, states(seen, GROUP), by=used, at=TEN_MINUTES + 10.0)
    assert not any(isinstance(each, RemoveNode) for each in again), "one is drained at a time"
    assert first[0].node not in used.scale_down.unneeded_since


def test_pods_of_daemon_sets_are_evicted_where_others_are() -> None:
    daemon = running("agent", "a", owner=DAEMON, cpu="100m")
    (found,) = removed(view(member("a"), daemon))
    assert (found.is_empty, found.daemon_pods) == (True, ())
    (found,) = removed(view(*busy("a"), node("b"), daemon))
    assert [pod.key for pod in found.daemon_pods] == ["default/agent"]


def test_no_node_goes_in_a_scan_that_adds_some() -> None:
    used = planner()
    tainted = member("a", taints=[taint("other")])
    seen = view(tainted)
    scan(seen, states(seen, GROUP), by=used)
    seen = view(tainted, unschedulable("p"))
    found = scan(seen, states(seen, GROUP), by=used, at=TEN_MINUTES)
    assert [type(each).__name__ for each in found] == ["ScaleUp"]


def test_unneeded_nodes_get_a_soft_taint_and_lose_it() -> None:
    used = planner(AutoscalingOptions(max_bulk_soft_taint_count=2))
    soft = taint("DeletionCandidateOfClusterAutoscaler", effect="PreferNoSchedule")
    seen = view(*(member(name) for name in "abc"))
    assert scan(seen, states(seen, GROUP), by=used) == [
        MarkUnneeded("a", unneeded=True),
        MarkUnneeded("b", unneeded=True),
    ]
    seen = view(member("a", taints=[soft]), running("p", "a", cpu="3"))
    assert scan(seen, states(seen, GROUP), by=used) == [MarkUnneeded("a", unneeded=False)]


def test_why_nodes_stay_is_known() -> None:
    used = planner()
    seen = view(member("a"), member("b"), running("p", "a", cpu="3"), running("q", "b", owner=None))
    scan(seen, states(seen, GROUP), by=used)
    assert used.scale_down.unremovable == {
        "a": "cpu requested (75% of allocatable) is above the scale-down utilization threshold",
        "b": "default/q is not replicated",
    }


def test_a_node_whose_pods_fit_nowhere_is_not_tried_again_at_once() -> None:
    used = planner()
    full = view(member("a"), running("p", "a"))
    scan(full, states(full, GROUP), by=used)
    roomy = view(member("a"), node("b"), running("p", "a"))
    scan(roomy, states(roomy, GROUP), by=used, at=299.0)
    assert used.scale_down.unneeded_since == {}
    scan(roomy, states(roomy, GROUP), by=used, at=300.0)
    assert used.scale_down.unneeded_since == {"a": 300.0}
