"""Which pods are proposed for eviction, and why others are not."""

from typing import Any

import pytest

from berth.kube.objects.meta import KubeStruct, OwnerReference
from berth.kube.objects.pod import Pod
from berth.tools.rebalance.proposal import Proposal
from berth.tools.rebalance.propose import Goals, RebalanceError, propose
from berth_plugins.registry import IN_TREE
from tests.builders import HOSTNAME, ZONE, disruption_budget, node, pod, selector, spread
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    resource_slice,
    with_template_claim,
)
from tests.insight.whatif.asking import snapshot

DAEMON = OwnerReference("apps/v1", "DaemonSet", "agent", "u-agent", controller=True)
MIRROR = OwnerReference("v1", "Node", "n", "u-n", controller=True)


def proposed(*objects: KubeStruct, **goals: Any) -> Proposal:
    return propose(snapshot(*objects), Goals(**goals), IN_TREE)


def told(found: Proposal) -> list[list[list[str]]]:
    """Return the evictions by step and round: ``pod node->node``."""
    return [
        [
            [f"{eviction.pod} {eviction.node}->{eviction.goes_to}" for eviction in round_.evictions]
            for round_ in step.rounds
        ]
        for step in found.steps
    ]


def running(name: str, on: str, **more: Any) -> Pod:
    return pod(name, node=on, **{"owner": "web", "cpu": "2", **more})


BIG = {"pool": "big"}
WANTED = pod("w", cpu="3", priority=5, node_selector=BIG)
NODES = (node("a", labels=BIG), node("b", labels=BIG), node("c", cpu="16"))
FOR_W = {"for_pods": ["default/w"]}


def test_a_pod_moves_so_that_another_fits() -> None:
    found = proposed(*NODES, running("x", "a"), running("y", "b"), WANTED, **FOR_W)
    [step] = found.steps
    [round_] = step.rounds
    [eviction] = round_.evictions
    [placement] = round_.placements
    assert (step.goal, found.unmet) == ("default/w fits", ())
    assert (eviction.pod, eviction.node, eviction.controller) == (
        "default/x",
        "a",
        "ReplicaSet/web",
    )
    assert (eviction.goes_to, placement.node) == ("c", "a")
    assert eviction.why.startswith("c (")
    assert placement.why == "a, the only node that fits"


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([], [[[]]], id="it fits already"),
        pytest.param(
            [running("x", "a", priority=9), running("y", "b", priority=1)],
            [[["default/y b->c"]]],
            id="the lower priority goes",
        ),
        pytest.param(
            [
                *(running(f"x{i}", "a", cpu="1") for i in range(3)),
                *(running(f"y{i}", "b", cpu="1") for i in range(3)),
            ],
            [[["default/x0 a->c", "default/x1 a->c"]]],
            id="two go if one is not enough",
        ),
    ],
)
def test_who_goes(pods: list[KubeStruct], want: list[list[list[str]]]) -> None:
    found = proposed(*NODES, *pods, WANTED, **FOR_W)
    assert told(found) == want


@pytest.mark.parametrize(
    ("with_device", "gone"),
    [
        pytest.param(("a", "c"), ["default/x"], id="it gets one on another node"),
        pytest.param(("a",), ["default/y"], id="there is no other, so another pod goes"),
    ],
)
def test_a_pod_moves_with_a_claim_of_its_own(with_device: tuple[str, ...], gone: list[str]) -> None:
    x = with_template_claim(running("x", "a", priority=-1), "gpu", made="c")
    had = allocation("gpu", pool="a", node="a")
    found = proposed(
        *NODES,
        device_class(),
        *(resource_slice(name, device("gpu"), node=name) for name in with_device),
        claim("c", owner=x.metadata.uid, allocated=had, users=[x.metadata.uid]),
        x,
        running("y", "b"),
        WANTED,
        **FOR_W,
    )
    assert [eviction.pod for eviction in found.evictions] == gone


