"""What becomes of pods on a cluster that might be."""

from typing import Any

import pytest

from berth.insight.whatif.answer import Unplaced, Victim
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import Question
from berth.kube.objects.meta import OwnerReference
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Verdict
from berth_plugins.registry import IN_TREE
from tests.builders import disruption_budget, node, pod, selector, taint
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot

ONE, TWO = node("one", cpu="1", zone="a"), node("two", cpu="1", zone="b")
NO_CPU = "0/2 nodes are available: 2 Insufficient cpu."


def big(name: str, **more: Any) -> Any:
    """A pod that fills a node of one cpu."""
    return pod(name, cpu="1", **more)


def test_replicas_are_placed_until_there_is_no_room() -> None:
    found = ask(snapshot(ONE, TWO), templates=[{"manifest": deployment(), "replicas": 4}])

    assert not found.fits
    assert found.placements == {"shop/web-0": "one", "shop/web-1": "two"}
    assert found.unplaced == (
        Unplaced(
            template="Deployment shop/web",
            message=NO_CPU,
            pods=("shop/web-2", "shop/web-3"),
            asked=True,
        ),
    )


def test_utilisation_is_told_before_and_after() -> None:
    running = pod("running", cpu="500m", node="one")
    found = ask(snapshot(ONE, TWO, running), templates=[{"manifest": deployment()}])

    cpu = found.before.resources["cpu"], found.after.resources["cpu"]
    assert [(amount.allocatable, amount.requested, amount.share) for amount in cpu] == [
        (2000, 500, 0.25),
        (2000, 1500, 0.75),
    ]
    assert (found.before.pods, found.after.pods) == (1, 2)
    assert (found.before.imbalance["cpu"], found.after.imbalance["cpu"]) == (0.25, 0.25)
    zones = found.groups["topology.kubernetes.io/zone"]
    assert [(zone.value, zone.placed, zone.after.resources["cpu"].share) for zone in zones] == [
        ("a", 0, 0.5),
        ("b", 1, 1.0),
    ]


def test_the_queue_decides_who_comes_first() -> None:
    waiting = snapshot(ONE, big("low", priority=1), big("high", priority=2), big("mid", priority=1))
    assert ask(waiting).placements == {"default/high": "one"}
    asked = manifest(big("asked", priority=3))
    found = ask(waiting, pods=[asked])
    assert (found.fits, found.placements) == (True, {"default/asked": "one"})


def test_waiting_pods_can_be_left_alone() -> None:
    taken = snapshot(ONE, big("waiting", priority=9))
    found = ask(taken, pods=[manifest(big("asked"))], includePending=False)
    assert (found.placements, found.unplaced) == ({"default/asked": "one"}, ())


def test_who_waits_for_another_is_tried_again() -> None:
    """The follower comes first, and fits only beside the leader."""
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "leader"}},
                }
            ]
        }
    }
    follower = deployment("follower", cpu="1m", affinity=near, priority=1)
    found = ask(
        snapshot(ONE, TWO),
        templates=[{"manifest": follower}, {"manifest": deployment("leader", cpu="1m")}],
    )
    assert found.fits
    assert found.placements["shop/follower-0"] == found.placements["shop/leader-0"]


@pytest.mark.parametrize(
    ("waiting", "template", "message"),
    [
        pytest.param(
            pod("p", gates=["later"]),
            "Pod default/p",
            "not tried: waiting for scheduling gates: [later]",
            id="a gated pod",
        ),
        pytest.param(
            big("p", owner="web", node_selector={"no": "where"}),
            "ReplicaSet default/web",
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            id="a replica",
        ),
    ],
)
def test_who_waits_in_vain_is_told_with_the_reason(
    waiting: Any, template: str, message: str
) -> None:
    found = ask(snapshot(ONE, waiting))
    assert found.unplaced == (
        Unplaced(template=template, message=message, pods=("default/p",), asked=False),
    )
    assert not found.fits


@pytest.mark.parametrize(
    "bystander",
    [
        pytest.param(big("p", scheduler="another"), id="another scheduler's"),
        pytest.param(big("p", deleted="2026-01-01T00:00:00Z"), id="leaving"),
        pytest.param(big("p", phase="Succeeded"), id="finished"),
    ],
)
def test_pods_that_are_not_scheduled_are_not_placed(bystander: Any) -> None:
    found = ask(snapshot(ONE, bystander))
    assert (found.fits, found.placements, found.unplaced) == (True, {}, ())


# Changes.


