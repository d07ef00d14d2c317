"""Pending pods."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from berth.runtime.clock import rfc3339
from berth.runtime.tasks import PIECE
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.queue.sub_queues import SubQueue
from berth.service.server.scheduler.debug.models import QueueName, WaitingPod, WaitingPods
from berth.service.server.scheduler.debug.pagination import many_unordered
from berth.service.server.scheduler.debug.reasons import (
    REASONS_PER_TURN,
    Reasons,
    in_flight,
    message_of,
)
from berth.service.server.scheduler.debug.responses import told_in_turns

_SUB_QUEUES = {
    QueueName.ACTIVE: SubQueue.ACTIVE,
    QueueName.BACKOFF: SubQueue.BACKOFF,
    QueueName.ERROR_BACKOFF: SubQueue.BACKOFF,
    QueueName.UNSCHEDULABLE: SubQueue.UNSCHEDULABLE,
    QueueName.GATED: SubQueue.GATED,
}


class QueueSort(StrEnum):
    """By what waiting pods can be sorted: none of it changes while one waits, but the attempts."""

    NAME = "name"
    AGE = "age"
    PRIORITY = "priority"
    ATTEMPTS = "attempts"


_FAR: Final = 2.0**40
"""More than any priority, and than seconds since 1970."""


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Which waiting pods are asked for; what is empty or zero does not matter."""

    queue: QueueName | None = None
    namespace: str = ""
    pod: str = ""
    """As in namespace/name."""
    name: str = ""
    """A part of that."""
    plugin: str = ""
    """One that gates it, rejected it, or has it wait."""
    scheduler_name: str = ""
    min_age: float = 0.0
    """Seconds since it could first be tried."""
    group: str = ""
    """The ``id`` of a group of ``/debug/queue/groups``."""

    def tests(self, view: SchedulerView) -> list[Callable[[QueuedPodInfo], bool]]:
        """Return what must be true of a pod; nothing for what does not matter."""
        now = view.clock.now()
        tests: list[Callable[[QueuedPodInfo], bool]] = []
        if self.namespace:
            tests.append(lambda queued: queued.pod.metadata.namespace == self.namespace)
        if self.pod:
            tests.append(lambda queued: queued.key == self.pod)
        if self.name:
            tests.append(lambda queued: self.name in queued.key)
        if self.plugin:
            tests.append(lambda queued: self.plugin in _plugins(queued))
        if self.scheduler_name:
            tests.append(lambda queued: queued.pod.spec.scheduler_name == self.scheduler_name)
        if self.min_age:
            tests.append(lambda queued: now - queued.pending_since >= self.min_age)
        if self.group:
            reasons = Reasons(view)
            tests.append(lambda queued: reasons.of(queued).id == self.group)
        return tests


async def waiting_pods(
    view: SchedulerView,
    wanted: QueueFilter,
    *,
    after: tuple[str, str] | None,
    limit: int,
    sort: QueueSort = QueueSort.NAME,
    descending: bool = False,
) -> WaitingPods:
    """Return the pods of the queue that *wanted* describes.

    With many pods, other tasks get a turn. What moves meanwhile is shown as it is when its turn
    comes, what comes or goes perhaps not at all.
    """
    queue = view.queue
    page, token = await many_unordered(
        list(of_queue(view, wanted.queue)),
        where=partial(_matching, tests=wanted.tests(view)),
        key=_place(sort, descending=descending),
        after=after,
        limit=limit,
        piece=REASONS_PER_TURN if wanted.group else PIECE,
    )
    ahead = await queue.sub_queues.all_ahead_of([queued.key for queued in page])
    messages = view.decisions.messages()
    items = await told_in_turns(
        (
            _told(queued, view, ahead.get(queued.key), messages)
            for queued in page
            if queue.sub_queues.get(queued.key) is queued or queue.is_in_flight(queued.uid)
        ),
        view.clock,
    )
    return WaitingPods(
        items=items,
        continue_=token,
        counts=_counts(view),
    )


def _place(sort: QueueSort, *, descending: bool) -> Callable[[QueuedPodInfo], tuple[str, str]]:
    """Return what tells the place of a pod among others, as a text that sorts like it."""
    sign = -1 if descending else 1

    def place(queued: QueuedPodInfo) -> tuple[str, str]:
        pod = queued.pod_info
        match sort:
            case QueueSort.NAME:
                return _reversed(pod.key) if descending else pod.key, pod.uid
            case QueueSort.AGE:
                number = -queued.pending_since
            case QueueSort.PRIORITY:
                number = pod.priority
            case QueueSort.ATTEMPTS:
                number = queued.attempts
        return f"{_FAR + sign * number:024.6f}", pod.uid

    return place


