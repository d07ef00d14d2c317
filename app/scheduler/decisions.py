"""The last decisions, kept small enough to keep many."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.framework.node_table import NodeTable
from app.scheduler.decision import Decision

TOP_NODES = 5
"""How many of the best nodes a record names."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One attempt, with names instead of table rows, so that it stays true when rows are reused."""

    pod: str
    uid: str
    profile: str
    attempt: int
    at: float
    """When it began, on the scheduler's monotonic clock, in seconds."""
    took: float
    """Seconds from begin to end of the attempt."""
    node: str
    message: str
    num_nodes: int
    num_feasible: int
    reasons: dict[str, int]
    """Reason to the number of nodes it holds for."""
    top: list[tuple[str, int, dict[str, int]]]
    """The best nodes: name, total, weighted score per plugin; best first."""


class Decisions:
    """A bounded ring of records, newest last."""

    def __init__(self, *, capacity: int, monotonic: Callable[[], float]) -> None:
        self._records: deque[DecisionRecord] = deque(maxlen=capacity)
        self._monotonic = monotonic

    def add(self, decision: Decision, *, nodes: NodeTable, attempt: int, at: float) -> None:
        """Record a decision that was just made on *nodes*."""
        scores = decision.scores
        top: list[tuple[str, int, dict[str, int]]] = []
        if scores is not None:
            best = np.argsort(-scores.total, kind="stable")[:TOP_NODES]
            top = [
                (
                    nodes.name(int(scores.rows[i])),
                    int(scores.total[i]),
                    {plugin: int(column[i]) for plugin, column in scores.weighted.items()},
                )
                for i in best.tolist()
            ]
        self._records.append(
            DecisionRecord(
                pod=decision.pod.key,
                uid=decision.pod.uid,
                profile=decision.profile,
                attempt=attempt,
                at=at,
                took=self._monotonic() - at,
                node=decision.node_name,
                message=decision.message,
                num_nodes=decision.diagnosis.num_all_nodes,
                num_feasible=int(decision.feasible.sum()),
                reasons=dict(decision.diagnosis.reasons()) if decision.status else {},
                top=top,
            )
        )

    def of(self, pod_key: str) -> list[DecisionRecord]:
        """Return the records of one pod that are still kept, oldest first."""
        return [record for record in self._records if record.pod == pod_key]

    def latest(self, count: int) -> list[DecisionRecord]:
        return list(self._records)[-count:]
