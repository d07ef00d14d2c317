"""Which node missed by least, and what it would take."""

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import ChangeKind
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Verdict
from tests.builders import (
    HOSTNAME,
    ZONE,
    node,
    node_affinity,
    pod,
    requirement,
    spread,
    taint,
    term,
)
from tests.harness import Harness, with_plugins
from tests.insight.explain.asking import evaluation, explain, verdict


def full(name: str, free: str, *, memory: str = "8Gi", **more: object) -> list[Node | Pod]:
    """A node of one cpu of which *free* is free."""
    used = 1000 - int(free.removesuffix("m"))
    return [
        node(name, cpu=1, memory=memory, **more),  # type: ignore[arg-type] # what node() takes
        pod(f"on-{name}", cpu=f"{used}m", node=name),
    ]


@pytest.mark.parametrize(
    ("objects", "order"),
    [
        pytest.param(
            [*full("n1", "100m"), *full("n2", "300m"), *full("n3", "200m")],
            ["n2", "n3", "n1"],
            id="by what is missing",
        ),
        pytest.param(
            [*full("n1", "400m", memory="1Mi"), *full("n2", "100m")],
            ["n2", "n1"],
            id="one reason before two, however little they miss",
        ),
        pytest.param(
            [*full("n1", "400m", taints=[taint("a")]), *full("n2", "100m")],
            ["n2", "n1"],
            id="reasons behind the first count",
        ),
        pytest.param(
            [node("n1", taints=[taint("a")]), *full("n2", "0m")],
            ["n2", "n1"],
            id="what evictions can help with before what they cannot",
        ),
        pytest.param(
            [node("n1", taints=[taint("a"), taint("b")]), node("n2", taints=[taint("a")])],
            ["n2", "n1"],
            id="one taint before two",
        ),
        pytest.param([*full("n2", "1m"), *full("n1", "1m")], ["n1", "n2"], id="by name"),
    ],
)
def test_nodes_come_in_the_order_of_how_nearly_they_fit(
    objects: list[Node | Pod], order: list[str]
) -> None:
    evaluated = evaluation(pod(cpu="500m", memory="1Gi"), *objects)

    assert [each.node for each in evaluated.nodes] == order
    assert evaluated.nearest_miss is not None
    assert evaluated.nearest_miss.node == order[0]


def test_it_names_all_that_has_to_change() -> None:
    objects = full("n1", "320m", taints=[taint("dedicated", "gpu")])
    miss = evaluation(pod(cpu="500m"), *objects).nearest_miss

    assert miss is not None
    assert miss.words == (
        "n1: remove taint dedicated=gpu:NoSchedule, or tolerate it; free 180m more cpu"
    )
    assert [(change.kind, change.what, change.amount) for change in miss.changes] == [
        (ChangeKind.REMOVE_TAINT, "dedicated=gpu:NoSchedule", 0),
        (ChangeKind.FREE_RESOURCE, "cpu", 180),
    ]
    assert miss.is_complete


def test_the_message_charges_the_first_plugin_and_the_rest_is_told_too() -> None:
    evaluated = evaluation(pod(cpu="500m"), *full("n1", "320m", taints=[taint("dedicated")]))

    told = verdict(evaluated)
    assert evaluated.message == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    assert (told.plugin, told.reasons) == ("TaintToleration", ("node(s) had untolerated taint(s)",))
    assert [obstacle.plugin for obstacle in told.obstacles] == [
        "TaintToleration",
        "NodeResourcesFit",
    ]


class Picky(FilterPlugin):
    """Says no, and not in numbers."""

    NAME = "Picky"
    CODE = Code.UNSCHEDULABLE

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        return Verdict.reject(Status(self.CODE, ("not today",)), where=nodes.exists)


class Adamant(Picky):
    NAME = "Adamant"
    CODE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        pytest.param(Picky, "n1: Picky says 'not today'", id="evictions may help"),
        pytest.param(Adamant, "n1: Adamant says 'not today'", id="nobody knows what would"),
    ],
)
def test_what_a_plugin_does_not_explain_is_quoted(kind: type[FilterPlugin], words: str) -> None:
    harness = with_plugins(kind)
    harness.put(node("n1"), node("n0", labels={ZONE: "b"}))
    harness.put(pod("p", node_selector={HOSTNAME: "n1"}))
    evaluated = explain(harness, "default/p").evaluation

    assert evaluated is not None
    assert evaluated.nearest_miss is not None
    assert evaluated.nearest_miss.words == words


GPU = "nvidia.com/gpu"
ZONED = {"kubernetes.io/hostname": "n1", ZONE: "zone-a"}


