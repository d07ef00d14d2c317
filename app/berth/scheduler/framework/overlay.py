"""Hypotheses about nodes: would a pod fit if some pods came, or left?"""

from collections.abc import Container, Mapping, Sequence
from typing import Protocol

import numpy as np

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_table import NodeTable, RowIndex
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Mask, Rows


class FilterPlugins(Protocol):
    """Those plugins of a profile that an overlay asks."""

    def run_filters(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        *,
        passed: Container[str] = (),
    ) -> None: ...

    def run_pre_filter_extension_add_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> dict[int, Status]: ...

    def run_pre_filter_extension_remove_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> dict[int, Status]: ...


class Overlay:
    """Some rows of a table on which pods are added and removed in thought.

    Each row is an independent hypothesis about its own node: whatever happens on the other rows, in
    its eyes the rest of the cluster is as it is. So many rows are evaluated together, and each as
    if it were alone. Nothing but the overlay is changed. Valid within the attempt.
    """

    def __init__(
        self,
        plugins: FilterPlugins,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        nominated: Mapping[int, Sequence[PodInfo]],
        *,
        by_nodes_alone: Container[str] = (),
    ) -> None:
        """*state* and *nodes*, a part of a table, are the overlay's to change.

        *nominated* are by row the pods that *pod* must leave room for. The filters *by_nodes_alone*
        say the same of a node whatever pods come and go.
        """
        self._by_nodes_alone = by_nodes_alone
        self.nodes = nodes
        self.state = state
        """What plugins know of the pods that came and went."""
        self._plugins = plugins
        self._pod = pod
        self._nominated = nominated
        self._errors: dict[int, Status] = {}
        """By row, who could not follow its pods."""

    def add_pods(self, rows: RowIndex, pods: Sequence[PodInfo]) -> None:
        """Add each of *pods* to its row."""
        index, batch = np.asarray(rows, np.intp), PodBatch.of(pods)
        self.nodes.add_pods(index, batch)
        run = self._plugins.run_pre_filter_extension_add_pods
        self._errors |= run(self.state, self._pod, index, batch, self.nodes)

    def remove_pods(self, rows: RowIndex, pods: Sequence[PodInfo]) -> None:
        """Remove each of *pods*, which must be there, from its row."""
        index, batch = np.asarray(rows, np.intp), PodBatch.of(pods)
        self.nodes.remove_pods(index, batch)
        run = self._plugins.run_pre_filter_extension_remove_pods
        self._errors |= run(self.state, self._pod, index, batch, self.nodes)

    def add_nominated_pods(self) -> None:
        """Add to each row the pods nominated to it, which are not merely nominated any more."""
        nominated, self._nominated = self._nominated, {}
        rows = [row for row, pods in nominated.items() for _ in pods]
        self.add_pods(rows, [pod for pods in nominated.values() for pod in pods])

    def run_filters(self, rows: RowIndex | None = None, *, have_passed: bool = False) -> Diagnosis:
        """Run the filters on *rows*, or on all, with and without nominated pods (spec §2.5).

        *have_passed*: all of *rows* have passed before, with other pods on them. Then filters that
        go by nodes alone are not asked again.
        """
        diagnosis = Diagnosis(self.nodes.size)
        passed = self._by_nodes_alone if have_passed else ()
        feasible = self._mask(rows)
        for row, error in self._errors.items():
            if feasible[row]:
                diagnosis.statuses[row] = error
                feasible[row] = False
        beside = [row for row in self._nominated if feasible[row]]
        if beside:
            feasible[self._rejected_beside_nominated_pods(np.array(beside), diagnosis)] = False
        if np.count_nonzero(feasible):
            self._run_filters(feasible, diagnosis, passed)
        return diagnosis

    def _mask(self, rows: RowIndex | None) -> Mask:
        if rows is None:
            return np.ones(self.nodes.size, bool)
        mask = self.nodes.no_rows()
        mask[rows] = True
        return mask

    def _rejected_beside_nominated_pods(self, rows: Rows, diagnosis: Diagnosis) -> Rows:
        """Return which of *rows* do not take the pod beside those nominated there.

        Why is added to *diagnosis*.
        """
        beside = self._take(rows)
        beside._nominated = {i: self._nominated[row] for i, row in enumerate(rows.tolist())}
        beside.add_nominated_pods()
        diagnosed = beside.run_filters()
        diagnosis.add_part(diagnosed, self.nodes, rows)
        rejected: Rows = rows[diagnosed.rejected(beside.nodes)]
        return rejected

    def _run_filters(self, feasible: Mask, diagnosis: Diagnosis, passed: Container[str]) -> None:
        self.state.feasible = feasible
        run = Diagnosis(diagnosis.num_all_nodes)
        self._plugins.run_filters(self.state, self._pod, self.nodes, run, passed=passed)
        if not run.statuses:
            diagnosis.verdicts += run.verdicts
            return
        # A filter failed on the table. On which row shows when each is asked about alone.
        rows = np.flatnonzero(feasible)
        if len(rows) == 1:
            diagnosis.verdicts += run.verdicts
            diagnosis.statuses |= run.statuses
            return
        for row in rows.tolist():
            status = self._take(np.array([row])).run_filters().status_of(0)
            if status is not None:
                diagnosis.statuses[row] = status

    def _take(self, rows: Rows) -> "Overlay":
        """Return an overlay of *rows* of this one, without nominated pods."""
        state = self.state.take_rows(rows)
        return Overlay(self._plugins, state, self._pod, self.nodes.take(rows), {})
