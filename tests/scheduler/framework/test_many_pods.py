"""Adding and removing pods by the dozen comes to the same as one by one."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import node, pod

KINDS: tuple[dict[str, Any], ...] = (
    {"cpu": "100m", "memory": "64Mi"},
    {"cpu": "2", "labels": {"app": "web"}},
    {"requests": {"example.com/gpu": 2, "ephemeral-storage": "1Gi"}},
    {"ports": [8080]},
    {},
)
ROWS = 4

placed = st.lists(st.tuples(st.integers(0, ROWS - 1), st.sampled_from(KINDS)), max_size=40)


def table() -> NodeTable:
    nodes = NodeTable()
    for i in range(ROWS):
        nodes.add_node(node(f"n{i}"))
    return nodes


def facts(nodes: NodeTable) -> dict[str, object]:
    return {
        "pods": [list(pods) for pods in nodes.pods],
        "resources": nodes.resources,
        "requested": nodes.requested.tolist(),
        "non_zero": nodes.non_zero_requested.tolist(),
        "count": nodes.pod_count.tolist(),
        "ports": nodes.ports.users("TCP", 8080),
    }


@settings(max_examples=200, deadline=None)
@given(placed, st.data())
def test_many_are_as_good_as_one_by_one(
    placed: list[tuple[int, dict[str, Any]]], data: st.DataObject
) -> None:
    rows = [row for row, _ in placed]
    pods = [PodInfo(pod(f"p{i}", **kind)) for i, (_, kind) in enumerate(placed)]
    one_by_one, together = table(), table()
    for row, one in zip(rows, pods, strict=True):
        one_by_one.add_pod(row, one)
    together.add_pods(rows, pods)
    assert facts(together) == facts(one_by_one)

    leaving = data.draw(st.lists(st.sampled_from(range(len(pods))), unique=True)) if pods else []
    for i in leaving:
        one_by_one.remove_pod(rows[i], pods[i])
    before = together.generation.copy()
    together.remove_pods([rows[i] for i in leaving], [pods[i] for i in leaving])
    assert facts(together) == facts(one_by_one)
    touched = set(np.flatnonzero(together.generation != before).tolist())
    assert touched == {rows[i] for i in leaving}
