"""Scores by cpu and memory in float64 equal those in int64, or there are none."""

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berth.kube.objects.resources import Resources
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.node_resources_balanced_allocation import balanced_allocation
from berth_plugins.shared.cpu_and_memory import (
    MOST,
    CpuAndMemory,
    balanced_allocation_of,
    least_allocated_of,
    weights_of,
)
from berth_plugins.shared.resource_allocation import (
    ResourceSpec,
    least_allocated,
    scored_resources,
)
from tests.builders import node, pod
from tests.plugins.evaluating import table


class Row(NamedTuple):
    """What a node has of cpu (milli) and memory (bytes), and what its pods request."""

    cpu: int
    memory: int
    used_cpu: int
    used_memory: int


ROOM = Row(cpu=4000, memory=2**33, used_cpu=500, used_memory=2**30)
few = st.integers(1, 300)
amounts = st.one_of(
    few, st.integers(MOST - 300, MOST), st.builds(lambda k: MOST * k // 100, st.integers(1, 100))
)
any_amounts = st.one_of(amounts, st.integers(0, 2**62 // 100))
weights = st.integers(0, 100)


def nodes_of(rows: list[Row]) -> NodeTable:
    return table(
        *[node(f"n{i}", cpu=f"{row.cpu}m", memory=row.memory) for i, row in enumerate(rows)],
        pods=[
            pod(f"p{i}", cpu=f"{row.used_cpu}m", memory=row.used_memory, node=f"n{i}")
            for i, row in enumerate(rows)
        ],
    )


def scores_of(nodes: NodeTable, requests: Resources, of: tuple[int, int]) -> list[list[int] | None]:
    """Return what both strategies give the nodes."""
    kept = CpuAndMemory.of(nodes)
    specs = resources(of)
    found = weights_of(specs)
    assert found is not None
    if kept is None:
        return [None, None]
    answers = [kept.least_allocated(requests, found), kept.balanced_allocation(requests)]
    rows = [*nodes.row_of.values()]
    return [None if answer is None else answer[rows].tolist() for answer in answers]


def plain_scores_of(
    nodes: NodeTable, requests: Resources, of: tuple[int, int]
) -> list[list[int] | None]:
    specs, rows = resources(of), [*nodes.row_of.values()]
    return [
        strategy(scored_resources(nodes, specs, requests, non_zero=non_zero), nodes.size)[
            rows
        ].tolist()
        for strategy, non_zero in ((least_allocated, True), (balanced_allocation, False))
    ]


def scores_row_by_row(
    nodes: NodeTable, requests: Resources, of: tuple[int, int]
) -> list[list[int | None]]:
    found, rows = weights_of(resources(of)), [*nodes.row_of.values()]
    assert found is not None
    return [
        [least_allocated_of(nodes, row, requests, found) for row in rows],
        [balanced_allocation_of(nodes, row, requests) for row in rows],
    ]


def resources(of: tuple[int, int]) -> list[ResourceSpec]:
    return [
        ResourceSpec(name=name, weight=weight)
        for name, weight in zip(("cpu", "memory"), of, strict=True)
    ]


@given(
    rows=st.lists(st.builds(Row, amounts, amounts, amounts, amounts), min_size=1, max_size=5),
    cpu=amounts,
    memory=amounts,
    of=st.tuples(weights, weights),
)
@example(rows=[Row(MOST, MOST, MOST, MOST)], cpu=MOST, memory=MOST, of=(1, 1))
@example(rows=[ROOM, Row(1, 1, MOST, MOST)], cpu=0, memory=0, of=(1, 1))
def test_amounts_in_range_have_the_same_scores(
    rows: list[Row], cpu: int, memory: int, of: tuple[int, int]
) -> None:
    nodes, requests = nodes_of(rows), Resources(cpu, memory)
    want = plain_scores_of(nodes, requests, of)
    assert scores_of(nodes, requests, of) == want
    assert scores_row_by_row(nodes, requests, of) == want


@given(
    rows=st.lists(
        st.builds(Row, any_amounts, any_amounts, any_amounts, any_amounts), min_size=1, max_size=5
    ),
    cpu=any_amounts,
    memory=any_amounts,
)
def test_any_amounts_have_the_same_scores_or_none(rows: list[Row], cpu: int, memory: int) -> None:
    nodes, requests = nodes_of(rows), Resources(cpu, memory)
    plain = plain_scores_of(nodes, requests, (1, 1))
    for scores, want in zip(scores_of(nodes, requests, (1, 1)), plain, strict=True):
        assert scores in (want, None)
    for by_row, scores in zip(scores_row_by_row(nodes, requests, (1, 1)), plain, strict=True):
        assert scores is not None
        assert all(one in (want, None) for one, want in zip(by_row, scores, strict=True))


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(Row(0, 2**30, 0, 0), id="a node without cpu"),
        pytest.param(Row(4000, 0, 0, 0), id="a node without memory"),
        pytest.param(Row(4000, MOST + 1, 0, 0), id="a node with too much memory"),
        pytest.param(ROOM._replace(used_memory=MOST + 1), id="pods that request too much"),
    ],
)
def test_one_odd_node_leaves_all_to_int64(odd: Row) -> None:
    assert CpuAndMemory.of(nodes_of([ROOM])) is not None
    assert CpuAndMemory.of(nodes_of([ROOM, odd])) is None


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(Resources(milli_cpu=1, memory=MOST + 1), id="too much memory"),
        pytest.param(Resources(milli_cpu=-(2**62), memory=1), id="less than no cpu"),
    ],
)
def test_a_pod_with_odd_requests_is_left_to_int64(requests: Resources) -> None:
    assert scores_of(nodes_of([ROOM]), requests, (1, 1)) == [None, None]
    assert scores_row_by_row(nodes_of([ROOM]), requests, (1, 1)) == [[None], [None]]


def test_a_node_that_becomes_odd_is_noticed_and_forgotten_again() -> None:
    nodes, requests = nodes_of([ROOM] * 20), Resources(100, 2**20)
    row, huge = nodes.row_of["n3"], PodInfo(pod("huge", memory=MOST, node="n3"))
    assert scores_of(nodes, requests, (1, 1))[0] is not None
    nodes.add_pod(row, huge)
    assert scores_of(nodes, requests, (1, 1)) == [None, None]
    nodes.remove_pod(row, huge)
    assert scores_of(nodes, requests, (1, 1)) == plain_scores_of(nodes, requests, (1, 1))


@pytest.mark.parametrize(
    "names", [("cpu",), ("memory", "cpu"), ("cpu", "memory", "ephemeral-storage")]
)
def test_other_resources_have_no_weights(names: tuple[str, ...]) -> None:
    assert weights_of([ResourceSpec(name=name) for name in names]) is None


def test_a_table_without_nodes() -> None:
    assert scores_of(NodeTable(), Resources(1, 1), (1, 1)) == [[], []]
