"""The progress that ``berth up`` shows: pods that fit nowhere, how full the nodes are."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from berth.kube.objects.pod import Pod
from berth.runtime.printable import printable
from berth.scheduler.cache.node_tree import region_and_zone
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.node_table import CPU, EPHEMERAL_STORAGE, MEMORY, NodeTable

STATES: Final = (
    "waiting", "gated", "unschedulable", "binding", "starting", "running", "stopping",
)  # fmt: skip
NATIVE: Final = EPHEMERAL_STORAGE + 1
"""Resources that every node has; those after are extended ones."""
REASON_LIMIT: Final = 500
"""Characters of a reason that are shown: who makes a pod chooses how long names in it are."""
REASONS_TOLD: Final = 5
"""In one go, where there is no terminal."""
COUNTED_AT_ONCE: Final = 2_000
"""Pods that are counted in a millisecond."""


@dataclass(frozen=True, slots=True)
class NodeUse:
    """One node: how much of it is requested, in milli-CPU and bytes."""

    name: str
    pods: int
    cpu: int
    cpu_allocatable: int
    memory: int
    memory_allocatable: int
    zone: str = ""
    devices: tuple[tuple[str, int, int], ...] = ()
    """Extended resources that it has: name, requested, allocatable."""
    taints: tuple[str, ...] = ()
    """As ``kubectl taint`` takes them; a cordoned node has ``SchedulingDisabled`` too."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Pods that fit nowhere for one reason."""

    first: str
    others: int
    why: str

    @property
    def who(self) -> str:
        return self.first if not self.others else f"{self.first} and {self.others} more"

    @property
    def words(self) -> str:
        """The reason, for people."""
        return printable(self.why, limit=REASON_LIMIT)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a cluster stands at one moment."""

    states: dict[str, int]
    """Number of pods for each of :data:`STATES`."""
    scheduled: int
    per_second: float
    """Pods bound per second since the previous look."""
    nodes: Sequence[NodeUse] = ()
    """The fullest ones."""
    node_count: int = 0
    pending: Sequence[Pending] = ()
    node_groups: Sequence[object] = ()
    """How large those are that are scaled; each tells it as ``str``."""

    @property
    def groups_line(self) -> str:
        """The sizes of node groups, empty without any."""
        told = ", ".join(map(str, self.node_groups))
        return f"node groups: {told}" if told else ""

    def line(self) -> str:
        """Return it as one line of text, for logs and pipes."""
        states = ", ".join(f"{n} {state}" for state, n in self.states.items() if n)
        return f"{states or 'no pods'}; {self.scheduled} bound, {self.per_second:.0f} pods/s"


class Observer:
    """Looks at a scheduler's state, again and again."""

    def __init__(self, view: SchedulerView) -> None:
        self._view = view
        self._last: tuple[float, int] | None = None

    def look(
        self,
        states: Counter[str],
        *,
        scheduled: int,
        reasons: Mapping[str, str],
        most_nodes: int,
        now: float,
    ) -> Progress:
        """Sum up the moment *now* (seconds, monotonic); *reasons* says why pods wait, by key.

        *states* is what :func:`count_states` returned. Of nodes the *most_nodes* fullest are looked
        at.
        """
        rate = 0.0
        if self._last is not None and now > self._last[0]:
            rate = (scheduled - self._last[1]) / (now - self._last[0])
        self._last = (now, scheduled)
        counts = self._view.queue.sub_queues.pending_counts()
        states["waiting"] = counts["active"] + counts["backoff"]
        states["gated"] = counts["gated"]
        states["unschedulable"] = counts["unschedulable"]
        states["binding"] = self._view.cache.counts()["assumed_pods"]
        table = self._view.cache.table
        return Progress(
            states={state: states[state] for state in STATES},
            scheduled=scheduled,
            per_second=rate,
            nodes=[_use(table, row) for row in _fullest(table, most_nodes)] if most_nodes else [],
            node_count=len(table),
            pending=by_reason(reasons),
        )


class ProgressNews:
    """The lines for a pipe or a file: what is new since the last ones."""

    def __init__(self) -> None:
        self._line = self._groups_line = ""
        self._reasons: dict[str, str] = {}

    def lines(self, progress: Progress) -> list[str]:
        """Return a line about *progress* and one for each reason that is new; none if none is."""
        lines = [progress.line()] if progress.line() != self._line else []
        if progress.groups_line != self._groups_line:
            lines.append(progress.groups_line)
        self._line, self._groups_line = progress.line(), progress.groups_line
        new = [
            pending
            for pending in progress.pending
            if self._reasons.get(pending.first) != pending.why
        ]
        self._reasons = {pending.first: pending.why for pending in progress.pending}
        lines += [f"fits nowhere: {pending.who}: {pending.words}" for pending in new[:REASONS_TOLD]]
        if len(new) > REASONS_TOLD:
            lines.append(f"fits nowhere: {len(new) - REASONS_TOLD} more, for other reasons")
        return lines


async def count_states(pods: Iterable[Pod]) -> Counter[str]:
    """Count pods by what the scheduler's store says of them, in turns with everybody else."""
    states: Counter[str] = Counter()
    counted = list(pods)
    for start in range(0, len(counted), COUNTED_AT_ONCE):
        states.update(map(_state, counted[start : start + COUNTED_AT_ONCE]))
        await asyncio.sleep(0)
    return states


def by_reason(reasons: Mapping[str, str]) -> list[Pending]:
    """Put pods (by key, with the reason) that wait for the same reason together, most pods first.

    Linear in the number of pods: there may be ten thousand replicas that fit nowhere.
    """
    first: dict[str, str] = {}
    for key, why in reasons.items():
        first[why] = min(key, first.get(why, key))
    counts = Counter(reasons.values())
    pods = [Pending(key, counts[why] - 1, why) for why, key in first.items()]
    return sorted(pods, key=lambda pending: (-pending.others, pending.first))


def _fullest(table: NodeTable, most: int) -> list[int]:
    """Return the rows of the nodes of which most is requested, by the scarcest resource of each."""
    rows = np.array([row for _, row in sorted(table.row_of.items())], np.intp)
    requested = np.vstack((table.requested, table.pod_count))[:, rows]
    allocatable = np.vstack((table.allocatable, table.allowed_pods))[:, rows]
    load = (requested / np.maximum(allocatable, 1)).max(axis=0)
    ordered: list[int] = rows[np.argsort(-load, kind="stable")[:most]].tolist()
    return ordered


def _use(table: NodeTable, row: int) -> NodeUse:
    node = table.nodes[row]
    assert node is not None, f"row {row} is empty"
    requested, allocatable = table.requested[:, row], table.allocatable[:, row]
    taints = [
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
        for taint in node.spec.taints
    ]
    return NodeUse(
        node.name,
        int(table.pod_count[row]),
        int(requested[CPU]),
        int(allocatable[CPU]),
        int(requested[MEMORY]),
        int(allocatable[MEMORY]),
        zone=region_and_zone(node)[1],
        devices=tuple(
            (name, int(requested[index]), int(allocatable[index]))
            for name, index in table.resources.items()
            if index >= NATIVE and allocatable[index]
        ),
        taints=(*taints, *(["SchedulingDisabled"] if node.spec.unschedulable else [])),
    )


def _state(pod: Pod) -> str:
    if not pod.spec.node_name:
        return "unbound"
    if pod.metadata.deletion_timestamp:
        return "stopping"
    return "running" if pod.status.phase == "Running" else "starting"