def test_one_goes_rather_than_two_of_lower_priority() -> None:
    pods = [running(f"x{i}", "a", cpu="1", priority=-5) for i in range(2)]
    wanted = pod("w", cpu="4", priority=5, node_selector=BIG)
    found = proposed(*NODES, *pods, running("y", "b", priority=1), wanted, **FOR_W)
    assert [eviction.pod for eviction in found.evictions] == ["default/y"]


def test_three_go_and_the_important_are_spared() -> None:
    here = [running(f"x{i}", "a", cpu="1", priority=i) for i in range(4)]
    rest = [node(f"r{i}", cpu="1") for i in range(3)]
    found = proposed(node("a", labels=BIG), *rest, *here, WANTED, **FOR_W)
    gone = sorted(eviction.pod for eviction in found.evictions)
    assert gone == ["default/x0", "default/x1", "default/x2"]


@pytest.mark.parametrize(
    "fixed",
    [
        pytest.param({"owner": None}, id="without a controller"),
        pytest.param({"owner": DAEMON}, id="of a DaemonSet"),
        pytest.param({"owner": MIRROR}, id="a mirror pod"),
        pytest.param({"priority": 2_000_000_000}, id="critical"),
        pytest.param({"deleted": "2026-01-01T00:00:00Z"}, id="being deleted"),
        pytest.param({"scheduler": "mine"}, id="of another scheduler"),
        pytest.param({"labels": {"app": "held"}}, id="of a budget that allows nothing"),
        pytest.param({"labels": {"app": "twice", "b": "2"}}, id="of two budgets"),
    ],
)
def test_who_never_goes(fixed: dict[str, Any]) -> None:
    budgets = (
        disruption_budget("held", selects=selector({"app": "held"}), allows=0),
        disruption_budget("one", selects=selector({"app": "twice"}), allows=5),
        disruption_budget("two", selects=selector({"b": "2"}), allows=5),
    )
    found = proposed(
        *NODES, *budgets, running("x", "a", **fixed), running("y", "b"), WANTED, **FOR_W
    )
    assert told(found) == [[["default/y b->c"]]]
    stuck = [running("x", "a", **fixed), running("y", "b", **fixed)]
    found = proposed(*NODES, *budgets, *stuck, WANTED, **FOR_W)
    assert told(found) == []
    [unmet] = found.unmet
    assert unmet.goal == "default/w fits"
    assert unmet.why.startswith("default/w fits nowhere: 0/3 nodes are available: ")


def test_whoever_would_come_back_to_the_same_room_does_not_go() -> None:
    found = proposed(node("a", labels=BIG), running("x", "a", priority=9), WANTED, **FOR_W)
    assert (told(found), len(found.unmet)) == ([], 1)


def test_budgets_make_rounds() -> None:
    labels = {"app": "x"}
    budget = disruption_budget(selects=selector(labels), allows=2)
    pods = [running(f"x{i}", "a", cpu="1", labels=labels) for i in range(3)]
    free = running("free", "a", cpu="1")
    found = proposed(node("a"), node("b"), budget, *pods, free, empty_nodes=["a"])
    assert told(found) == [
        [
            ["default/free a->b", "default/x0 a->b", "default/x1 a->b"],
            ["default/x2 a->b"],
        ]
    ]
    assert found.steps[0].cordon == "a"


def test_nodes_that_cannot_become_empty() -> None:
    nodes = [node("a"), node("b")]
    found = proposed(*nodes, running("bare", "a", owner=None), empty_nodes=["a"])
    assert [each.why for each in found.unmet] == [
        "default/bare cannot be evicted: it has no controller, nobody would make it again"
    ]
    found = proposed(*nodes, running("x", "a"), running("y", "b", cpu="3"), empty_nodes=["a"])
    [unmet] = found.unmet
    assert unmet.why.startswith("default/x would find no other node: 0/2 nodes are available")
    assert found.steps == ()


def test_what_goes_with_a_node_does_not_count() -> None:
    daemon = running("agent", "a", owner=DAEMON)
    found = proposed(node("a"), node("b"), daemon, running("x", "a", cpu="1"), empty_nodes=["a"])
    assert told(found) == [[["default/x a->b"]]]


