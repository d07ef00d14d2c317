"""The state of a pod, in words: where it is and what it waits for."""

from collections.abc import Iterable
from datetime import datetime
from math import ceil
from typing import Final

from berth.insight.explain.explanation import PodState, Whereabouts
from berth.insight.explain.wakers import woken_by
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_of
from berth.runtime.clock import rfc3339
from berth.scheduler.config.feature_gates import GANG_SCHEDULING
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.interface import PreEnqueuePlugin
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.queue.sub_queues import SubQueue
from berth.scheduler.reservation import Reservation

_WHERE: Final = {
    SubQueue.ACTIVE: Whereabouts.ACTIVE,
    SubQueue.BACKOFF: Whereabouts.BACKOFF,
    SubQueue.UNSCHEDULABLE: Whereabouts.UNSCHEDULABLE,
    SubQueue.GATED: Whereabouts.GATED,
    SubQueue.INCOMPLETE: Whereabouts.GATED,
    SubQueue.PENDING: Whereabouts.IN_FLIGHT,
}


def pod_state(pod: Pod, view: SchedulerView) -> PodState:
    """Say where *pod*, as the API has it, is for a scheduler."""
    state = _placed(pod, view) or _waiting(pod, view) or _elsewhere(pod, view)
    if pod.metadata.deletion_timestamp and state.where is not Whereabouts.DELETED:
        state = state.model_copy(update={"words": f"is being deleted; {state.words}"})
    nominated = view.queue.nominator.nominated_node(pod.metadata.uid)
    if not nominated:
        return state
    words, leaving = f"{state.words}; nominated to {nominated}", view.leaving(nominated)
    if leaving:
        words += f", which {', '.join(leaving)} must leave"
    update = {"nominated_node": nominated, "words": words, "leaving": leaving}
    return state.model_copy(update=update)


def whereabouts(pod: Pod, view: SchedulerView) -> Whereabouts:
    """Say where a pod that the scheduler knows is, and no more."""
    uid, queue = pod.metadata.uid, view.queue
    if pod.spec.node_name:
        return Whereabouts.BOUND
    if view.cache.pod(uid) is not None:
        binding = view.bindings.get(uid)
        is_waiting = binding is not None and binding.waiting is not None
        return Whereabouts.WAITING if is_waiting else Whereabouts.BINDING
    sub_queue = queue.sub_queues.place_of(pod.key)
    if sub_queue is not None:
        return _WHERE[sub_queue]
    if pod.metadata.deletion_timestamp:
        return Whereabouts.DELETED
    return Whereabouts.IN_FLIGHT if queue.is_in_flight(uid) else Whereabouts.UNQUEUED


def leaving_pods(waiting: Iterable[QueuedPodInfo], view: SchedulerView) -> tuple[str, ...]:
    """Return the pods that are being deleted where *waiting* are nominated to."""
    nominator = view.queue.nominator
    nodes = {nominator.nominated_node(queued.uid) for queued in waiting}
    return tuple(sorted({pod for node in nodes if node for pod in view.leaving(node)}))


def age_of(pod: Pod, now: float) -> float | None:
    """Return for how many seconds *pod* has been there; None if it does not say."""
    created = pod.metadata.creation_timestamp
    try:
        return None if created is None else now - datetime.fromisoformat(created).timestamp()
    except ValueError:
        return None


def _placed(pod: Pod, view: SchedulerView) -> PodState | None:
    counted = view.cache.pod(pod.metadata.uid)
    node = pod.spec.node_name or (counted.node_name if counted else "")
    if not node:
        return None
    is_bound = bool(pod.spec.node_name)
    placed = [r for r in view.decisions.of(pod.key) if r.uid == pod.metadata.uid and r.node]
    attempts = placed[-1].attempt if placed and placed[-1].node == node else None
    tried = f" at attempt {attempts}" if attempts else ""
    if is_bound:
        since = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        return PodState(
            where=Whereabouts.BOUND,
            words=f"bound to {node}{tried}",
            node=node,
            attempts=attempts,
            since=since.last_transition_time if since and since.status == "True" else None,
        )
    binding = view.bindings.get(pod.metadata.uid)
    if binding is not None and binding.waiting is not None:
        return _permitted(binding.reservation, binding.waiting, view)
    return PodState(
        where=Whereabouts.BINDING,
        words=f"being bound to {node}{tried}",
        node=node,
        attempts=attempts,
        since=None if binding is None else view.at(binding.reservation.started),
    )


def _permitted(reservation: Reservation, waiting: WaitingPod, view: SchedulerView) -> PodState:
    node, deadlines = reservation.node_name, waiting.deadlines
    times = [deadline for deadline in deadlines.values() if deadline is not None]
    until = rfc3339(min(times)) if times else None
    limit = f" until {until}" if until else ""
    return PodState(
        where=Whereabouts.WAITING,
        words=f"has room on {node}, and waits for Permit of {', '.join(sorted(deadlines))}{limit}",
        node=node,
        attempts=reservation.queued.attempts,
        since=view.at(reservation.started),
        until=until,
        waits_for=tuple(sorted(deadlines)),
    )


def _waiting(pod: Pod, view: SchedulerView) -> PodState | None:
    queue = view.queue
    queued, sub_queue = queue.sub_queues.get(pod.key), queue.sub_queues.place_of(pod.key)
    if queued is None or sub_queue is None:
        return None
    match sub_queue:
        case SubQueue.ACTIVE:
            return _active(queued, view)
        case SubQueue.BACKOFF:
            return _backoff(queued, view)
        case SubQueue.GATED:
            return _gated(queued, view)
        case SubQueue.UNSCHEDULABLE:
            return _unschedulable(queued, view)
        case SubQueue.INCOMPLETE:
            return _incomplete(queued, view)
        case SubQueue.PENDING:
            return PodState(where=Whereabouts.IN_FLIGHT, words="waits while its group is tried")


