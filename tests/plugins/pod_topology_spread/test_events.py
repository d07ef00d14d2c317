"""PodTopologySpread: which events may make room for a pod that it rejected."""

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from berth_plugins.pod_topology_spread.plugin import DefaultConstraint, PodTopologySpreadArgs
from tests.builders import (
    HOSTNAME,
    ZONE,
    expression,
    node,
    pod,
    selector,
    service,
    spread,
    taint,
    toleration,
)
from tests.plugins.evaluating import hint_about_pod, table
from tests.plugins.pod_topology_spread.spreading import plugin

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
WEB = selector({"app": "web"})
WAITING = pod(labels={"app": "web"}, spread=[spread(selector=WEB), spread(HOSTNAME, selector=WEB)])
TAINT_SHY = pod(spread=[spread(selector=WEB, node_taints_policy="Honor")])
SOFT = pod(labels={"app": "web"}, spread=[spread(selector=WEB, soft=True)])
WRONG = pod(spread=[spread(selector=selector(expressions=[expression("app", "In")]))])
TOLERANT = pod(spread=TAINT_SHY.spec.topology_spread_constraints, tolerations=[toleration("t")])

OTHER = pod("other", labels={"app": "web"}, node="n1")
DB = pod("other", labels={"app": "db"}, node="n1")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "want"),
    [
        pytest.param(WAITING, None, OTHER, QUEUE, id="one more of its like"),
        pytest.param(WAITING, OTHER, None, QUEUE, id="one less of its like"),
        pytest.param(WAITING, None, DB, SKIP, id="a pod of another kind"),
        pytest.param(WAITING, DB, None, SKIP, id="a pod of another kind goes"),
        pytest.param(
            WAITING, None, pod("other", labels={"app": "web"}), SKIP, id="it has no place"
        ),
        pytest.param(
            WAITING,
            None,
            pod("other", labels={"app": "web"}, nominated="n1"),
            QUEUE,
            id="it is nominated",
        ),
        pytest.param(
            WAITING,
            pod("other", ns="far", labels={"app": "web"}, node="n1"),
            None,
            SKIP,
            id="of another namespace",
        ),
        pytest.param(WAITING, DB, OTHER, QUEUE, id="labels come to match"),
        pytest.param(WAITING, OTHER, DB, QUEUE, id="labels cease to match"),
        pytest.param(
            WAITING,
            OTHER,
            pod("other", labels={"app": "web", "more": ""}, node="n1"),
            SKIP,
            id="labels match as before",
        ),
        pytest.param(
            WAITING, pod(labels={"app": "db"}), WAITING, QUEUE, id="labels of the pod itself"
        ),
        pytest.param(TOLERANT, TAINT_SHY, TOLERANT, QUEUE, id="it tolerates more taints"),
        pytest.param(
            WAITING,
            WAITING,
            pod(labels={"app": "web"}, tolerations=[toleration("t")]),
            SKIP,
            id="no constraint looks at taints",
        ),
        pytest.param(
            TAINT_SHY,
            OTHER,
            pod("other", labels={"app": "web"}, node="n1", tolerations=[toleration("t")]),
            SKIP,
            id="another pod tolerates more",
        ),
        pytest.param(SOFT, None, OTHER, SKIP, id="a soft constraint rejects nothing"),
        pytest.param(WRONG, None, OTHER, QUEUE, id="who cannot tell tries"),
    ],
)
def test_after_pod_change(
    waiting: Pod, old: Pod | None, new: Pod | None, want: QueueingHint
) -> None:
    assert hint_about_pod(plugin(table()), waiting, old, new) is want


IN_A = node(zone="a")
NOWHERE = node()


@pytest.mark.parametrize(
    ("waiting", "old", "new", "want"),
    [
        pytest.param(WAITING, None, IN_A, QUEUE, id="a node with all labels"),
        pytest.param(WAITING, None, NOWHERE, SKIP, id="a node that lacks one"),
        pytest.param(WAITING, IN_A, None, QUEUE, id="a node with all labels goes"),
        pytest.param(WAITING, NOWHERE, None, SKIP, id="a node that lacks one goes"),
        pytest.param(WAITING, NOWHERE, IN_A, QUEUE, id="a label comes"),
        pytest.param(WAITING, IN_A, NOWHERE, QUEUE, id="a label goes"),
        pytest.param(WAITING, node(zone="b"), IN_A, QUEUE, id="a node changes its zone"),
        pytest.param(WAITING, IN_A, node(zone="a", labels={"x": ""}), SKIP, id="another label"),
        pytest.param(WAITING, node(zone="a", taints=[taint("t")]), IN_A, QUEUE, id="a taint goes"),
        pytest.param(
            WAITING, node(taints=[taint("t")]), NOWHERE, SKIP, id="a taint goes where a label lacks"
        ),
        pytest.param(WRONG, None, NOWHERE, QUEUE, id="who cannot tell tries"),
    ],
)
def test_after_node_change(
    waiting: Pod, old: Node | None, new: Node | None, want: QueueingHint
) -> None:
    assert plugin(table()).after_node_change(waiting, old, new) is want


def test_default_constraints_are_woken_too() -> None:
    zone = DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    args = PodTopologySpreadArgs(default_constraints=(zone,), defaulting_type="List")
    spreading = plugin(table(), service("s", selects={"app": "web"}), args=args)
    waiting = pod(labels={"app": "web"})
    assert hint_about_pod(spreading, waiting, OTHER, None) is QUEUE
    assert spreading.after_pod_change(waiting, DB, None) is SKIP
    assert spreading.after_node_change(waiting, None, IN_A) is QUEUE


def test_events() -> None:
    pods = (
        ActionType.ADD
        | ActionType.DELETE
        | ActionType.UPDATE_POD_LABEL
        | ActionType.UPDATE_POD_TOLERATION
    )
    nodes = (
        ActionType.ADD
        | ActionType.DELETE
        | ActionType.UPDATE_NODE_LABEL
        | ActionType.UPDATE_NODE_TAINT
    )
    registered = [r.event for r in plugin(table()).events_to_register()]
    assert registered == [
        ClusterEvent(EventResource.POD, pods),
        ClusterEvent(EventResource.NODE, nodes),
    ]
