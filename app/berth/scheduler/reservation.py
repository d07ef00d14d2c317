"""Reservations of a pod on its node until it is bound: Assume, Reserve (spec §2.7)."""

import logging
from contextlib import ExitStack

import msgspec

from berth.scheduler.cache.cache import Cache, CacheError
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import ASSIGNED_POD_DELETE
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)


class Reservation(msgspec.Struct, frozen=True, eq=False):
    """The room of an assumed pod, what Reserve plugins keep for it, and how to give both back."""

    queued: QueuedPodInfo
    profile: Profile
    state: CycleState
    assumed: PodInfo
    started: float
    """When the attempt began, in monotonic seconds."""
    undo: ExitStack
    """Unreserves, then forgets the pod."""
    waiting: WaitingPod | None = None
    """Set if Permit plugins want the pod to wait."""

    @property
    def node_name(self) -> str:
        return self.assumed.node_name


def assumed_on(pod: PodInfo, node_name: str, state: CycleState) -> PodInfo:
    """Return *pod* as it counts on a node: with what its claims take there (spec G15.3)."""
    if not state.claim_statuses:
        return pod.on_node(node_name)
    statuses = tuple(state.claim_statuses.get(node_name, ()))
    known = pod.pod.status
    if statuses == known.node_allocatable_resource_claim_statuses:
        return pod.on_node(node_name)
    status = msgspec.structs.replace(known, node_allocatable_resource_claim_statuses=statuses)
    return PodInfo(msgspec.structs.replace(pod.pod, status=status), node_name=node_name)


def assume(pod: PodInfo, cache: Cache, undo: ExitStack) -> Status | None:
    """Count *pod* on its node until *undo* forgets it; an error if the cache has it already."""
    try:
        cache.assume_pod(pod)
    except CacheError as exc:
        return Status.error(str(exc))
    undo.callback(forget, pod, cache)
    return None


def reserve(pod: PodInfo, profile: Profile, state: CycleState, undo: ExitStack) -> Status | None:
    """Run Reserve for an assumed pod; *undo* unreserves, even where Reserve has failed."""
    undo.callback(profile.run_unreserve, state, pod, pod.node_name)
    return profile.run_reserve(state, pod, pod.node_name)


def forget(pod: PodInfo, cache: Cache) -> bool:
    """Give the room of an assumed pod back, unless the watch said meanwhile that it is bound.

    That happens when a binding succeeds and says it did not. Returns whether the room is free.
    """
    try:
        cache.forget_pod(pod)
    except CacheError as exc:
        log.warning("could not forget an assumed pod", extra={"pod": pod.key, "error": str(exc)})
        return False
    return True


def wake_for_room_of(pod: PodInfo, queue: SchedulingQueue, *, but_not: str = "") -> None:
    """Move the pods that wait for what a forgotten *pod* held, as if it had been deleted (§2.9).

    *but_not* is the UID of one that is not moved.
    """
    queue.move_all_to_active_or_backoff_queue(
        ASSIGNED_POD_DELETE,
        old=pod.pod.assigned_to(pod.node_name),
        pre_check=(lambda waiting: waiting.metadata.uid != but_not) if but_not else None,
    )