def _active(queued: QueuedPodInfo, view: SchedulerView) -> PodState:
    ahead = view.queue.sub_queues.ahead_of(queued.key)
    first = view.queue.sub_queues.first_active()
    words = "not tried yet" if not queued.attempts else f"to be tried again, {_tried(queued)}"
    line = f"{_number(ahead, 'pod')} ahead, first {first.key}" if ahead and first else "it is next"
    return PodState(
        where=Whereabouts.ACTIVE,
        words=f"{words}: {line}",
        attempts=queued.attempts,
        since=rfc3339(queued.timestamp),
        pods_ahead=ahead,
        waits_for=rejectors_of(queued),
    )


def _backoff(queued: QueuedPodInfo, view: SchedulerView) -> PodState:
    end = view.queue.sub_queues.next_try(queued) or view.clock.now()
    left = max(ceil(end - view.clock.now()), 0)
    until = rfc3339(end)
    is_of_group = view.groups is not None and group_of(queued.pod) is not None
    is_error = not is_of_group and not rejectors_of(queued)  # in a group, others may be the reason
    why = "; the last attempt ended in an error" if is_error else ""
    return PodState(
        where=Whereabouts.BACKOFF,
        words=f"in backoff until {until}, {left} s from now, {_tried(queued)}{why}",
        attempts=queued.attempts,
        since=rfc3339(queued.timestamp),
        until=until,
        waits_for=rejectors_of(queued),
    )


def _gated(queued: QueuedPodInfo, view: SchedulerView) -> PodState:
    plugin, why = queued.gating_plugin, ""
    if not plugin:  # another pod of its group is gated
        plugin = view.queue.sub_queues.entity_of(queued).gating_plugin
    profile = view.profiles.get(queued.pod.spec.scheduler_name)
    for gate in profile.pre_enqueue if profile else ():
        if gate.NAME == plugin:  # noqa: SIM300 - the class's name is no constant to compare with
            why = _refusal(gate, queued)
    return PodState(
        where=Whereabouts.GATED,
        words=f"gated by {plugin}: {why}" if why else f"gated by {plugin}",
        attempts=queued.attempts,
        since=rfc3339(queued.timestamp),
        waits_for=(plugin,),
        woken_by=woken_by(profile, (plugin,)) if profile else {},
    )


def _incomplete(queued: QueuedPodInfo, view: SchedulerView) -> PodState:
    profile = view.profiles.get(queued.pod.spec.scheduler_name)
    return PodState(
        where=Whereabouts.GATED,
        words=f"waits for podgroup {group_of(queued.pod)}, which does not exist",
        attempts=queued.attempts,
        since=rfc3339(queued.timestamp),
        waits_for=(GANG_SCHEDULING,),
        woken_by=woken_by(profile, (GANG_SCHEDULING,)) if profile else {},
    )


def _refusal(gate: PreEnqueuePlugin, queued: QueuedPodInfo) -> str:
    try:
        status = gate.pre_enqueue(queued.pod_info)
    except Exception as exc:  # noqa: BLE001 - as the queue sees it: a gate with a bug stays shut
        return repr(exc)
    return status.message if status else ""


def _unschedulable(queued: QueuedPodInfo, view: SchedulerView) -> PodState:
    queue = view.queue.sub_queues
    plugins, flushed = rejectors_of(queue.entity_of(queued)), queue.next_try(queued)
    profile = view.profiles.get(queued.pod.spec.scheduler_name)
    return PodState(
        where=Whereabouts.UNSCHEDULABLE,
        words=f"waits until something changes for {', '.join(plugins)}, {_tried(queued)}",
        attempts=queued.attempts,
        since=rfc3339(queued.timestamp),
        until=None if flushed is None else rfc3339(flushed),
        waits_for=plugins,
        woken_by=woken_by(profile, plugins) if profile else {},
    )


def _elsewhere(pod: Pod, view: SchedulerView) -> PodState:
    name = pod.spec.scheduler_name
    if name not in view.profiles:
        here = ", ".join(view.profiles)
        words = f"waits for another scheduler: spec.schedulerName is {name!r}, not one of {here}"
        return PodState(where=Whereabouts.FOREIGN, words=words)
    if pod.metadata.deletion_timestamp:
        return PodState(where=Whereabouts.DELETED, words="is being deleted, and has no node")
    if not view.schedules:
        words = f"waits for {name} elsewhere: nothing is scheduled here"
        return PodState(where=Whereabouts.FOREIGN, words=words)
    if view.queue.is_in_flight(pod.metadata.uid):
        return PodState(where=Whereabouts.IN_FLIGHT, words="is being tried")
    if replica := view.decided_by(pod):
        words = f"waits for {name} elsewhere: {replica} decides about it"
        return PodState(where=Whereabouts.FOREIGN, words=words)
    return PodState(where=Whereabouts.UNQUEUED, words="has not reached the queue yet")


def rejectors_of(queued: QueuedPodInfo) -> tuple[str, ...]:
    """Return the plugins that *queued* waits for, by name."""
    return tuple(sorted(queued.unschedulable_plugins | queued.pending_plugins))


def _tried(queued: QueuedPodInfo) -> str:
    return f"after {_number(queued.attempts, 'attempt')}"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
