"""Victims that are in the way of pods on the nodes that these got: by resources alone."""

from collections.abc import Iterable, Sequence
from typing import Final

from berth.kube.objects.resources import Resources
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.victim_units import VictimUnit

_PODS: Final = 1
"""What a pod takes of the number of pods that a node allows."""
NOWHERE: Final = -1
"""The row of pods whose node is gone."""


def units_in_the_way(
    nodes: NodeTable, units: Sequence[VictimUnit], members: Iterable[PodInfo]
) -> list[VictimUnit]:
    """Return those of *units* that have no room beside *members* on the nodes of these.

    *units* are on *nodes* now, and *members* are not. The first keep what room there is, of what
    the members request: of anything else their nodes may have too little, and they run there.
    """
    free: dict[int, dict[str, int]] = {}
    members = tuple(members)
    for member in members:
        row, asked = nodes.row_of[member.node_name], member.template.incoming_requested
        left = free.setdefault(row, {"": int(nodes.allowed_pods[row] - nodes.pod_count[row])})
        for name, index in nodes.resources.items():
            if name not in left and asked.amount(name) > 0:
                left[name] = int(nodes.allocatable[index, row] - nodes.requested[index, row])
    for member in members:
        _take(free[nodes.row_of[member.node_name]], member.template.incoming_requested)
    on_their_nodes = [
        [
            (free[row], pod)
            for pod in unit.pods
            if (row := nodes.row_of.get(pod.node_name, NOWHERE)) in free
        ]
        for unit in units
    ]
    for pods in on_their_nodes:
        for left, pod in pods:
            _take(left, pod.template.requested, sign=-1)
    in_the_way = []
    for unit, pods in zip(units, on_their_nodes, strict=True):
        for left, pod in pods:
            _take(left, pod.template.requested)
        if any(left[""] < 0 or _lacks(left, pod.template.requested) for left, pod in pods):
            in_the_way.append(unit)
            for left, pod in pods:
                _take(left, pod.template.requested, sign=-1)
    return in_the_way


def _take(free: dict[str, int], amounts: Resources, *, sign: int = 1) -> None:
    free[""] -= sign * _PODS
    for name in free:
        if name:
            free[name] -= sign * amounts.amount(name)


def _lacks(free: dict[str, int], amounts: Resources) -> bool:
    return any(free[name] < 0 and amounts.amount(name) > 0 for name in free if name)
