"""NodeName, NodeUnschedulable and NodePorts."""

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import ContainerPort, Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import NODE_ADD, ClusterEventWithHint, QueueingHint
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins import node_unschedulable
from berth_plugins.node_name import WRONG_NODE, NodeName
from berth_plugins.node_ports import PORTS_TAKEN, NodePorts, after_pod_deletion
from berth_plugins.node_unschedulable import UNSCHEDULABLE, NodeUnschedulable
from tests.builders import host_port, node, pod, sidecar, toleration
from tests.plugins.evaluating import table, verdicts

CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), {"n1": None, "n2": None}, id="no node named: every node will do"),
        pytest.param(pod(node="n1"), {"n1": None, "n2": WRONG_NODE}, id="only the named node"),
        pytest.param(
            pod(node="no-such"), {"n1": WRONG_NODE, "n2": WRONG_NODE}, id="no node has the name"
        ),
    ],
)
def test_node_name(a_pod: Pod, want: dict[str, Status | None]) -> None:
    assert verdicts(NodeName(), a_pod, table(node("n1"), node("n2"))) == want


def test_node_name_waits_for_new_nodes() -> None:
    assert NodeName().events_to_register() == [ClusterEventWithHint(NODE_ADD)]


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), UNSCHEDULABLE, id="a cordoned node takes no ordinary pod"),
        pytest.param(
            pod(tolerations=[toleration(CORDON, effect="NoSchedule")]), None, id="tolerated"
        ),
        pytest.param(pod(tolerations=[toleration()]), None, id="everything is tolerated"),
        pytest.param(
            pod(tolerations=[toleration(CORDON, effect="NoExecute")]),
            UNSCHEDULABLE,
            id="tolerated for another effect",
        ),
        pytest.param(
            pod(tolerations=[toleration(CORDON, "true", effect="NoSchedule")]),
            UNSCHEDULABLE,
            id="the taint has no value",
        ),
    ],
)
def test_node_unschedulable(a_pod: Pod, want: Status | None) -> None:
    nodes = table(node("open"), node("cordoned", unschedulable=True))
    assert verdicts(NodeUnschedulable(), a_pod, nodes) == {"open": None, "cordoned": want}


def test_a_verdict_outlives_a_change_of_the_node() -> None:
    nodes = table(node("n1", unschedulable=True))
    row = nodes.row_of["n1"]
    verdict = NodeUnschedulable().filter(CycleState(), PodInfo(pod()), nodes)
    nodes.set_node(row, node("n1"))
    assert verdict.status_of(row) == UNSCHEDULABLE


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, node(), QueueingHint.QUEUE, id="a node came"),
        pytest.param(None, node(unschedulable=True), QueueingHint.SKIP, id="a cordoned node came"),
        pytest.param(
            node(unschedulable=True), node(), QueueingHint.QUEUE, id="a node was uncordoned"
        ),
        pytest.param(node(), node(unschedulable=True), QueueingHint.SKIP, id="a node was cordoned"),
        pytest.param(node(), node(), QueueingHint.SKIP, id="it was and is open"),
    ],
)
def test_node_unschedulable_node_hint(old: Node | None, new: Node, want: QueueingHint) -> None:
    assert node_unschedulable.after_node_change(pod(), old, new) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(
            pod("p", tolerations=[toleration(CORDON)]), QueueingHint.QUEUE, id="tolerates now"
        ),
        pytest.param(
            pod("p", tolerations=[toleration("x")]), QueueingHint.SKIP, id="tolerates other"
        ),
        pytest.param(
            pod("q", tolerations=[toleration(CORDON)]), QueueingHint.SKIP, id="another pod does"
        ),
    ],
)
def test_node_unschedulable_toleration_hint(new: Pod, want: QueueingHint) -> None:
    assert node_unschedulable.after_toleration_change(pod("p"), pod("p"), new) is want


@pytest.mark.parametrize(
    ("ports", "used", "free"),
    [
        pytest.param([80], [], True, id="nobody uses a port"),
        pytest.param([80], [81], True, id="another port"),
        pytest.param([80], [80], False, id="the same port"),
        pytest.param([80], [host_port(80, protocol="UDP")], True, id="another protocol"),
        pytest.param(
            [host_port(80, ip="10.0.0.1")],
            [host_port(80, ip="10.0.0.2")],
            True,
            id="elsewhere",
        ),
        pytest.param(
            [host_port(80, ip="10.0.0.1")], [host_port(80, ip="10.0.0.1")], False, id="same address"
        ),
        pytest.param([80], [host_port(80, ip="10.0.0.1")], False, id="all addresses are wanted"),
        pytest.param([host_port(80, ip="10.0.0.1")], [80], False, id="all addresses are taken"),
        pytest.param([host_port(80, ip="::")], [host_port(80, ip="::1")], True, id=":: is a name"),
        pytest.param([81, 80], [80], False, id="one of several ports is taken"),
    ],
)
def test_node_ports(
    ports: list[int | ContainerPort], used: list[int | ContainerPort], free: bool
) -> None:
    nodes = table(node("idle"), node("busy"), pods=[pod("old", ports=used, node="busy")])
    wants = pod("new", ports=ports)
    assert verdicts(NodePorts(), wants, nodes) == {
        "idle": None,
        "busy": None if free else PORTS_TAKEN,
    }
    deleted = after_pod_deletion(wants, pod("old", ports=used, node="busy"), None)
    assert deleted is (QueueingHint.SKIP if free else QueueingHint.QUEUE)


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), SKIP, id="no ports"),
        pytest.param(pod(ports=[80]), None, id="a host port"),
        pytest.param(pod(init_containers=[sidecar(ports=[80])]), None, id="of a sidecar"),
        pytest.param(pod(ports=[ContainerPort(container_port=80)]), SKIP, id="no host port"),
    ],
)
def test_node_ports_skips_pods_without_host_ports(a_pod: Pod, want: Status | None) -> None:
    assert NodePorts().pre_filter(CycleState(), PodInfo(a_pod), table()) == want


@pytest.mark.parametrize(
    ("deleted", "want"),
    [
        pytest.param(pod("old", ports=[80], node="n1"), QueueingHint.QUEUE, id="it was on a node"),
        pytest.param(
            pod("old", ports=[80], nominated="n1"), QueueingHint.QUEUE, id="it was nominated"
        ),
        pytest.param(pod("old", ports=[80]), QueueingHint.SKIP, id="it had no place"),
        pytest.param(pod("old", node="n1"), QueueingHint.SKIP, id="it had no ports"),
    ],
)
def test_node_ports_hint(deleted: Pod, want: QueueingHint) -> None:
    assert after_pod_deletion(pod(ports=[80]), deleted, None) is want
