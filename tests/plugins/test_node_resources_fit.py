"""NodeResourcesFit: filter and hints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth_plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    after_node_change,
    after_pod_deletion,
    after_scale_down,
)
from tests.builders import node, pod
from tests.plugins.evaluating import table, verdicts

GPU = "example.com/gpu"
OTHER = "other.com/fpga"

CPU = Status.unschedulable("Insufficient cpu")
CPU_NEVER = Status.unresolvable("Insufficient cpu")
FULL = Status.unschedulable("Too many pods")


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), None, id="nothing is requested"),
        pytest.param(pod(cpu="1", memory="1Gi"), None, id="exactly what is left"),
        pytest.param(pod(cpu="1001m"), CPU, id="a little more than is left"),
        pytest.param(pod(cpu="3"), CPU, id="as much as the node has"),
        pytest.param(pod(cpu="3001m"), CPU_NEVER, id="more than the node has"),
        pytest.param(
            pod(memory="2Gi"), Status.unschedulable("Insufficient memory"), id="too little memory"
        ),
        pytest.param(
            pod(requests={"ephemeral-storage": "1Gi"}),
            Status.unresolvable("Insufficient ephemeral-storage"),
            id="no ephemeral storage at all",
        ),
        pytest.param(
            pod(requests={GPU: 2}),
            Status.unschedulable(f"Insufficient {GPU}"),
            id="one GPU is taken",
        ),
        pytest.param(
            pod(requests={OTHER: 1}),
            Status.unresolvable(f"Insufficient {OTHER}"),
            id="a resource nobody has heard of",
        ),
        pytest.param(pod(requests={OTHER: 0}), None, id="none of an unknown resource"),
        pytest.param(
            pod(requests={OTHER: 1, GPU: 2}, cpu="2", memory="9Gi"),
            Status.unresolvable(
                "Insufficient cpu",
                "Insufficient memory",
                f"Insufficient {OTHER}",
                f"Insufficient {GPU}",
            ),
            id="all lacks are told, and one that is unresolvable decides",
        ),
    ],
)
def test_filter(a_pod: Pod, want: Status | None) -> None:
    nodes = table(
        node("n1", cpu="3", memory="2Gi", allocatable={GPU: 2}),
        pods=[pod("old", cpu="2", memory="1Gi", requests={GPU: 1}, node="n1")],
    )
    assert verdicts(NodeResourcesFit(), a_pod, nodes) == {"n1": want}
    passes = NodeResourcesFit().passes_row(PodInfo(a_pod), nodes, nodes.row_of["n1"])
    assert passes in (want is None, None)


@pytest.mark.parametrize(
    ("pods", "cpu", "want"),
    [
        pytest.param(2, None, None, id="room for one more"),
        pytest.param(1, None, FULL, id="full: even without requests"),
        pytest.param(0, None, FULL, id="a node for no pods at all is still U"),
        pytest.param(
            1, "2", Status.unschedulable("Too many pods", "Insufficient cpu"), id="full and busy"
        ),
        pytest.param(
            1,
            "9",
            Status.unresolvable("Too many pods", "Insufficient cpu"),
            id="full and too small",
        ),
    ],
)
def test_too_many_pods(pods: int, cpu: str | None, want: Status | None) -> None:
    nodes = table(node("n1", cpu="2", pods=pods), pods=[pod("old", cpu="1", node="n1")])
    assert verdicts(NodeResourcesFit(), pod(cpu=cpu), nodes) == {"n1": want}
    passes = NodeResourcesFit().passes_row(PodInfo(pod(cpu=cpu)), nodes, nodes.row_of["n1"])
    assert passes is (want is None)


few = st.integers(0, 3)


@given(free=st.tuples(few, few, few), requests=st.tuples(few, few, few))
def test_a_row_by_itself_has_the_same_answer(
    free: tuple[int, int, int], requests: tuple[int, int, int]
) -> None:
    """*free* are pods, cpu and memory; *requests* cpu, memory and a resource of few pods."""
    pods, cpu, memory = free
    plugin, nodes = NodeResourcesFit(), table(node("n1", cpu=str(cpu), memory=memory, pods=pods))
    a_pod = pod(cpu=str(requests[0]), memory=requests[1], requests={GPU: requests[2]})
    passes = plugin.passes_row(PodInfo(a_pod), nodes, nodes.row_of["n1"])
    assert passes in (verdicts(plugin, a_pod, nodes)["n1"] is None, None)
    assert (passes is None) == bool(PodInfo(a_pod).template.incoming_requested.scalars)


def test_each_node_is_evaluated_by_itself() -> None:
    nodes = table(
        node("big", cpu="9"),
        node("busy", cpu="9"),
        node("small", cpu="1"),
        pods=[pod("old", cpu="8", node="busy")],
    )
    want = {"big": None, "busy": CPU, "small": CPU_NEVER}
    assert verdicts(NodeResourcesFit(), pod(cpu="2"), nodes) == want


@pytest.mark.parametrize(
    ("args", "fits"),
    [
        pytest.param(NodeResourcesFitArgs(), False, id="nothing is ignored"),
        pytest.param(NodeResourcesFitArgs(ignored_resources=(GPU,)), True, id="by name"),
        pytest.param(
            NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), True, id="by group"
        ),
        pytest.param(
            NodeResourcesFitArgs(
                ignored_resources=(OTHER,), ignored_resource_groups=("com", "other.com")
            ),
            False,
            id="others are ignored",
        ),
    ],
)
def test_ignored_resources(args: NodeResourcesFitArgs, fits: bool) -> None:
    want = None if fits else Status.unresolvable(f"Insufficient {GPU}")
    a_pod = pod(requests={GPU: 1})
    assert verdicts(NodeResourcesFit(args), a_pod, table(node("n1"))) == {"n1": want}


def test_two_profiles_evaluate_one_template_by_their_own_args() -> None:
    nodes, a_pod = table(node("n1")), PodInfo(pod(requests={GPU: 1}))
    lenient = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=(GPU,)))
    assert verdicts(lenient, a_pod.pod, nodes) == {"n1": None}
    assert verdicts(NodeResourcesFit(), a_pod.pod, nodes) != {"n1": None}


def test_only_extended_resources_are_ignored() -> None:
    args = NodeResourcesFitArgs(ignored_resources=("cpu", "hugepages-2Mi"))
    a_pod = pod(cpu="9", requests={"hugepages-2Mi": "2Mi"})
    want = Status.unresolvable("Insufficient cpu", "Insufficient hugepages-2Mi")
    assert verdicts(NodeResourcesFit(args), a_pod, table(node("n1"))) == {"n1": want}


def test_neither_pre_filter_nor_pre_score_skips() -> None:
    plugin, state, a_pod = NodeResourcesFit(), CycleState(), PodInfo(pod())
    assert plugin.pre_filter(state, a_pod, table()) is None
    assert plugin.pre_score(state, a_pod, table()) is None


millis = st.integers(0, 4000)


@given(
    st.lists(st.tuples(millis, millis, st.integers(0, 3), st.booleans()), min_size=1, max_size=6),
    millis,
    st.integers(0, 3),
)
def test_filter_follows_the_rule(
    of_nodes: list[tuple[int, int, int, bool]], cpu: int, gpus: int
) -> None:
    """Spec §5.8, node by node: amounts are (cpu, cpu in use, gpus, room for a pod)."""
    nodes = table(
        *[
            node(f"n{i}", cpu=f"{has}m", pods=2 if room else 1, allocatable={GPU: has_gpus})
            for i, (has, _, has_gpus, room) in enumerate(of_nodes)
        ],
        pods=[
            pod(f"old-{i}", cpu=f"{used}m", node=f"n{i}")
            for i, (_, used, _, _) in enumerate(of_nodes)
        ],
    )

    def rule(has: int, used: int, has_gpus: int, room: bool) -> Status | None:
        lacks = [] if room else [("Too many pods", False)]
        if cpu > 0 and cpu > has - used:
            lacks.append(("Insufficient cpu", cpu > has))
        if gpus > 0 and gpus > has_gpus:
            lacks.append((f"Insufficient {GPU}", True))
        if not lacks:
            return None
        never = any(unresolvable for _, unresolvable in lacks)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if never else Code.UNSCHEDULABLE
        return Status(code, tuple(reason for reason, _ in lacks))

    a_pod = pod(cpu=f"{cpu}m", requests={GPU: gpus})
    want = {f"n{i}": rule(*amounts) for i, amounts in enumerate(of_nodes)}
    assert verdicts(NodeResourcesFit(), a_pod, nodes) == want


@pytest.mark.parametrize(
    ("deleted", "want"),
    [
        pytest.param(pod("old", node="n1"), QueueingHint.QUEUE, id="it was on a node"),
        pytest.param(pod("old", nominated="n1"), QueueingHint.QUEUE, id="it was nominated"),
        pytest.param(pod("old"), QueueingHint.SKIP, id="it had no place"),
    ],
)
def test_deletion_hint(deleted: Pod, want: QueueingHint) -> None:
    assert after_pod_deletion(pod(), deleted, None) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            pod("p", cpu="2"), pod("p", cpu="1"), QueueingHint.QUEUE, id="this pod wants less"
        ),
        pytest.param(
            pod("q", cpu="2", node="n"),
            pod("q", cpu="1", node="n"),
            QueueingHint.QUEUE,
            id="cpu was freed",
        ),
        pytest.param(
            pod("q", memory="2Gi", node="n"),
            pod("q", memory="1Gi", node="n"),
            QueueingHint.SKIP,
            id="memory was freed, which this pod does not request",
        ),
        pytest.param(
            pod("q", cpu="2"), pod("q", cpu="1"), QueueingHint.SKIP, id="it is on no node"
        ),
        pytest.param(
            pod("q", cpu="1", requests={GPU: 1}, node="n"),
            pod("q", cpu="1", node="n"),
            QueueingHint.QUEUE,
            id="a GPU was freed",
        ),
        pytest.param(
            pod("q", cpu="1", node="n"),
            pod("q", cpu="2", node="n"),
            QueueingHint.SKIP,
            id="it took more",
        ),
    ],
)
def test_scale_down_hint(old: Pod, new: Pod, want: QueueingHint) -> None:
    assert after_scale_down(pod("p", cpu="1", requests={GPU: 1}), old, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            None, node(cpu="2"), QueueingHint.QUEUE, id="a node came that is large enough"
        ),
        pytest.param(None, node(cpu="1"), QueueingHint.SKIP, id="a node came that is too small"),
        pytest.param(None, node(pods=0), QueueingHint.SKIP, id="a node came that takes no pods"),
        pytest.param(node(cpu="3"), node(cpu="4"), QueueingHint.QUEUE, id="there is more cpu"),
        pytest.param(
            node(cpu="1"), node(cpu="1500m"), QueueingHint.SKIP, id="more, but not enough"
        ),
        pytest.param(
            node(memory="1Gi"),
            node(memory="2Gi"),
            QueueingHint.SKIP,
            id="more of what is not asked",
        ),
        pytest.param(node(pods=5), node(pods=6), QueueingHint.QUEUE, id="room for more pods"),
        pytest.param(node(cpu="4"), node(cpu="3"), QueueingHint.SKIP, id="there is less"),
    ],
)
def test_node_hint(old: Node | None, new: Node, want: QueueingHint) -> None:
    assert after_node_change(pod(cpu="2"), old, new) is want


def test_node_hint_for_a_pod_without_requests() -> None:
    assert after_node_change(pod(), node(cpu="1"), node(cpu="2")) is QueueingHint.SKIP
    assert after_node_change(pod(), node(pods=1), node(pods=2)) is QueueingHint.QUEUE
