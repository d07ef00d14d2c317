"""The dump of cache and queue in log lines (spec §4.7): the answer to SIGUSR2."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.tasks import Turn
from berth.scheduler.cache.comparer import Comparison, Counted, compare, placed
from berth.scheduler.core.view import GroupsView, QueueView, SchedulerView
from berth.scheduler.framework.pod_info import QueuedPodInfo, copied
from berth.scheduler.queue.sub_queues import SubQueue

log = logging.getLogger(__name__)

LINES: Final = 500
"""Logged before others on the event loop get a turn, if they do not take long."""

Fields = Mapping[str, Any]


class Dumps:
    """Dumps when it is asked to, while :meth:`run` runs."""

    def __init__(self, view: SchedulerView, *, nodes: Mapping[str, Node]) -> None:
        """*nodes* are those that are watched."""
        self._view = view
        self._nodes = nodes
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Have the state of the next moment dumped; also after a dump that is under way."""
        self._asked.set()

    async def run(self) -> None:
        """Dump for ever."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            await dump(self._view, nodes=self._nodes.values())


async def dump(view: SchedulerView, *, nodes: Iterable[Node]) -> None:
    """Log every node with its pods, every waiting pod, and where the cache is not as watched.

    And every pod group of which a pod waits, where groups are scheduled together. *nodes* are those
    that are watched. All is of the moment of the call; others have turns between the lines.
    """
    state = _State.of(view, nodes)
    turn = Turn(view.clock, items=LINES)
    await turn.next()
    for message, fields in state.lines():
        log.info(message, extra=fields)
        if turn.is_over():
            await turn.next()
    differences = (await asyncio.to_thread(state.compared)).lines()
    for line in differences:
        log.warning("cache mismatch", extra={"difference": line})
    log.info("cache compared", extra={"differences": len(differences)})


class _State(msgspec.Struct, frozen=True):
    """What is dumped: of one moment, and copied no further than what changes."""

    counts: Fields
    counted: Counted
    pending: Fields
    waiting: Sequence[tuple[SubQueue, Sequence[QueuedPodInfo]]]
    """Copies, each sub-queue in its order."""
    groups: Sequence[Fields]
    nodes: Sequence[str]
    """The names of those that are watched."""
    pods: Sequence[Pod]
    """Those that are watched."""

    @classmethod
    def of(cls, view: SchedulerView, nodes: Iterable[Node]) -> "_State":
        cache, sub_queues = view.cache, view.queue.sub_queues
        return cls(
            counts=cache.counts(),
            counted=Counted.by(cache),
            pending=sub_queues.pending_counts(),
            waiting=[(part, [*map(copied, sub_queues.pods(part))]) for part in SubQueue],
            groups=[] if view.groups is None else [*_groups(view.groups, view.queue)],
            nodes=[node.metadata.name for node in nodes],
            pods=[*view.pods.values()],
        )

    def lines(self) -> Iterator[tuple[str, Fields]]:
        counted = self.counted
        yield "dump of the cache", self.counts
        on_node: dict[str, list[str]] = {name: [] for name in sorted(counted.nodes)}
        for uid, pod in counted.pods.items():
            assumed = " (assumed)" if uid in counted.assumed else ""
            on_node.setdefault(pod.node_name, []).append(pod.key + assumed)
        for name, held in on_node.items():
            known = name in counted.nodes
            yield "cached node", {"node": name, "known": known, "pods": sorted(held)}
        yield "dump of the queue", self.pending
        for part, waiting in self.waiting:
            for queued in waiting:
                rejectors = queued.unschedulable_plugins | queued.pending_plugins
                yield (
                    "waiting pod",
                    {
                        "queue": part.value,
                        "pod": queued.key,
                        "attempts": queued.attempts,
                        "rejected_by": sorted(rejectors),
                    },
                )
        for group in self.groups:
            yield "waiting pod group", group

    def compared(self) -> Comparison:
        return compare(self.counted, nodes=self.nodes, pods=placed(self.pods))


def _groups(groups: GroupsView, queue: QueueView) -> Iterator[Fields]:
    """Yield the groups of which a pod waits."""
    for key, state in groups.pod_groups:
        waiting = list(state.unscheduled())
        if not waiting:
            continue
        queues = Counter(queue.sub_queues.place_of(pod.key) for pod in waiting)
        group = groups.groups.get(key.namespace, key.name)
        root = groups.pod_groups.hierarchy.root_key(key)
        yield {
            "pod_group": str(key),
            **({} if root == key else {"composite_pod_group": str(root)}),
            "exists": group is not None,
            "min_count": None if group is None else group.min_count,
            "pods": state.all_pods_count,
            "scheduled": state.scheduled_pods_count,
            **{sub_queue.value: queues[sub_queue] for sub_queue in SubQueue},
        }
