"""The last decisions, kept small enough to keep many."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Ints
from berth.scheduler.outcome import Failed, Outcome, Placed, Unschedulable
from berth.scheduler.preemption_record import PreemptionRecord, preemption_record
from berth.scheduler.profile.results import ScoreTable
from berth.scheduler.queue.failure_cache import CachedFailure
from berth.scheduler.result import Result

TOP_NODES = 5
"""How many of the best nodes a record names."""
_TAKEN: Final = np.iinfo(np.int64).min


class RankedNode(msgspec.Struct, frozen=True):
    """What the score plugins gave one node."""

    name: str
    total: int
    raw: dict[str, int]
    """By plugin, as it gave them."""
    weighted: dict[str, int]
    """By plugin, normalised and times its weight."""
    extenders: int = 0
    """What extenders added to the total."""


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, with names instead of table rows, so that it stays true when rows are reused."""

    pod: str
    uid: str
    profile: str
    attempt: int
    number: int
    """Counts the records of this process, from 1."""
    result: Result
    at: float
    """When it began, on the scheduler's monotonic clock, in seconds."""
    took: float
    """Seconds from begin to end of the attempt."""
    node: str = ""
    message: str = ""
    num_nodes: int
    num_feasible: int
    reasons: dict[str, int] = {}
    """Reason to the number of nodes it holds for."""
    plugins: tuple[str, ...] = ()
    """Who rejected the pod, by name."""
    nominated_node: str = ""
    """What the pod was nominated to by this attempt; empty: nothing."""
    equals: int = 0
    """How many other nodes had the same total as the chosen one."""
    weights: Mapping[str, int] = {}
    """By plugin, those that applied to scores."""
    top: list[RankedNode] = []
    """The best nodes, best first; the chosen one is the first of its equals."""
    gang: str = ""
    """The name of the gang that the pod was tried with; empty if alone."""
    answered_by: str = ""
    """The pod ``namespace/name`` whose attempt answered for this one, which had none."""
    preemption: PreemptionRecord | None = None
    """The victims that PostFilter chose, if it did."""


class _Kept(NamedTuple):
    """A record whose best nodes are put into words once somebody reads it."""

    record: DecisionRecord
    scores: ScoreTable | None = None
    """Of the best nodes and maybe some more; None: the record names none."""
    names: Sequence[str] = ()
    """Of the nodes of ``scores``."""

    def read(self) -> DecisionRecord:
        if self.scores is None:
            return self.record
        top = _ranked(self.scores, self.names, chosen=self.record.node)
        return structs.replace(self.record, top=top)


class Decisions:
    """A bounded ring of records, newest last."""

    def __init__(
        self, *, capacity: int, monotonic: Callable[[], float], ranks_nodes: bool = True
    ) -> None:
        """Unless it *ranks_nodes*, records do not name the best nodes."""
        self._ranks_nodes = ranks_nodes
        self._records: deque[_Kept] = deque(maxlen=capacity)
        self._monotonic = monotonic
        self._added = 0

    def add(self, outcome: Outcome, *, nodes: NodeTable, attempt: int, at: float) -> DecisionRecord:
        """Record an outcome that was just found on *nodes*.

        Returns the record, in which the best nodes are not named yet.
        """
        placed = outcome if isinstance(outcome, Placed) else outcome.refused
        node_name = outcome.node_name if isinstance(outcome, Placed) else ""
        scores, feasible_nodes = placed.scores if placed else None, outcome.found
        self._added += 1
        record = DecisionRecord(
            pod=outcome.pod.key,
            uid=outcome.pod.uid,
            profile=outcome.profile,
            attempt=attempt,
            number=self._added,
            result=_RESULTS[type(outcome)],
            at=at,
            took=self._monotonic() - at,
            node=node_name,
            num_nodes=feasible_nodes.diagnosis.num_all_nodes,
            num_feasible=feasible_nodes.num_feasible,
            equals=placed.equals if placed else 0,
            weights=scores.weights if scores else {},
            gang=outcome.gang,
        )
        if not isinstance(outcome, Placed):
            record = structs.replace(
                record,
                message=outcome.message,
                reasons=dict(feasible_nodes.diagnosis.reasons()),
                plugins=_rejectors(feasible_nodes.diagnosis),
                nominated_node=outcome.nomination.override or "",
                preemption=preemption_record(outcome),
            )
        if placed and scores and self._ranks_nodes:
            scores = _best_of(placed, scores, nodes.row_of.get(node_name, -1))
            self._records.append(_Kept(record, scores, [*nodes.names(scores.rows.tolist())]))
        else:
            self._records.append(_Kept(record))
        return record

    def add_cached_failure(
        self, pod: PodInfo, failure: CachedFailure, *, attempt: int, at: float
    ) -> DecisionRecord:
        """Record that *failure* stood for an attempt for *pod*."""
        self._added += 1
        record = DecisionRecord(
            pod=pod.key,
            uid=pod.uid,
            profile=pod.pod.spec.scheduler_name,
            attempt=attempt,
            number=self._added,
            result=Result.UNSCHEDULABLE,
            at=at,
            took=self._monotonic() - at,
            message=failure.message,
            num_nodes=failure.num_nodes,
            num_feasible=0,
            reasons=dict(failure.reasons),
            plugins=tuple(sorted(failure.rejectors)),
            answered_by=failure.pod,
        )
        self._records.append(_Kept(record))
        return record

    @property
    def made(self) -> int:
        """How many were ever made, also those that are no longer kept."""
        return self._added

    def last(self, count: int) -> list[DecisionRecord]:
        """Return the newest *count* records, oldest first, of those that are still kept."""
        newest = islice(reversed(self._records), count)
        return [kept.read() for kept in newest][::-1]

    def of(self, pod_key: str) -> list[DecisionRecord]:
        """Return the records of one pod that are still kept, oldest first."""
        return [kept.read() for kept in self._records if kept.record.pod == pod_key]

    def messages(self) -> dict[str, str]:
        """Return by UID the message of the newest record that is still kept of each pod."""
        return {kept.record.uid: kept.record.message for kept in self._records}

    def begun(self) -> dict[str, float]:
        """Return by UID when the newest attempt that chose a node for the pod began."""
        return {kept.record.uid: kept.record.at for kept in self._records if kept.record.node}

    def newest_first(self) -> Iterator[DecisionRecord]:
        """Yield the records that are kept now; each is put into words when its turn comes."""
        return (kept.read() for kept in reversed([*self._records]))

    def all(self) -> list[DecisionRecord]:
        """Return all records that are still kept, oldest first."""
        return [kept.read() for kept in self._records]


