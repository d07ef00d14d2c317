"""Filters must pass with and without nominated pods, on the whole table and in an overlay."""

import numpy as np

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter, ScalarPreFilterExtensions
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.nominated_pods import FiltersWithNominatedPods
from berth.scheduler.profile.profile import Profile
from berth_plugins.node_resources_fit import NodeResourcesFit
from berth_plugins.priority_sort import PrioritySort
from tests.builders import node, pod


class Counted:
    """How many pods a plugin was told of."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def clone(self) -> "Counted":
        return Counted(self.number)


class Counting(ScalarFilter, ScalarPreFilterExtensions):
    """Follows pods: an odd one out is refused."""

    NAME = "Counting"

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        assert added in node_info.pods
        if added.name == "strange":
            return Status.error("who is that?")
        state.read(self.NAME).number += 1
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status | None:
        state.read(self.NAME).number -= 1
        return None

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        odd = state.read(self.NAME).number % 2
        return Status.unschedulable("odd") if odd else None

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return None


FULL = Status.unschedulable("Insufficient cpu").of("NodeResourcesFit")
NEW = PodInfo(pod("new", cpu=1, priority=5))


def profile(*, follows: bool) -> Profile:
    fit, counting = NodeResourcesFit(), Counting()
    return Profile(
        "test",
        {
            "queue_sort": [PrioritySort()],
            "pre_filter": [fit, counting] if follows else [fit],
            "filter": [fit, counting] if follows else [fit],
        },
        weights={},
    )


def answers(nominated: dict[str, list[Pod]], *, follows: bool = False) -> dict[str, Status | None]:
    """Evaluate ``NEW`` on four nodes of 2 CPU, the first of which is full."""
    nodes = NodeTable()
    for i in range(4):
        nodes.add_node(node(f"n{i}", cpu=2))
    nodes.add_pod(0, PodInfo(pod("big", cpu=2)))
    filters = FiltersWithNominatedPods(
        profile(follows=follows),
        {name: list(map(PodInfo, there)) for name, there in nominated.items()},
    )
    state = CycleState()
    state.write(Counting.NAME, Counted())
    before = nodes.requested.copy()
    evaluated = filters.overlay(state, NEW, nodes, range(4)).run_filters()
    told = {nodes.name(row): evaluated.status_of(row) for row in range(4)}
    state.feasible, diagnosis = np.ones(4, bool), Diagnosis(4)
    filters.run_filters(state, NEW, nodes, diagnosis)
    assert told == {nodes.name(row): diagnosis.status_of(row) for row in range(4)}
    assert state.feasible.tolist() == [status is None for status in told.values()]
    assert (nodes.requested == before).all()
    assert state.read(Counting.NAME).number == 0
    return told


def test_nominated_pods_count_if_they_are_as_important() -> None:
    assert answers(
        {
            "n1": [pod("equal", cpu=2, priority=5)],
            "n2": [pod("lesser", cpu=2, priority=4)],
            "n3": [pod("a", cpu=1, priority=5), pod("b", cpu=1, priority=6)],
            "elsewhere": [pod("c", cpu=1, priority=9)],
        }
    ) == {"n0": FULL, "n1": FULL, "n2": None, "n3": FULL}


def test_the_pod_is_not_in_its_own_way() -> None:
    assert answers({"n1": [NEW.pod, pod("other", cpu=1, priority=5)]}) == {
        "n0": FULL,
        "n1": None,
        "n2": None,
        "n3": None,
    }


def test_a_node_must_do_with_and_without_them() -> None:
    nobody = {"n0": [pod("other", priority=9)]}
    assert answers(nobody) == {"n0": FULL, "n1": None, "n2": None, "n3": None}


def test_plugins_that_follow_pods_are_told_of_them() -> None:
    odd = Status.unschedulable("odd").of("Counting")
    nominated = {
        "n1": [pod("a", priority=9)],
        "n2": [pod("a", priority=9), pod("b", priority=9)],
        "n3": [pod("strange", priority=9)],
    }
    assert answers(nominated, follows=True) == {
        "n0": FULL,
        "n1": odd,
        "n2": None,
        "n3": Status.error("who is that?").of("Counting"),
    }