def _reversed(text: str) -> str:
    """Return what sorts the other way round."""
    return "".join(chr(_LAST - ord(letter)) for letter in text) + chr(_LAST)


_LAST: Final = 0x10FFFF
"""The largest code point."""


def _matching(
    pods: Iterable[QueuedPodInfo], *, tests: Sequence[Callable[[QueuedPodInfo], bool]]
) -> Iterable[QueuedPodInfo]:
    for test in tests:
        pods = filter(test, pods)
    return pods


def of_queue(view: SchedulerView, name: QueueName | None) -> Iterator[QueuedPodInfo]:
    """Yield the pods of one part of the queue, or of all."""
    queue = view.queue
    if name in (None, QueueName.IN_FLIGHT):
        yield from in_flight(view)
    match name:
        case None:
            for sub_queue in SubQueue:
                yield from queue.sub_queues.in_any_order(sub_queue)
        case QueueName.BACKOFF | QueueName.ERROR_BACKOFF:
            for queued in queue.sub_queues.in_any_order(SubQueue.BACKOFF):
                if _backoff_name(queued) is name:
                    yield queued
        case QueueName.ACTIVE | QueueName.UNSCHEDULABLE | QueueName.GATED:
            yield from queue.sub_queues.in_any_order(_SUB_QUEUES[name])
    if name is QueueName.GATED:
        yield from queue.sub_queues.in_any_order(SubQueue.INCOMPLETE)


def _counts(view: SchedulerView) -> dict[QueueName, int]:
    queue = view.queue
    pending = queue.sub_queues.pending_counts()
    broken = sum(
        1 for queued in queue.sub_queues.in_any_order(SubQueue.BACKOFF) if not _rejectors(queued)
    )
    return {
        QueueName.ACTIVE: pending[SubQueue.ACTIVE],
        QueueName.BACKOFF: pending[SubQueue.BACKOFF] - broken,
        QueueName.ERROR_BACKOFF: broken,
        QueueName.UNSCHEDULABLE: pending[SubQueue.UNSCHEDULABLE],
        QueueName.GATED: pending[SubQueue.GATED] + pending.get(SubQueue.INCOMPLETE, 0),
        QueueName.IN_FLIGHT: len(queue.in_flight()),
    }


def _queue_name(queued: QueuedPodInfo, view: SchedulerView) -> QueueName:
    queue = view.queue
    if queue.sub_queues.get(queued.key) is not queued:
        return QueueName.IN_FLIGHT
    match queue.sub_queues.place_of(queued.key):
        case SubQueue.BACKOFF:
            return _backoff_name(queued)
        case SubQueue.UNSCHEDULABLE:
            return QueueName.UNSCHEDULABLE
        case SubQueue.GATED | SubQueue.INCOMPLETE:
            return QueueName.GATED
        case SubQueue.PENDING:
            return QueueName.IN_FLIGHT
        case _:
            return QueueName.ACTIVE


def _backoff_name(queued: QueuedPodInfo) -> QueueName:
    return QueueName.BACKOFF if _rejectors(queued) else QueueName.ERROR_BACKOFF


def _rejectors(queued: QueuedPodInfo) -> set[str]:
    return queued.unschedulable_plugins or queued.pending_plugins


def _plugins(queued: QueuedPodInfo) -> set[str]:
    gate = {queued.gating_plugin} - {""}
    return queued.unschedulable_plugins | queued.pending_plugins | gate


def _told(
    queued: QueuedPodInfo, view: SchedulerView, ahead: int | None, messages: Mapping[str, str]
) -> WaitingPod:
    queue, now = view.queue, view.clock.now()
    name, first = _queue_name(queued, view), queued.pending_since
    next_try = None if name is QueueName.IN_FLIGHT else queue.sub_queues.next_try(queued)
    return WaitingPod(
        pod=queued.key,
        uid=queued.uid,
        scheduler_name=queued.pod.spec.scheduler_name,
        priority=queued.pod_info.priority,
        queue=name,
        since=rfc3339(queued.timestamp),
        waiting_since=rfc3339(first),
        age_seconds=now - first,
        attempts=queued.attempts,
        pods_ahead=ahead if name is QueueName.ACTIVE else None,
        next_try_at=None if next_try is None else rfc3339(next_try),
        next_try_in_seconds=None if next_try is None else next_try - now,
        gating_plugin=queued.gating_plugin,
        rejecting_plugins=tuple(sorted(queued.unschedulable_plugins)),
        pending_plugins=tuple(sorted(queued.pending_plugins)),
        nominated_node=queue.nominator.nominated_node(queued.uid) or "",
        message=message_of(queued, view.pods) or messages.get(queued.uid, ""),
    )
