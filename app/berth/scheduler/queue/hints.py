"""Queueing hints: events that make pods worth another attempt (spec §3.6)."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any

import msgspec

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    LabelOf,
    QueueingHint,
    QueueingHintFn,
)
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodGroupInfo, QueuedPodInfo
from berth.scheduler.queue.rejected_pods import Rejector

log = logging.getLogger(__name__)

Registration = tuple[str, ClusterEventWithHint]
"""A plugin's name and one event that it registered."""

ObserveHint = Callable[[str, str, str, float], None]
"""Called after each queueing hint: plugin, label of the event, ``Queue``/``QueueSkip``/``Error``,
seconds."""


ObserveIndex = Callable[[str, str], None]
"""Called when an event was looked up in an index that is counted: plugin, ``all_pods`` if it finds
every pod, else ``narrowed``."""


class QueueingStrategy(IntEnum):
    """What an event means for a waiting pod; if plugins disagree, the largest wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class EventHints(msgspec.Struct, frozen=True, eq=False):
    """An event with all registrations for it, looked up once per event."""

    event: ClusterEvent
    label: str
    by_profile: Mapping[str, Sequence[tuple[str, QueueingHintFn | None]]]
    """Per profile, in order of registration, the plugins that registered it, each with its hint."""
    by_rejector: Mapping[Rejector, tuple[HintIndex, ...] | None]
    """All plugins that registered it: pods rejected by one of these may be helped. Each with what
    finds these pods; None: all of them are to be asked about."""
    counted: Sequence[tuple[str, HintIndex]]
    """The plugins with an index that is counted, once per profile."""
    is_wildcard: bool
    """Whether it is the event that stands for all changes."""
    is_of_interest: bool
    """Whether a plugin registered it; the wildcard event concerns every pod."""


class HintMap:
    """What the plugins of all profiles registered, by event."""

    def __init__(
        self,
        registrations: Mapping[str, Sequence[Registration]],
        *,
        clock: Clock,
        observe: ObserveHint,
        label_of: LabelOf = attrgetter("label"),
        observe_index: ObserveIndex = lambda _plugin, _result: None,
    ) -> None:
        """*label_of* names events in what is observed."""
        self._clock = clock
        self._label_of = label_of
        self._observe = observe
        self._observe_index = observe_index
        self.use(registrations)

    def use(self, registrations: Mapping[str, Sequence[Registration]]) -> None:
        """Continue with other registrations."""
        self._registrations = {
            profile: (*registered, *_taint_updates(registered))
            for profile, registered in registrations.items()
        }
        self._known: dict[ClusterEvent, EventHints] = {}

    def of(self, event: ClusterEvent) -> EventHints:
        """Return what is registered for *event*."""
        hints = self._known.get(event)
        if hints is None:
            by_profile: dict[str, list[tuple[str, QueueingHintFn | None]]] = {}
            by_rejector: dict[Rejector, tuple[HintIndex, ...] | None] = {}
            counted: list[tuple[str, HintIndex]] = []
            for profile, registered in self._registrations.items():
                matching = [named for named in registered if named[1].event.matches(event)]
                by_profile[profile] = [(plugin, with_hint.hint) for plugin, with_hint in matching]
                for plugin, with_hint in matching:
                    indexes = by_rejector.setdefault((profile, plugin), ())
                    by_rejector[profile, plugin] = (
                        None
                        if indexes is None or not with_hint.indexes
                        else (*indexes, *with_hint.indexes)
                    )
                    counted += [(plugin, each) for each in with_hint.indexes if each.is_counted]
            label = self._label_of(event)
            hints = EventHints(
                event,
                label,
                by_profile,
                by_rejector,
                counted,
                is_wildcard=event.is_wildcard,
                is_of_interest=event.is_wildcard or bool(by_rejector),
            )
            self._known[event] = hints
        return hints

    def indexes_of(self, rejector: Rejector) -> list[HintIndex]:
        """Return all that finds the pods that a plugin rejected, for any event."""
        profile, plugin = rejector
        return list(
            dict.fromkeys(
                index
                for name, registration in self._registrations.get(profile, ())
                if name == plugin
                for index in registration.indexes
            )
        )

    def count(self, hints: EventHints, old: Any, new: Any) -> None:
        """Count what the event, on *old* and *new*, finds in indexes that are counted."""
        for plugin, index in hints.counted:
            try:
                finds_all = index.keys_of_event(old, new) is None
            except Exception:  # a bug in a plugin; all pods are asked about then
                log.exception("no keys of an event", extra={"plugin": plugin})
                finds_all = True
            self._observe_index(plugin, "all_pods" if finds_all else "narrowed")

    def strategy_after(
        self, events: Iterable[tuple[EventHints, Any, Any]], queued: QueuedPodInfo
    ) -> QueueingStrategy:
        """Say what *events*, each on an old and a new object, come to for *queued*."""
        if not queued.unschedulable_plugins and not queued.pending_plugins:
            return QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for hints, old, new in events:
            wanted = self.is_pod_worth_requeuing(queued, hints, old=old, new=new)
            strategy = max(strategy, wanted)
            if strategy is QueueingStrategy.IMMEDIATELY:
                break
        return strategy

    def is_pod_worth_requeuing(
        self, queued: QueuedPodInfo, hints: EventHints, *, old: Any, new: Any
    ) -> QueueingStrategy:
        """Say whether the event, on *old* and *new*, makes *queued* worth another attempt.

        A hint that raises counts as Queue: a vain attempt costs less than a forgotten pod. A group
        is worth it if one of its pods is; of pods that are alike, one is asked about.
        """
        unschedulable, pending = queued.unschedulable_plugins, queued.pending_plugins
        if not unschedulable and not pending:
            return QueueingStrategy.AFTER_BACKOFF
        if hints.is_wildcard:
            is_another = new is not None and all(
                new.metadata.uid != member.uid for member in queued.pods
            )
            return QueueingStrategy.SKIP if is_another else QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for pod in representatives(queued, about=new):
            strategy = max(strategy, self._strategy_for(pod, queued, hints, old, new))
            if strategy is QueueingStrategy.IMMEDIATELY or (strategy and not pending):
                break
        return strategy

    def _strategy_for(
        self, pod: PodInfo, queued: QueuedPodInfo, hints: EventHints, old: Any, new: Any
    ) -> QueueingStrategy:
        """Ask the plugins that rejected *queued*, of which *pod* is one, about the event."""
        unschedulable, pending = queued.unschedulable_plugins, queued.pending_plugins
        strategy = QueueingStrategy.SKIP
        for plugin, hint in hints.by_profile.get(pod.pod.spec.scheduler_name, ()):
            if plugin not in unschedulable and plugin not in pending:
                continue
            if hint is not None:
                started = self._clock.monotonic()
                try:
                    answer = hint(pod.pod, old, new)
                    outcome = answer.value
                except Exception:  # a bug in a plugin must not lose the pod: it is tried
                    log.exception(
                        "queueing hint failed",
                        extra={"plugin": plugin, "event": hints.label, "pod": pod.key},
                    )
                    answer, outcome = QueueingHint.QUEUE, "Error"
                self._observe(plugin, hints.label, outcome, self._clock.monotonic() - started)
                if answer is QueueingHint.SKIP:
                    continue
            if plugin in pending:
                return QueueingStrategy.IMMEDIATELY
            strategy = QueueingStrategy.AFTER_BACKOFF
            if not pending:
                break
        return strategy


def representatives(queued: QueuedPodInfo, *, about: Any = None) -> Sequence[PodInfo]:
    """Return the pods of *queued* that stand for all of them: one, if all are alike.

    Hints give pods alike the same answers, as long as these have no claims or volumes of their own,
    and the event is not *about* one of them.
    """
    if not isinstance(queued, QueuedPodGroupInfo):
        return (queued.pod_info,)
    if not queued.are_alike:
        return [member.pod_info for member in queued.pods]
    changed = queued.members.get(about.metadata.key) if isinstance(about, Pod) else None
    return (queued.pod_info,) if changed is None else (queued.pod_info, changed.pod_info)


def _taint_updates(registered: Iterable[Registration]) -> list[Registration]:
    """Return a Node/UpdateNodeTaint for each plugin that wants Node/Add but no taint updates.

    Taints may have kept a new node from the plugin. When they go, the node is new to the plugin
    (spec §3.9).
    """
    node_actions: dict[str, ActionType] = {}
    for plugin, with_hint in registered:
        if with_hint.event.resource is EventResource.NODE:
            node_actions[plugin] = node_actions.get(plugin, ActionType(0)) | with_hint.event.action
    taint_update = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
    return [
        (plugin, ClusterEventWithHint(taint_update))
        for plugin, actions in node_actions.items()
        if actions & ActionType.ADD and not actions & ActionType.UPDATE_NODE_TAINT
    ]
