"""The filters of one attempt, which must pass with and without nominated pods (spec §2.5)."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from berth.scheduler.framework.cached_rows import PASSES, UNKNOWN, CachedRows
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import RowByRow
from berth.scheduler.framework.node_table import NodeTable, RowIndex
from berth.scheduler.framework.nominations import Beside, Nominations
from berth.scheduler.framework.overlay import Overlay
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Rows
from berth.scheduler.profile.profile import Profile

NominatedPods = Mapping[str, Sequence[PodInfo]]
"""Node name to the pods nominated to run there."""


class FiltersWithNominatedPods:
    """A profile's filters, given who is nominated where.

    A node must take the pod both with and without those nominated to it that have at least the
    pod's priority: without, because they may never come, and affinity must not count on them. The
    :class:`~berth.scheduler.framework.interface.FilterRunner` of PostFilter plugins.
    """

    def __init__(self, profile: Profile, nominated: NominatedPods) -> None:
        self._profile = profile
        self._nominations = Nominations.of(nominated)

    def nominated_to(self, pod: PodInfo, nodes: NodeTable) -> Mapping[int, Sequence[PodInfo]]:
        """Return, by row, the nominated pods that *pod* must leave room for."""
        return self._nominations.beside(pod, nodes).pods

    def run_filters(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, diagnosis: Diagnosis
    ) -> None:
        """Run the filters on the rows in ``state.feasible``, leaving there those that pass.

        As :meth:`Profile.run_filters`; what rejects a node beside nominated pods goes first.
        """
        beside = self._nominations.beside(pod, nodes)
        rows = np.fromiter(beside.pods, np.intp, len(beside.pods))
        rows = rows[state.feasible[rows]]
        if len(rows):
            rejected = self._rejected_beside(rows, beside, state, pod, nodes, diagnosis)
            diagnosis.beside.update(rejected.tolist())
            state.feasible = state.feasible.copy()
            state.feasible[rejected] = False
        if not len(rows) or np.count_nonzero(state.feasible):
            self._profile.run_filters(state, pod, nodes, diagnosis)

    def _rejected_beside(
        self,
        rows: Rows,
        beside: Beside,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
    ) -> Rows:
        """Return which of *rows* do not take the pod *beside* those nominated there.

        Why is added to *diagnosis*.
        """
        known = self._known_rows(pod, nodes)
        known.refresh(beside)
        is_known = known.outcomes[rows] != UNKNOWN
        self._count(rows[is_known], known, state)
        unknown = rows[~is_known]
        if len(unknown):
            of_rows = {i: beside.pods[row] for i, row in enumerate(unknown.tolist())}
            overlay = Overlay(self._profile, state.clone(), pod, nodes.take(unknown), of_rows)
            overlay.add_nominated_pods()
            known.learn(unknown, overlay.run_filters())
        outcomes = known.outcomes[rows]
        known.diagnose(rows, outcomes, diagnosis)
        rejected: Rows = rows[outcomes != PASSES]
        return rejected

    def _known_rows(self, pod: PodInfo, nodes: NodeTable) -> CachedRows:
        """Return what is known of rows beside nominated pods, which may be nothing."""
        sign_pod = self._profile.fit_follows_from(pod, nodes)
        if sign_pod is None:
            return CachedRows(nodes)
        return self._profile.known_beside.get(
            pod.template,
            depends_on=(sign_pod, pod.priority, nodes),
            build=lambda: CachedRows(nodes),
        )

    def _count(self, rows: Rows, known: CachedRows, state: CycleState) -> None:
        """Count each of *rows* as evaluated, up to the filter that rejects it."""
        left = len(rows)
        rejected: Counter[str] = Counter()
        for status, of_status in known.rejected(rows, known.outcomes[rows]):
            rejected[status.plugin] += len(of_status)
        for plugin in self._profile.filters:
            if plugin.NAME not in state.skip_filter:
                self._profile.evaluations["Filter"][plugin.NAME] += left
            left -= rejected[plugin.NAME]
            if not left:
                return

    def overlay(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: RowIndex) -> Overlay:
        """Return *rows* of *nodes* to ask about; *state*, that of the attempt, is left alone."""
        part, nominated = nodes.take(rows), self.nominated_to(pod, nodes)
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
        sign_pod = self._profile.fit_follows_from(pod, nodes)
        if sign_pod is None:
            return None
        return RowByRow((sign_pod, pod.priority), self._nominations.beside(pod, nodes))
