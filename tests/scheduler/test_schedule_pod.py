"""The algorithm: of the nodes that can take a pod, which is best (spec §2.6)."""

import numpy as np
import pytest

from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.results import ScoreTable
from berth.scheduler.schedule_pod import prioritize_nodes, select_host
from berth_plugins.priority_sort import PrioritySort
from tests.builders import node, pod


def scores(*totals: int) -> ScoreTable:
    """Scores of the rows 10, 11, ..., which have *totals*."""
    return ScoreTable(np.arange(len(totals)) + 10, {}, {}, np.array(totals, np.int64), {})


@pytest.mark.parametrize(
    ("totals", "chosen", "best"),
    [
        pytest.param([1, 3, 2], 11, [1], id="the one with the highest total"),
        pytest.param([3, 1, 3, 3], 13, [0, 2, 3], id="of several the one that is selected"),
        pytest.param([-5], 10, [0], id="the only one, however bad"),
    ],
)
def test_select_host(totals: list[int], chosen: int, best: list[int]) -> None:
    row, where = select_host(scores(*totals), lambda rows: rows[-1])
    assert (row, where.tolist()) == (chosen, best)


def test_a_single_best_node_is_not_drawn() -> None:
    row, _ = select_host(scores(1, 2), lambda rows: pytest.fail("nothing to draw"))
    assert row == 11


@pytest.mark.parametrize(
    ("of_extenders", "totals", "extenders"),
    [
        pytest.param(None, [1, 1], None, id="not asked: a node without score plugins gets 1"),
        pytest.param({"a": 20}, [21, 1], [20, 0], id="what extenders say is added"),
        pytest.param({}, [1, 1], [0, 0], id="asked, and silent"),
        pytest.param({"b": 2**63}, [1, 1 - 2**63], [0, -(2**63)], id="out of int64 it wraps"),
    ],
)
def test_prioritize_nodes(
    of_extenders: dict[str, int] | None, totals: list[int], extenders: list[int] | None
) -> None:
    cache = Cache()
    cache.add_node(node("a"))
    cache.add_node(node("b"))
    points: dict[str, list[Plugin]] = {"queue_sort": [PrioritySort()]}
    cycle = Cycle(Profile("default", points, weights={}), PodInfo(pod()), cache.table, {})
    rows = np.array([cache.table.row_of["a"], cache.table.row_of["b"]])

    found = prioritize_nodes(cycle, rows, extender_scores=of_extenders)

    assert isinstance(found, ScoreTable)
    added: Ints | None = found.extenders
    assert found.total.tolist() == totals
    assert (None if added is None else added.tolist()) == extenders
