"""Which pods a hollow node takes, by what its Node says now."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kubelet.admission import Rejection, placement_rejection
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.pods.kubelet import KubeletPod
from berth.kube.objects.node import Node


def a_pod(
    uid: str = "a",
    *,
    requests: dict[str, str] | None = None,
    port: int = 0,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> KubeletPod:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests or {}}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    body = {
        "metadata": {"name": uid, "namespace": "default", "uid": uid, **(metadata or {})},
        "spec": {"nodeName": "n", "containers": [container], **spec},
    }
    return msgspec.convert(body, KubeletPod)


def a_node(*, pods: str = "10", spec: dict[str, Any] | None = None, **more: str) -> Node:
    amounts = {"cpu": "4", "pods": pods, **{f"example.com/{k}": v for k, v in more.items()}}
    return msgspec.convert(
        {
            "metadata": {"name": "n", "labels": {"disk": "ssd"}},
            "spec": spec or {},
            "status": {"capacity": amounts, "allocatable": amounts},
        },
        Node,
    )


def hollow(node: Node | None = None) -> HollowNode:
    """A machine with one device of its own plugin; *node* is what the API server has of it."""
    allocatable = {"cpu": "4", "pods": "10", "example.com/gpu": "1"}
    hollow = HollowNode("n", index=0, allocatable=allocatable)
    if node is not None:
        hollow.observe(node)
    return hollow


NO_EXECUTE = {"key": "k", "effect": "NoExecute"}
AFFINITY = Rejection(
    "NodeAffinity",
    "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
)
TAINT = Rejection(
    "TaintToleration",
    "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
)
OTHER_NODE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("pod", "node", "want"),
    [
        pytest.param(a_pod(), a_node(), None, id="nothing asked"),
        pytest.param(a_pod(requests={"cpu": "4"}), a_node(), None, id="all of it"),
        pytest.param(
            a_pod(requests={"cpu": "4001m"}),
            a_node(),
            Rejection(
                "OutOfcpu",
                "Node didn't have enough resource: cpu, requested: 4001, used: 0, capacity: 4000",
            ),
            id="more than there is",
        ),
        pytest.param(
            a_pod(requests={"example.com/fpga": "1"}),
            a_node(),
            None,
            id="an extended resource that the node does not know is somebody else's affair",
        ),
        pytest.param(
            a_pod(requests={"example.com/fpga": "3"}),
            a_node(fpga="2"),
            Rejection(
                "OutOfexample.com/fpga",
                "Node didn't have enough resource: example.com/fpga, "
                "requested: 3, used: 0, capacity: 2",
            ),
            id="too little of a resource that others have added to the status",
        ),
        pytest.param(
            a_pod(requests={"example.com/fpga": "2"}),
            a_node(fpga="2"),
            None,
            id="enough of a resource that others have added to the status",
        ),
        pytest.param(
            a_pod(requests={"example.com/gpu": "2"}),
            a_node(gpu="1"),
            Rejection(
                "UnexpectedAdmissionError",
                "Allocate failed due to requested number of devices unavailable for "
                "example.com/gpu. Requested: 2, Available: 1, which is unexpected",
            ),
            id="too few devices of the node's own plugin",
        ),
        pytest.param(
            a_pod(requests={"hugepages-2Mi": "2Mi"}),
            a_node(),
            Rejection(
                "OutOfhugepages-2Mi",
                "Node didn't have enough resource: hugepages-2Mi, "
                "requested: 2097152, used: 0, capacity: 0",
            ),
            id="a resource of Kubernetes itself is not ignored",
        ),
        pytest.param(a_pod(nodeSelector={"disk": "ssd"}), a_node(), None, id="label matches"),
        pytest.param(a_pod(nodeSelector={"disk": "hdd"}), a_node(), AFFINITY, id="another label"),
        pytest.param(a_pod(affinity=OTHER_NODE), a_node(), AFFINITY, id="another node's name"),
        pytest.param(
            a_pod(nodeSelector={"disk": "hdd"}), None, None, id="the Node is not known yet"
        ),
        pytest.param(
            a_pod(requests={"cpu": "5"}, nodeSelector={"disk": "hdd"}),
            a_node(),
            Rejection(
                "OutOfcpu",
                "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
            ),
            id="resources are named first",
        ),
        pytest.param(a_pod(), a_node(spec={"taints": [NO_EXECUTE]}), TAINT, id="it would evict"),
        pytest.param(
            a_pod(tolerations=[{"operator": "Exists"}]),
            a_node(spec={"taints": [NO_EXECUTE]}),
            None,
            id="the taint is tolerated",
        ),
        pytest.param(
            a_pod(metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
            a_node(spec={"taints": [NO_EXECUTE]}),
            None,
            id="static pods stay",
        ),
        pytest.param(
            a_pod(),
            a_node(spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}),
            None,
            id="only the scheduler minds NoSchedule",
        ),
        pytest.param(
            a_pod(os={"name": "windows"}),
            a_node(),
            Rejection(
                "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
            ),
            id="another operating system",
        ),
        pytest.param(
            a_pod(metadata={"labels": {"kubernetes.io/os": "windows"}}),
            a_node(),
            Rejection(
                "PodOSSelectorNodeLabelDoesNotMatch",
                "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
            ),
            id="another operating system by its label",
        ),
    ],
)
def test_admission(pod: KubeletPod, node: Node | None, want: Rejection | None) -> None:
    assert hollow(node).admit(pod) == want


def test_a_node_takes_so_many_pods() -> None:
    node = hollow(a_node(pods="1"))
    node.admit(a_pod("a"))

    assert node.admit(a_pod("b")) == Rejection(
        "OutOfpods",
        "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1",
    )


def test_a_host_port_is_given_once() -> None:
    node = hollow(a_node())
    first = node.admit(a_pod("a", port=80))
    second = node.admit(a_pod("b", port=80))
    node.release("a")
    third = node.admit(a_pod("b", port=80))

    assert (first, third) == (None, None)
    assert second == Rejection(
        "NodePorts",
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    )


def test_capacity_counts_as_soon_as_the_status_has_it() -> None:
    node = hollow(a_node())
    wanted = a_pod(requests={"example.com/fpga": "2"})
    node.observe(a_node(fpga="1"))
    too_early = node.admit(wanted)
    node.observe(a_node(fpga="2"))

    assert too_early is not None
    assert node.admit(wanted) is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5), st.booleans())))
def test_a_node_is_never_overcommitted(steps: list[tuple[str, int, bool]]) -> None:
    node = HollowNode("n", index=0, allocatable={"cpu": "7", "pods": "3"})
    admitted: dict[str, int] = {}
    for uid, cpu, leaves in steps:
        if leaves:
            node.release(uid)
            admitted.pop(uid, None)
        elif uid not in admitted and node.admit(a_pod(uid, requests={"cpu": str(cpu)})) is None:
            admitted[uid] = cpu
        assert sum(admitted.values()) <= 7
        assert len(admitted) <= 3
        node.check_invariants()


@pytest.mark.parametrize(("comparisons", "want"), [(True, None), (False, TAINT)])
def test_numbers_are_compared_with_the_feature_gate(
    *, comparisons: bool, want: Rejection | None
) -> None:
    few = {"key": "gpus", "operator": "Lt", "value": "8"}
    full = a_node(spec={"taints": [{"key": "gpus", "value": "4", "effect": "NoExecute"}]})
    found = placement_rejection(a_pod(tolerations=[few]), full, (), comparisons=comparisons)
    assert found == want
