"""What a changed object means as events (spec §3.8)."""

from typing import Any

import msgspec
import pytest

from berth.kube.objects.node import Node, NodePodPreemptionPolicy
from berth.kube.objects.pod import (
    ExtendedResourceClaimStatus,
    Pod,
    PodResourceClaimStatus,
    PodStatus,
)
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from berth.scheduler.queue.events_from_update import (
    node_scheduling_properties_change,
    pod_scheduling_properties_change,
)
from tests.builders import condition, container, container_status, node, pod, taint, toleration

LABEL = ActionType.UPDATE_POD_LABEL
SCALE_DOWN = ActionType.UPDATE_POD_SCALE_DOWN
SCALE_UP = ActionType.UPDATE_POD_SCALE_UP
UNGATED = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
TOLERATION = ActionType.UPDATE_POD_TOLERATION
CLAIM = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(pod(), pod(version="2"), [ActionType.UPDATE], id="nothing that has a name"),
        pytest.param(pod(), pod(labels={"a": "b"}), [LABEL], id="labels"),
        pytest.param(pod(cpu="2"), pod(cpu="1"), [SCALE_DOWN], id="less cpu"),
        pytest.param(pod(cpu="1"), pod(), [SCALE_DOWN], id="a request is gone"),
        pytest.param(pod(cpu="1"), pod(cpu="2"), [SCALE_UP], id="more cpu"),
        pytest.param(pod(), pod(cpu="1"), [SCALE_UP], id="a request more"),
        pytest.param(pod(cpu="1"), pod(cpu="1000m"), [ActionType.UPDATE], id="the same cpu"),
        pytest.param(
            pod(cpu="1000400u"), pod(cpu="1000100u"), [ActionType.UPDATE], id="within one milli"
        ),
        pytest.param(
            pod(cpu="1", memory="2Gi"),
            pod(cpu="2", memory="1Gi"),
            [SCALE_DOWN, SCALE_UP],
            id="one grew, one shrank",
        ),
        pytest.param(
            pod(
                cpu="1",
                status=PodStatus(container_statuses=(container_status(actuated={"cpu": 2}),)),
            ),
            pod(
                cpu="1",
                status=PodStatus(container_statuses=(container_status(actuated={"cpu": 1}),)),
            ),
            [SCALE_DOWN],
            id="a resize in place has happened",
        ),
        pytest.param(
            pod(gates=["a", "b"]), pod(gates=["b"]), [ActionType.UPDATE], id="a gate left"
        ),
        pytest.param(pod(gates=["a", "b"]), pod(), [UNGATED], id="no gate left"),
        pytest.param(
            pod(tolerations=[toleration("a")]),
            pod(tolerations=[toleration("b")]),
            [ActionType.UPDATE],
            id="as many tolerations",
        ),
        pytest.param(
            pod(), pod(tolerations=[toleration("a")]), [TOLERATION], id="a toleration more"
        ),
        pytest.param(
            pod(),
            pod(status=PodStatus(resource_claim_statuses=(PodResourceClaimStatus(name="gpu"),))),
            [CLAIM],
            id="a claim was generated",
        ),
        pytest.param(
            pod(),
            pod(status=PodStatus(extended_resource_claim_status=ExtendedResourceClaimStatus("c"))),
            [CLAIM],
            id="a claim for extended resources was generated",
        ),
        pytest.param(
            pod(gates=["a"], containers=[container(cpu="2")]),
            pod(labels={"a": "b"}, containers=[container(cpu="1")], tolerations=[toleration("a")]),
            [LABEL, SCALE_DOWN, UNGATED, TOLERATION],
            id="all at once, in this order",
        ),
    ],
)
def test_pod_events(old: Pod, new: Pod, want: list[ActionType]) -> None:
    unscheduled = [ClusterEvent(EventResource.TARGET_POD, action) for action in want]
    assigned = [ClusterEvent(EventResource.ASSIGNED_POD, action) for action in want]
    on_node = msgspec.structs.replace(new, spec=msgspec.structs.replace(new.spec, node_name="n1"))

    assert pod_scheduling_properties_change(old, new) == unscheduled
    assert pod_scheduling_properties_change(old, on_node) == assigned


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(pod(cpu="1"), pod(cpu="2"), [ActionType.UPDATE], id="no name for it"),
        pytest.param(
            pod(cpu="1", memory="2Gi"),
            pod(cpu="2", memory="1Gi"),
            [SCALE_DOWN],
            id="one grew, one shrank",
        ),
    ],
)
def test_before_scale_up_was_told(old: Pod, new: Pod, want: list[ActionType]) -> None:
    assert pod_scheduling_properties_change(old, new, tells_scale_up=False) == [
        ClusterEvent(EventResource.TARGET_POD, action) for action in want
    ]