def test_the_nodes_that_are_cheapest_to_empty() -> None:
    pods = [
        *(running(f"x{i}", "a", cpu="1") for i in range(3)),
        running("y", "b", cpu="1", priority=7),
        running("z", "c", cpu="1"),
    ]
    nodes = [node(name, cpu="5") for name in "abc"]
    found = proposed(*nodes, *pods, num_empty_nodes=2)
    assert [(step.cordon, step.goal) for step in found.steps] == [
        ("c", "c is empty"),
        ("b", "b is empty"),
    ]
    assert all(eviction.goes_to in "ab" for eviction in found.evictions)
    assert found.evictions[-1].goes_to == "a"
    found = proposed(*nodes, *pods, num_empty_nodes=3)
    assert [each.goal for each in found.unmet] == ["3 nodes are empty"]


ZONES = tuple(node(f"{zone}{i}", zone=zone) for zone in "xyz" for i in range(2))


def spread_pod(name: str, on: str, *, soft: bool = True, **more: Any) -> KubeStruct:
    labels = {"app": "web"}
    constraint = spread(ZONE, soft=soft, selector=selector(labels))
    return running(name, on, cpu="1", labels=labels, spread=[constraint], **more)


@pytest.mark.parametrize("soft", [True, False])
def test_skew_is_mended(*, soft: bool) -> None:
    pods = [spread_pod(f"p{i}", on, soft=soft) for i, on in enumerate(["x0", "x0", "x1", "x1"])]
    found = proposed(*ZONES, *pods, mends_skew=True)
    assert (len(found.evictions), found.unmet) == (2, ())
    zones = {eviction.goes_to[0] for eviction in found.evictions}
    assert zones == {"y", "z"}
    assert {step.goal for step in found.steps} == {
        f"maxSkew 1 over {ZONE} of default/ReplicaSet/web is kept"
    }


def test_no_skew_no_evictions() -> None:
    pods = [spread_pod(f"p{i}", on) for i, on in enumerate(["x0", "y0", "z1", "x1"])]
    assert proposed(*ZONES, *pods, mends_skew=True) == Proposal()


def test_skew_that_cannot_be_mended() -> None:
    full = [running(f"f{i}", on, cpu="4") for i, on in enumerate(["y0", "y1", "z0", "z1"])]
    pods = [spread_pod(f"p{i}", "x0") for i in range(3)]
    found = proposed(*ZONES, *pods, *full, mends_skew=True)
    assert found.steps == ()
    assert [each.why[:14] for each in found.unmet] == ["the skew is 3:"]


@pytest.mark.parametrize(
    ("goals", "error"),
    [
        pytest.param(
            {"for_pods": ["default/q"]},
            "--for-pod: 'default/q': there is no such pod, or it has finished",
            id="no such pod",
        ),
        pytest.param(
            {"empty_nodes": ["q"]}, "--empty-nodes: 'q': there is no such node", id="no such node"
        ),
    ],
)
def test_goals_that_make_no_sense(goals: dict[str, Any], error: str) -> None:
    with pytest.raises(RebalanceError, match=error):
        proposed(*NODES, running("x", "a"), **goals)


def test_a_pod_that_runs_fits() -> None:
    assert proposed(*NODES, running("x", "a"), for_pods=["default/x"]) == Proposal()


def test_a_node_is_cordoned_if_the_pod_would_come_back_to_it() -> None:
    """Of equal nodes the scheduler takes that with fewer others of the kind: the one it left."""
    labels = {"app": "web"}
    apart = [spread(HOSTNAME, soft=True, selector=selector(labels))]
    pods = [
        running(f"{on}{i}", on, cpu="1", labels=labels, spread=apart) for on in "abc" for i in "12"
    ]
    wanted = pod("w", cpu="3", priority=5)
    found = proposed(*(node(name) for name in "abc"), *pods, wanted, **FOR_W)
    [step] = found.steps
    assert (step.cordon, step.uncordon) == ("a", True)
    [round_] = step.rounds
    [eviction], [placement] = round_.evictions, round_.placements
    assert (eviction.pod, eviction.goes_to, placement.node) == ("default/a1", "b", "a")
    assert eviction.or_to == ("c",)
