"""Amounts as large as int64 allows: scores and filters go by Go's arithmetic, sums do not wrap."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import LARGE, PodInfo
from berth_plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth_plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from tests.builders import node, pod
from tests.plugins.evaluating import raw_scores, table, verdicts

MOST = 2**63 - 1
PETA = 10**15

EDGES = [1, 100, LARGE - 1, LARGE, LARGE + 1, 2**46, 2**52 - 1, 2**52, 2**52 + 1, 2**53 + 1]
EDGES += [4500 * 10**12, 5 * PETA, MOST // 100, MOST // 100 + 1, 2**62, MOST - 1, MOST]
AMOUNTS = st.one_of(st.sampled_from(EDGES), st.integers(1, MOST))


class Amounts(NamedTuple):
    cpu: int
    """In thousandths."""
    memory: int


class Row(NamedTuple):
    has: Amounts
    pods: tuple[Amounts, ...] = ()


both = st.builds(Amounts, AMOUNTS, AMOUNTS)
rows = st.builds(Row, both, st.lists(both, max_size=3).map(tuple))


def pod_of(asks: Amounts, name: str = "p", on: str = "") -> Pod:
    return pod(name, cpu=f"{asks.cpu}m", memory=asks.memory, node=on)


def nodes_of(given: Sequence[Row]) -> NodeTable:
    return table(
        *[node(f"n{i}", cpu=f"{r.has.cpu}m", memory=r.has.memory) for i, r in enumerate(given)],
        pods=[
            pod_of(asks, f"p{i}-{k}", f"n{i}")
            for i, row in enumerate(given)
            for k, asks in enumerate(row.pods)
        ],
    )


# kube-scheduler's arithmetic, with plain integers.


def int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def quotient(part: int, divisor: int) -> int:
    return part // divisor if part >= 0 else -(-part // divisor)


def added(amounts: Sequence[int]) -> int:
    """Add up; where int64 would wrap, all is taken."""
    return min(sum(amounts), MOST)


def columns(row: Row) -> list[tuple[int, list[int]]]:
    """Return of cpu and memory how much there is, and what each pod takes."""
    return [(row.has[i], [each[i] for each in row.pods]) for i in range(2)]


def lacks(row: Row, asks: Amounts) -> list[str]:
    return [
        f"Insufficient {name}"
        for name, (has, taken), wanted in zip(("cpu", "memory"), columns(row), asks, strict=True)
        if wanted > has - added(taken)
    ]


def least(requested: int, has: int) -> int:
    return 0 if requested > has else quotient(int64((has - requested) * 100), has)


def most(requested: int, has: int) -> int:
    return quotient(int64(min(requested, has) * 100), has)


def ratio(requested: int, has: int) -> int:
    """A curve from 0 at none to 10 at all."""
    utilization = 100 if requested > has else quotient(int64(requested * 100), has)
    return max(utilization, 0)


def averaged(scores: Sequence[int]) -> int:
    return quotient(sum(scores), len(scores))


def rounded(scores: Sequence[int]) -> int:
    counted = [score for score in scores if score > 0]
    return math.floor(sum(counted) / len(counted) + 0.5) if counted else 0


def balance(row: Row, asks: Amounts) -> int:
    fractions = [
        min(float(added([*taken, wanted])) / float(has), 1.0)
        for (has, taken), wanted in zip(columns(row), asks, strict=True)
    ]
    return int((1 - abs(fractions[0] - fractions[1]) / 2) * 100)


def balanced(row: Row, asks: Amounts) -> int:
    gain = balance(row, asks) - balance(row, Amounts(0, 0))
    return 50 + quotient(50 + gain, 2)


STRATEGIES: dict[str, tuple[Callable[[int, int], int], Callable[[Sequence[int]], int]]] = {
    "LeastAllocated": (least, averaged),
    "MostAllocated": (most, averaged),
    "RequestedToCapacityRatio": (ratio, rounded),
}


def fit(strategy: str) -> NodeResourcesFit:
    shape = ({"utilization": 0, "score": 0}, {"utilization": 100, "score": 10})
    of = {"requestedToCapacityRatio": {"shape": shape}} if strategy.startswith("Req") else {}
    return NodeResourcesFit(
        NodeResourcesFitArgs.model_validate({"scoringStrategy": {"type": strategy, **of}})
    )


SMALL = Row(Amounts(4000, 2**33), (Amounts(500, 2**30),))
FULL = Row(Amounts(MOST, MOST), (Amounts(MOST, MOST), Amounts(MOST, MOST)))


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=3), both)
@example([SMALL, Row(Amounts(4000, 4600 * 10**12))], Amounts(1, 4700 * 10**12))
@example([SMALL, FULL], Amounts(1, 1))
@example([Row(Amounts(MOST, MOST))], Amounts(MOST, MOST))
@example([Row(Amounts(10**17, 10**17)), SMALL], Amounts(1, 1))
def test_decisions_are_those_of_int64(given_rows: list[Row], asks: Amounts) -> None:
    nodes, incoming = nodes_of(given_rows), pod_of(asks)
    of = {f"n{i}": row for i, row in enumerate(given_rows)}
    found = verdicts(fit("LeastAllocated"), incoming, nodes)
    assert {name: [*status.reasons] if status else [] for name, status in found.items()} == {
        name: lacks(row, asks) for name, row in of.items()
    }
    for strategy, (score, summed) in STRATEGIES.items():
        assert raw_scores(fit(strategy), incoming, nodes) == {
            name: summed(
                [
                    score(added([*taken, wanted]), has)
                    for (has, taken), wanted in zip(columns(row), asks, strict=True)
                ]
            )
            for name, row in of.items()
        }, strategy
    assert raw_scores(NodeResourcesBalancedAllocation(), incoming, nodes) == {
        name: balanced(row, asks) for name, row in of.items()
    }


@pytest.mark.parametrize(
    ("has", "asks", "fits"),
    [
        pytest.param("5P", "4500T", True, id="it fits"),
        pytest.param("4600T", "4700T", False, id="beyond 2^52 as well, but too much"),
        pytest.param("4503599627370497", "4503599627370497", True, id="2^52 and one"),
        pytest.param("4503599627370496", "4503599627370497", False, id="one byte is missing"),
        pytest.param("9223372036854775807", "9223372036854775807", True, id="all there can be"),
        pytest.param("9223372036854775806", "9223372036854775807", False, id="and one less"),
        pytest.param("9223372036854775806", "10E", False, id="beyond int64"),
    ],
)
def test_requests_of_petabytes_count_in_full(has: str, asks: str, fits: bool) -> None:
    status = verdicts(fit("LeastAllocated"), pod(memory=asks), table(node(memory=has)))["n1"]
    assert status is None if fits else status is not None


# The table.

KINDS = [
    *(pod_of(Amounts(amount, amount)) for amount in (1, LARGE, LARGE + 1, 2**62, MOST)),
    pod(requests={"example.com/gpu": MOST}),
    pod(requests={"example.com/gpu": 3, "ephemeral-storage": MOST}),
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(range(len(KINDS))), st.integers(1, 10)),
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_whatever_comes_and_goes_the_columns_are_the_sums(
    batches: list[tuple[int, int, int]], random: Random
) -> None:
    nodes = table(node("n0"), node("n1", allocatable={"example.com/gpu": 4}))
    there: list[tuple[int, PodInfo]] = []

    def check(looked_at: NodeTable, rows_there: Sequence[tuple[int, PodInfo]]) -> None:
        for row in looked_at.row_of.values():
            on_row = [info.template for at, info in rows_there if at == row]
            for name, index in looked_at.resources.items():
                want = added([template.requested.amount(name) for template in on_row])
                if index < len(looked_at.requested):
                    assert looked_at.requested[index, row] == want
                    free = looked_at.allocatable[index, row].item() - want
                    assert looked_at.free[index + 1, row] == free
            for index in range(2):
                want = added([template.non_zero_requested[index] for template in on_row])
                assert looked_at.non_zero_requested[index, row] == want
            assert looked_at.pod_count[row] == len(on_row)

    for number, (at, kind, count) in enumerate(batches):
        row = nodes.row_of[f"n{at}"]
        new = [PodInfo(_named(KINDS[kind], f"p{number}-{k}")) for k in range(count)]
        twin, before = nodes.detached(), [*there]
        part = nodes.take([row])
        nodes.add_pods([row] * count, new)
        part.add_pods([0] * count, new)
        there += [(row, info) for info in new]
        check(nodes, there)
        check(twin, before)
        check(part, [(0, info) for on, info in there if on == row])
        leaving = random.sample(there, random.randrange(len(there) + 1))
        nodes.remove_pods([on for on, _ in leaving], [info for _, info in leaving])
        there = [each for each in there if each not in leaving]
        check(nodes, there)


def _named(a_pod: Pod, name: str) -> Pod:
    return replace(a_pod, metadata=replace(a_pod.metadata, name=name, uid=name))


@given(AMOUNTS, st.lists(st.tuples(AMOUNTS, st.integers(0, 2000)), min_size=1, max_size=4))
def test_replicas_in_thought_count_like_pods(each: int, given_rows: list[tuple[int, int]]) -> None:
    made = [Row(Amounts(MOST, MOST), (Amounts(taken, taken),)) for taken, _ in given_rows]
    nodes = nodes_of(made)
    index = np.array([nodes.row_of[f"n{i}"] for i in range(len(made))])
    counts = np.array([count for _, count in given_rows])
    template = PodInfo(pod_of(Amounts(each, each))).template
    grown = nodes.with_replicas(template, index, counts)
    want = [min(taken + each * count, MOST) for taken, count in given_rows]
    assert grown.requested[:2].tolist() == [want, want]
    assert grown.non_zero_requested.tolist() == [want, want]
    assert grown.free[1].tolist() == [MOST - taken for taken in want]
