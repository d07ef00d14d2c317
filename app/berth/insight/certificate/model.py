"""The model of a cluster: which pods may be on which nodes, by the scheduler's own filters.

The movable pods are taken off, and the filters are asked where a pod of each template could come
then. Whatever else comes there can only make it harder, but for pods that attract others.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from msgspec.structs import replace

from berth.insight.certificate.between_nodes import (
    AFFINITY,
    SPREAD,
    RuleReader,
    Rules,
    has_required_spread,
    lacks_label,
)
from berth.insight.certificate.problem import Exclusion, Goal, Group, Problem
from berth.insight.certificate.within_nodes import Rooms, in_numbers
from berth.insight.whatif.world import unplaced
from berth.kube.objects.node_pods import goes_with_node
from berth.scheduler.core.simulated_cluster import SimulatedCluster
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes, find_nodes_that_fit_pod
from berth.scheduler.framework.affinity_terms import terms_of
from berth.scheduler.framework.device_demands import CountsDevices, DeviceDemands
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.pod_signature import signature_in_group
from berth.scheduler.framework.verdict import Mask
from berth.scheduler.framework.words import counted
from berth.scheduler.profile.guard import is_in_tree
from berth.scheduler.profile.profile import Profile

NOWHERE: Final = -1
"""In place of a node: of pods that wait."""


@dataclass(slots=True)
class Model:
    """A problem, and what its numbers stand for."""

    problem: Problem
    nodes: list[str]
    pods: list[dict[int, list[PodInfo]]]
    """By group and by node, or NOWHERE: who is there now."""
    left_out: list[str] = field(default_factory=list)
    """What the model does not know; a plan may be refused for it."""

    def assigned(self, placement: Iterable[tuple[int, int, int]]) -> dict[str, str]:
        """Return the node of each pod that has one, by key. As many as can be stay."""
        wanted: list[Counter[int]] = [Counter() for _ in self.pods]
        for group, node, count in placement:
            wanted[group][node] = count
        nodes: dict[str, str] = {}
        for counts, homes in zip(wanted, self.pods, strict=True):
            moving: list[PodInfo] = []
            for home, pods in homes.items():
                stay = min(counts[home], len(pods)) if home != NOWHERE else 0
                nodes |= dict.fromkeys((pod.key for pod in pods[:stay]), self.nodes[home])
                moving += pods[stay:]
                counts[home] -= stay
            # Who runs comes first: of those that wait, some may get no node.
            moving.sort(key=lambda pod: not pod.node_name)
            for pod, node in zip(moving, counts.elements(), strict=False):
                nodes[pod.key] = self.nodes[node]
        return nodes

    def evicted(self, placement: Iterable[tuple[int, int, int]]) -> list[PodInfo]:
        """Return the pods that run and are not to stay where they are."""
        here = {(group, node): count for group, node, count in placement}
        return [
            pod
            for group, homes in enumerate(self.pods)
            for home, pods in homes.items()
            if home != NOWHERE
            for pod in pods[here.get((group, home), 0) :]
        ]

    def emptied(self, placement: Iterable[tuple[int, int, int]]) -> list[str]:
        """Return the nodes that are to be empty, as many as are asked for: those first that run
        something now.
        """
        problem = self.problem
        used = {node for _, node, _ in placement}
        homes = {node for group in problem.groups for node in group.homes}
        empty = [n for n, busy in enumerate(problem.is_busy) if not busy and n not in used]
        empty.sort(key=lambda node: node not in homes)
        return [self.nodes[node] for node in empty[: problem.empty_nodes]]

    def evictions(
        self, placement: Iterable[tuple[int, int, int]]
    ) -> tuple[tuple[int, int, int], ...]:
        """Return how many of a group leave a node: group, node, count."""
        here = {(group, node): count for group, node, count in placement}
        return tuple(
            (group, home, leaving)
            for group, homes in enumerate(self.pods)
            for home, pods in homes.items()
            if home != NOWHERE and (leaving := len(pods) - here.get((group, home), 0)) > 0
        )


def model_of(
    cluster: SimulatedCluster,
    goal: Goal,
    *,
    running: Sequence[PodInfo],
    waiting: Sequence[PodInfo],
    most_evictions: int | None = None,
    may_lose: bool = False,
    empty_nodes: int = 0,
) -> Model:
    """Return the model of *cluster*, from which the *running* pods have been taken.

    They know their nodes. *waiting* are to get one.
    """
    model = _Builder(cluster, [*running, *waiting]).build(goal, most_evictions, may_lose=may_lose)
    model.problem = replace(model.problem, empty_nodes=empty_nodes)
    return model


@dataclass(slots=True)
class _Kind:
    """Pods of a template and priority."""

    first: PodInfo
    homes: dict[int, list[PodInfo]] = field(default_factory=lambda: defaultdict(list))
    nodes: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return sum(map(len, self.homes.values()))


class _Builder:
    def __init__(self, cluster: SimulatedCluster, pods: Sequence[PodInfo]) -> None:
        self._cluster, self._pods = cluster, pods
        self._table = cluster.cache.table
        self._names = sorted(self._table.row_of)
        self._rows = np.array([self._table.row_of[name] for name in self._names], np.intp)
        self._labels = [self._labels_of(row) for row in self._rows.tolist()]
        self._fixed = [list(self._table.pods[row].values()) for row in self._rows.tolist()]
        self._left_out: Counter[str] = Counter()

    def _labels_of(self, row: int) -> Mapping[str, str]:
        node = self._table.nodes[row]
        assert node is not None, row
        return node.labels

    def build(self, goal: Goal, most_evictions: int | None, *, may_lose: bool) -> Model:
        kinds = self._kinds()
        for kind in kinds:
            kind.nodes = self._where(kind.first)
        devices = self._devices()
        rooms = Rooms(
            self._table,
            self._cluster.listers,
            self._pods,
            fixed=(pod for pods in self._fixed for pod in pods),
            devices=devices,
            applies=self._applies,
        )
        for kind in kinds:
            wanted = devices.get(kind.first.key, DeviceDemands())
            is_counted = wanted.is_all and (rooms.can_count_devices or not wanted.demands)
            self._note_what_is_left_out(kind, is_counted=is_counted)
        templates = list(dict.fromkeys(kind.first.template for kind in kinds))
        rules = RuleReader(
            templates, self._names, self._labels, self._fixed, self._cluster.listers
        ).read(affinity=self._applies(AFFINITY), spread=self._applies(SPREAD))
        needs = [rooms.needs(kind.first) for kind in kinds]
        by_node, requests = in_numbers(rooms, self._names, needs, [kind.count for kind in kinds])
        groups, group_of = _merged(kinds, requests, _roles(kinds, templates, rules))
        of_template: dict[int, list[int]] = defaultdict(list)
        number_of = {template: number for number, template in enumerate(templates)}
        for kind, group in zip(kinds, group_of, strict=True):
            of_template[number_of[kind.first.template]].append(group)

        def in_groups(of_rule: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted({group for number in of_rule for group in of_template[number]}))

        problem = Problem(
            goal,
            by_node,
            tuple(any(not goes_with_node(pod.pod) for pod in pods) for pods in self._fixed),
            tuple(group for group, _ in groups),
            tuple(rules.topologies),
            tuple(
                Exclusion(e.topology, in_groups(e.holders), in_groups(e.targets))
                for e in rules.exclusions
            ),
            tuple(replace(spread, members=in_groups(spread.members)) for spread in rules.spreads),
            most_evictions,
            may_lose,
        )
        left_out = [f"{what} ({counted(count, 'pod')})" for what, count in self._left_out.items()]
        left_out += dict.fromkeys(rules.left_out)
        return Model(problem, self._names, [homes for _, homes in groups], left_out)

    def _kinds(self) -> list[_Kind]:
        """Put pods together that are alike for the filters. Who has a node goes by its name."""
        number = {name: i for i, name in enumerate(self._names)}
        kinds: dict[Hashable, _Kind] = {}
        for pod in self._pods:
            signature = signature_in_group(pod)
            key: Hashable = pod.uid
            if signature is not None:
                key = signature.template, signature.profile, signature.priority
            kind = kinds.setdefault(key, _Kind(pod))
            kind.homes[number.get(pod.node_name, NOWHERE)].append(pod)
        return list(kinds.values())

    def _profile(self, pod: PodInfo) -> Profile:
        return self._cluster.profiles[pod.pod.spec.scheduler_name]

    def _applies(self, plugin: str) -> bool:
        """Whether all pods are filtered by *plugin*."""
        profiles = {pod.pod.spec.scheduler_name for pod in self._pods}
        return all(
            any(plugin == p.NAME for p in self._cluster.profiles[name].filters) for name in profiles
        )

    def _where(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the nodes where the filters let *pod* come, and that their rules do not exclude
        whoever else is there.
        """
        cycle = Cycle.begin(
            self._profile(pod),
            _as_waiting(pod),
            cache=self._cluster.cache,
            nominator=self._cluster.core.queue.nominator,
        )
        feasible_nodes = find_nodes_that_fit_pod(cycle, nominated_first=False)
        mask = self._allowed(feasible_nodes, _passed_over(pod.template))[self._rows]
        return tuple(
            node
            for node in np.flatnonzero(mask).tolist()
            if not lacks_label(pod.template, self._labels[node])
        )

    def _allowed(self, feasible_nodes: FeasibleNodes, passed_over: Collection[str]) -> Mask:
        """Return the rows that pass, or that only plugins *passed_over* have rejected."""
        diagnosis, pre_filter = feasible_nodes.diagnosis, feasible_nodes.pre_filter
        allowed: Mask = feasible_nodes.feasible.copy()
        if len(allowed) != len(self._table.exists):
            allowed = self._table.no_rows()
        if pre_filter.status is not None:
            if pre_filter.status.plugin in passed_over:
                allowed |= self._table.exists
            return allowed
        for plugin, verdict in diagnosis.verdicts:
            rejected = verdict.rejected()
            if plugin in passed_over and rejected is not None:
                allowed |= rejected & self._table.exists
        for row, status in diagnosis.statuses.items():
            allowed[row] = status.plugin in passed_over
        return allowed

    def _devices(self) -> dict[str, DeviceDemands]:
        """Return what pods want of devices, by key."""
        demands: dict[str, DeviceDemands] = {}
        for name, profile in self._cluster.profiles.items():
            pods = [pod for pod in self._pods if pod.pod.spec.scheduler_name == name]
            for plugin in profile.filters:
                if isinstance(plugin, CountsDevices):
                    demands |= plugin.device_demands(pods, self._table)
        return demands

    def _note_what_is_left_out(self, kind: _Kind, *, is_counted: bool) -> None:
        pod, count = kind.first, kind.count
        if terms_of(pod.template).required_affinity:
            self._left_out["required affinity to other pods"] += count
        if not is_counted:
            self._left_out["what devices are besides a number on each node"] += count
        if pod.pod.spec.scheduling_group is not None:
            self._left_out["that pods of a group start together"] += count
        for plugin in self._profile(pod).filters:
            if not is_in_tree(type(plugin)):
                what = f"what plugin {plugin.NAME} says once other pods are there"
                self._left_out[what] += count


