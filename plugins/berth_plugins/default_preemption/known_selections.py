"""Whose eviction would let a pod in, kept from one preemptor of a template to the next.

Of a thousand replicas that preempt one after the other, each changes one or two nodes for the next.
Where filters go by each node alone, the victims on all other nodes stay the same.

Exact: what is known of a row is used only while its generation stays, and while what the answers of
all filters and of the disruption budgets follow from stays equal.
"""

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Final, NamedTuple

import numpy as np

from berth.framework.diagnosis import Diagnosis, PluginVerdict
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo, PodTemplate
from berth.framework.preemption.candidate import Candidates, ranges
from berth.framework.status import Code, Status
from berth.framework.verdict import Mask, Rejection, Rows, Verdict

KEPT: Final = 8
"""Templates that are known at once; at 5,000 nodes with four pods each takes a megabyte."""
MOST_GARBAGE: Final = 4_096
CANDIDATE: Final = -1


class Selected(NamedTuple):
    """What came of some nodes."""

    candidates: Candidates
    """In the order of the nodes."""
    statuses: Diagnosis
    """Why preemption does not help on the others, by position among the nodes."""


class SelectionsOfAll(NamedTuple):
    """The same, of which some was known before."""

    candidates: Candidates
    """In the order of the nodes."""
    asked: Rows
    """The nodes that had to be asked about, in their order."""
    statuses: Diagnosis
    """Why preemption does not help, by position among those."""
    known: "KnownSelections | None"
    """Has that of the others."""

    def add_statuses(self, to: Diagnosis, nodes: NodeTable, rows: Rows) -> None:
        """Add to *to* why preemption does not help on *rows*, the first of those asked for."""
        if self.known is None:
            to.add_part(self.statuses, nodes, rows)
            return
        is_there = nodes.no_rows()
        is_there[rows] = True
        to.add_part(self.statuses, nodes, self.asked[is_there[self.asked]])
        is_there[self.asked] = False
        to.verdicts += self.known.verdicts(is_there)


class KnownSelections:
    """What is known for preemptors of one template, on the rows of one table."""

    def __init__(self, nodes: NodeTable, *, most_garbage: int) -> None:
        """So many victims, or as many as are of use, may be kept for nothing."""
        size = nodes.size
        self._nodes = nodes
        self._most_garbage = most_garbage
        self._generation = np.full(size, -1, np.int64)
        """By row, when what is known was found out."""
        self._outcome = np.full(size, CANDIDATE, np.int32)
        """By row, an index in ``_statuses``, or CANDIDATE."""
        self._statuses: list[Status] = []
        self._index_of: dict[Status, int] = {}
        self._pdb_violations = np.zeros(size, np.int64)
        self._num_victims = np.zeros(size, np.intp)
        self._first = np.zeros(size, np.intp)
        self._forget_victims()

    def _forget_victims(self) -> None:
        self._generation[self._outcome == CANDIDATE] = -1
        self._num_victims[:] = 0
        self._victims: list[PodInfo] = []
        self._priorities = np.empty(0, np.int64)
        self._starts = np.empty(0, np.float64)

    def select(
        self, rows: Rows, ask: Callable[[Rows], Selected], *, but_not: Collection[int]
    ) -> SelectionsOfAll:
        """Return what comes of *rows*; *ask* is asked about those of which it is not known.

        What is said of the rows *but_not* is not kept.
        """
        is_known = self._generation[rows] == self._nodes.generation[rows]
        excluded = np.fromiter(but_not, np.intp, len(but_not))
        if len(excluded):
            is_known &= ~np.isin(rows, excluded)
        known, asked = rows[is_known], rows[~is_known]
        found = self._candidates(known[self._outcome[known] == CANDIDATE])
        if not len(asked):
            return SelectionsOfAll(found, asked, Diagnosis(0), self)
        selected = ask(asked)
        if len(found):
            place = np.empty(self._nodes.size, np.intp)
            place[rows] = np.arange(len(rows))
            both = found + selected.candidates
            found = both.take(np.argsort(place[both.rows]))
        else:
            found = selected.candidates
        self._learn(asked, selected, but_not=excluded)
        return SelectionsOfAll(found, asked, selected.statuses, self)

    def verdicts(self, rows: Mask) -> Iterator[PluginVerdict]:
        """Yield why preemption does not help on *rows*, as far as that is known."""
        outcome = np.where(rows, self._outcome, CANDIDATE)
        for index in np.unique(outcome[outcome != CANDIDATE]).tolist():
            status, where = self._statuses[index], outcome == index
            rejections = (Rejection(reason, status.code, where) for reason in status.reasons)
            yield PluginVerdict(status.plugin, Verdict(tuple(rejections)))

    def _candidates(self, rows: Rows) -> Candidates:
        counts = self._num_victims[rows]
        at = ranges(self._first[rows], counts)
        victims = self._victims
        return Candidates(
            rows,
            [*self._nodes.names(rows.tolist())],
            self._pdb_violations[rows],
            counts,
            [victims[i] for i in at.tolist()],
            self._priorities[at],
            self._starts[at],
        )

    def _learn(self, rows: Rows, selected: Selected, *, but_not: Rows) -> None:
        in_use = int(self._num_victims.sum())
        if len(self._victims) - in_use > max(self._most_garbage, in_use):
            self._forget_victims()
        self._generation[rows] = self._nodes.generation[rows]
        self._num_victims[rows] = 0
        self._learn_candidates(selected.candidates)
        is_rejected = np.ones(len(rows), bool)
        is_rejected[np.isin(rows, selected.candidates.rows)] = False
        for place in np.flatnonzero(is_rejected).tolist():
            row, status = int(rows[place]), selected.statuses.status_of(place)
            assert status is not None, "a node is a candidate or rejected"
            if status.code is Code.ERROR:
                self._generation[row] = -1  # the next may fare better
                continue
            index = self._index_of.get(status)
            if index is None:
                index = self._index_of[status] = len(self._statuses)
                self._statuses.append(status)
            self._outcome[row] = index
        self._generation[but_not] = -1

    def _learn_candidates(self, candidates: Candidates) -> None:
        rows = candidates.rows
        self._outcome[rows] = CANDIDATE
        self._pdb_violations[rows] = candidates.pdb_violations
        self._num_victims[rows] = candidates.num_victims
        self._first[rows] = candidates.first_victims + len(self._victims)
        self._victims.extend(candidates.victims)
        self._priorities = np.concatenate([self._priorities, candidates.priorities])
        self._starts = np.concatenate([self._starts, candidates.starts])


class KnownPreemptors:
    """What is known for the templates that have preempted last."""

    def __init__(self, *, most_garbage: int = MOST_GARBAGE) -> None:
        """So many victims of each, or as many as are of use, may be kept for nothing."""
        self._most_garbage = most_garbage
        self._known: dict[PodTemplate, tuple[Hashable, KnownSelections]] = {}

    def of(self, pod: PodInfo, nodes: NodeTable, follows_from: Hashable) -> KnownSelections:
        """Return what is known for *pod*; nothing yet unless *follows_from* is what it was.

        It is what the answers follow from, beside the template of *pod* and each row.
        """
        value = (follows_from, pod.priority, id(nodes), nodes.node_generation)
        kept = self._known.pop(pod.template, None)
        if kept is not None and kept[0] == value:
            known = kept[1]
        else:
            known = KnownSelections(nodes, most_garbage=self._most_garbage)
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        self._known[pod.template] = (value, known)
        return known
