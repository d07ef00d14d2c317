"""What is known of nodes beside nominated pods is what asking about all of them again finds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import FilterPlugin, PreFilterPlugin
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.nominations import Nominations
from berth.scheduler.framework.overlay import Overlay
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.template_cache import TemplateCache
from berth.scheduler.profile.nominated_pods import FiltersWithNominatedPods
from berth.scheduler.profile.profile import Profile
from berth_plugins.inter_pod_affinity.plugin import InterPodAffinity
from berth_plugins.node_ports import NodePorts
from berth_plugins.node_resources_fit import NodeResourcesFit
from berth_plugins.priority_sort import PrioritySort
from berth_plugins.taint_toleration import TaintToleration
from tests.builders import node, pod, pod_anti_affinity, pod_term, taint

SIZE, PRIORITY = 4, 5
TAINT = taint("full")
FROM_NEW = pod_anti_affinity(required=[pod_term({"app": "new"}, key="zone")])


class Moody(ScalarFilter):
    """A plugin by others, of which nobody knows what it goes by."""

    NAME = "Moody"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        if len(node_info.pods) % 3 == 2:
            return Status.error("what a crowd")
        return Status.unschedulable("odd") if len(node_info.pods) % 2 else None


class World:
    """A cluster that changes, in which pods are tried without and with what is known."""

    def __init__(self, *others: FilterPlugin) -> None:
        self.nodes = NodeTable()
        self.nominations = Nominations()
        self.count = 0
        for number in range(SIZE):
            self.add_node(number % 2)
        plugins: list[Any] = [
            *(TaintToleration(), NodePorts(), NodeResourcesFit()),
            InterPodAffinity(None, Handle(self.nodes, listers=Listers())),
            *others,
        ]
        self.profile = Profile(
            "test",
            {
                "queue_sort": [PrioritySort()],
                "pre_filter": [p for p in plugins if isinstance(p, PreFilterPlugin)],
                "filter": [p for p in plugins if isinstance(p, FilterPlugin)],
            },
            weights={},
        )

    def add_node(self, zone: int = 0) -> None:
        self.count += 1
        self.nodes.add_node(node(f"n{self.count}", cpu=4, labels={"zone": f"z{zone}"}))

    def remove_node(self, row: int) -> None:
        if self.nodes.exists[row]:
            self.nodes.remove_node(row)

    def change_node(self, row: int, zone: int, taints: Any) -> None:
        if self.nodes.exists[row]:
            name, labels = self.nodes.name(row), {"zone": f"z{zone}"}
            self.nodes.set_node(row, node(name, cpu=4, labels=labels, taints=taints))

    def add_pod(self, row: int, **of_pod: Any) -> None:
        if self.nodes.exists[row]:
            self.count += 1
            name = self.nodes.name(row)
            self.nodes.add_pod(row, PodInfo(pod(f"p{self.count}", node=name, **of_pod)))

    def remove_pod(self, row: int) -> None:
        for uid in [*self.nodes.pods[row]][:1]:
            self.nodes.remove_pod(row, self.nodes.pods[row][uid])

    def nominate(self, row: int, **of_pod: Any) -> None:
        if self.nodes.exists[row]:
            self.count += 1
            waiting = PodInfo(pod(f"waiting-{self.count}", **of_pod))
            self.nominations.put(self.nodes.name(row), (waiting,))

    def forget(self, row: int) -> None:
        if self.nodes.exists[row]:
            self.nominations.put(self.nodes.name(row), ())

    def attempt(self, tried: Pod, *, keeps: bool) -> tuple[Any, ...]:
        """Return all that is found out about *tried*, and counted meanwhile."""
        kept, before = self.profile.known_beside, dict(self.profile.evaluations["Filter"])
        if not keeps:
            self.profile.known_beside = TemplateCache()
        info, state = PodInfo(tried), CycleState()
        state.feasible = self.nodes.exists
        assert self.profile.run_pre_filter(state, info, self.nodes).status is None
        diagnosis = Diagnosis(len(self.nodes))
        filters = FiltersWithNominatedPods(self.profile, self.nominations)
        filters.run_filters(state, info, self.nodes, diagnosis)
        self.profile.known_beside = kept
        return (
            state.feasible.tolist(),
            [diagnosis.status_of(row) for row in range(self.nodes.size)],
            diagnosis.message(),
            diagnosis.beside,
            diagnosis.error(),
            {
                plugin: count - before[plugin]
                for plugin, count in self.profile.evaluations["Filter"].items()
            },
        )


running = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 3),
        "priority": st.sampled_from([1, PRIORITY, 9]),
        "ports": st.sampled_from([(), (), (80,)]),
        "affinity": st.sampled_from([None, None, FROM_NEW]),
    }
)
rows = st.integers(0, SIZE - 1)
changes = st.one_of(
    st.tuples(st.just("add_pod"), rows, running),
    st.tuples(st.just("remove_pod"), rows),
    st.tuples(st.just("nominate"), rows, running),
    st.tuples(st.just("nominate"), rows, running),
    st.tuples(st.just("forget"), rows),
    st.tuples(st.just("add_node"), st.integers(0, 1)),
    st.tuples(st.just("remove_node"), rows),
    st.tuples(st.just("change_node"), rows, st.integers(0, 1), st.sampled_from([[], [TAINT]])),
)
tried = st.builds(
    lambda cpu, ports, labels: pod("new", cpu=cpu, ports=ports, priority=PRIORITY, labels=labels),
    st.integers(1, 2),
    st.sampled_from([(), (80,)]),
    st.sampled_from([{}, {"app": "new"}]),
)


@pytest.mark.parametrize("others", [(), (Moody(),)], ids=["berth's plugins", "and one by others"])
@settings(max_examples=50, deadline=None)
@given(tried, st.lists(st.lists(changes, min_size=1, max_size=3), min_size=3, max_size=6))
def test_what_is_known_is_what_asking_again_finds(
    others: tuple[FilterPlugin, ...], tried: Pod, course: list[list[Any]]
) -> None:
    world = World(*others)
    for happened in course:
        for name, *args in happened:
            named = args.pop() if args and isinstance(args[-1], dict) else {}
            getattr(world, name)(*args, **named)
        assert world.attempt(tried, keeps=True) == world.attempt(tried, keeps=False)


def test_a_node_that_moves_to_another_zone_changes_what_the_others_there_take() -> None:
    world, new = World(), pod("new", cpu=1, priority=PRIORITY, labels={"app": "new"})
    for row in range(SIZE):
        world.nominate(row, cpu=1, priority=PRIORITY)
    world.add_pod(0, cpu=1, affinity=FROM_NEW)
    feasible = []
    for zone in (0, 1):
        world.change_node(0, zone, [])
        feasible.append(np.flatnonzero(world.attempt(new, keeps=True)[0]).tolist())
    assert feasible == [[1, 3], [2]]


def test_only_nodes_with_changes_are_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    run_filters = Overlay.run_filters

    def counted(overlay: Overlay) -> Diagnosis:
        asked.append(overlay.nodes.size)
        return run_filters(overlay)

    monkeypatch.setattr(Overlay, "run_filters", counted)
    world, new = World(), pod("new", cpu=2, priority=PRIORITY)
    for row in range(3):
        world.nominate(row, cpu=3, priority=PRIORITY)
    changes_of_attempts: list[Callable[[], None]] = [
        lambda: None,
        lambda: None,
        lambda: world.nominate(3, cpu=1, priority=PRIORITY),
        lambda: world.add_pod(1, cpu=1),
        lambda: world.forget(0),
        lambda: world.change_node(2, 0, [TAINT]),
        lambda: world.change_node(0, 0, [TAINT]),
        lambda: world.add_node(),
        lambda: world.remove_node(0),
    ]
    for change in changes_of_attempts:
        change()
        world.attempt(new, keeps=True)
    assert asked == [3, 1, 1, 1]
