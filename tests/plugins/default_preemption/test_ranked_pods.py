"""Ranked pods are what a fresh look at the table would give, whatever happened before."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.importance import importance, started
from berth_plugins.default_preemption.ranked_pods import MOST_GARBAGE, NOBODY, RankedPods
from tests.builders import node, pod

NODES, PRIORITIES = ("a", "b", "c"), (-1, 0, 0, 5)

changes = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from(NODES), st.integers(0, 3)),
        st.tuples(st.just("node"), st.sampled_from(NODES), st.just(0)),
        st.tuples(st.just("look"), st.sampled_from(NODES), st.sampled_from(PRIORITIES)),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(changes, st.sampled_from([0, MOST_GARBAGE]))
def test_ranked_pods_follow_the_table(
    changes: list[tuple[str, str, int]], most_garbage: int
) -> None:
    nodes, ranked_pods = NodeTable(), RankedPods(most_garbage=most_garbage)
    for what, name, number in changes:
        row = nodes.row_of.get(name)
        if what == "node" and row is None:
            nodes.add_node(node(name))
        elif what == "node" and row is not None:
            nodes.remove_node(row)
        elif what == "pod" and row is not None:
            changed = PodInfo(
                pod(
                    f"{name}-{number}",
                    priority=PRIORITIES[number],
                    cpu=number,
                    started=f"2026-01-0{number + 1}",
                )
            )
            if changed.uid in nodes.pods[row]:
                nodes.remove_pod(row, changed)
            else:
                nodes.add_pod(row, changed)
        elif what == "look":
            check(nodes, ranked_pods, below=number)
    check(nodes, ranked_pods, below=6)


def check(nodes: NodeTable, ranked_pods: RankedPods, *, below: int) -> None:
    lowest = ranked_pods.lowest_priorities(nodes)
    rows = list(nodes.row_of.values())
    want = []
    for i, row in enumerate(rows):
        pods = nodes.pods[row].values()
        assert lowest[row] == min((p.priority for p in pods), default=NOBODY)
        want += [(i, p) for p in sorted(pods, key=importance) if p.priority < below]
    found = ranked_pods.below(below, nodes, np.array(rows, np.intp))
    assert list(zip(found.node_of.tolist(), found.pods, strict=True)) == want
    assert found.priorities.tolist() == [p.priority for _, p in want]
    assert found.starts.tolist() == [started(p) for _, p in want]
    requests = [p.template.columns[0].tolist() for _, p in want]
    assert found.pods.native_requests.T.tolist() == requests
