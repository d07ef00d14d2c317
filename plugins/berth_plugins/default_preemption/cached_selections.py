"""Victims that would let a pod in, kept from one preemptor of a template to the next.

Exact as :class:`~berth.scheduler.framework.cached_rows.CachedRows` is, and while what disruption
budgets say of the pods of a row stays.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from berth.kube.objects.policy import PodDisruptionBudgetStatus
from berth.scheduler.framework.cached_rows import CachedRows, Outcomes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import RowByRow
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.nominations import Beside
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidates
from berth.scheduler.framework.preemption.criterion import Criterion
from berth.scheduler.framework.preemption.disruption_budgets import BudgetKey, DisruptionBudgets
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.template_cache import TemplateCache
from berth.scheduler.framework.verdict import Mask, Rows

NO_VICTIMS: Final = 1
"""The index of the status of rows without pods of lower priority."""
NO_VICTIMS_FOUND: Final = Status.unresolvable("No preemption victims found for incoming pod")


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


class CachedSelections:
    """What is known for preemptors of one template, on the rows of one table."""

    def __init__(self, nodes: NodeTable, budgets: DisruptionBudgets) -> None:
        self._nodes = nodes
        self._budgets = budgets
        self._budgets_version = budgets.version
        self._charged: dict[BudgetKey, _Charged] = {}
        self._budgets_of: dict[int, Mapping[BudgetKey, int]] = {}
        self._rows = CachedRows(nodes)
        assert self._rows.index_of(NO_VICTIMS_FOUND) == NO_VICTIMS
        self.break_budgets: Mask = np.empty(0, bool)
        """By row: it has victims that budgets would rather keep, if it is a candidate."""
        self._costs = np.empty((len(Criterion), 0))
        self._victims, self._names = np.empty(0, object), np.empty(0, object)
        self._cover_all_rows()

    def _cover_all_rows(self) -> None:
        new = self._nodes.size - len(self._victims)
        if new:
            self.break_budgets = np.concatenate([self.break_budgets, np.zeros(new, bool)])
            self._costs = np.concatenate([self._costs, np.zeros((len(self._costs), new))], axis=1)
            self._victims = np.concatenate([self._victims, np.empty(new, object)])
            self._names = np.concatenate([self._names, np.empty(new, object)])

    @property
    def outcomes(self) -> Outcomes:
        """By row: as :attr:`CachedRows.outcomes`; those that pass are candidates."""
        return self._rows.outcomes

    def refresh(self, beside: Beside) -> None:
        """Forget the rows whose outcome may be another now.

        *beside* are the pods nominated to them.
        """
        self._cover_all_rows()
        rows = self._rows.refresh(beside)
        if self._budgets_version != self._budgets.version:
            self._budgets_version = self._budgets.version
            of_budgets = [*self._rows_of_changed_budgets()]
            self._rows.forget(of_budgets)
            rows += of_budgets
        self.break_budgets[rows] = False

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
        self._rows.learn(rows, selected.statuses)
        candidates = selected.candidates
        violations = candidates.costs_by(Criterion.PDB_VIOLATIONS)
        self.break_budgets[candidates.rows] = violations > 0
        self._costs[:, candidates.rows] = candidates.costs
        self._victims[candidates.rows] = candidates.victims
        self._names[candidates.rows] = candidates.nodes
        if self._budgets_of or selected.charged:
            for place, row in enumerate(rows.tolist()):
                self._charge(row, selected.charged.get(place, {}))

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
        return Candidates(
            rows, self._names[rows].tolist(), self._costs[:, rows], self._victims[rows]
        )

    def rejected(self, rows: Rows, outcomes: Outcomes, *, absent: Status) -> Diagnosis:
        """Put into words which of *rows* are no candidates, by their *outcomes*."""
        diagnosis = Diagnosis(len(self._nodes), absent=absent)
        self._rows.diagnose(rows, outcomes, diagnosis)
        return diagnosis


class KnownPreemptors:
    """What is known for the templates that have preempted last."""

    def __init__(self) -> None:
        self._known: TemplateCache[CachedSelections] = TemplateCache()

    def of(
        self, pod: PodInfo, nodes: NodeTable, budgets: DisruptionBudgets, row_by_row: RowByRow
    ) -> CachedSelections:
        """Return what is known for *pod*, whose answers follow from rows as told, and budgets."""
        known = self._known.get(
            pod.template,
            depends_on=(row_by_row.sign_pod, budgets.selection_version, nodes),
            build=lambda: CachedSelections(nodes, budgets),
        )
        known.refresh(row_by_row.beside)
        return known
