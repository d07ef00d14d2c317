"""Rows of an overlay that are evaluated together are evaluated as each would be alone."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PreFilterPlugin
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter, ScalarPreFilterExtensions
from berth.scheduler.framework.status import Status
from tests.properties.crowds import Crowd, crowds, running_pods


class Diary:
    """What a plugin was told, in order."""

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self.entries = list(entries)

    def clone(self) -> "Diary":
        return Diary(self.entries)


class Diarist(PreFilterPlugin, ScalarPreFilterExtensions, ScalarFilter):
    """Rejects every node for all that it was told about it, and fails on some pods."""

    NAME = "Diarist"

    def __init__(self, args: Any = None, handle: Any = None) -> None:
        super().__init__(args, handle)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        state.write(self.NAME, Diary())
        return None

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        state.read(self.NAME).entries.append(f"+{added.name}")
        return Status.error(f"stranger {added.name}") if added.priority == 1 else None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        state.read(self.NAME).entries.append(f"-{removed.name}")
        return None

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        told: Diary = state.read(self.NAME)
        here = [other.name for other in node_info.pods]
        if here == ["p0"]:
            raise ZeroDivisionError
        return Status.unschedulable(f"{node_info.name}: {told.entries}, {here}")


Change = tuple[int, PodInfo]
"""A row and who comes or goes there."""
Step = tuple[Sequence[Change], Sequence[Change]]
"""Who goes, and who comes then."""


@st.composite
def steps(draw: st.DrawFn, crowd: Crowd) -> list[Step]:
    """Draw what happens on all nodes, step by step."""
    there: dict[int, list[PodInfo]] = {
        i: [PodInfo(p) for p in crowd.running if p.spec.node_name == node.name]
        for i, node in enumerate(crowd.nodes)
    }
    drawn: list[Step] = []
    for n in range(draw(st.integers(1, 3))):
        gone: list[Change] = []
        come: list[Change] = []
        for row, pods in there.items():
            leaving = draw(st.lists(st.sampled_from(pods), unique_by=id)) if pods else []
            gone += [(row, one) for one in leaving]
            pods[:] = [one for one in pods if one not in leaving]
            for i in range(draw(st.integers(0, 2))):
                new = PodInfo(draw(running_pods(f"new-{n}-{row}-{i}", crowd.nodes[row].name)))
                come.append((row, new))
                pods.append(new)
        drawn.append((gone, come))
    return drawn


def evaluate(cycle: Cycle, steps: Sequence[Step], rows: Sequence[int]) -> list[dict[int, Any]]:
    """Return after each step what is said of each of *rows*."""
    overlay = cycle.filters.overlay(cycle.state, cycle.pod, cycle.nodes, rows)
    number = {row: i for i, row in enumerate(rows)}
    said = []
    for gone, come in steps:
        for changes, change in ((gone, overlay.remove_pods), (come, overlay.add_pods)):
            mine = [(number[row], one) for row, one in changes if row in number]
            change([row for row, _ in mine], [one for _, one in mine])
        statuses = overlay.run_filters()
        said.append({row: statuses.status_of(i) for i, row in enumerate(rows)})
    return said


def check(crowd: Crowd, cycle: Cycle, steps: Sequence[Step]) -> None:
    outcome = cycle.profile.run_pre_filter(cycle.state, cycle.pod, cycle.nodes)
    if outcome.status is not None:
        return
    rows = range(len(crowd.nodes))
    before = (cycle.nodes.requested.tolist(), [list(pods) for pods in cycle.nodes.pods])
    together = evaluate(cycle, steps, rows)
    alone = [evaluate(cycle, steps, [row]) for row in rows]
    for i, said in enumerate(together):
        assert said == {row: alone[row][i][row] for row in rows}
    assert before == (cycle.nodes.requested.tolist(), [list(pods) for pods in cycle.nodes.pods])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(crowds(), st.data())
def test_rows_evaluated_together_are_evaluated_as_if_alone(
    crowd: Crowd, data: st.DataObject
) -> None:
    check(crowd, crowd.cycle(), data.draw(steps(crowd)))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(crowds(), st.data())
def test_so_they_are_by_a_plugin_that_follows_one_pod_at_a_time(
    crowd: Crowd, data: st.DataObject
) -> None:
    check(crowd, crowd.cycle(Diarist), data.draw(steps(crowd)))
