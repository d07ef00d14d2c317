"""The filters of one attempt, which reckon with pods that are only nominated (spec §2.5)."""

from collections.abc import Mapping, Sequence

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import Status
from berth.profile.profile import Profile

NominatedPods = Mapping[str, Sequence[PodInfo]]
"""Node name to the pods nominated to run there."""


class AttemptFilters:
    """A profile's filters, given who is nominated where.

    A node must take the pod both with and without those nominated to it that have at least the
    pod's priority. The :class:`~berth.framework.interface.FilterRunner` of PostFilter plugins.
    """

    def __init__(self, profile: Profile, nominated: NominatedPods) -> None:
        self._profile = profile
        self._nominated = nominated

    def is_per_node(self, state: CycleState) -> bool:
        return self._profile.follows_pods(state)

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, nodes: NodeTable
    ) -> Status | None:
        return self._profile.run_add_pod(state, pod, added, nodes)

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status | None:
        return self._profile.run_remove_pod(state, pod, removed, nodes)

    def judge(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Diagnosis:
        """Judge all rows of *nodes*, with and without the pods that are nominated to them."""
        diagnosis = Diagnosis(nodes.size)
        diagnosis.statuses = self.judge_with_nominated(state, pod, nodes)
        state.feasible = np.ones(nodes.size, bool)
        state.feasible[list(diagnosis.statuses)] = False
        if state.feasible.any():
            self._profile.run_filters(state, pod, nodes, diagnosis)
        return diagnosis

    def judge_with_nominated(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> dict[int, Status]:
        """Return the rows where nominated pods are in the way, and how; *state* is left alone."""
        beside = self._beside(pod, nodes)
        if self.is_per_node(state):
            groups = [[row] for row in beside]
        else:
            groups = [list(beside)] if beside else []
        found: dict[int, Status] = {}
        for rows in groups:
            others = [beside[row] for row in rows]
            judged = self._judge_beside(state.clone(), pod, nodes.take(rows), others)
            for i, row in enumerate(rows):
                status = judged.status_of(i)
                if status is not None:
                    found[row] = status
        return found

    def _beside(self, pod: PodInfo, nodes: NodeTable) -> dict[int, list[PodInfo]]:
        """Return, by row, the nominated pods that *pod* must leave room for."""
        beside: dict[int, list[PodInfo]] = {}
        for name, nominated in self._nominated.items():
            row = nodes.row_of.get(name)
            if row is None:
                continue
            for other in nominated:
                if other.uid != pod.uid and other.priority >= pod.priority:
                    beside.setdefault(row, []).append(other.on_node(name))
        return beside

    def _judge_beside(
        self, state: CycleState, pod: PodInfo, part: NodeTable, others: list[list[PodInfo]]
    ) -> Diagnosis:
        """Judge *part* with *others*, row by row, added to it."""
        judged = Diagnosis(part.size)
        added = [other for on_row in others for other in on_row]
        part.add_pods([row for row, on_row in enumerate(others) for _ in on_row], added)
        if self.is_per_node(state):
            for other in added:
                status = self._profile.run_add_pod(state, pod, other, part)
                if status is not None:
                    judged.statuses[0] = status
                    return judged
        state.feasible = np.ones(part.size, bool)
        self._profile.run_filters(state, pod, part, judged)
        return judged
