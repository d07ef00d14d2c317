"""The dry run finds the victims of the plain rule, however many nodes it asks about at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import FilterPlugin, PreFilterPlugin
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.scheduler.framework.preemption.importance import importance
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.profile.nominated_pods import FiltersWithNominatedPods
from berth.scheduler.profile.profile import Profile
from berth_plugins.default_preemption.cached_selections import NO_VICTIMS_FOUND
from berth_plugins.default_preemption.dry_run import DryRun
from berth_plugins.default_preemption.ranked_pods import RankedPods
from berth_plugins.node_ports import NodePorts
from berth_plugins.node_resources_fit import NodeResourcesFit
from berth_plugins.priority_sort import PrioritySort
from tests.builders import disruption_budget, node, pod, selector

CPU, PRIORITY = 4, 5
WEB = selector({"app": "web"})


class Fragile(ScalarFilter):
    """Fails where a certain pod is alone."""

    NAME = "Fragile"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        if [other.name for other in node_info.pods] == ["p0"]:
            raise ZeroDivisionError
        return None


@dataclass
class Cluster:
    """Nodes of 4 CPU, the pods on each, and who is nominated there."""

    pods: list[list[Pod]]
    nominated: list[list[Pod]]
    budget: int
    """How many pods of the application ``web`` may be evicted."""

    def dry_run(self, preemptor: Pod) -> DryRun:
        nodes = NodeTable()
        for i, on_node in enumerate(self.pods):
            row = nodes.add_node(node(f"n{i}", cpu=CPU))
            for one in on_node:
                nodes.add_pod(row, PodInfo(one))
        nodes.order = np.arange(nodes.size)
        budgets = Lister([disruption_budget(selects=WEB, allows=self.budget)])
        plugins: list[Any] = [NodePorts(), NodeResourcesFit(), Fragile()]
        profile = Profile(
            "test",
            {
                "queue_sort": [PrioritySort()],
                "pre_filter": [p for p in plugins if isinstance(p, PreFilterPlugin)],
                "filter": [p for p in plugins if isinstance(p, FilterPlugin)],
            },
            weights={},
        )
        info, state = PodInfo(preemptor), CycleState()
        assert profile.run_pre_filter(state, info, nodes).status is None
        filters = FiltersWithNominatedPods(
            profile,
            {f"n{i}": [PodInfo(one) for one in there] for i, there in enumerate(self.nominated)},
        )
        run = DryRun(info, nodes, state, filters, RankedPods(), DisruptionBudgets(budgets))
        run.ranked_pods.lowest_priorities(nodes)
        return run


ResponseModel = Mapping[int, tuple[list[str], int] | Status | None]


def select(run: DryRun, rows: Sequence[int]) -> ResponseModel:
    """Put what is found on *rows* into plain values."""
    selected = run.select_victims_on_nodes(np.array(rows, np.intp))
    statuses = {row: selected.statuses.status_of(i) for i, row in enumerate(rows)}
    return statuses | {
        c.row: ([v.name for v in c.victims], c.pdb_violations) for c in selected.candidates
    }


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    number = count()

    def one() -> Pod:
        return pod(
            f"p{next(number)}",
            cpu=draw(st.integers(0, 2)),
            priority=draw(st.sampled_from([0, 1, 1, PRIORITY, 9])),
            labels=draw(st.sampled_from([{}, {"app": "web"}, {"app": "db"}])),
            started=draw(st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])),
            ports=draw(st.sampled_from([(), (), (80,)])),
        )

    def some(most: int) -> list[Pod]:
        return [one() for _ in range(draw(st.integers(0, most)))]

    size = draw(st.integers(1, 5))
    return Cluster(
        [some(4) for _ in range(size)], [some(1) for _ in range(size)], draw(st.integers(-1, 2))
    )


preemptors = st.builds(
    lambda cpu, ports: pod("new", cpu=cpu, ports=ports, priority=PRIORITY),
    st.integers(0, CPU),
    st.sampled_from([(), (80,)]),
)


@given(clusters(), preemptors)
def test_asking_about_many_nodes_is_asking_about_each(cluster: Cluster, preemptor: Pod) -> None:
    run = cluster.dry_run(preemptor)
    rows = range(len(cluster.pods))
    assert select(run, rows) == {row: select(run, [row])[row] for row in rows}


@given(clusters(), preemptors, st.integers(1, 6))
def test_nodes_are_tried_until_there_are_enough_candidates(
    cluster: Cluster, preemptor: Pod, enough: int
) -> None:
    run = cluster.dry_run(preemptor)
    non_violating: list[int] = []
    violating: list[int] = []
    rejected: dict[int, Status | None] = {}
    for row, on_node in enumerate(cluster.pods):
        if non_violating and len(non_violating) + len(violating) >= enough:
            break
        match select(run, [row])[row]:
            case _ if not any(PodInfo(p).priority < PRIORITY for p in on_node):
                rejected[row] = NO_VICTIMS_FOUND
            case (_, 0):
                non_violating.append(row)
            case (_, _):
                violating.append(row)
            case status:
                rejected[row] = status

    found = run.dry_run_preemption(run.nodes.order, num_candidates=enough)

    want = [*non_violating[:enough], *violating[:enough]]
    assert [candidate.row for candidate in found.candidates] == want
    statuses = {row: found.rejected.status_of(row) for row in range(len(cluster.pods))}
    assert {row: status for row, status in statuses.items() if status} == rejected


@given(clusters(), preemptors)
def test_the_victims_are_those_of_the_rule(cluster: Cluster, preemptor: Pod) -> None:
    run = cluster.dry_run(preemptor)
    found = select(run, range(len(cluster.pods)))
    for row in range(len(cluster.pods)):
        match by_the_rule(cluster, row, preemptor), found[row]:
            case "nobody", _:
                pass
            case "error", Status() as status:
                assert status.code is Code.ERROR
            case "no", Status() as status:
                assert status.is_rejected
            case victims, selected:
                assert selected == victims


def by_the_rule(cluster: Cluster, row: int, preemptor: Pod) -> Any:
    """Say for one node in plain words, or victims and broken budgets, what spec §6.4 says."""
    on = list(cluster.pods[row])
    beside = [p for p in cluster.nominated[row] if p.priority >= PRIORITY]
    lower = sorted((p for p in on if p.priority < PRIORITY), key=lambda p: importance(PodInfo(p)))
    if not lower:
        return "nobody"
    taken = {port for p in on for port in ports(p)}  # of two users either frees a port

    def fits() -> str:
        for others in ([*on, *beside], on) if beside else (on,):
            used = taken | {port for p in others if p in beside for port in ports(p)}
            if used & ports(preemptor) or (
                cpu(preemptor) and sum(map(cpu, others)) + cpu(preemptor) > CPU
            ):
                return "no"
            if [p.metadata.name for p in others] == ["p0"]:
                return "error"
        return "yes"

    for p in lower:
        on.remove(p)
        taken -= ports(p)
    if (answer := fits()) != "yes":
        return answer
    allowed, breaking = cluster.budget, []
    for p in lower:
        if p.metadata.labels.get("app") == "web":
            allowed -= 1
            if allowed < 0:
                breaking.append(p)
    victims = []
    for p in (*breaking, *(p for p in lower if p not in breaking)):
        on.append(p)
        taken |= ports(p)
        if fits() != "yes":
            on.remove(p)
            taken -= ports(p)
            victims.append(p)
    victims.sort(key=lambda p: importance(PodInfo(p)))
    names = [p.metadata.name for p in victims]
    return (names, sum(p in breaking for p in victims)) if victims else "error"


def ports(of: Pod) -> set[int]:
    return {port.host_port for port in of.spec.containers[0].ports}


def cpu(of: Pod) -> int:
    return int(of.spec.containers[0].resources.requests["cpu"])
