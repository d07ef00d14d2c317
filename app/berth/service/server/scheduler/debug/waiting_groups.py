"""Pending pods by reason: found at most every second, in slices, and shared by all who ask."""

import asyncio
from bisect import insort
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final

from berth.insight.explain.workload import POD, Workload
from berth.runtime.clock import rfc3339
from berth.runtime.tasks import in_turns
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.words import counted, listed
from berth.service.server.scheduler.debug.models import (
    Cause,
    FirstPod,
    PodsOfWorkload,
    QueueName,
    WaitingGroup,
    WaitingGroups,
)
from berth.service.server.scheduler.debug.queue import of_queue
from berth.service.server.scheduler.debug.reasons import REASONS_PER_TURN, Reason, Reasons

MOST_GROUPS: Final = 200
"""More than people look at; beyond them only causes and plugins are told apart."""
MOST_WORKLOADS: Final = 1_000
"""So many of a group are told apart."""
GROUPS_PER_TURN: Final = 16
WORKLOADS_TOLD: Final = 5
PODS_TOLD: Final = 5
LEAST_SECONDS: Final = 1.0
"""An answer is given again for so long."""
SECONDS_PER_POD: Final = 0.0004
"""And for so long for each pod. Looking at one takes 6 µs, a sixtieth of that."""

_Workload = tuple[str, str]
"""Namespace, and kind and name."""

_ORDER: Final = {cause: number for number, cause in enumerate(Cause)}


@dataclass(slots=True)
class _Group:
    reason: Reason
    num_pods: int = 0
    counts: Counter[QueueName] = field(default_factory=Counter)
    highest_priority: int = 0
    first: list[tuple[float, str, QueuedPodInfo]] = field(default_factory=list)
    """Since when they wait, by that, and their names; :data:`PODS_TOLD` of them."""
    workloads: Counter[_Workload] = field(default_factory=Counter)

    def add(self, queued: QueuedPodInfo, name: QueueName, workload: _Workload) -> None:
        pod = queued.pod_info
        priority = pod.priority
        self.highest_priority = max(self.highest_priority, priority) if self.num_pods else priority
        self.num_pods += 1
        self.counts[name] += 1
        since = queued.pending_since
        if len(self.first) < PODS_TOLD or since < self.first[-1][0]:
            insort(self.first, (since, queued.key, queued), key=lambda entry: entry[:2])
            del self.first[PODS_TOLD:]
        if workload in self.workloads or len(self.workloads) < MOST_WORKLOADS:
            self.workloads[workload] += 1

    def importance(self) -> tuple[int, int, int, float]:
        """Return a key that sorts what should be looked at first to the front."""
        cause = _ORDER[self.reason.cause]
        return cause, -self.highest_priority, -self.num_pods, self.first[0][0]


class SharedGroups:
    """The groups as they were found last; :meth:`get` looks again when that is too long ago.

    With *by_workload* only pods of the same workload are in one group.
    """

    def __init__(self, view: SchedulerView, *, by_workload: bool = False) -> None:
        self._view = view
        self._by_workload = by_workload
        self._found: WaitingGroups | None = None
        self._good_until = 0.0
        self._looking = asyncio.Lock()

    async def get(self) -> WaitingGroups:
        """Return all groups. Costs nothing most of the time, however many ask."""
        async with self._looking:
            if self._found is None or self._view.clock.monotonic() >= self._good_until:
                self._found = await self._look()
                seconds = max(LEAST_SECONDS, self._found.num_pods * SECONDS_PER_POD)
                self._good_until = self._view.clock.monotonic() + seconds
            return self._found

    async def _look(self) -> WaitingGroups:
        reasons, groups = Reasons(self._view), dict[tuple[Reason, _Workload | None], _Group]()
        async for name, some in self._waiting():
            for queued in some:
                reason, workload = reasons.of(queued), _workload(queued)
                key = (reason, workload if self._by_workload else None)
                if key not in groups and len(groups) >= MOST_GROUPS:
                    key = (Reason(reason.cause, reason.plugins), None)
                group = groups.get(key)
                if group is None:
                    group = groups[key] = _Group(key[0])
                group.add(queued, name, workload)
        ordered = sorted(groups.values(), key=_Group.importance)
        is_full, told, now = (
            len(groups) >= MOST_GROUPS,
            list[WaitingGroup](),
            self._view.clock.now(),
        )
        async for some_groups in in_turns(ordered, piece=GROUPS_PER_TURN):
            told += (_told(some_group, reasons, now, is_full=is_full) for some_group in some_groups)
        return WaitingGroups(
            at=rfc3339(now),
            num_pods=sum(group.num_pods for group in ordered),
            num_groups=len(ordered),
            items=tuple(told),
        )

    async def _waiting(self) -> AsyncIterator[tuple[QueueName, Sequence[QueuedPodInfo]]]:
        """Yield the pods of each part of the queue, some in each turn of the event loop.

        What moves from one part to another meanwhile may come twice or not at all.
        """
        for name in QueueName:
            async for some in in_turns(list(of_queue(self._view, name)), piece=REASONS_PER_TURN):
                yield name, some
            await asyncio.sleep(0)


def _workload(queued: QueuedPodInfo) -> _Workload:
    pod = queued.pod_info
    return pod.namespace, str(Workload.of(queued.pod) or Workload(POD, pod.name))


def _told(group: _Group, reasons: Reasons, now: float, *, is_full: bool) -> WaitingGroup:
    reason, (since, key, oldest) = group.reason, group.first[0]
    # Without reasons it may stand for those that were too many.
    is_mixed = (
        is_full and not reason.reasons and bool(reason.plugins or reason.cause is Cause.ERROR)
    )
    subject = key if group.num_pods == 1 else counted(group.num_pods, "pod")
    return WaitingGroup(
        id="" if is_mixed else reason.id,
        cause=reason.cause,
        plugins=reason.plugins,
        reasons=reason.reasons,
        words=f"{subject} {_words(reason, is_one=group.num_pods == 1)}",
        message=reasons.message_of(oldest),
        num_pods=group.num_pods,
        counts=dict(group.counts),
        highest_priority=group.highest_priority,
        oldest_age_seconds=now - since,
        workloads=tuple(
            PodsOfWorkload(namespace=namespace, workload=workload, num_pods=num_pods)
            for (namespace, workload), num_pods in nsmallest(
                WORKLOADS_TOLD, group.workloads.items(), key=lambda item: (-item[1], item[0])
            )
        ),
        num_workloads=len(group.workloads),
        pods=tuple(FirstPod(pod=pod, age_seconds=now - at) for at, pod, _ in group.first),
    )


def _words(reason: Reason, *, is_one: bool) -> str:
    plugins, reasons = listed(reason.plugins), ", ".join(reason.reasons)
    be, fit, wait = ("is", "fits", "waits") if is_one else ("are", "fit", "wait")
    have = "has" if is_one else "have"
    match reason.cause:
        case Cause.ERROR:
            return f"could not be tried to the end: {reasons}" if reasons else "met an error"
        case Cause.REJECTED:
            return f"{fit} on no node: {reasons or plugins}"
        case Cause.PREEMPTING:
            return f"{wait} until the pods that preemption evicts have left"
        case Cause.PERMIT:
            whom = f"{wait} for Permit of {plugins}" if plugins else f"{be} about to be bound"
            return f"{have} room on a node, and {whom}"
        case Cause.GATED:
            return f"{be} gated by {plugins}" + (f": {reasons}" if reasons else "")
        case Cause.NOT_TRIED:
            return f"{have} not been tried yet"
