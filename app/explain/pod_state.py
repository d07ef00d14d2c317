"""Where a pod is and what it waits for, in words."""

from math import ceil

from app.clock import Clock, rfc3339
from app.explain.explanation import PodState, Whereabouts
from app.framework.interface import PreEnqueuePlugin
from app.framework.pod_info import QueuedPodInfo
from app.objects.pod import Pod
from app.queue.scheduling_queue import SubQueue
from app.scheduler.scheduler import Scheduler


def pod_state(pod: Pod, *, scheduler: Scheduler, clock: Clock) -> PodState:
    """Say where *pod*, as the API has it, is for *scheduler*. Reads only."""
    found = _placed(pod, scheduler) or _waiting(pod, scheduler, clock) or _elsewhere(pod, scheduler)
    nominated = scheduler.queue.nominator.nominated_node(pod.metadata.uid)
    if nominated:
        words = f"{found.words}; nominated to {nominated}"
        return found.model_copy(update={"nominated_node": nominated, "words": words})
    return found


def _placed(pod: Pod, scheduler: Scheduler) -> PodState | None:
    counted = scheduler.cache.pod(pod.metadata.uid)
    node = pod.spec.node_name or (counted.node_name if counted else "")
    if not node:
        return None
    is_bound = bool(pod.spec.node_name)
    placed = [r for r in scheduler.decisions.of(pod.key) if r.uid == pod.metadata.uid and r.node]
    attempts = placed[-1].attempt if placed and placed[-1].node == node else None
    verb = "bound" if is_bound else "being bound"
    return PodState(
        where=Whereabouts.BOUND if is_bound else Whereabouts.BINDING,
        words=f"{verb} to {node}" + (f" at attempt {attempts}" if attempts else ""),
        node=node,
        attempts=attempts,
    )


def _waiting(pod: Pod, scheduler: Scheduler, clock: Clock) -> PodState | None:
    queue = scheduler.queue
    queued, sub_queue = queue.get(pod.key), queue.sub_queue_of(pod.key)
    if queued is None or sub_queue is None:
        return None
    match sub_queue:
        case SubQueue.ACTIVE:
            return _active(queued, [other.key for other in queue.pods(SubQueue.ACTIVE)])
        case SubQueue.BACKOFF:
            return _backoff(queued, clock)
        case SubQueue.GATED:
            return _gated(queued, scheduler)
        case SubQueue.UNSCHEDULABLE:
            return _unschedulable(queued)


def _active(queued: QueuedPodInfo, order: list[str]) -> PodState:
    ahead = order.index(queued.key)
    words = "not tried yet" if not queued.attempts else f"to be tried again, {_tried(queued)}"
    line = f"{_number(ahead, 'pod')} ahead, first {order[0]}" if ahead else "it is next"
    return PodState(
        where=Whereabouts.ACTIVE,
        words=f"{words}: {line}",
        attempts=queued.attempts,
        pods_ahead=ahead,
        waits_for=_rejectors(queued),
    )


def _backoff(queued: QueuedPodInfo, clock: Clock) -> PodState:
    # The queue asks for this to order pods in backoff; the second in which it ends counts as rest.
    end = (queued.backoff_expiration or 0.0) + 1
    left = max(ceil(end - clock.now()), 0)
    until = rfc3339(end)
    why = "" if _rejectors(queued) else "; the last attempt broke"
    return PodState(
        where=Whereabouts.BACKOFF,
        words=f"in backoff until {until}, {left} s from now, {_tried(queued)}{why}",
        attempts=queued.attempts,
        until=until,
        waits_for=_rejectors(queued),
    )


def _gated(queued: QueuedPodInfo, scheduler: Scheduler) -> PodState:
    plugin, why = queued.gating_plugin, ""
    profile = scheduler.profiles.get(queued.pod.spec.scheduler_name)
    for gate in profile.pre_enqueue if profile else ():
        if gate.NAME == plugin:  # noqa: SIM300 - the class's name is no constant to compare with
            why = _refusal(gate, queued)
    return PodState(
        where=Whereabouts.GATED,
        words=f"gated by {plugin}: {why}" if why else f"gated by {plugin}",
        attempts=queued.attempts,
        waits_for=(plugin,),
    )


def _refusal(gate: PreEnqueuePlugin, queued: QueuedPodInfo) -> str:
    try:
        status = gate.pre_enqueue(queued.pod_info)
    except Exception as exc:  # noqa: BLE001 - as the queue sees it: a gate with a bug stays shut
        return repr(exc)
    return status.message if status else ""


def _unschedulable(queued: QueuedPodInfo) -> PodState:
    plugins = _rejectors(queued)
    return PodState(
        where=Whereabouts.UNSCHEDULABLE,
        words=f"waits until something changes for {', '.join(plugins)}, {_tried(queued)}",
        attempts=queued.attempts,
        waits_for=plugins,
    )


def _elsewhere(pod: Pod, scheduler: Scheduler) -> PodState:
    name = pod.spec.scheduler_name
    if name not in scheduler.profiles:
        words = f"waits for another scheduler: spec.schedulerName is {name!r}"
        return PodState(where=Whereabouts.FOREIGN, words=words)
    if pod.metadata.deletion_timestamp:
        return PodState(where=Whereabouts.DELETED, words="is being deleted, and has no node")
    if scheduler.queue.is_in_flight(pod.metadata.uid):
        return PodState(where=Whereabouts.IN_FLIGHT, words="is being tried")
    return PodState(where=Whereabouts.UNQUEUED, words="has not reached the queue yet")


def _rejectors(queued: QueuedPodInfo) -> tuple[str, ...]:
    return tuple(sorted(queued.unschedulable_plugins | queued.pending_plugins))


def _tried(queued: QueuedPodInfo) -> str:
    return f"after {_number(queued.attempts, 'attempt')}"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
