"""What would let a group start, and that it does."""

import pytest

from berth.kube.objects.meta import OwnerReference
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.builders import node, pod, taint
from tests.insight.explain.groups.asking import explain_group
from tests.scheduler.pod_group.building import group, group_harness, members

GPU = "example.com/gpu"


def gpu_node(name: str, number: int = 2) -> Node:
    return node(name, cpu="8", allocatable={GPU: number})


def workers(count: int, *, gpus: int = 1) -> list[Pod]:
    return members(*[f"w{i}" for i in range(count)], cpu="1", requests={GPU: gpus})


@pytest.mark.parametrize(
    ("count", "nodes", "needed"),
    [
        pytest.param(4, 1, 1, id="two more pods fit on one node"),
        pytest.param(8, 1, 3, id="six more pods need three"),
        pytest.param(5, 2, 1, id="one more pod needs one"),
    ],
)
async def test_so_many_nodes_let_it_start_and_one_less_does_not(
    count: int, nodes: int, needed: int
) -> None:
    harness = group_harness()
    harness.put(*(gpu_node(f"n{i}") for i in range(nodes)), group(min_count=count))
    harness.put(*workers(count))
    await harness.pass_time(2)

    shortage = explain_group(harness).shortage
    assert shortage is not None
    missing = count - 2 * nodes
    assert (shortage.pods, shortage.resources, shortage.nodes) == (missing, {GPU: missing}, needed)
    harness.put(*(gpu_node(f"more{i}") for i in range(needed - 1)))
    assert not explain_group(harness).can_start
    harness.put(gpu_node("last"))
    assert explain_group(harness).can_start
    await harness.pass_time(5)
    assert len(harness.placements()) == count


async def test_a_node_that_keeps_them_off_for_another_reason_is_no_help() -> None:
    harness = group_harness()
    harness.put(node("tainted", cpu="8", taints=[taint("x")]), group(min_count=2))
    harness.put(*members("a", "b", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness).shortage
    assert found is not None
    assert (found.nodes, found.like, found.resources) == (None, "", {})


async def test_pods_of_daemon_sets_take_their_part_of_a_new_node() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=4))
    agents = OwnerReference("apps/v1", "DaemonSet", "agent", "uid-agent", controller=True)
    harness.put(pod("agent", cpu="1", node="n", owner=agents))
    harness.put(*members("a", "b", "c", "d", cpu="1"))
    await harness.pass_time(2)

    found = explain_group(harness).shortage
    assert found is not None
    assert (found.pods, found.nodes) == (3, 3)


async def test_no_node_is_large_enough() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=2), *members("a", "b", cpu="4"))
    await harness.pass_time(2)

    found = explain_group(harness).shortage
    assert found is not None
    assert (found.nodes, found.resources) == (None, {"cpu": 8000})
