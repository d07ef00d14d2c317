"""Who is nominated where, and who must be left room for on which row."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.nominations import KEPT, Beside, Nominations
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import node, pod

NODES = ("n0", "n1", "n2", "unknown")
PODS = ("a", "b", "c", "d")


def table(*names: str) -> NodeTable:
    nodes = NodeTable()
    for name in names:
        nodes.add_node(node(name))
    return nodes


def names(beside: Beside) -> dict[int, list[str]]:
    return {row: [each.name for each in pods] for row, pods in beside.pods.items()}


def test_pods_of_lower_priority_and_the_pod_itself_are_left_no_room() -> None:
    first, second, low = (
        PodInfo(pod(name, priority=priority))
        for name, priority in (("first", 5), ("second", 6), ("low", 1))
    )
    nominations = Nominations({"n0": [first, low], "n1": [second], "gone": [PodInfo(pod("x"))]})
    nodes = table("n0", "n1")

    assert names(nominations.beside(first, nodes)) == {1: ["second"]}
    assert names(nominations.beside(second, nodes)) == {}
    assert names(nominations.beside(low, nodes)) == {0: ["first"], 1: ["second"]}
    other = PodInfo(pod("other", priority=5))
    assert names(nominations.beside(other, nodes)) == {0: ["first"], 1: ["second"]}
    assert {each.node_name for each in nominations["n0"]} == {"n0"}


def test_rows_follow_nodes_that_come_and_go() -> None:
    nominations, asking = Nominations({"n1": [PodInfo(pod("a"))]}), PodInfo(pod("b"))
    nodes = table("n0")
    assert names(nominations.beside(asking, nodes)) == {}

    nodes.add_node(node("n1"))
    assert names(nominations.beside(asking, nodes)) == {1: ["a"]}
    assert names(nominations.beside(asking, table("n1", "n0"))) == {0: ["a"]}


def test_a_copy_stays_as_it_is() -> None:
    nominations = Nominations({"n0": [PodInfo(pod("a"))]})
    copy = nominations.copy()
    nominations.put("n0", ())
    assert ([*nominations], [*copy]) == ([], ["n0"])


puts = st.tuples(st.sampled_from(NODES), st.lists(st.sampled_from(PODS), max_size=3, unique=True))
asks = st.tuples(st.sampled_from([*PODS, "new"]), st.integers(0, KEPT))
steps = st.lists(st.one_of(puts, asks, st.none()), max_size=20)


@settings(max_examples=60)
@given(steps)
def test_what_is_kept_is_what_looking_at_all_nominations_finds(course: list[Any]) -> None:
    """And a version of a row stands for the same pods of a priority. None adds a node."""
    nodes, nominations = table("n0", "n1"), Nominations()
    priority = {name: index for index, name in enumerate(PODS)}
    by_node: dict[str, list[str]] = {}
    seen: dict[tuple[int, int, int], list[str]] = {}
    for each in course:
        if each is None:
            nodes.add_node(node(f"n{nodes.size}"))
            continue
        name, what = each
        if isinstance(what, list):
            others = {waiting for at, pods in by_node.items() if at != name for waiting in pods}
            by_node[name] = [waiting for waiting in what if waiting not in others]
            infos = (PodInfo(pod(w, priority=priority[w])) for w in by_node[name])
            nominations.put(name, tuple(infos))
            nominations.check_invariants()
            continue
        found = nominations.beside(PodInfo(pod(name, priority=what)), nodes)
        want = {
            nodes.row_of[at]: left
            for at, pods in by_node.items()
            if at in nodes.row_of
            and (left := [w for w in pods if w != name and priority[w] >= what])
        }
        assert names(found) == want
        assert set(np.flatnonzero(found.version).tolist()) - {found.own} == want.keys() - {
            found.own
        }
        for row, pods in want.items():
            if row != found.own:
                assert seen.setdefault((row, what, int(found.version[row])), pods) == pods
