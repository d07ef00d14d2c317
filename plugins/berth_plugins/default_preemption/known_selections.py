"""Whose eviction would let a pod in, kept from one preemptor of a template to the next.

Of a thousand replicas that preempt one after the other, each changes one or two nodes for the next.
Where filters go by each node alone, the victims on all other nodes stay the same.

Exact: what is known of a row is used only while nothing changes on it, while the same pods are
nominated to it, while what disruption budgets say of its pods stays, and while all else that the
answers of the filters follow from stays equal.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.framework.diagnosis import Diagnosis, PluginVerdict
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo, PodTemplate
from berth.framework.preemption.candidate import Candidates, Criterion
from berth.framework.preemption.disruption_budgets import BudgetKey, DisruptionBudgets
from berth.framework.status import Code, Status
from berth.framework.verdict import Ints, Mask, Rows, Verdict
from berth.objects.policy import PodDisruptionBudgetStatus

KEPT: Final = 8
"""Templates that are known at once; at 5,000 nodes with four pods each takes a megabyte."""
UNKNOWN, CANDIDATE, NO_VICTIMS, FAILED = -2, -1, 0, np.iinfo(np.int32).max
"""Outcomes of rows, beside the other indexes of statuses. What failed is tried again next time."""
NO_VICTIMS_FOUND: Final = Status.unresolvable("No preemption victims found for incoming pod")

Outcomes = NDArray[np.int32]


class Selected(NamedTuple):
    """What came of some nodes."""

    candidates: Candidates
    """In the order of the nodes."""
    statuses: Diagnosis
    """Why preemption does not help on the others, by position among the nodes."""
    charged: Mapping[int, Mapping[BudgetKey, int]]
    """By position, how many pods of a node were charged to which budgets."""


@dataclass(slots=True)
class _Charged:
    """A budget, and the rows where pods were charged to it."""

    status: PodDisruptionBudgetStatus
    rows: dict[int, int] = field(default_factory=dict)
    """How many pods on each."""


class KnownSelections:
    """What is known for preemptors of one template, on the rows of one table."""

    def __init__(self, nodes: NodeTable, budgets: DisruptionBudgets) -> None:
        self._nodes = nodes
        self._generation = nodes.last_generation
        self._budgets = budgets
        self._budgets_version = budgets.version
        self._charged: dict[BudgetKey, _Charged] = {}
        self._budgets_of: dict[int, Mapping[BudgetKey, int]] = {}
        self._beside: Ints = np.zeros(nodes.size, np.int64)
        self.outcomes: Outcomes = np.full(nodes.size, UNKNOWN, np.int32)
        """By row: UNKNOWN, CANDIDATE, FAILED, or the index of a status."""
        self.break_budgets: Mask = np.zeros(nodes.size, bool)
        """By row: it has victims that budgets would rather keep, if it is a candidate."""
        self._costs = np.zeros((len(Criterion), nodes.size))
        self._victims = np.empty(nodes.size, object)
        self._statuses = [NO_VICTIMS_FOUND]
        self._index_of = {NO_VICTIMS_FOUND: NO_VICTIMS}
        self._failed: dict[int, Status] = {}

    def catch_up(self, beside: Ints) -> None:
        """Forget the rows whose outcome may be another now.

        *beside* are the versions of the pods nominated to them.
        """
        rows = [*self._nodes.rows_changed_since(self._generation), *self._failed]
        self._generation = self._nodes.last_generation
        self._failed.clear()
        rows += np.flatnonzero(self._beside != beside).tolist()
        self._beside = beside.copy()
        if self._budgets_version != self._budgets.version:
            self._budgets_version = self._budgets.version
            rows += self._rows_of_changed_budgets()
        self.outcomes[rows], self.break_budgets[rows] = UNKNOWN, False

    def _rows_of_changed_budgets(self) -> Iterator[int]:
        """Yield the rows of whose pods a budget may say something else now.

        It says of how many pods the eviction breaks it: those after as many as it allows.
        """
        for key, charged in self._charged.items():
            old, new = charged.status, self._budgets.status(key)
            if new == old:
                continue
            charged.status = new
            enough = min(old.disruptions_allowed, new.disruptions_allowed)
            same_pods = old.disrupted_pods == new.disrupted_pods
            yield from (row for row, n in charged.rows.items() if n > enough or not same_pods)

    def learn(self, rows: Rows, selected: Selected) -> None:
        """Take in what came of *rows*."""
        candidates = selected.candidates
        for status, places in selected.statuses.rows_by_status():
            self._reject(rows[places], status)
        self.outcomes[candidates.rows] = CANDIDATE
        violations = candidates.costs_by(Criterion.PDB_VIOLATIONS)
        self.break_budgets[candidates.rows] = violations > 0
        self._costs[:, candidates.rows] = candidates.costs
        self._victims[candidates.rows] = candidates.victims
        if self._budgets_of or selected.charged:
            for place, row in enumerate(rows.tolist()):
                self._charge(row, selected.charged.get(place, {}))

    def _reject(self, rows: Rows, status: Status) -> None:
        if status.code is Code.ERROR:
            self.outcomes[rows] = FAILED
            self._failed |= dict.fromkeys(rows.tolist(), status)
            return
        index = self._index_of.get(status)
        if index is None:
            index = self._index_of[status] = len(self._statuses)
            self._statuses.append(status)
        self.outcomes[rows] = index

    def _charge(self, row: int, charged: Mapping[BudgetKey, int]) -> None:
        for key in self._budgets_of.pop(row, ()):
            del self._charged[key].rows[row]
        if charged:
            self._budgets_of[row] = charged
        for key, count in charged.items():
            known = self._charged.get(key)
            if known is None:
                known = self._charged[key] = _Charged(self._budgets.status(key))
            known.rows[row] = count

    # Answers. All of the rows must be known.

    def candidates(self, rows: Rows) -> Candidates:
        """Return *rows*, which are candidates."""
        names = [*self._nodes.names(rows.tolist())]
        return Candidates(rows, names, self._costs[:, rows], self._victims[rows])

    def rejected(self, rows: Rows, outcomes: Outcomes, *, absent: Status) -> Diagnosis:
        """Put into words which of *rows* are no candidates."""
        nodes = self._nodes
        diagnosis = Diagnosis(len(nodes), absent=absent)
        is_rejected = outcomes >= 0
        if not is_rejected.any():
            return diagnosis
        rows, outcomes = rows[is_rejected], outcomes[is_rejected]
        for index in np.unique(outcomes).tolist():
            of_index = rows[outcomes == index]
            if index == FAILED:
                diagnosis.statuses |= {row: self._failed[row] for row in of_index.tolist()}
                continue
            status, where = self._statuses[index], nodes.no_rows()
            where[of_index] = True
            diagnosis.verdicts.append(PluginVerdict(status.plugin, Verdict.reject(status, where)))
        return diagnosis


class KnownPreemptors:
    """What is known for the templates that have preempted last."""

    def __init__(self) -> None:
        self._known: dict[PodTemplate, tuple[Hashable, KnownSelections]] = {}

    def of(
        self, pod: PodInfo, nodes: NodeTable, budgets: DisruptionBudgets, follows_from: Hashable
    ) -> KnownSelections:
        """Return what is known for *pod*; nothing yet unless *follows_from* is what it was.

        It is what the answers follow from, beside the template of *pod* and each row.
        """
        value = (
            *(follows_from, budgets.selection_version),
            *(pod.priority, nodes, nodes.node_generation),
        )
        kept = self._known.pop(pod.template, None)
        if kept is not None and kept[0] == value:
            known = kept[1]
        else:
            known = KnownSelections(nodes, budgets)
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        self._known[pod.template] = (value, known)
        return known
