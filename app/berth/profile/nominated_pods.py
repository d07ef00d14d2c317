"""The filters of one attempt, which must pass with and without nominated pods (spec §2.5)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis
from berth.framework.interface import RowByRow
from berth.framework.node_table import NodeTable, RowIndex
from berth.framework.overlay import Overlay
from berth.framework.pod_info import PodInfo
from berth.profile.profile import Profile

NominatedPods = Mapping[str, Sequence[PodInfo]]
"""Node name to the pods nominated to run there."""


class FiltersWithNominatedPods:
    """A profile's filters, given who is nominated where.

    A node must take the pod both with and without those nominated to it that have at least the
    pod's priority: without, because they may never come, and affinity must not count on them. The
    :class:`~berth.framework.interface.FilterRunner` of PostFilter plugins.
    """

    def __init__(self, profile: Profile, nominated: NominatedPods) -> None:
        self._profile = profile
        self._nominated = nominated
        self._beside: dict[int, list[PodInfo]] = {}
        self._beside_of: tuple[NodeTable, str, int] | None = None
        """Which table, pod and priority ``_beside`` is for."""

    def run_filters(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, diagnosis: Diagnosis
    ) -> None:
        """Run the filters on the rows in ``state.feasible``, leaving there those that pass.

        As :meth:`Profile.run_filters`; what rejects a node beside nominated pods goes first.
        """
        nominated = {
            row: pods for row, pods in self._nominated_to(pod, nodes).items() if state.feasible[row]
        }
        if nominated:
            rows = np.array([*nominated], np.intp)
            of_rows = dict(enumerate(nominated.values()))
            overlay = Overlay(self._profile, state.clone(), pod, nodes.take(rows), of_rows)
            overlay.add_nominated_pods()
            beside = overlay.run_filters()
            diagnosis.add_part(beside, nodes, rows)
            state.feasible = state.feasible.copy()
            rejected = rows[beside.rejected(overlay.nodes)]
            diagnosis.beside.update(rejected.tolist())
            state.feasible[rejected] = False
        if not nominated or state.feasible.any():
            self._profile.run_filters(state, pod, nodes, diagnosis)

    def overlay(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: RowIndex) -> Overlay:
        """Return *rows* of *nodes* to ask about; *state*, that of the attempt, is left alone."""
        part, nominated = nodes.take(rows), self._nominated_to(pod, nodes)
        if nominated:
            nominated = {
                i: nominated[row]
                for i, row in enumerate(np.asarray(rows).tolist())
                if row in nominated
            }
        # Asked about the whole: of a part, some plugins would have to count the pods first.
        same = self._profile.filters_by_nodes_alone(state, pod, nodes)
        return Overlay(self._profile, state.clone(), pod, part, nominated, by_nodes_alone=same)

    def row_by_row(self, pod: PodInfo, nodes: NodeTable) -> RowByRow | None:
        """Return when the answers of overlays stay the same; None if more is to it than rows."""
        profile, values = self._profile, []
        for plugin in {
            id(each): each for each in (*profile.pre_filters, *profile.filters)
        }.values():
            value = plugin.follows_from(pod, nodes)
            if value is None or plugin.NAME in profile.plugins_by_others:
                return None
            values.append(value)
        return RowByRow(tuple(values), self._nominated_to(pod, nodes))

    def _nominated_to(self, pod: PodInfo, nodes: NodeTable) -> dict[int, list[PodInfo]]:
        """Return what :func:`nominated_to` does, worked out once in an attempt."""
        asked_for = nodes, pod.uid, pod.priority
        if self._beside_of != asked_for:
            self._beside_of = asked_for
            self._beside = nominated_to(self._nominated, pod, nodes)
        return self._beside


def nominated_to(
    nominated: NominatedPods, pod: PodInfo, nodes: NodeTable
) -> dict[int, list[PodInfo]]:
    """Return, by row, the nominated pods that *pod* must leave room for, as if they were there."""
    beside: dict[int, list[PodInfo]] = {}
    for name, row, other in _beside(nominated, pod, nodes):
        there = other if other.node_name == name else other.on_node(name)
        beside.setdefault(row, []).append(there)
    return beside


def are_nominated(nominated: NominatedPods, pod: PodInfo, nodes: NodeTable) -> bool:
    """Whether there are nominated pods that *pod* must leave room for."""
    return any(True for _ in _beside(nominated, pod, nodes))


def _beside(
    nominated: NominatedPods, pod: PodInfo, nodes: NodeTable
) -> Iterator[tuple[str, int, PodInfo]]:
    """Yield the pods that *pod* must leave room for, each with its node and row."""
    uid, priority = pod.uid, pod.priority
    for name, pods in nominated.items():
        row = nodes.row_of.get(name)
        if row is not None:
            for other in pods:
                if other.uid != uid and other.priority >= priority:
                    yield name, row, other
