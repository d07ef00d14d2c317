"""What ``berth up`` shows while it runs: pods per state, pods per second, use per node."""

from collections import Counter
from dataclasses import dataclass, field

from app.cache.cache import Cache
from app.framework.node_table import CPU, MEMORY
from app.objects.pod import Pod
from app.printable import printable
from app.queue.scheduling_queue import SchedulingQueue
from app.tables import Content, Stack, Styled, Table

NODES_SHOWN = 24
REASON_LIMIT = 500
"""Characters of a reason that are shown: who makes a pod chooses how long names in it are."""
STATES = ("waiting", "gated", "unschedulable", "binding", "starting", "running", "stopping")


@dataclass(frozen=True, slots=True)
class NodeUse:
    """One node: how much of it is requested, in milli-CPU and bytes."""

    name: str
    pods: int
    cpu: int
    cpu_allocatable: int
    memory: int
    memory_allocatable: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a cluster stands at one moment."""

    states: dict[str, int]
    """Number of pods for each of :data:`STATES`."""
    scheduled: int
    per_second: float
    """Pods bound per second since the previous look."""
    nodes: list[NodeUse] = field(default_factory=list)
    waiting: list[tuple[str, str]] = field(default_factory=list)
    """Pods that fit nowhere, with the reason."""

    def line(self) -> str:
        """Return it as one line of text, for logs and pipes."""
        states = ", ".join(f"{n} {state}" for state, n in self.states.items() if n)
        return f"{states or 'no pods'}; {self.scheduled} bound, {self.per_second:.0f} pods/s"


class Observer:
    """Looks at a scheduler's state, again and again."""

    def __init__(self, *, cache: Cache, queue: SchedulingQueue) -> None:
        self._cache = cache
        self._queue = queue
        self._last: tuple[float, int] | None = None

    def look(
        self, pods: dict[str, Pod], *, scheduled: int, reasons: dict[str, str], now: float
    ) -> Progress:
        """Sum up the moment *now* (seconds, monotonic); *reasons* says why pods wait, by key."""
        rate = 0.0
        if self._last is not None and now > self._last[0]:
            rate = (scheduled - self._last[1]) / (now - self._last[0])
        self._last = (now, scheduled)
        counts = self._queue.pending_counts()
        states: Counter[str] = Counter(_state(pod) for pod in pods.values())
        states["waiting"] = counts["active"] + counts["backoff"]
        states["gated"] = counts["gated"]
        states["unschedulable"] = counts["unschedulable"]
        states["binding"] = self._cache.counts()["assumed_pods"]
        return Progress(
            states={state: states[state] for state in STATES},
            scheduled=scheduled,
            per_second=rate,
            nodes=self._nodes(),
            waiting=sorted(reasons.items()),
        )

    def _nodes(self) -> list[NodeUse]:
        table = self._cache.table
        return [
            NodeUse(
                name,
                int(table.pod_count[row]),
                int(table.requested[CPU, row]),
                int(table.allocatable[CPU, row]),
                int(table.requested[MEMORY, row]),
                int(table.allocatable[MEMORY, row]),
            )
            for name, row in sorted(table.row_of.items())[:NODES_SHOWN]
        ]


def _state(pod: Pod) -> str:
    if not pod.spec.node_name:
        return "unbound"
    if pod.metadata.deletion_timestamp:
        return "stopping"
    return "running" if pod.status.phase == "Running" else "starting"


def render(progress: Progress, *, title: str) -> Content:
    """Return it as tables for a terminal."""
    nodes = Table("node", "pods", "cpu", "memory")
    for node in progress.nodes:
        nodes.add_row(
            node.name,
            str(node.pods),
            _bar(node.cpu, node.cpu_allocatable),
            _bar(node.memory, node.memory_allocatable),
        )
    parts: list[Content] = [Styled((title, "bold")), progress.line(), nodes]
    if progress.waiting:
        waiting = Table("fits nowhere", "because")
        for key, why in progress.waiting[:5]:
            waiting.add_row(key, printable(why, limit=REASON_LIMIT))
        parts.append(waiting)
    return Stack(parts)


def _bar(used: int, of: int, *, width: int = 20) -> Styled:
    share = used / of if of else 0.0
    filled = min(round(share * width), width)
    style = "green" if share < 0.7 else "yellow" if share < 0.95 else "red"
    return Styled(("█" * filled, style), ("░" * (width - filled), "dim"), (f" {share:4.0%}", ""))