def test_pods_of_a_removed_node_need_another() -> None:
    daemon = OwnerReference("apps/v1", "DaemonSet", "agent", "u", controller=True)
    taken = snapshot(
        ONE, TWO, big("web", node="one", owner="web"), pod("agent", node="one", owner=daemon)
    )
    found = ask(taken, removeNodes={"names": ["one"]})
    assert (found.fits, found.placements) == (True, {"default/web": "two"})
    assert (found.after.nodes, found.after.pods) == (1, 1)


def test_nodes_go_by_patterns() -> None:
    cluster = [node(name, cpu="1") for name in ("spot-1", "spot-2", "web-1", "web-2")]
    pods = [big(f"p-{name.name}", node=name.name) for name in cluster]
    found = ask(snapshot(*cluster, *pods), removeNodes={"names": ["spot-*", "web-[2-9]", "spot-1"]})
    assert found.after.nodes == 1
    assert [pod for group in found.unplaced for pod in group.pods] == [
        "default/p-spot-1",
        "default/p-spot-2",
        "default/p-web-2",
    ]


def test_a_pattern_or_selector_that_no_node_matches_is_noted() -> None:
    found = ask(
        snapshot(ONE, TWO),
        removeNodes={"names": ["spot-*", "on*"], "selector": "pool=spot"},
        cordonNodes={"selector": "pool"},
        findRemovable={"names": ["x?"]},
    )
    assert (found.fits, found.after.nodes) == (True, 1)
    assert found.notes == (
        "removeNodes.names[0]: 'spot-*' matches no node",
        "removeNodes.selector: 'pool=spot' matches no node",
        "cordonNodes.selector: 'pool' matches no node",
        "findRemovable.names[0]: 'x?' matches no node",
    )
    assert found.removable is not None
    assert found.removable.nodes == ()


def test_a_removed_node_may_be_missed() -> None:
    taken = snapshot(ONE, TWO, big("web", node="one"), big("db", node="two"))
    found = ask(taken, removeNodes={"selector": "topology.kubernetes.io/zone=a"})
    assert not found.fits
    assert [group.pods for group in found.unplaced] == [("default/web",)]


def test_a_pod_that_is_removed_needs_no_other_node() -> None:
    taken = snapshot(ONE, TWO, big("a", node="one"), big("b", node="one"), big("c", node="two"))
    found = ask(taken, removeNodes={"names": ["one"]}, removePods={"names": ["a", "c"]})
    assert (found.fits, found.placements) == (True, {"default/b": "two"})


def test_a_pod_that_is_there_is_asked_about_as_if_it_were_new() -> None:
    taken = snapshot(ONE, big("a", node="one"))
    found = ask(taken, pods=[manifest(big("a"))])
    assert (found.placements, found.after.pods) == ({"default/a": "one"}, 1)


def test_a_cordoned_node_takes_no_pods() -> None:
    found = ask(snapshot(ONE, TWO), pods=[manifest(big("p"))], cordonNodes={"names": ["one"]})
    assert found.placements == {"default/p": "two"}


def test_removed_pods_make_room() -> None:
    full = snapshot(
        ONE, TWO, big("a", node="one", labels={"app": "x"}), big("b", node="two", ns="shop")
    )
    for choice, free in (
        ({"names": ["a"]}, "one"),
        ({"names": ["shop/b"]}, "two"),
        ({"selector": "app=x"}, "one"),
        ({"selector": "app!=x", "namespace": "shop"}, "two"),
    ):
        assert ask(full, pods=[manifest(big("p"))], removePods=choice).placements == {
            "default/p": free
        }


def test_added_nodes_take_pods() -> None:
    new = manifest(node("new", cpu="1"))
    found = ask(
        snapshot(ONE),
        templates=[{"manifest": deployment(), "replicas": 3}],
        addNodes=[{"manifest": new, "count": 2}],
    )
    assert set(found.placements.values()) == {"one", "new", "new-1"}


def test_a_node_like_another_is_well() -> None:
    model = node(
        "model",
        cpu="1",
        unschedulable=True,
        taints=[taint("node.kubernetes.io/not-ready"), taint("dedicated")],
    )
    found = ask(
        snapshot(model),
        templates=[{"manifest": deployment(tolerations=[{"operator": "Exists"}]), "replicas": 1}],
        addNodes=[{"like": "model"}],
        pods=[manifest(pod("intolerant"))],
    )
    # A pod that tolerates everything also tolerates what is wrong with the model.
    assert found.unplaced[0].message == (
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )


# Preemption.


