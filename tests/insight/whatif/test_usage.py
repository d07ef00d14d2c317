"""Use of the cluster before and after: nodes that change, distribution, fragmentation."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.typical_pods import TypicalPods, fragmented
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, snapshot

ONE, TWO = node("one", cpu="2", memory="8Gi"), node("two", cpu="2", memory="8Gi")


def cpu(found: Answer) -> dict[str, tuple[str, int, int, int]]:
    """Return what became of the cpu of the nodes that change."""
    return {
        each.node: (each.change, amount.allocatable, amount.before, amount.after)
        for each in found.nodes
        for amount in [each.resources["cpu"]]
    }


def test_nodes_that_come_go_and_are_used_otherwise() -> None:
    running = pod("a", cpu="500m", node="one"), pod("b", cpu="1", node="two")
    found = ask(
        snapshot(ONE, TWO, node("three", cpu="1"), *running),
        addNodes=[{"like": "one"}],
        removeNodes={"names": ["two"]},
    )
    assert cpu(found) == {
        "one-1": ("added", 2000, 0, 1000),
        "two": ("removed", 2000, 1000, 0),
    }
    assert found.sources == {"default/b": "two"}


def test_nodes_that_stay_as_they_are_are_left_out() -> None:
    assert ask(snapshot(ONE, TWO, pod("a", node="one"))).nodes == ()


def test_a_node_that_is_replaced_by_one_of_the_same_name() -> None:
    manifest = {"metadata": {"name": "one"}, "status": {"allocatable": {"cpu": "4"}}}
    found = ask(snapshot(ONE), removeNodes={"names": ["one"]}, addNodes=[{"manifest": manifest}])
    assert [each.change for each in found.nodes] == ["changed"]
    assert found.nodes[0].resources["cpu"].allocatable == 4000


def test_who_waited_and_who_ran() -> None:
    taken = snapshot(ONE, TWO, pod("a", cpu="1", node="one"), pod("waiting", cpu="1"))
    found = ask(taken, templates=[{"manifest": deployment()}], removeNodes={"names": ["one"]})
    assert (found.pending, found.sources) == (("default/waiting",), {"default/a": "one"})
    repacked = ask(taken, repack=True)
    assert repacked.sources == {"default/a": "one"}
    assert (
        "default/a"
        not in ask(taken, removeNodes={"names": ["one"]}, removePods={"names": ["a"]}).sources
    )


# Distribution.


def test_nodes_are_counted_by_the_share_that_is_requested() -> None:
    nodes = [node(f"n{i}", cpu="1") for i in range(4)]
    running = [
        pod("a", cpu="99m", node="n0"),
        pod("b", cpu="100m", node="n1"),
        pod("c", cpu="1", node="n2"),
    ]
    found = ask(snapshot(*nodes, *running), removeNodes={"names": ["n2"]}, includePending=False)
    assert found.before.nodes_by_share["cpu"] == (2, 1, 0, 0, 0, 0, 0, 0, 0, 1)
    assert found.after.nodes_by_share["cpu"] == (1, 1, 0, 0, 0, 0, 0, 0, 0, 1)
    assert "example.com/gpu" not in found.before.nodes_by_share


# Fragmentation.


def test_what_is_free_where_a_pod_does_not_fit() -> None:
    """Three in four pods want 1 cpu, one 2; free are 0.5 on one node, 1.5 on the other."""
    running = [pod("a", cpu="1", node="one"), pod("b", cpu="500m", node="one")]
    waiting = [pod("w", cpu="2")]
    taken = snapshot(ONE, TWO, pod("c", cpu="500m", node="two"), *running, *waiting)
    before = ask(taken, includePending=False).before
    # a: 1, b and c: 0.5 each. On one, with 0.5 free, only a does not fit; on two all fit.
    assert before.fragmentation["cpu"] == round(500 * (1 / 3) / 4000, 4)


pods = st.lists(
    st.tuples(st.sampled_from([100, 500, 900, 1500]), st.sampled_from([1, 3, 6])), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8)), min_size=1, max_size=4),
    pods=pods,
)
def test_fragmentation_is_an_expectation(
    sizes: list[tuple[int, int]], pods: list[tuple[int, int]]
) -> None:
    table, free = NodeTable(), []
    for i, (cores, gib) in enumerate(sizes):
        table.add_node(node(f"n{i}", cpu=str(cores), memory=f"{gib}Gi"))
        free.append([cores * 1000, gib * 2**30])
    infos = [PodInfo(pod(f"p{i}", cpu=f"{m}m", memory=f"{g}Gi")) for i, (m, g) in enumerate(pods)]
    amounts = {name: table.resource_rows(name) for name in ("cpu", "memory")}
    found = fragmented(amounts, TypicalPods(infos).unfit(amounts, len(sizes)))  # type: ignore[arg-type]

    kinds: list[tuple[tuple[int, int], int]] = []
    for kind in Counter(pods).most_common():
        if sum(count for _, count in kinds) * 100 >= 95 * len(pods):
            break
        kinds.append(kind)
    for at, name in enumerate(("cpu", "memory")):
        lost = Fraction(0)
        for (milli, gib), count in kinds:
            for cores_free, bytes_free in free:
                if cores_free < milli or bytes_free < gib * 2**30:
                    share = Fraction(count, sum(count for _, count in kinds))
                    lost += share * (cores_free, bytes_free)[at]
        assert found[name] == pytest.approx(float(lost))
