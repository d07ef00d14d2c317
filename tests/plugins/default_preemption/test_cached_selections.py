"""What is known of preemptors is what asking about all nodes again would find."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.pod import Pod
from berth.kube.objects.policy import PodDisruptionBudget
from berth.plugin import ScalarFilter, Status
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import FilterPlugin, PreFilterPlugin
from berth.scheduler.framework.listers import Lister, Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.nominations import Nominations
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Preemption
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.profile.nominated_pods import FiltersWithNominatedPods
from berth.scheduler.profile.profile import Profile
from berth_plugins.default_preemption.cached_selections import KnownPreemptors
from berth_plugins.default_preemption.dry_run import DryRun
from berth_plugins.default_preemption.ranked_pods import RankedPods
from berth_plugins.inter_pod_affinity.plugin import InterPodAffinity
from berth_plugins.node_name import NodeName
from berth_plugins.node_ports import NodePorts
from berth_plugins.node_resources_fit import NodeResourcesFit
from berth_plugins.priority_sort import PrioritySort
from berth_plugins.taint_toleration import TaintToleration
from tests.builders import (
    disruption_budget,
    node,
    pod,
    pod_anti_affinity,
    pod_term,
    selector,
    taint,
)
from tests.harness import Harness

CPU, PRIORITY, SIZE = 4, 5, 4
WEB, DB = selector({"app": "web"}), selector({"tier": "db"})
TAINT = taint("full")
FROM_NEW = pod_anti_affinity(required=[pod_term({"app": "new"}, key="zone")])
"""Of pods that may be in the way of preemptors, and in whole zones."""


class Odd(ScalarFilter):
    """A plugin by others, of which nobody knows what it goes by."""

    NAME = "Odd"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: Any) -> Status | None:
        return Status.unschedulable("odd") if len(node_info.pods) % 2 else None


class World:
    """A cluster that changes, in which the same preemptors are tried again and again."""

    def __init__(self, size: int, *others: FilterPlugin) -> None:
        self.nodes = NodeTable()
        self.nominations = Nominations()
        self.budgets: Lister[PodDisruptionBudget] = Lister([])
        self.count = self.num_nodes = 0
        for number in range(size):
            self.add_node(number % 2)
        plugins: list[Any] = [
            *(NodeName(), TaintToleration(), NodePorts(), NodeResourcesFit()),
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
        self._ranked, self._known = RankedPods(), KnownPreemptors()
        self._of_budgets = DisruptionBudgets(self.budgets)

    def add_node(self, zone: int = 0) -> None:
        self.num_nodes += 1
        self.nodes.add_node(node(f"n{self.num_nodes}", cpu=CPU, labels={"zone": f"z{zone}"}))
        self.nodes.order = np.flatnonzero(self.nodes.exists)

    def remove_node(self, row: int) -> None:
        if self.nodes.exists[row]:
            self.nodes.remove_node(row)
            self.nodes.order = np.flatnonzero(self.nodes.exists)

    def change_node(self, row: int, zone: int, taints: Any) -> None:
        if self.nodes.exists[row]:
            name, labels = self.nodes.name(row), {"zone": f"z{zone}"}
            self.nodes.set_node(row, node(name, cpu=CPU, labels=labels, taints=taints))

    def add_pod(self, row: int, **of_pod: Any) -> None:
        if self.nodes.exists[row]:
            self.count += 1
            name = self.nodes.name(row)
            self.nodes.add_pod(row, PodInfo(pod(f"p{self.count}", node=name, **of_pod)))

    def remove_pod(self, row: int) -> None:
        for uid in [*self.nodes.pods[row]][:1]:
            self.nodes.remove_pod(row, self.nodes.pods[row][uid])

    def nominate(self, row: int, priority: int) -> None:
        if not self.nodes.exists[row]:
            return
        name = self.nodes.name(row)
        waiting = PodInfo(pod(f"nominated-to-{name}", cpu=2, priority=priority))
        self.nominations.put(name, () if name in self.nominations else (waiting,))

    def replace_budget(self, allows: int, number: int, selects: LabelSelector = WEB) -> None:
        """A budget of some; it has granted the eviction of the first pod at times."""
        granted = ["p1"] if number % 2 else []
        budget = disruption_budget(
            f"b{number // 2}", selects=selects, allows=allows, granted=granted
        )
        self.budgets.on_add(budget)

    def remove_budget(self, number: int) -> None:
        self.budgets.on_delete(disruption_budget(f"b{number // 2}"))

    def preempt(self, preemptor: Pod, *, enough: int, start: int, keeps: bool) -> Preemption:
        info, state = PodInfo(preemptor), CycleState()
        state.feasible = self.nodes.exists
        assert self.profile.run_pre_filter(state, info, self.nodes).status is None
        run = DryRun(
            *(info, self.nodes, state),
            FiltersWithNominatedPods(self.profile, self.nominations),
            self._ranked if keeps else RankedPods(),
            self._of_budgets,
            self._known if keeps else None,
        )
        rows = np.roll(np.flatnonzero(self.nodes.exists), start)
        return run.dry_run_preemption(rows, num_candidates=enough)


def told(found: Preemption, size: int) -> Any:
    candidates = [
        (
            candidate.row,
            candidate.node,
            [v.uid for v in candidate.victims],
            candidate.pdb_violations,
        )
        for candidate in found.candidates
    ]
    statuses = [found.rejected.status_of(row) for row in range(size)]
    return candidates, statuses, sorted(found.rejected.reasons().items())


running = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 2),
        "priority": st.sampled_from([0, 1, 1, 9]),
        "labels": st.sampled_from([{}, {"app": "web"}, {"app": "web", "tier": "db"}]),
        "started": st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        "ports": st.sampled_from([(), (), (80,)]),
        "affinity": st.sampled_from([None, None, None, FROM_NEW]),
    }
)
rows = st.integers(0, SIZE - 1)
numbers = st.integers(0, 3)
changes = st.one_of(
    st.tuples(st.just("add_pod"), rows, running),
    st.tuples(st.just("remove_pod"), rows),
    st.tuples(st.just("nominate"), rows, st.sampled_from([1, PRIORITY])),
    st.tuples(st.just("replace_budget"), st.integers(0, 2), numbers),
    st.tuples(st.just("replace_budget"), st.integers(0, 2), numbers, st.sampled_from([WEB, DB])),
    st.tuples(st.just("remove_budget"), numbers),
    st.tuples(st.just("add_node"), st.integers(0, 1)),
    st.tuples(st.just("remove_node"), rows),
    st.tuples(st.just("change_node"), rows, st.integers(0, 1), st.sampled_from([[], [TAINT]])),
)
preemptors = st.builds(
    lambda cpu, ports, labels: pod("new", cpu=cpu, ports=ports, priority=PRIORITY, labels=labels),
    st.integers(2, CPU),
    st.sampled_from([(), (80,)]),
    st.sampled_from([{}, {"app": "new"}]),
)
steps = st.tuples(st.lists(changes, min_size=1, max_size=2), st.integers(1, SIZE + 1), rows)


@pytest.mark.parametrize("others", [(), (Odd(),)], ids=["berth's plugins", "and one by others"])
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(running, min_size=1, max_size=3), min_size=SIZE, max_size=SIZE),
    preemptors,
    st.lists(steps, min_size=3, max_size=5),
)
def test_what_is_known_is_what_asking_again_finds(
    others: tuple[FilterPlugin, ...], pods: Any, preemptor: Pod, course: Any
) -> None:
    world = World(SIZE, *others)
    for row, on_node in enumerate(pods):
        for of_pod in on_node:
            world.add_pod(row, **of_pod)
    for happened, enough, start in course:
        kept, anew = (
            world.preempt(preemptor, enough=enough, start=start, keeps=keeps)
            for keeps in (True, False)
        )
        assert told(kept, world.nodes.size) == told(anew, world.nodes.size)
        for name, *args in happened:
            apply: Callable[..., None] = getattr(world, name)
            named = args.pop() if args and isinstance(args[-1], dict) else {}
            apply(*args, **named)


def test_a_node_that_moves_to_another_zone_changes_what_the_others_there_take() -> None:
    world, preemptor = World(4), pod("new", cpu=3, priority=PRIORITY, labels={"app": "new"})
    for row in range(4):
        world.add_pod(row, cpu=CPU, priority=0, affinity=FROM_NEW if row == 0 else None)
    candidates = []
    for zone in (0, 1):
        world.change_node(0, zone, [])
        found = world.preempt(preemptor, enough=4, start=0, keeps=True)
        candidates.append([candidate.row for candidate in found.candidates])
    assert candidates == [[0, 1, 3], [0, 2]]


def change_row_2(world: World) -> None:
    world.add_pod(2, priority=1)


def taint_row_2(world: World) -> None:
    world.change_node(2, 0, [TAINT])


def replace_row_2(world: World) -> None:
    world.remove_node(2)
    world.add_node()
    world.add_pod(2, cpu=4, priority=0)


def nominate_to_row_2(world: World) -> None:
    world.nominate(2, PRIORITY)


def allow_one_eviction_more(world: World) -> None:
    world.replace_budget(1, 0)


def grant_an_eviction(world: World) -> None:
    world.replace_budget(0, 1)


def say_the_same_again(world: World) -> None:
    world.replace_budget(0, 0)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        pytest.param(lambda world: None, [], id="none if nothing happens"),
        pytest.param(change_row_2, [2], id="the node of a pod that came"),
        pytest.param(taint_row_2, [2], id="a node that has changed"),
        pytest.param(replace_row_2, [2], id="a node that has come in place of another"),
        pytest.param(nominate_to_row_2, [2], id="the node that a pod is nominated to"),
        pytest.param(allow_one_eviction_more, [0, 1], id="those where a budget ran out"),
        pytest.param(say_the_same_again, [], id="none if a budget is as it was"),
        pytest.param(grant_an_eviction, [0, 1], id="those of a budget that grants an eviction"),
    ],
)
def test_only_nodes_with_changes_are_asked_about_again(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[World], None], again: list[int]
) -> None:
    asked: list[list[int]] = []
    select = DryRun.select_victims_on_nodes

    def counted(run: DryRun, rows: Any) -> Any:
        asked.append(rows.tolist())
        return select(run, rows)

    monkeypatch.setattr(DryRun, "select_victims_on_nodes", counted)
    world = World(4)
    world.replace_budget(0, 0)
    for row in range(4):
        labels = {"app": "web"} if row < 2 else {}
        world.add_pod(row, cpu=4, priority=0, labels=labels)
    for _ in range(2):
        world.preempt(pod("new", cpu=3, priority=PRIORITY), enough=4, start=0, keeps=True)
    change(world)
    world.preempt(pod("new", cpu=3, priority=PRIORITY), enough=4, start=0, keeps=True)
    assert asked == [[0, 1, 2, 3], *([again] if again else [])]


async def test_preemption_goes_on_when_a_node_has_gone() -> None:
    harness = Harness()
    for name in ("n1", "n2", "n3"):
        harness.put(node(name, cpu=CPU), pod(f"low-{name}", cpu=CPU, node=name, priority=0))
    await harness.until_idle()
    harness.delete(harness.cluster.pods["default/low-n2"], harness.cluster.nodes["n2"])

    harness.put(pod("high", cpu=CPU, priority=PRIORITY))
    await harness.pass_time(3)

    assert harness.placements()["high"] in ("n1", "n3")