def test_nobody_is_evicted_unless_asked() -> None:
    taken = snapshot(ONE, big("old", node="one", priority=1))
    found = ask(taken, pods=[manifest(big("new", priority=2))])
    assert (found.placements, found.victims) == ({}, ())


def test_victims_leave_for_good() -> None:
    taken = snapshot(ONE, big("old", node="one", priority=1))
    found = ask(taken, pods=[manifest(big("new", priority=2))], preemption=True)
    assert found.placements == {"default/new": "one"}
    assert found.victims == (
        Victim(
            pod="default/old",
            node="one",
            priority=1,
            preemptor="default/new",
            why="lost, because no controller replaces it",
        ),
    )
    assert found.after.pods == 1


def test_whether_victims_find_a_place_again_is_told() -> None:
    large = node("large", cpu="2")
    old = [big(name, node="large", priority=1, owner="web") for name in ("a", "b")]
    taken = snapshot(large, TWO, *old)
    asked = manifest(pod("new", cpu="2", priority=2))
    found = ask(taken, pods=[asked], preemption=True)

    assert found.placements == {"default/new": "large"}
    assert {victim.pod: victim.target for victim in found.victims} == {
        "default/a": "two",
        "default/b": "",
    }
    whys = {victim.pod: victim.why for victim in found.victims}
    assert whys["default/a"] == ""
    assert whys["default/b"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert found.after.pods == 1  # told of, not counted


def test_an_eviction_uses_up_a_disruption_budget() -> None:
    guarded = [big(name, node=name, priority=1, labels={"app": "x"}) for name in ("one", "two")]
    budget = disruption_budget(selects=selector({"app": "x"}), allows=1)
    third = node("three", cpu="1")
    free = big("free", node="three", priority=2)
    taken = snapshot(ONE, TWO, third, *guarded, free, budget)
    found = ask(
        taken, templates=[{"manifest": deployment(priority=3), "replicas": 2}], preemption=True
    )
    # The second one spares the budget, though it takes a more important pod.
    first, second = (victim.pod for victim in found.victims)
    assert first in ("default/one", "default/two")
    assert second == "default/free"


# Configurations.


def profile(*disabled: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"plugins": {"multiPoint": {"disabled": [{"name": name} for name in disabled]}}}
        ],
    }


def test_another_configuration_decides_otherwise() -> None:
    tainted = snapshot(node("n", taints=[taint("gpu")]))
    asked = [manifest(pod("p"))]
    assert not ask(tainted, pods=asked).fits
    assert ask(tainted, pods=asked, config=profile("TaintToleration")).fits


def test_two_configurations_are_compared() -> None:
    tainted = snapshot(node("n", taints=[taint("gpu")]))
    found = ask(tainted, pods=[manifest(pod("p"))], compareConfig=profile("TaintToleration"))
    assert not found.fits
    assert found.compared is not None
    assert (found.compared.fits, found.moved) == (True, 1)


def test_the_snapshot_brings_its_configuration() -> None:
    tainted = snapshot(node("n", taints=[taint("gpu")]), config=profile("TaintToleration"))
    assert ask(tainted, pods=[manifest(pod("p"))]).fits


def test_a_seed_draws_the_same_every_time() -> None:
    even = snapshot(*(node(f"n{i}", cpu="9") for i in range(9)))

    def drawn(**seed: int) -> dict[str, str]:
        return ask(even, templates=[{"manifest": deployment(), "replicas": 5}], **seed).placements

    assert drawn(seed=7) == drawn(seed=7)
    assert len({tuple(drawn(seed=seed).values()) for seed in range(5)}) > 1
    assert list(drawn().values()) == ["n0", "n1", "n2", "n3", "n4"]


class EvenOnly(FilterPlugin):
    """Goes by the name of a pod, which replicas do not share."""

    NAME = "EvenOnly"

    def filter(self, _state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        if int(pod.name[-1]) % 2 == 0:
            return Verdict()
        return Verdict.reject(Status.unschedulable("odd"), where=nodes.exists)


def test_replicas_are_evaluated_one_by_one_where_a_plugin_may_tell_them_apart() -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "EvenOnly"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": enabled}],
    }
    asked = Question.model_validate(
        {"config": config, "pods": [manifest(pod(f"p-{i}")) for i in (1, 2, 3, 4)]}
    )
    found = answer(asked, snapshot(node("one")), {**IN_TREE, "EvenOnly": EvenOnly})
    assert found.placements == {"default/p-2": "one", "default/p-4": "one"}
