"""Ranks are what a fresh look at the table would give, whatever happened before."""

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.importance import importance
from berth.framework.preemption.ranks import NOBODY, Ranks
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
@given(changes)
def test_ranks_follow_the_table(changes: list[tuple[str, str, int]]) -> None:
    nodes, ranks = NodeTable(), Ranks()
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
                    started=f"2026-01-0{number + 1}",
                )
            )
            if changed.uid in nodes.pods[row]:
                nodes.remove_pod(row, changed)
            else:
                nodes.add_pod(row, changed)
        elif what == "look":
            check(nodes, ranks, below=number)
    check(nodes, ranks, below=6)


def check(nodes: NodeTable, ranks: Ranks, *, below: int) -> None:
    lowest = ranks.lowest_priorities(nodes)
    for row in nodes.row_of.values():
        pods = nodes.pods[row].values()
        assert lowest[row] == min((p.priority for p in pods), default=NOBODY)
        lower = [p for p in sorted(pods, key=importance) if p.priority < below]
        assert list(ranks.below(below, nodes, row)) == lower
