"""Which nodes have a status of some code; preemption can only help on some."""

import numpy as np
import pytest

from berth.scheduler.framework.diagnosis import Diagnosis, PluginVerdict
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Mask, Rejection, Verdict
from tests.builders import node

U, UU = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def where(*rows: int) -> Mask:
    mask = np.zeros(4, bool)
    mask[list(rows)] = True
    return mask


def verdict(*rejections: tuple[Code, Mask]) -> PluginVerdict:
    found = (Rejection(f"reason {i}", *one) for i, one in enumerate(rejections))
    return PluginVerdict("Plugin", Verdict(tuple(found)))


@pytest.mark.parametrize(
    ("diagnosis", "resolvable", "unresolvable"),
    [
        pytest.param(Diagnosis(4), [], [], id="nobody was rejected"),
        pytest.param(
            Diagnosis(4, [verdict((U, where(0, 1)), (UU, where(1, 2)))]),
            [0],
            [1, 2],
            id="of several reasons the gravest counts",
        ),
        pytest.param(
            Diagnosis(4, [verdict((Code.PENDING, where(0, 1)), (U, where(1)))]),
            [1],
            [],
            id="a pending reason is the least of them",
        ),
        pytest.param(
            Diagnosis(
                4,
                [verdict((UU, where(0, 1))), verdict((U, where(2, 3)))],
                {1: Status.unschedulable("no"), 3: Status.error("oops")},
            ),
            [1, 2],
            [0],
            id="what was found out about one node counts for that node",
        ),
        pytest.param(
            Diagnosis(4, [verdict((U, where(0)))], absent=Status.unresolvable("left out")),
            [0],
            [1, 2],
            id="nodes that were left out share a status",
        ),
        pytest.param(
            Diagnosis(4, absent=Status.unschedulable("not now")),
            [0, 1, 2],
            [],
            id="a pod that was refused before any node was evaluated",
        ),
    ],
)
def test_rows_with_a_code(
    diagnosis: Diagnosis, resolvable: list[int], unresolvable: list[int]
) -> None:
    nodes = NodeTable()
    for i in range(4):
        nodes.add_node(node(f"n{i}"))
    if diagnosis.absent is not None:
        nodes.remove_node(3)  # a dead row has no status
    assert np.flatnonzero(diagnosis.rows_with(U, nodes)).tolist() == resolvable
    assert np.flatnonzero(diagnosis.rows_with(UU, nodes)).tolist() == unresolvable


MANY = [(U, where(i % 3)) for i in range(70)]


@pytest.mark.parametrize(
    "diagnosis",
    [
        pytest.param(Diagnosis(4), id="nobody was rejected"),
        pytest.param(Diagnosis(4, [verdict((U, where(0, 1, 3)))]), id="one reason for all"),
        pytest.param(
            Diagnosis(4, [verdict((U, where(0, 1)), (UU, where(1, 2)))]),
            id="some for several reasons",
        ),
        pytest.param(
            Diagnosis(4, [verdict((U, where(0))), verdict((U, where(1)))]), id="by two plugins"
        ),
        pytest.param(Diagnosis(4, [verdict(*MANY)]), id="for very many reasons"),
        pytest.param(
            Diagnosis(4, [verdict((UU, where(0, 1)))], {1: Status.unschedulable("no")}),
            id="one by itself",
        ),
    ],
)
def test_every_rejected_row_comes_with_its_status(diagnosis: Diagnosis) -> None:
    found = [(status, rows.tolist()) for status, rows in diagnosis.rows_by_status()]
    of_rows = [diagnosis.status_of(row) for row in range(4)]
    assert {row: status for status, rows in found for row in rows} == {
        row: status for row, status in enumerate(of_rows) if status is not None
    }