def keeping_pods(a_node: Node) -> Node:
    """Return *a_node*, whose pods are not preempted for the sake of resizes."""
    policy = NodePodPreemptionPolicy(disable_resize_preemption=("example.com/mine",))
    spec = msgspec.structs.replace(a_node.spec, pod_preemption_policy=policy)
    return msgspec.structs.replace(a_node, spec=spec)


def changed(a_node: Node, **fields: Any) -> Node:
    """Return *a_node* with annotations or conditions, which the builder does not offer."""
    metadata, status = a_node.metadata, a_node.status
    if "annotations" in fields:
        metadata = msgspec.structs.replace(metadata, annotations=fields["annotations"])
    if "conditions" in fields:
        status = msgspec.structs.replace(status, conditions=fields["conditions"])
    return msgspec.structs.replace(a_node, metadata=metadata, status=status)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(node(), node(version="2", images={"nginx": 5}), [], id="nothing that counts"),
        pytest.param(
            node(unschedulable=True), node(), [ActionType.UPDATE_NODE_TAINT], id="uncordoned"
        ),
        pytest.param(node(), node(unschedulable=True), [], id="cordoned"),
        pytest.param(
            node(cpu="4"), node(cpu="5"), [ActionType.UPDATE_NODE_ALLOCATABLE], id="allocatable"
        ),
        pytest.param(node(cpu="4"), node(cpu="4000m"), [], id="the same, written differently"),
        pytest.param(
            node(),
            node(allocatable={"example.com/gpu": 1}),
            [ActionType.UPDATE_NODE_ALLOCATABLE],
            id="a new resource",
        ),
        pytest.param(node(), node(labels={"a": "b"}), [ActionType.UPDATE_NODE_LABEL], id="labels"),
        pytest.param(
            node(), node(taints=[taint("a")]), [ActionType.UPDATE_NODE_TAINT], id="taints"
        ),
        pytest.param(
            changed(node(), conditions=(condition("Ready", "False"),)),
            changed(node(), conditions=(condition("Ready", "True"),)),
            [ActionType.UPDATE_NODE_CONDITION],
            id="a condition",
        ),
        pytest.param(
            changed(node(), conditions=(condition("Ready", message="a"), condition("Disk"))),
            changed(node(), conditions=(condition("Disk"), condition("Ready", message="b"))),
            [],
            id="a heartbeat",
        ),
        pytest.param(
            node(),
            changed(node(), annotations={"a": "b"}),
            [ActionType.UPDATE_NODE_ANNOTATION],
            id="annotations",
        ),
        pytest.param(
            node(),
            node(features=["UserNamespaces"]),
            [ActionType.UPDATE_NODE_DECLARED_FEATURE],
            id="declared features",
        ),
        pytest.param(
            node(),
            keeping_pods(node()),
            [ActionType.UPDATE_NODE_PREEMPTION_POLICY],
            id="whom it allows to be preempted for",
        ),
        pytest.param(
            node(unschedulable=True, taints=[taint("node.kubernetes.io/unschedulable")]),
            node(cpu="5", labels={"a": "b"}),
            [
                ActionType.UPDATE_NODE_TAINT,
                ActionType.UPDATE_NODE_ALLOCATABLE,
                ActionType.UPDATE_NODE_LABEL,
            ],
            id="several, each once",
        ),
    ],
)
def test_node_events(old: Node, new: Node, want: list[ActionType]) -> None:
    assert node_scheduling_properties_change(old, new) == [
        ClusterEvent(EventResource.NODE, action) for action in want
    ]