_RESULTS: Final = {
    Placed: Result.SCHEDULED,
    Unschedulable: Result.UNSCHEDULABLE,
    Failed: Result.ERROR,
}


def _rejectors(diagnosis: Diagnosis) -> tuple[str, ...]:
    return tuple(sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins))


def _best_of(placed: Placed, scores: ScoreTable, chosen: int) -> ScoreTable:
    """Return the best rows of *scores*, or all if they are some of the best already."""
    if placed.num_best is not None:
        return scores
    of_chosen = np.flatnonzero(scores.rows == chosen)
    return scores.take(best_places(scores.total, placed.best, of_chosen, at_most=len(scores.rows)))


def _ranked(scores: ScoreTable, names: Sequence[str], *, chosen: str) -> list[RankedNode]:
    """Return the best nodes, best first, the *chosen* one before its equals."""
    total = scores.total.tolist()
    places = sorted(range(len(names)), key=lambda place: (-total[place], names[place] != chosen))
    plugins = [plugin for plugin in scores.weights if plugin in scores.raw]
    raw, weighted = (
        _per_node(columns, plugins, len(names)) for columns in (scores.raw, scores.weighted)
    )
    extenders = [0] * len(names) if scores.extenders is None else scores.extenders.tolist()
    return [
        RankedNode(names[place], total[place], raw[place], weighted[place], extenders[place])
        for place in places[:TOP_NODES]
    ]


def best_places(
    total: Ints, equals: NDArray[np.intp], chosen: NDArray[np.intp], *, at_most: int
) -> NDArray[np.intp]:
    """Return where in *total* the best nodes are; the *chosen* one, if any, before its *equals*."""
    if len(equals) >= TOP_NODES:  # the common case, and the cheap one
        others = equals[:TOP_NODES]
        if len(chosen):
            others = others[others != chosen[0]]
        return np.concatenate([chosen, others])[:TOP_NODES]
    # Totals, doubled to make room for "and this one was chosen".
    rank = 2 * total
    rank[chosen] += 1
    best = np.empty(min(TOP_NODES, at_most), np.intp)
    for place in range(len(best)):  # a few passes cost less than sorting all
        best[place] = row = rank.argmax()
        rank[row] = _TAKEN
    return best


def _per_node(
    columns: Mapping[str, Ints], plugins: Sequence[str], size: int
) -> list[dict[str, int]]:
    """Return what *columns* say of each of so many rows, in the order of *plugins*."""
    if not plugins:
        return [{} for _ in range(size)]
    values = zip(*(columns[plugin].tolist() for plugin in plugins), strict=True)
    return [dict(zip(plugins, of_node, strict=True)) for of_node in values]
