"""The facade: where a waiting pod is, and every way from one sub-queue to another (spec §3)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import floor
from typing import Any, Final

from app.clock import Clock
from app.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    EventResource,
)
from app.framework.interface import PreEnqueuePlugin
from app.framework.plugin_observer import PluginObserver
from app.framework.pod_info import PodInfo, QueuedPodInfo
from app.objects.pod import Pod
from app.queue.backoff import DEFAULT_BACKOFF, Backoff, BackoffQueue
from app.queue.events_from_update import pod_events
from app.queue.gating import Gates
from app.queue.heap import PodHeap, SortKey
from app.queue.hints import EventHints, HintMap, ObserveHint, QueueingStrategy, Registration
from app.queue.in_flight import InFlight
from app.queue.nominator import Nominator, PodLookup
from app.queue.unschedulable import UnschedulablePods

LEFTOVERS_PERIOD: Final = 30.0
"""Seconds between two looks for pods that waited too long (spec §3.7)."""

SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"

_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD).label
_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE).label

# Plain strings, for hashing an enum's member costs more than the rest of counting.
_ACTIVE, _BACKOFF, _UNSCHEDULABLE, _GATED = "active", "backoff", "unschedulable", "gated"

PreCheck = Callable[[Pod], bool]


class SubQueue(StrEnum):
    """Where a pod waits; the values are those of the ``queue`` label in metrics."""

    ACTIVE = _ACTIVE
    BACKOFF = _BACKOFF
    UNSCHEDULABLE = _UNSCHEDULABLE
    GATED = _GATED


class SchedulingQueue:
    """All pods that wait for a node, written by event handlers and the scheduler only.

    Pods are known by ``namespace/name`` while they wait and by UID while they are in flight. A pod
    that was popped stays in flight until :meth:`done` or :meth:`add_unschedulable_if_not_present`.

    SchedulerPopFromBackoffQ and SchedulerQueueingHints are always on.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: SortKey,
        pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]],
        hints: Mapping[str, Sequence[Registration]],
        pod_lookup: PodLookup,
        backoff: Backoff = DEFAULT_BACKOFF,
        max_in_unschedulable: float = 300.0,
        observe_hint: ObserveHint = lambda _plugin, _event, _outcome, _seconds: None,
        observers: Mapping[str, PluginObserver] | None = None,
    ) -> None:
        """*pre_enqueue* and *hints* are by profile name; *max_in_unschedulable* is in seconds.

        *hints* has an entry for ALL_EVENTS for each plugin that can reject but registers nothing.
        *observers* look on, by profile name, while PreEnqueue plugins are asked.
        """
        self._clock = clock
        self._max_in_unschedulable = max_in_unschedulable
        self._hints = HintMap(hints, clock=clock, observe=observe_hint)
        self._gates = Gates(pre_enqueue, observers=observers or {})
        self._active = PodHeap(sort_key)
        self._backoff = BackoffQueue(clock=clock, backoff=backoff, sort_key=sort_key)
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight()
        self._incoming: Counter[tuple[str, str]] = Counter()
        self._wake = asyncio.Event()
        self._closed = False
        self.nominator = Nominator(pod_lookup)

    # What happens to pods

    def add(self, pod: Pod) -> None:
        """Let a new pod wait: in the active queue, or gated. A pod of the same key is replaced."""
        self._add(pod, _POD_ADD)

    def update(self, old: Pod, new: Pod) -> None:
        """Follow a changed pod, which may be what it waited for.

        While the pod is in flight only the events are kept: the failure handler reads the pod anew.
        """
        if old.metadata.uid != new.metadata.uid:
            self.delete(old)
            self.add(new)
            return
        if new.metadata.uid in self._in_flight:
            for event in pod_events(old, new):
                self._in_flight.record(self._hints.of(event), old=old, new=new)
            return
        key = new.key
        if queued := self._active.get(key):
            self._replace_pod(queued, old, new)
            self._active.reorder(queued)
        elif queued := self._backoff.get(key):
            self._replace_pod(queued, old, new)
            self._backoff.update(queued)
        elif queued := self._unschedulable.get(key):
            self._replace_pod(queued, old, new)
            for event in pod_events(old, new):
                if self._try_move(queued, self._hints.of(event), old=old, new=new):
                    return
        else:
            self._add(new, _POD_UPDATE)

    def delete(self, pod: Pod) -> None:
        """Forget a pod that is gone or has a node, wherever it waits; in flight it stays."""
        self.nominator.delete(pod.metadata.uid)
        self._remove(pod.key)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Let *pods* be tried at once, without the rest of their backoff; PreEnqueue has its say.

        A pod in flight will be tried again should this attempt fail.
        """
        hints = self._hints.of(FORCE_ACTIVATE)
        for pod in pods:
            if queued := self._unschedulable.remove(pod.key):
                self._requeue(queued, QueueingStrategy.IMMEDIATELY, hints.label)
            elif queued := self._backoff.remove(pod.key):
                self._push_active(queued, hints.label)
            elif pod.metadata.uid in self._in_flight:
                self._in_flight.record(hints, old=None, new=pod)

    # What the scheduler does

    def pop(self) -> QueuedPodInfo | None:
        """Take out the pod to try next, which is then in flight; None if there is none, or closed.

        With an idle active queue, pods that were rejected need not serve out their backoff. The
        rejectors of the last attempt are left in place for the failure handler to replace.
        """
        while not self._closed:
            queued = self._active.pop()
            if queued is None:
                queued = self._backoff.pop_early()
                if queued is None:
                    return None
                self._incoming[_ACTIVE, POP_FROM_BACKOFF] += 1
            queued.attempts += 1
            if self._in_flight.start(queued.uid):
                return queued
        return None

    async def wait_ready(self) -> bool:
        """Return True once :meth:`pop` has a pod to give, False once the queue is closed."""
        while not self._closed:
            if len(self._active) or self._backoff.has_early():
                return True
            self._wake.clear()
            await self._wake.wait()
        return False

    def done(self, uid: str) -> None:
        """Say that the pod is no longer in flight and will not come back; unknown ones are fine."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(self, queued: QueuedPodInfo) -> bool:
        """Take back a pod whose attempt failed, and decide when it is worth another one.

        *queued* must hold the pod as the API server has it now and, if plugins rejected it, which;
        no plugins means that the attempt itself broke. The pod is done in any case. Returns False,
        without taking it, if a pod of that key is already waiting.
        """
        if self.sub_queue_of(queued.key) is not None:
            self.done(queued.uid)
            return False
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        queued.timestamp = self._clock.now()
        queued.backoff_expiration = None
        queued.was_flushed_from_unschedulable = False
        strategy = self._strategy_after_attempt(queued)
        self._requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE)
        self.done(queued.uid)
        return True

    # What happens in the cluster

    def move_all(
        self,
        event: ClusterEvent,
        *,
        old: Any = None,
        new: Any = None,
        pre_check: PreCheck | None = None,
    ) -> None:
        """Try again the unschedulable pods that *event*, on *old* and *new*, may help.

        Only pods for which *pre_check* is true, if it is given. Gated pods are looked at if their
        gating plugin registered the event, never for the wildcard event. Pods in backoff stay
        there. Pods in flight are judged by the event should their attempt fail.
        """
        hints = self._hints.of(event)
        if not hints.is_of_interest:
            return
        candidates = (
            self._unschedulable.not_gated()
            if event.is_wildcard
            else self._unschedulable.rejected_by(hints.rejectors)
        )
        for queued in candidates:
            if pre_check is None or pre_check(queued.pod):
                self._try_move(queued, hints, old=old, new=new)
        self._in_flight.record(hints, old=old, new=new)

    def flush_backoff(self) -> None:
        """Let pods be tried that have rested enough."""
        for queued in self._backoff.pop_expired():
            self._push_active(queued, BACKOFF_COMPLETE)

    def flush_leftovers(self) -> None:
        """Try again the pods that waited longer than *max_in_unschedulable*, but no gated ones."""
        hints = self._hints.of(UNSCHEDULABLE_TIMEOUT)
        latest = self._clock.now() - self._max_in_unschedulable
        overdue = [
            queued for queued in self._unschedulable.not_gated() if queued.timestamp < latest
        ]
        for queued in overdue:
            queued.was_flushed_from_unschedulable = True
            self._try_move(queued, hints, old=None, new=None)
        if overdue:
            self._in_flight.record(hints, old=None, new=None)

    async def run_flushers(self) -> None:
        """Flush for ever: backoff at every whole second, leftovers every 30 seconds."""
        leftovers_due = self._clock.monotonic() + LEFTOVERS_PERIOD
        while True:
            now = self._clock.now()
            await self._clock.sleep(floor(now) + 1 - now)
            self.flush_backoff()
            if self._clock.monotonic() >= leftovers_due:
                leftovers_due += LEFTOVERS_PERIOD
                self.flush_leftovers()

    def close(self) -> None:
        """Give out no more pods and release whoever waits for one."""
        self._closed = True
        self._wake.set()

    # What there is to see

    def pods(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
        """Yield the pods of a sub-queue; active and backoff ones in their order, at a sort's cost.

        The queue must not change meanwhile.
        """
        match sub_queue:
            case SubQueue.ACTIVE:
                return iter(self._active.in_order())
            case SubQueue.BACKOFF:
                return iter(self._backoff.in_order())
            case SubQueue.UNSCHEDULABLE:
                return iter(self._unschedulable.not_gated())
            case SubQueue.GATED:
                return (queued for queued in self._unschedulable if queued.gating_plugin)

    def sub_queue_of(self, key: str) -> SubQueue | None:
        """Return where the pod ``namespace/name`` waits; None if it does not."""
        if self._active.get(key):
            return SubQueue.ACTIVE
        if self._backoff.get(key):
            return SubQueue.BACKOFF
        if queued := self._unschedulable.get(key):
            return SubQueue.GATED if queued.gating_plugin else SubQueue.UNSCHEDULABLE
        return None

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the waiting pod ``namespace/name``."""
        return self._active.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    def pending_counts(self) -> dict[str, int]:
        """Return the sizes of the sub-queues, for ``pending_pods``."""
        gated = self._unschedulable.gated_count
        return {
            _ACTIVE: len(self._active),
            _BACKOFF: len(self._backoff),
            _UNSCHEDULABLE: len(self._unschedulable) - gated,
            _GATED: gated,
        }

    def incoming_counts(self) -> dict[tuple[str, str], int]:
        """Return how many pods ever entered, by sub-queue and event label.

        For ``queue_incoming_pods_total``, where gated pods count as unschedulable ones.
        """
        return dict(self._incoming)

    def rejected_counts(self) -> Counter[tuple[str, str]]:
        """Return how many waiting pods each plugin rejected, by plugin and profile.

        For ``unschedulable_pods``; linear in the number of waiting pods.
        """
        return Counter(
            (plugin, queued.pod.spec.scheduler_name)
            for waiting in (self._active, self._backoff, self._unschedulable)
            for queued in waiting
            for plugin in queued.unschedulable_plugins | queued.pending_plugins
        )

    def waiting_since(self) -> dict[str, float]:
        """Return by sub-queue since when its oldest pod waits: since it could first be tried.

        For pods that never could, since they were put there. Empty ones are left out; linear in the
        number of waiting pods.
        """
        oldest: dict[str, float] = {}
        for waiting, name in (
            (self._active, _ACTIVE),
            (self._backoff, _BACKOFF),
            (self._unschedulable, _UNSCHEDULABLE),
        ):
            for queued in waiting:
                since = queued.initial_attempt_timestamp
                if since is None:
                    since = queued.timestamp
                where = _GATED if queued.gating_plugin else name
                oldest[where] = min(oldest.get(where, since), since)
        return oldest

    def in_flight_counts(self) -> Counter[str]:
        """Return the length of the in-flight list by event label, for ``inflight_events``."""
        return self._in_flight.counts()

    def check_invariants(self) -> None:
        """Raise AssertionError if two views disagree; for tests and debugging, linear in pods."""
        keys = [
            queued.key
            for waiting in (self._active, self._backoff, self._unschedulable)
            for queued in waiting
        ]
        assert len(keys) == len(set(keys)), "a pod is in two sub-queues"
        for part in (
            self._active,
            self._backoff,
            self._unschedulable,
            self._in_flight,
            self.nominator,
        ):
            part.check_invariants()
        for queued in (*self._active, *self._backoff):
            assert not queued.gating_plugin, f"{queued.key} is gated"
        for queued in self._active:
            assert queued.initial_attempt_timestamp is not None, queued.key

    # Ways between sub-queues; a pod is in none when it is handed to them

    def _add(self, pod: Pod, label: str) -> None:
        self._remove(pod.key)
        queued = QueuedPodInfo(PodInfo(pod), timestamp=self._clock.now())
        if self._requeue(queued, QueueingStrategy.IMMEDIATELY, label):
            self.nominator.add(queued.pod_info)

    def _requeue(self, queued: QueuedPodInfo, strategy: QueueingStrategy, label: str) -> bool:
        """Put *queued* where *strategy* and PreEnqueue want it; False: it waits for events."""
        if strategy is QueueingStrategy.SKIP or not self._gates.admits(queued):
            self._unschedulable.add(queued)
            self._incoming[_UNSCHEDULABLE, label] += 1
            return False
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff.is_backing_off(queued):
            self._backoff.add(queued)
            self._incoming[_BACKOFF, label] += 1
            self._wake.set()
        else:
            self._push_active(queued, label)
        return True

    def _push_active(self, queued: QueuedPodInfo, label: str) -> None:
        """Make *queued* ready; PreEnqueue was asked here or on the way into backoff (spec §3.2)."""
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()
        self._active.add(queued)
        self._incoming[_ACTIVE, label] += 1
        self._wake.set()

    def _try_move(self, queued: QueuedPodInfo, hints: EventHints, *, old: Any, new: Any) -> bool:
        """Move an unschedulable pod if an event is worth it; False: it waits on."""
        strategy = self._hints.strategy(queued, hints, old=old, new=new)
        if strategy is QueueingStrategy.SKIP:
            return False
        self._unschedulable.remove(queued.key)
        return self._requeue(queued, strategy, hints.label)

    def _strategy_after_attempt(self, queued: QueuedPodInfo) -> QueueingStrategy:
        events = self._in_flight.events_since_pop(queued.uid)
        if events is None:
            # Nobody knows what it missed.
            return QueueingStrategy.AFTER_BACKOFF
        if not queued.unschedulable_plugins and not queued.pending_plugins:
            return QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for event in events:
            wanted = self._hints.strategy(queued, event.hints, old=event.old, new=event.new)
            strategy = max(strategy, wanted)
            if strategy is QueueingStrategy.IMMEDIATELY:
                break
        return strategy

    def _replace_pod(self, queued: QueuedPodInfo, old: Pod, new: Pod) -> None:
        queued.pod_info = PodInfo(new)
        self.nominator.update(old, queued.pod_info)

    def _remove(self, key: str) -> None:
        for waiting in (self._active, self._backoff, self._unschedulable):
            if waiting.remove(key) is not None:
                return