def _as_waiting(pod: PodInfo) -> PodInfo:
    return PodInfo(unplaced(pod.pod)) if pod.node_name else pod


def _passed_over(template: PodTemplate) -> frozenset[str]:
    """Return the plugins whose rules depend on pods that are not there, and may come to be."""
    passed_over = set()
    if terms_of(template).required_affinity:
        passed_over.add(AFFINITY)
    if has_required_spread(template):
        passed_over.add(SPREAD)
    return frozenset(passed_over)


def _roles(
    kinds: Sequence[_Kind], templates: Sequence[PodTemplate], rules: Rules
) -> Iterator[Hashable]:
    """Yield for each kind which part it has in rules between nodes."""
    of_template: list[list[Hashable]] = [[] for _ in templates]
    for i, exclusion in enumerate(rules.exclusions):
        for number in exclusion.holders:
            of_template[number].append((i, "holder"))
        for number in exclusion.targets:
            of_template[number].append((i, "target"))
    for i, spread in enumerate(rules.spreads):
        for number in spread.members:
            of_template[number].append((i, "member"))
    number_of = {template: number for number, template in enumerate(templates)}
    for kind in kinds:
        yield tuple(of_template[number_of[kind.first.template]])


def _merged(
    kinds: Sequence[_Kind], requests: Sequence[dict[int, int]], roles: Iterable[Hashable]
) -> tuple[list[tuple[Group, dict[int, list[PodInfo]]]], list[int]]:
    """Put kinds together that are alike in the model; return the groups, and which one each is."""
    numbers: dict[Hashable, int] = {}
    homes: list[dict[int, list[PodInfo]]] = []
    firsts: list[tuple[dict[int, int], _Kind]] = []
    group_of: list[int] = []
    for kind, needs, role in zip(kinds, requests, roles, strict=True):
        key = (tuple(sorted(needs.items())), kind.nodes, kind.first.priority, role)
        number = numbers.setdefault(key, len(numbers))
        if number == len(homes):
            homes.append(defaultdict(list))
            firsts.append((needs, kind))
        for node, pods in kind.homes.items():
            homes[number][node] += pods
        group_of.append(number)
    groups = [
        (
            Group(
                needs,
                kind.nodes,
                {node: len(pods) for node, pods in of_group.items() if node != NOWHERE},
                len(of_group.get(NOWHERE, ())),
                kind.first.priority,
            ),
            of_group,
        )
        for (needs, kind), of_group in zip(firsts, homes, strict=True)
    ]
    return groups, group_of