@pytest.mark.parametrize(
    ("waiting", "objects", "nearest"),
    [
        pytest.param(
            pod("p", node_selector={"kubernetes.io/hostname": "n9"}),
            [node("n1", labels=ZONED)],
            None,
            id="a hostname is not for changing",
        ),
        pytest.param(
            pod("p", node_selector={ZONE: "zone-b"}),
            [node("n1", labels=ZONED)],
            None,
            id="nor is a zone",
        ),
        pytest.param(
            pod("p", cpu=1, node_selector={ZONE: "zone-b"}),
            [
                node("n1", labels=ZONED),
                *full("n2", "100m", labels={ZONE: "zone-b"}, taints=[taint("a"), taint("b")]),
            ],
            "n2: remove taint a:NoSchedule, or tolerate it; remove taint b:NoSchedule, or tolerate"
            " it; free 900m more cpu",
            id="much to do in the right zone before one label in the wrong one",
        ),
        pytest.param(
            pod("p", spread=[spread(ZONE)]),
            [node("n1")],
            None,
            id="no zone is made up",
        ),
        pytest.param(
            pod("p", requests={GPU: 1}),
            [
                node("n1"),
                node("n2", allocatable={GPU: 1}, taints=[taint("a")]),
                pod("q", requests={GPU: 1}, node="n2"),
            ],
            f"n2: remove taint a:NoSchedule, or tolerate it; free 1 more {GPU}",
            id="a node with a GPU, though more is in the way there",
        ),
        pytest.param(
            pod("p", requests={GPU: 1}), [node("n1"), node("n2")], None, id="no node has a GPU"
        ),
        pytest.param(
            pod("p"),
            [
                node("n1", taints=[taint("node-role.kubernetes.io/control-plane")]),
                node("n2", taints=[taint("node.kubernetes.io/not-ready")]),
                node("n3", taints=[taint("a"), taint("b")]),
            ],
            "n3: remove taint a:NoSchedule, or tolerate it; remove taint b:NoSchedule, or tolerate"
            " it",
            id="neither the control plane nor a broken node",
        ),
        pytest.param(
            pod("p", cpu=1, node_selector={"disk": "ssd"}),
            [node("n1"), node("n2", labels={"disk": "ssd"}, taints=[taint("a")])],
            "n2: remove taint a:NoSchedule, or tolerate it",
            id="a taint before a label",
        ),
        pytest.param(
            pod("p", cpu=8, node_selector={"disk": "ssd"}),
            [node("n1", cpu=8), node("n2", cpu=4, labels={"disk": "ssd"})],
            "n1: label it disk=ssd",
            id="a label before a smaller pod",
        ),
    ],
)
def test_only_what_somebody_can_change_is_advised(
    waiting: Pod, objects: list[Node | Pod], nearest: str | None
) -> None:
    miss = evaluation(waiting, *objects).nearest_miss

    assert (miss and miss.words) == nearest


def test_room_is_left_to_nominated_pods() -> None:
    first = pod("first", cpu="800m", priority=10, nominated="n1")
    evaluated = evaluation(pod("second", cpu="500m"), node("n1", cpu=1), first)

    assert evaluated.nearest_miss is not None
    assert evaluated.nearest_miss.words == (
        "n1, beside default/first nominated there: free 300m more cpu"
    )
    assert verdict(evaluated).beside == ("default/first",)
    (detail,) = verdict(evaluated).obstacles[0].details
    assert detail.message == "needs cpu 500m, free 200m of 1000m"


def test_nodes_that_prefilter_leaves_out_come_last() -> None:
    only_n2 = node_affinity(required=[term(fields=[requirement("metadata.name", "In", "n2")])])
    evaluated = evaluation(pod(cpu=1, affinity=only_n2), node("n1"), *full("n2", "500m"))

    assert [each.node for each in evaluated.nodes] == ["n2", "n1"]
    assert evaluated.notes == ("NodeAffinity leaves 1 node in question",)
    assert verdict(evaluated).reasons == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
    assert evaluated.nearest_miss is not None
    assert evaluated.nearest_miss.words == "n2: free 500m more cpu"


def test_when_the_pod_as_such_is_refused_no_node_is_near() -> None:
    names = [requirement("metadata.name", "In", name) for name in ("n1", "n2")]
    evaluated = evaluation(
        pod(affinity=node_affinity(required=[term(fields=names)])), node("n1"), node("n2")
    )

    assert evaluated.nearest_miss is None
    assert evaluated.message == "0/2 nodes are available: pod affinity terms conflict."
    assert evaluated.reasons == {"pod affinity terms conflict": 2}
    assert evaluated.notes == ("NodeAffinity rejects the pod whatever the nodes are like",)
    assert evaluated.refused_by == ("NodeAffinity",)
    assert [each.reasons for each in evaluated.nodes] == [("pod affinity terms conflict",)] * 2


def test_without_nodes() -> None:
    evaluated = evaluation(pod())

    assert evaluated.message == "no nodes available to schedule pods"
    assert (evaluated.nearest_miss, evaluated.nodes) == (None, ())


def test_a_node_is_changed_once_for_all_that_a_pod_asks_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As often as labels are asked for, it would be quadratic in them."""
    changed = list[int]()
    set_node = NodeTable.set_node

    def counted(table: NodeTable, row: int, node: Node) -> None:
        changed.append(row)
        set_node(table, row, node)

    selector = {f"label-{number}": "yes" for number in range(30)}
    harness = Harness()
    harness.put(node("n1"), pod("p", node_selector=selector))
    monkeypatch.setattr(NodeTable, "set_node", counted)
    found = explain(harness, "default/p").evaluation
    assert found is not None
    assert found.nearest_miss is not None
    assert len(found.nearest_miss.changes) == len(selector)
    assert changed == [0]
