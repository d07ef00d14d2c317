"""NodeTable: what nodes and pods look like as columns. Plugins over it are tested elsewhere."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduler.framework.node_table import CPU, MEMORY, MOST, NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import ZONE, node, pod, taint


def on(node_name: str, **what: Any) -> PodInfo:
    return PodInfo(pod(node=node_name, **what))


def test_a_node_becomes_a_row() -> None:
    table = NodeTable()
    row = table.add_node(
        node("n1", cpu="2500m", memory="1Ki", pods=7, allocatable={"example.com/gpu": 2})
    )

    assert table.name(row) == "n1"
    assert table.allocatable[CPU, row] == 2500
    assert table.allocatable[MEMORY, row] == 1024
    assert table.allowed_pods[row] == 7
    gpus = table.resource_rows("example.com/gpu")
    assert gpus is not None
    assert (gpus[0][row], gpus[1][row]) == (2, 0)
    assert table.resource_rows("example.com/none") is None


def test_pods_add_up_and_go_away() -> None:
    table = NodeTable()
    row = table.add_node(node("n1"))
    first = on("n1", name="a", cpu="500m", memory="1Ki", requests={"example.com/gpu": 1})
    second = on("n1", name="b")
    table.add_pod(row, first)
    table.add_pod(row, second)

    assert table.requested[:2, row].tolist() == [500, 1024]
    assert table.non_zero_requested[:, row].tolist() == [600, 1024 + 200 * 1024**2]
    assert table.pod_count[row] == 2

    table.remove_pod(row, first)
    table.remove_pod(row, second)

    assert not table.requested[:, row].any()
    assert not table.non_zero_requested[:, row].any()
    assert table.pod_count[row] == 0


def test_a_freed_row_is_empty_and_reused() -> None:
    table = NodeTable()
    row = table.add_node(
        node("old", labels={"a": "b"}, taints=[taint("t")], images={"web:1": 5}, unschedulable=True)
    )
    assert table.labels.has("a")[row]
    table.add_pod(row, on("old", cpu=1, ports=[80]))
    table.remove_node(row)

    assert len(table) == 0
    assert not table.exists.any()
    assert table.ports.users("TCP", 80) == {}

    again = table.add_node(node("new"))

    assert again == row
    assert not table.labels.has("a")[row]
    assert not table.unschedulable[row]
    assert table.taint_sets[table.taint_set[row]] == ()
    assert not table.requested[:, row].any()


def test_columns_grow_with_the_cluster() -> None:
    table = NodeTable()
    rows = [table.add_node(node(f"n{i}", zone=f"z{i % 3}", cpu=i)) for i in range(100)]

    assert table.allocatable[CPU, rows].tolist() == [1000 * i for i in range(100)]
    ids = table.labels.ids(ZONE)
    assert [table.labels.values(ZONE)[i] for i in ids] == [f"z{i % 3}" for i in range(100)]
    more = table.add_node(node("more", zone="z9"))
    assert table.labels.values(ZONE)[table.labels.ids(ZONE)[more]] == "z9"


def test_columns_seldom_grow_for_resources() -> None:
    nodes, seen = NodeTable(), list[int]()
    for n in range(200):
        nodes.add_node(node(f"n{n}", allocatable={f"example.com/r{n}": 1 + n}))
        if not seen or nodes.allocatable.shape[0] != seen[-1]:
            seen.append(nodes.allocatable.shape[0])
    assert len(seen) < 25
    for n in (0, 99, 199):
        of_resource = nodes.allocatable[nodes.resources[f"example.com/r{n}"]]
        assert np.flatnonzero(of_resource[: nodes.size]).tolist() == [n]
        assert of_resource[n] == 1 + n


def test_every_change_gives_a_row_a_new_generation() -> None:
    table = NodeTable()
    row = table.add_node(node("n1"))
    other = table.add_node(node("n2"))
    seen = [int(table.generation[row])]
    table.add_pod(row, on("n1", name="a"))
    seen.append(int(table.generation[row]))
    table.set_node(row, node("n1", cpu=9))
    seen.append(int(table.generation[row]))
    table.remove_pod(row, on("n1", name="a"))
    seen.append(int(table.generation[row]))

    assert seen == sorted(set(seen))
    assert table.generation[other] < seen[1]


class TestTake:
    """A part of a table, for questions."""

    @pytest.fixture
    def table(self) -> NodeTable:
        table = NodeTable()
        for name in ("n1", "n2", "n3"):
            row = table.add_node(node(name, labels={"name": name}, images={"web:1": 10}))
            table.add_pod(row, on(name, name=f"on-{name}", cpu=1, ports=[80]))
        return table

    def test_it_has_the_same_facts(self, table: NodeTable) -> None:
        part = table.take([2, 0])

        assert list(part.names([0, 1])) == ["n3", "n1"]
        assert part.requested[CPU].tolist() == [1000, 1000]
        values = part.labels.values("name")
        assert [values[i] for i in part.labels.ids("name")] == ["n3", "n1"]
        assert part.labels.is_any_of("name", ["n1"]).tolist() == [False, True]
        assert part.ports.users("TCP", 80) == {0: {"0.0.0.0"}, 1: {"0.0.0.0"}}

    def test_changing_it_leaves_the_whole_alone(self, table: NodeTable) -> None:
        part = table.take([1])
        part.remove_pod(0, next(iter(part.pods[0].values())))
        part.add_pod(0, on("n2", name="x", requests={"example.com/new": 3}))

        assert part.requested[CPU].tolist() == [0]
        assert table.requested[CPU].tolist() == [1000, 1000, 1000]
        assert [len(pods) for pods in table.pods] == [1, 1, 1]
        assert table.resource_rows("example.com/new") is None
        assert table.ports.users("TCP", 80).keys() == {0, 1, 2}


def test_what_sign_pod_nodes_is_kept_until_one_changes_and_cannot_be_changed() -> None:
    table = NodeTable()
    row = table.add_node(node("n1", labels={"a": "b"}))
    kept = table.kept("labelled", lambda: table.labels.has("a"))
    table.add_pod(row, on("n1", name="p", cpu=1))

    assert table.kept("labelled", table.no_rows) is kept
    with pytest.raises(ValueError, match="read-only"):
        kept[row] = False

    table.set_node(row, node("n1"))
    assert table.kept("labelled", lambda: table.labels.has("a")).tolist() == [False]


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=60),
    st.data(),
)
def test_the_rows_that_have_changed_since(changes: list[list[int]], data: st.DataObject) -> None:
    """One pod alone is counted in another way than several at once."""
    table = NodeTable()
    for number in range(4):
        table.add_node(node(f"n{number}"))
    seen = [table.last_generation]
    for at, rows in enumerate(changes):
        pods = [PodInfo(pod(f"p{at}-{i}")) for i in range(len(rows))]
        if len(rows) == 1:
            table.add_pod(rows[0], pods[0])
        else:
            table.add_pods(rows, pods)
        seen.append(table.last_generation)
    since = data.draw(st.sampled_from(seen))
    assert table.rows_changed_since(since) == np.flatnonzero(table.generation > since).tolist()


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*range(4), None]), max_size=300), st.data())
def test_the_rows_whose_load_has_changed_since(
    changes: list[int | None], data: st.DataObject
) -> None:
    """A pod comes to the row, or (None) the one on the first row says that it is running."""
    table = NodeTable()
    for number in range(4):
        table.add_node(node(f"n{number}"))
    table.add_pod(0, running := PodInfo(pod("running")))
    seen, rows = [table.last_generation], list[int | None]()
    for at, row in enumerate(changes):
        if row is None:
            table.update_pod(0, running)
        else:
            table.add_pod(row, PodInfo(pod(f"p{at}")))
        seen.append(table.last_generation)
        rows.append(row)
    since = data.draw(st.integers(0, len(changes)))
    loaded = table.rows_loaded_since(seen[since])
    assert {row for row in rows[since:] if row is not None} <= set(loaded)
    assert set(loaded) <= set(table.rows_changed_since(seen[since]))
    if len(changes) - since < MOST:
        assert loaded == sorted({row for row in rows[since:] if row is not None})


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(["a node", "a pod", "pods", "no pod", "another node"]),
        )
    )
)
def test_what_is_left_sign_pod_what_there_is(steps: list[tuple[int, str]]) -> None:
    table = NodeTable()
    rows = [table.add_node(node(f"n{i}", cpu=4, pods=8)) for i in range(4)]
    for at, (i, step) in enumerate(steps):
        on_it = list(table.pods[rows[i]].values())
        new = PodInfo(pod(f"p{at}", cpu=1, requests={"example.com/gpu": i}))
        match step:
            case "a node":
                allocatable = {"example.com/gpu": at}
                table.set_node(rows[i], node(f"n{i}", cpu=at, allocatable=allocatable))
            case "a pod":
                table.add_pod(rows[i], new)
            case "pods":
                many = [PodInfo(pod(f"p{at}-{n}", memory="1Mi")) for n in range(10)]
                table.add_pods([rows[i]] * 10, many)
            case "no pod" if on_it:
                table.remove_pod(rows[i], on_it[0])
            case "another node":
                table.remove_node(rows[i])
                rows[i] = table.add_node(node(f"n{i}", cpu=2))
        every = np.arange(table.size)
        grown = table.with_replicas(new.template, every, every)
        for each in (table, grown, table.take(rows[:2])):
            assert each.free[0].tolist() == (each.allowed_pods - each.pod_count).tolist()
            assert each.free[1:].tolist() == (each.allocatable - each.requested).tolist()
    table.remove_node(rows[0])
    assert (table.free[:4, rows[0]] > 2**62).all()
