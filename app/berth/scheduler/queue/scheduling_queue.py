"""The scheduling queue: every way of a pod from one sub-queue to another (spec §3)."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_to_wait_with
from berth.runtime.clock import Clock
from berth.runtime.release import Behaviour
from berth.runtime.tasks import Steps, at_once, step_by_step
from berth.scheduler.config.feature_gates import enabled_features
from berth.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    CONFIG_RELOAD,
    FORCE_ACTIVATE,
    TARGET_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    ClusterEvent,
    LabelOf,
    label_of,
)
from berth.scheduler.framework.interface import PreEnqueuePlugin
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.metrics.plugin_observer import PluginObserver
from berth.scheduler.queue.active_queue import ActiveQueue
from berth.scheduler.queue.backoff import DEFAULT_BACKOFF, Backoff, BackoffQueue
from berth.scheduler.queue.events_from_update import (
    TELLS_SCALE_UP,
    pod_scheduling_properties_change,
)
from berth.scheduler.queue.failure_cache import CachedFailure, FailureCache
from berth.scheduler.queue.gating import Gates, PreCheck
from berth.scheduler.queue.heap import SortKey
from berth.scheduler.queue.hints import (
    EventHints,
    HintMap,
    ObserveHint,
    ObserveIndex,
    QueueingStrategy,
    Registration,
)
from berth.scheduler.queue.in_flight import InFlight
from berth.scheduler.queue.nominator import Nominator, PodLookup
from berth.scheduler.queue.sub_queues import (
    ACTIVE,
    BACKOFF,
    POD,
    UNSCHEDULABLE,
    SubQueue,
    SubQueues,
)
from berth.scheduler.queue.unschedulable import SignatureGroup, UnschedulablePods

SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"

STEPS_PER_TURN: Final = 128
"""Pods that are asked about, or moved, in one turn of the event loop; each takes 25 to 40 µs."""
MANY_UNFINISHED: Final = 64
"""Moves that wait while one is under way. Whoever tells of a further event does a turn's work on
them first, and one more for each time that so many wait, or there would be ever more of them."""

NOMINATES_GATED_PODS: Final = Behaviour(
    "1.37",
    "N3.8",
    "The nomination of a pod that arrives gated keeps room for it.",
)
FLUSHES_GATED_PODS: Final = Behaviour(
    "1.37",
    "N3.9",
    "PreEnqueue plugins are asked again every 30 seconds about a pod that is gated for 5 minutes.",
)


class QueueBehaviour(msgspec.Struct, frozen=True):
    """What the queue does by release."""

    nominates_gated_pods: bool = True
    flushes_gated_pods: bool = True
    tells_scale_up: bool = True
    label_of: LabelOf = label_of(enabled_features({}))

    @classmethod
    def of(cls, features: Container[object]) -> "QueueBehaviour":
        return cls(
            nominates_gated_pods=NOMINATES_GATED_PODS in features,
            flushes_gated_pods=FLUSHES_GATED_PODS in features,
            tells_scale_up=TELLS_SCALE_UP in features,
            label_of=label_of(features),
        )


LATEST: Final = QueueBehaviour()


class SchedulingQueue:
    """All pods that wait for a node. Only event handlers and the scheduler change it.

    Pods are known by ``namespace/name`` while they wait and by UID while they are in flight. A pod
    that was popped stays in flight until :meth:`done` or :meth:`add_unschedulable_if_not_present`.

    What moves many pods begins at once and is finished by :meth:`settled`, in turns with others on
    the event loop; what would move others comes after it. Until then pods may be where they were,
    but none is popped: :meth:`pop` finishes it first. So attempts see no difference.

    SchedulerQueueingHints is always on. Without SchedulerPopFromBackoffQ, which *backoff* knows,
    PreEnqueue plugins are asked when the backoff of a pod is over; with it, before it begins.
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
        observe_index: ObserveIndex = lambda _plugin, _result: None,
        observers: Mapping[str, PluginObserver] | None = None,
        signature_profiles: Mapping[str, Collection[str]] = {},
        schedules_groups: bool = False,
        behaviour: QueueBehaviour = LATEST,
        sub_queues: type[SubQueues] = SubQueues,
    ) -> None:
        """*pre_enqueue* and *hints* are by profile name; *max_in_unschedulable* is in seconds.

        *hints* has an entry for ALL_EVENTS for each plugin that can reject but registers nothing.
        *observers*, by profile name, time the PreEnqueue plugins.
        *signature_profiles* are those whose plugins decide by signature, with who goes by volumes
        (:mod:`berth.scheduler.framework.pod_signature`).
        *schedules_groups*: pods of a PodGroup are tried together. They always back off after a
        failure, and none comes back early: it would bring all others.
        """
        self._schedules_groups = schedules_groups
        self._clock = clock
        self._max_in_unschedulable = max_in_unschedulable
        self._backoff = BackoffQueue(clock=clock, backoff=backoff, sort_key=sort_key)
        self.nominator = Nominator(pod_lookup)
        self._known = known = FailureCache(signature_profiles, self.nominator)
        self._active = ActiveQueue(sort_key, self._known, self.nominator, clock=clock)
        self._behaviour = behaviour
        self._events_of_update = partial(
            pod_scheduling_properties_change, tells_scale_up=behaviour.tells_scale_up
        )
        self._pod_added = behaviour.label_of(UNSCHEDULED_POD_ADD)
        self._hints = HintMap(
            hints,
            clock=clock,
            observe=observe_hint,
            observe_index=observe_index,
            label_of=behaviour.label_of,
        )
        self._unschedulable = UnschedulablePods(
            known.signature_of, known.signature_for_hints, self._hints.indexes_of
        )
        self._in_flight = InFlight()
        self._incoming: Counter[tuple[str, str]] = Counter()
        self.sub_queues = sub_queues(
            self._active,
            self._backoff,
            self._unschedulable,
            max_in_unschedulable=max_in_unschedulable,
        )
        """For looking at what waits."""
        self._gates = Gates(pre_enqueue, observers=observers or {})
        self._unfinished: deque[Steps[None]] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    def reconfigure(
        self,
        *,
        pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]],
        hints: Mapping[str, Sequence[Registration]],
        backoff: Backoff,
        observers: Mapping[str, PluginObserver],
        signature_profiles: Mapping[str, Collection[str]] = {},
        afterwards: Iterable[None] = (),
    ) -> None:
        """Continue with other profiles from the next pop on, also for pods that already wait.

        PreEnqueue plugins run again. Rejected pods may be tried again, and so may pods in flight
        if they are rejected; a backoff that has begun goes on. Pods of removed profiles are
        forgotten, except those in flight. The order of pods does not change. What is to be done
        *afterwards*, step by step, is done in turns as well.
        """
        gates = Gates(pre_enqueue, observers=observers)

        def reconfiguring() -> Steps[None]:
            self._hints.use(hints)
            self._gates = gates
            self._backoff.use(backoff)
            freeing = self._known.use(signature_profiles)
            event = self._hints.of(CONFIG_RELOAD)
            self._in_flight.record(event, old=None, new=None)
            yield from self._requeuing_all(pre_enqueue, event.label)
            yield from freeing
            yield from afterwards

        self._begin(reconfiguring())

    def _requeuing_all(self, profiles: Container[str], label: str) -> Steps[None]:
        """Put all pods where *profiles* want them, or forget them, each a step."""
        in_backoff, unschedulable = [*self._backoff], [*self._unschedulable]
        waiting: Iterable[tuple[_Place, list[QueuedPodInfo], QueueingStrategy]] = (
            (self._active, self._active.in_order(), QueueingStrategy.IMMEDIATELY),
            (self._backoff, in_backoff, QueueingStrategy.AFTER_BACKOFF),
            (self._unschedulable, unschedulable, QueueingStrategy.AFTER_BACKOFF),
        )
        for place, pods, strategy in waiting:
            for queued in pods:
                if place.get(queued.key) is not queued:
                    continue  # it has gone meanwhile, or moved
                self._remove(queued.key)
                if queued.pod.spec.scheduler_name in profiles:
                    self._requeue(queued, strategy, label)
                else:
                    self._drop(queued)
                yield

    # What happens to pods

    def add(self, pod: Pod) -> None:
        """Add a new pod to the active queue, or gate it. A pod of the same key is replaced."""
        self._add(pod, self._pod_added)

    def update(self, old: Pod, new: Pod) -> None:
        """Take over a changed pod; the change may be what it waited for.

        While the pod is in flight only the events are kept; the failure handler reads it again.
        """
        if old.metadata.uid != new.metadata.uid:
            self.delete(old)
            self.add(new)
            return
        if new.metadata.uid in self._in_flight:
            for event in self._events_of_update(old, new):
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
            before = self._known.signature_of(queued), queued.pod_info.template
            self._replace_pod(queued, old, new)
            if (self._known.signature_of(queued), queued.pod_info.template) != before:
                self._remove_unschedulable(key)
                self._unschedulable.add(queued)
            for event in self._events_of_update(old, new):
                if self._try_move(queued, self._hints.of(event), old=old, new=new):
                    return
        else:
            # Since 1.37 it counts as if it was added (1.37 spec N3.8).
            is_new = self._behaviour.nominates_gated_pods
            event = UNSCHEDULED_POD_ADD if is_new else TARGET_POD_UPDATE
            self._add(new, self._behaviour.label_of(event))

    def delete(self, pod: Pod) -> None:
        """Forget a pod that is gone or bound, wherever it waits; in flight it stays."""
        self.nominator.delete_nominated_pod_if_exists(pod.metadata.uid)
        self._remove(pod.key)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move *pods* to the active queue, also from backoff, if PreEnqueue plugins let them in.

        A pod in flight is tried again if this attempt fails.
        """
        hints = self._hints.of(FORCE_ACTIVATE)
        for pod in pods:
            self._known.forget(self.sub_queues.get(pod.key))
            if queued := self._unschedulable.get(pod.key):
                self._unschedulable.remove(pod.key)
                self._requeue(queued, QueueingStrategy.IMMEDIATELY, hints.label)
            elif queued := self._backoff.remove(pod.key):
                self._leave_backoff(queued, hints.label)
            elif pod.metadata.uid in self._in_flight:
                self._in_flight.record(hints, old=None, new=pod)

    def activate_all(self, pods: dict[str, Pod]) -> None:
        """Activate *pods*, by ``namespace/name``, and empty the dict."""
        if pods:
            asked_for = [*pods.values()]
            pods.clear()
            self.activate(asked_for)

    def restore(self, queued: QueuedPodInfo, sub_queue: SubQueue) -> None:
        """Let a pod wait with its history where it waited in the queue of another scheduler."""
        self._restore(queued, sub_queue)
        self.nominator.add_nominated_pod(queued.pod_info)

    def _restore(self, queued: QueuedPodInfo, sub_queue: SubQueue) -> None:
        match sub_queue:
            case SubQueue.ACTIVE | SubQueue.PENDING | SubQueue.INCOMPLETE:
                self._push_active(queued, self._pod_added)
            case SubQueue.BACKOFF:
                self._backoff.add(queued, may_pop_early=not self._is_of_group(queued))
            case SubQueue.UNSCHEDULABLE | SubQueue.GATED:
                self._unschedulable.add(queued)

    # What the scheduler does

    def pop(self) -> QueuedPodInfo | None:
        """Take out the pod to try next, which is then in flight; None if there is none, or closed.

        When the active queue is empty, a rejected pod is taken before its backoff ends. The failure
        handler replaces the rejectors of the last attempt.
        """
        self.settle()
        while not self._closed:
            queued = self._active.pop()
            if queued is None:
                queued = self._backoff.pop_early()
                if queued is None:
                    return None
                self._note(ACTIVE, POP_FROM_BACKOFF, queued)
            queued.attempts += 1
            if self._begin_flight(queued):
                return queued
        return None

    def _begin_flight(self, queued: QueuedPodInfo) -> bool:
        """Have *queued* be in flight; False if it already is."""
        return self._in_flight.start(queued.uid)

    def pop_specific_pod(self, key: str, *, gated: bool = True) -> QueuedPodInfo | None:
        """Take out a waiting pod before its turn, which is then in flight as if popped.

        None if it does not wait, or a PreEnqueue plugin gates it; unless *gated*, none is asked.
        """
        queued = self.sub_queues.get(key)
        if queued is None:
            return None
        self._remove(key)
        if gated and not self._gates.run_pre_enqueue_plugins(queued):
            self._unschedulable.add(queued)
            return None
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()
        queued.attempts += 1
        return queued if self._in_flight.start(queued.uid) else None

    def pop_entity_of(self, key: str) -> QueuedPodInfo | None:
        """Take out the waiting pod ``namespace/name``, or the group that it waits in, as it is."""
        return self.pop_specific_pod(key, gated=False)

    async def wait_ready(self) -> bool:
        """Return True once :meth:`pop` has a pod to give, False once the queue is closed."""
        while not self._closed:
            await self.settled()
            if len(self._active) or self._backoff.has_early():
                return True
            self._wake.clear()
            await self._wake.wait()
        return False

    def done(self, uid: str) -> None:
        """End the flight of a pod that does not come back; unknown pods are ignored."""
        self._in_flight.done(uid)

    def entity_done(self, queued: QueuedPodInfo) -> None:
        """End the flight of what :meth:`pop_entity_of` returned, without an attempt."""
        self.done(queued.uid)

    def add_unschedulable_if_not_present(
        self, queued: QueuedPodInfo, *, cached_failure: CachedFailure | None = None
    ) -> bool:
        """Put back a pod whose attempt failed, where the events since its pop want it.

        *queued* must hold the pod as the API server has it now and the plugins that rejected it;
        no plugins means that the attempt ended in an error. The pod is no longer in flight. Returns
        False, and does not put it back, if a pod of that key already waits.

        *cached_failure* is what :meth:`cached_failure` returns for pods of the same signature until
        something happens that may help them, unless that happened during the attempt.
        """
        if self.sub_queues.place_of(queued.key) is not None:
            self.done(queued.uid)
            return False
        count_failure(queued, now=self._clock.now())
        strategy = self._strategy_after_attempt(queued)
        self._requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE)
        self.done(queued.uid)
        if cached_failure is not None and strategy is QueueingStrategy.SKIP:
            self._known.learn(queued, cached_failure)
        return True

    def cached_failure(self, queued: QueuedPodInfo) -> CachedFailure | None:
        """Return how an attempt for the popped pod would fail, if that is known.

        A pod of its signature failed so and still waits, and nothing has happened that may help.
        None: the pod must be tried.
        """
        if not self._known or self.nominator.nominated_node(queued.uid) is not None:
            return None
        return self._known.failure(queued)

    def assumed(self, pod: PodInfo) -> None:
        """Take note of a pod that was assumed on a node; its event comes when it is bound.

        Until then it wakes no pod, but a fresh attempt would see it. So the failures are forgotten
        of signatures that its arrival may help, and of those that may preempt it.
        """
        self.nominator.assumed(pod)
        if not self._known:
            return
        self._known.forget_above(pod.priority)
        hints = self._hints.of(ASSIGNED_POD_ADD)
        new = pod.pod.assigned_to(pod.node_name)
        for group in self._unschedulable.that_may_be_helped(hints, old=None, new=new):
            if group.signature is not None and group.signature in self._known:
                first = next(iter(group.pods.values()))
                if self._hints.is_pod_worth_requeuing(first, hints, old=None, new=new):
                    self._known.forget_signature(group.signature)

    # What happens in the cluster

    def gate_may_open(self, key: str) -> None:
        """Have the gate of a pod asked about it at the next event that may help the pod."""
        self._unschedulable.gate_may_open(key)

    def move_all_to_active_or_backoff_queue(
        self,
        event: ClusterEvent,
        *,
        old: Any = None,
        new: Any = None,
        pre_check: PreCheck | None = None,
    ) -> None:
        """Try again the unschedulable pods that *event*, on *old* and *new*, may help.

        Only pods for which *pre_check* is true, if it is given. Gated pods are considered if their
        gating plugin registered the event, not for the wildcard event. Pods in backoff stay
        there. For pods in flight the event is kept in case their attempt fails. Hints are asked
        once for all pods with the same signature and rejectors, if their indexes find these.
        """
        if event is ASSIGNED_POD_ADD and new is not None and self._known:
            self._known.forget_above(new.spec.priority or 0)
        hints = self._hints.of(event)
        if not hints.is_of_interest:
            return
        if hints.counted and not hints.is_wildcard:
            self._hints.count(hints, old, new)
        if self._unfinished or self._unschedulable:
            self._begin(self._moving(hints, old, new, pre_check))
        self._in_flight.record(hints, old=old, new=new)

    def _moving(self, hints: EventHints, old: Any, new: Any, check: PreCheck | None) -> Steps[None]:
        """Try again the pods that the event may help; each that is asked about, or moves, a step.

        They are those that wait when it is the turn of the event, after others that came before.
        """
        if hints.is_wildcard:
            for queued in self._unschedulable.not_gated():
                if not self._still_waits(queued):
                    continue
                if check is None or any(check(pod.pod) for pod in queued.pods):
                    self._try_move(queued, hints, old=old, new=new)
                    yield
        else:
            for group in self._unschedulable.that_may_be_helped(hints, old=old, new=new):
                yield from self._try_move_group(group, hints, old, new, check)

    def flush_backoff_completed(self) -> None:
        """Move the pods whose backoff is over to the active queue."""
        self._begin(self._leaving_backoff())

    def _leaving_backoff(self) -> Steps[None]:
        for queued in self._backoff.pop_expired():
            self._leave_backoff(queued, BACKOFF_COMPLETE)
            yield

    def flush_unschedulable_pods_leftover(self) -> None:
        """Try again the pods that waited longer than *max_in_unschedulable*.

        A gated pod waits on unless its gate lets it in now; before FLUSHES_GATED_PODS, it is not
        looked at.
        """
        hints = self._hints.of(UNSCHEDULABLE_TIMEOUT)
        latest = self._clock.now() - self._max_in_unschedulable
        waiting: Iterable[QueuedPodInfo] = (
            self._unschedulable
            if self._behaviour.flushes_gated_pods
            else self._unschedulable.not_gated()
        )
        overdue = [queued for queued in waiting if queued.timestamp < latest]
        if overdue:
            self._begin(self._flushing(overdue, hints))
            self._in_flight.record(hints, old=None, new=None)

    def _flushing(self, overdue: Iterable[QueuedPodInfo], hints: EventHints) -> Steps[None]:
        for queued in overdue:
            if not self._still_waits(queued):
                continue
            for entry in (queued, *queued.pods):
                entry.was_flushed_from_unschedulable = True
            self._try_move(queued, hints, old=None, new=None)
            if queued.gating_plugin:
                for entry in (queued, *queued.pods):
                    entry.was_flushed_from_unschedulable = False
            yield

    # Moves of many pods

    @property
    def is_settled(self) -> bool:
        """Whether no move of pods is under way."""
        return not self._unfinished

    @property
    def can_pop_fast(self) -> bool:
        """Whether :meth:`pop` looks at few pods; else :meth:`settled` does before, in turns."""
        return not self._unfinished and not self._active.may_pass_over

    def settle(self) -> None:
        """Finish now the moves that are under way."""
        while self._unfinished:
            at_once(self._unfinished[0])
            self._unfinished.popleft()

    async def settled(self) -> None:
        """Finish the moves that are under way, in turns with others on the event loop.

        And pass over the pods that are bound to fail, of which :meth:`pop` looks for another.
        """
        while True:
            while self._unfinished:
                steps = self._unfinished[0]
                await step_by_step(steps, per_turn=STEPS_PER_TURN)
                if self._unfinished and self._unfinished[0] is steps:  # else others have ended it
                    self._unfinished.popleft()
                await asyncio.sleep(0)
            if self._active.may_pass_over:
                await step_by_step(self._active.passing_over(), per_turn=STEPS_PER_TURN)
            if not self._unfinished:  # else a move has begun in a turn of others
                return

    def _begin(self, steps: Steps[None]) -> None:
        """Do *steps*, or the first of them, if nothing else is under way."""
        if not self._unfinished:
            for _ in range(STEPS_PER_TURN):
                if next(steps, _ENDED) is _ENDED:
                    return
            self._wake.set()
        self._unfinished.append(steps)
        for _ in range(STEPS_PER_TURN * (len(self._unfinished) // MANY_UNFINISHED)):
            if next(self._unfinished[0], _ENDED) is _ENDED:
                self._unfinished.popleft()
                if not self._unfinished:
                    return

    def close(self) -> None:
        """Return no more pods, and release callers that wait for one."""
        self._closed = True
        self._wake.set()

    # What there is to see

    @property
    def has_active(self) -> bool:
        """Whether a pod is ready to be tried that is not bound to fail."""
        return self._active.has_promising

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    def in_flight(self) -> dict[str, int]:
        """Return, by UID, how many events are kept for each pod that is in flight."""
        return self._in_flight.uids()

    def in_flight_counts(self) -> Counter[str]:
        """Return the length of the in-flight list by event label."""
        return self._in_flight.counts()

    def incoming_entity_counts(self) -> dict[tuple[str, str, str], int]:
        """Return the same by sub-queue, event and type of entity: pods of groups do not count."""
        return {(*key, POD): count for key, count in self._incoming.items()}

    def incoming_counts(self) -> dict[tuple[str, str], int]:
        """Return how many pods ever entered, by sub-queue (gated is unschedulable) and event."""
        return dict(self._incoming)

    def check_invariants(self) -> None:
        """Raise AssertionError if two views disagree; for tests and debugging, linear in pods."""
        self.sub_queues.check_invariants()
        self._in_flight.check_invariants()
        self.nominator.check_invariants()
        signatures = {self._known.signature_of(queued) for queued in self._unschedulable}
        assert set(self._known) <= signatures, "no pod waits for a known signature"

    # Ways between sub-queues; the pod is in none of them when these are called

    def _add(self, pod: Pod, label: str) -> None:
        self._remove(pod.key)
        queued = QueuedPodInfo(PodInfo(pod), timestamp=self._clock.now())
        if self._behaviour.nominates_gated_pods:
            self.nominator.add_nominated_pod(queued.pod_info)
            self._requeue(queued, QueueingStrategy.IMMEDIATELY, label)
        elif self._requeue(queued, QueueingStrategy.IMMEDIATELY, label):
            self.nominator.add_nominated_pod(queued.pod_info)

    def _drop(self, queued: QueuedPodInfo) -> None:
        """Forget *queued*, whose profile is gone."""
        for pod in queued.pods:
            self.nominator.delete_nominated_pod_if_exists(pod.uid)

    def _note(self, sub_queue: str, label: str, queued: QueuedPodInfo, number: int = 1) -> None:
        """Count that *queued* enters *sub_queue*, or a *number* of the same kind."""
        self._incoming[sub_queue, label] += number

    def _requeue(self, queued: QueuedPodInfo, strategy: QueueingStrategy, label: str) -> bool:
        """Put *queued* where *strategy* and PreEnqueue send it; False: it waits for events."""
        after_backoff = strategy is QueueingStrategy.AFTER_BACKOFF
        backs_off = after_backoff and self._backoff.is_backing_off(queued)
        if backs_off and not self._backoff.pops_early:
            for entry in (queued, *queued.pods):
                entry.gating_plugin = ""  # it is asked when the backoff is over
        elif strategy is QueueingStrategy.SKIP or not self._gates.run_pre_enqueue_plugins(queued):
            self._unschedulable.add(queued)
            self._note(UNSCHEDULABLE, label, queued)
            return False
        if backs_off:
            self._backoff.add(queued, may_pop_early=not self._is_of_group(queued))
            self._note(BACKOFF, label, queued)
            self._wake.set()
        else:
            self._push_active(queued, label)
        return True

    def _leave_backoff(self, queued: QueuedPodInfo, label: str) -> None:
        """Let *queued* be tried; PreEnqueue plugins were asked before unless none pops early."""
        if self._backoff.pops_early:
            self._push_active(queued, label)
        else:
            self._requeue(queued, QueueingStrategy.IMMEDIATELY, label)

    def _push_active(self, queued: QueuedPodInfo, label: str) -> None:
        """Add *queued* to the active queue; PreEnqueue plugins have let it in (spec §3.2)."""
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()
        self._active.add(queued)
        self._note(ACTIVE, label, queued)
        self._wake.set()

    def _try_move(self, queued: QueuedPodInfo, hints: EventHints, *, old: Any, new: Any) -> bool:
        """Move an unschedulable pod if the event is worth it; False: it still waits."""
        strategy = self._hints.is_pod_worth_requeuing(queued, hints, old=old, new=new)
        return strategy is not QueueingStrategy.SKIP and self._move(queued, strategy, hints.label)

    def _try_move_group(
        self, group: SignatureGroup, hints: EventHints, old: Any, new: Any, check: PreCheck | None
    ) -> Steps[None]:
        """Move the unschedulable pods of *group* if the event is worth it."""
        waiting: Collection[QueuedPodInfo] = group.pods.values()
        if check is not None:
            waiting = [queued for queued in waiting if any(check(pod.pod) for pod in queued.pods)]
        if not waiting:
            return
        one = next(iter(waiting))
        strategy = self._hints.is_pod_worth_requeuing(one, hints, old=old, new=new)
        if strategy is QueueingStrategy.SKIP:
            yield
            return
        moving = self._gates.let_in(group, check) if group.gate else [*waiting]
        if stay := len(waiting) - len(moving):
            # as if they had gone and come
            self._note(UNSCHEDULABLE, hints.label, one, stay)
        for queued in moving:
            if self._still_waits(queued):
                self._move(queued, strategy, hints.label)
                yield

    def _still_waits(self, queued: QueuedPodInfo) -> bool:
        """Whether *queued* is unschedulable as it was when its move began."""
        return self._unschedulable.get(queued.key) is queued

    def _move(self, queued: QueuedPodInfo, strategy: QueueingStrategy, label: str) -> bool:
        """Move an unschedulable pod; others of its signature may fit as well."""
        self._known.forget(queued)
        self._unschedulable.remove(queued.key)
        return self._requeue(queued, strategy, label)

    def _strategy_after_attempt(self, queued: QueuedPodInfo) -> QueueingStrategy:
        events = self._in_flight.events_since_pop(queued.uid)
        if events is None or self._is_of_group(queued):
            # What it missed is unknown.
            return QueueingStrategy.AFTER_BACKOFF
        return self._hints.strategy_after(events, queued)

    def _is_of_group(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod is tried together with others."""
        return self._schedules_groups and group_to_wait_with(queued.pod) is not None

    def _replace_pod(self, queued: QueuedPodInfo, old: Pod, new: Pod) -> None:
        queued.pod_info = PodInfo(new)
        self.nominator.update_nominated_pod(old, queued.pod_info)

    def _remove(self, key: str) -> None:
        if not self._active.remove(key) and not self._backoff.remove(key):
            self._remove_unschedulable(key)

    def _remove_unschedulable(self, key: str) -> None:
        """Forget a pod, and with the last one of a signature its failure: no event would end it."""
        group = self._unschedulable.remove(key)
        if group is not None and not group.pods and group.signature is not None:
            self._known.forget_signature(group.signature)


_ENDED: Final = object()
_Place: TypeAlias = ActiveQueue | BackoffQueue | UnschedulablePods


def count_failure(queued: QueuedPodInfo, *, now: float) -> None:
    """Take note of a failed attempt; no rejectors mean that it ended in an error."""
    if queued.unschedulable_plugins or queued.pending_plugins:
        queued.unschedulable_count += 1
        queued.consecutive_errors_count = 0
    else:
        queued.consecutive_errors_count += 1
    queued.timestamp = now
    queued.backoff_expiration = None
    queued.was_flushed_from_unschedulable = False
