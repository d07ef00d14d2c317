"""Event handlers: watch events into queue, cache and listers (spec §11), one per kind."""

import logging
from collections.abc import Callable, Container
from typing import Any, Generic, Protocol, TypeVar

from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.devices import ResourceClaim, ResourceSlice
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import group_of
from berth.scheduler.binding import Bindings
from berth.scheduler.cache.cache import Cache, CacheError
from berth.scheduler.config.feature_gates import DRA_DEVICE_TAINT_RULES
from berth.scheduler.foreign_binds import ForeignBinds
from berth.scheduler.framework.assume_cache import resource_claim_cache
from berth.scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    TARGET_POD_UPDATE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    ActionType,
    ClusterEvent,
    LabelOf,
    label_of,
)
from berth.scheduler.framework.kind import NODES, PODS, Kind
from berth.scheduler.framework.listers import ApiObject, Lister, Listers
from berth.scheduler.framework.pod_group_sources import kinds_of_pod_groups
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.resource_slice_tracker import resource_slice_tracker
from berth.scheduler.preemption import Preemptions
from berth.scheduler.queue.events_from_update import (
    TELLS_SCALE_UP,
    node_scheduling_properties_change,
    pod_scheduling_properties_change,
)
from berth.scheduler.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)
T_co = TypeVar("T_co", bound=ApiObject, covariant=True)


class EventTimer:
    """Measures how long handling an event takes (spec §8, ``event_handling_duration_seconds``)."""

    def __init__(self, now: Callable[[], float], observe: Callable[[str, float], None]) -> None:
        """*now* is a monotonic time; *observe* is given the event's label and seconds."""
        self.now = now
        self._observe = observe

    def took(self, label: str, started: float) -> None:
        """Note that the event, begun at *started* by :meth:`now`, has been handled."""
        self._observe(label, self.now() - started)


def all_event_handlers(
    listers: Listers,
    *,
    queue: SchedulingQueue,
    cache: Cache,
    bindings: Bindings,
    preemptions: Preemptions,
    scheduler_names: Container[str],
    timer: EventTimer,
    foreign_binds: ForeignBinds,
    features: Container[object] = (),
    pod_groups: PodGroups | None = None,
    is_queued_for_resize: Callable[[Pod], bool] = lambda _pod: False,
    pod_handler: "Callable[..., PodHandler] | None" = None,
    node_handler: "Callable[..., NodeHandler] | None" = None,
) -> dict[Kind[Any], ResourceEventHandler[Any]]:
    """Return the handler of every kind, nodes and pods first.

    Pods of *scheduler_names* are ours. A kind that no pod waits for has its lister only; one whose
    feature gate is not among *features*, no handler. *pod_groups* are told of the pods that wait.
    *is_queued_for_resize* tells of a pod with a node whether it is queued all the same.
    *pod_handler* and *node_handler* make handlers in place of those here, the first one first.
    """
    of_pods = (pod_handler or PodHandler)(
        queue=queue,
        cache=cache,
        bindings=bindings,
        preemptions=preemptions,
        scheduler_names=scheduler_names,
        timer=timer,
        foreign_binds=foreign_binds,
        waiting_groups=WaitingGroups(pod_groups) if pod_groups is not None else None,
        label_of=label_of(features),
        tells_scale_up=TELLS_SCALE_UP in features,
        is_queued_for_resize=is_queued_for_resize,
    )
    of_nodes = (node_handler or NodeHandler)(queue=queue, cache=cache, timer=timer)
    handlers: dict[Kind[Any], ResourceEventHandler[Any]] = {NODES: of_nodes, PODS: of_pods}
    for kind, lister in listers.by_kind().items():
        if kind.feature and kind.feature not in features:
            continue
        if kind.event is None:
            handlers[kind] = lister
        else:
            source = _source_of(kind, listers, features)
            handlers[kind] = KindHandler(kind, lister, source, queue=queue, timer=timer)
    for kind in kinds_of_pod_groups(features):
        handlers[kind] = KindHandler(kind, listers.pod_groups, queue=queue, timer=timer)
    return handlers


class Source(Protocol[T_co]):
    """Objects of a kind as they count, if that is not as the watch reports them."""

    def follow(self, change: Callable[[T_co | None, T_co | None], None], /) -> None: ...


def _source_of(
    kind: Kind[Any], listers: Listers, features: Container[object]
) -> Source[Any] | None:
    if kind.type is ResourceClaim:
        return resource_claim_cache(listers)
    if kind.type is ResourceSlice and DRA_DEVICE_TAINT_RULES in features:
        return resource_slice_tracker(listers)
    return None


class KindHandler(Generic[T]):
    """Updates the lister of a kind, and wakes the pods that wait for the change.

    The lister comes first: a pod that is tried again sees what woke it.
    """

    def __init__(
        self,
        kind: Kind[Any],
        lister: Lister[T],
        source: Source[T] | None = None,
        *,
        queue: SchedulingQueue,
        timer: EventTimer,
    ) -> None:
        """With a *source*, its changes wake pods: those that we assume, too, as they are made."""
        assert kind.event is not None, kind.name
        self._lister = lister
        self._queue = queue
        self._timer = timer
        self._wakes = kind.wakes
        self._add = ClusterEvent(kind.event, ActionType.ADD)
        self._update = ClusterEvent(kind.event, ActionType.UPDATE)
        self._delete = ClusterEvent(kind.event, ActionType.DELETE)
        # Put together once.
        self._labels = [event.label for event in (self._add, self._update, self._delete)]
        self._is_following = source is not None
        if source is not None:
            source.follow(self._move)

    def on_add(self, obj: T) -> None:
        started = self._timer.now()
        self._lister.on_add(obj)
        if not self._is_following:
            self._move(None, obj)
        self._timer.took(self._labels[0], started)

    def on_update(self, old: T, new: T) -> None:
        started = self._timer.now()
        self._lister.on_update(old, new)
        if not self._is_following:
            self._move(old, new)
        self._timer.took(self._labels[1], started)

    def on_delete(self, obj: T) -> None:
        started = self._timer.now()
        self._lister.on_delete(obj)
        if not self._is_following:
            self._move(obj, None)
        self._timer.took(self._labels[2], started)

    def _move(self, old: Any, new: Any) -> None:
        """Try again the pods that the change may help."""
        event = self._add if old is None else self._delete if new is None else self._update
        if event.action & self._wakes:
            self._queue.move_all_to_active_or_backoff_queue(event, old=old, new=new)


# Labels of the events, put together once.
_ASSIGNED_POD_ADD, _ASSIGNED_POD_DELETE = ASSIGNED_POD_ADD.label, ASSIGNED_POD_DELETE.label
_NODE_ADD, _NODE_DELETE = NODE_ADD.label, NODE_DELETE.label


class WaitingGroups:
    """Tells the groups of the pods that wait, and the queue when a gang has all that it needs."""

    def __init__(self, pod_groups: PodGroups) -> None:
        self._pod_groups = pod_groups

    def see(self, pod: Pod) -> None:
        self._pod_groups.see(pod)

    def forget(self, pod: Pod) -> None:
        self._pod_groups.forget(pod)

    def is_complete(self, pod: Pod) -> bool:
        """Whether *pod* is of a gang, or of a tree of groups, that is large enough to be tried.

        kube-scheduler has every new pod of a group looked at by all others of it. Before there are
        enough, none of them could leave, so that a gang of n pods costs n looks and not n squared.
        """
        key = group_of(pod)
        if key is None:
            return False
        hierarchy = self._pod_groups.hierarchy
        root = hierarchy.root(key)
        return root is not None and hierarchy.has_enough(root, self._pod_groups.all_pods_count)


class PodHandler:
    """Puts bound pods into the cache, and waiting pods of our profiles into the queue."""

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        cache: Cache,
        bindings: Bindings,
        preemptions: Preemptions,
        scheduler_names: Container[str],
        timer: EventTimer,
        foreign_binds: ForeignBinds,
        waiting_groups: WaitingGroups | None = None,
        label_of: LabelOf,
        tells_scale_up: bool,
        is_queued_for_resize: Callable[[Pod], bool],
    ) -> None:
        # The labels of what happens to waiting pods. That an update is of the pod itself is a guess
        # (1.37 spec N3.15 names the resources only).
        self._add, self._update, self._delete = map(
            label_of, (UNSCHEDULED_POD_ADD, TARGET_POD_UPDATE, UNSCHEDULED_POD_DELETE)
        )
        self._tells_scale_up = tells_scale_up
        self._is_queued_for_resize = is_queued_for_resize
        self._groups = waiting_groups
        self._queue = queue
        self._cache = cache
        self._bindings = bindings
        self._preemptions = preemptions
        self._scheduler_names = scheduler_names
        self._timer = timer
        self._foreign_binds = foreign_binds

    def on_add(self, pod: Pod) -> None:
        started = self._timer.now()
        if pod.spec.node_name:
            self._cache.add_pod(PodInfo(pod))
            self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_ADD, new=pod)
            self._timer.took(_ASSIGNED_POD_ADD, started)
            if self._is_queued_for_resize(pod):
                self._queue.add(pod)
        elif self._is_ours(pod):
            self._add_waiting(pod)
            self._timer.took(self._add, started)

    def on_update(self, old: Pod, new: Pod) -> None:
        started = self._timer.now()
        if new.metadata.deletion_timestamp is not None:
            self._preemptions.pod_leaves(new, self._queue)
        if old.spec.node_name and not new.spec.node_name:
            # Nothing unbinds a pod, except an API server that is restored from a backup.
            self.on_delete(old)
            self.on_add(new)
        elif old.spec.node_name:
            self._cache.update_pod(PodInfo(new))
            self._follow_resize(old, new)
            for event in pod_scheduling_properties_change(
                old, new, tells_scale_up=self._tells_scale_up
            ):
                self._queue.move_all_to_active_or_backoff_queue(event, old=old, new=new)
                self._timer.took(event.label, started)
        elif new.spec.node_name:
            was_ours = self._is_ours(old)
            if was_ours:
                self._notice_foreign_bind(new)
            self._cache.add_pod(PodInfo(new))
            if was_ours:
                if self._groups is not None:
                    self._groups.forget(old)
                self._queue.delete(old)
            self._follow_resize(old, new)
            self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_ADD, new=new)
            self._timer.took(_ASSIGNED_POD_ADD, started)
        elif self._is_ours(old):
            self._update_waiting(old, new)
            self._timer.took(self._update, started)

    def _follow_resize(self, old: Pod, new: Pod) -> None:
        """Queue a pod that runs while it waits for room on its node (1.37 spec N12.2)."""
        was_queued, is_queued = map(self._is_queued_for_resize, (old, new))
        if was_queued and is_queued:
            self._queue.update(old, new)
        elif is_queued:
            self._queue.add(new)
        elif was_queued:
            self._queue.delete(new)

    def _notice_foreign_bind(self, pod: Pod) -> None:
        """Note a pod that was bound elsewhere than we have it, or was not to be bound by us."""
        uid, node_name = pod.metadata.uid, pod.spec.node_name
        assumed = self._cache.pod(uid)
        ours = None if assumed is None else assumed.node_name
        if ours != node_name and not self._bindings.was_sent(uid, node_name):
            self._foreign_binds.saw(pod, ours=ours)

    def _add_waiting(self, pod: Pod) -> None:
        if self._groups is not None:
            self._groups.see(pod)
        self._queue.add(pod)
        if self._groups is not None and self._groups.is_complete(pod):
            self._queue.move_all_to_active_or_backoff_queue(UNSCHEDULED_POD_ADD, new=pod)

    def _update_waiting(self, old: Pod, new: Pod) -> None:
        if self._groups is not None:
            self._groups.see(new)
        if self._cache.is_assumed(new.metadata.uid):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._give_up_assumed(new)
            return
        self._queue.update(old, new)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._queue.move_all_to_active_or_backoff_queue(
                ASSIGNED_POD_DELETE, old=old, pre_check=_at_most(old.spec.priority or 0)
            )

    def on_delete(self, pod: Pod) -> None:
        started = self._timer.now()
        self._preemptions.pod_leaves(pod, self._queue)
        if pod.spec.node_name:
            if self._is_queued_for_resize(pod):
                self._queue.delete(pod)
            self._cache.remove_pod(pod)
            self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, old=pod)
            self._timer.took(_ASSIGNED_POD_DELETE, started)
        elif self._is_ours(pod):
            if self._groups is not None:
                self._groups.forget(pod)
            self._queue.delete(pod)
            if self._cache.is_assumed(pod.metadata.uid):
                self._give_up_assumed(pod)
            elif pod.status.nominated_node_name:
                self._queue.move_all_to_active_or_backoff_queue(
                    ASSIGNED_POD_DELETE, old=pod, pre_check=_at_most(pod.spec.priority or 0)
                )
            self._timer.took(self._delete, started)

    def _give_up_assumed(self, pod: Pod) -> None:
        """Free the room of an assumed pod that is deleted (spec §11.2).

        A waiting pod of Permit plugins is rejected, which frees the room; a binding fails anyway.
        """
        assumed = self._cache.pod(pod.metadata.uid)
        if assumed is not None:
            if self._bindings.reject_waiting(pod.metadata.uid, "removed"):
                return
            try:
                self._cache.forget_pod(assumed)
            except CacheError:
                log.exception("could not forget a deleted pod", extra={"pod": pod.key})
            pod = pod.assigned_to(assumed.node_name)
        self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, old=pod)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler_names


class NodeHandler:
    """Updates nodes in the cache, and wakes the pods that wait for the change."""

    def __init__(self, *, queue: SchedulingQueue, cache: Cache, timer: EventTimer) -> None:
        self._queue = queue
        self._cache = cache
        self._timer = timer

    def on_add(self, node: Node) -> None:
        started = self._timer.now()
        self._cache.add_node(node)
        self._queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node)
        self._timer.took(_NODE_ADD, started)

    def on_update(self, old: Node, new: Node) -> None:
        started = self._timer.now()
        self._cache.update_node(new)
        for event in node_scheduling_properties_change(old, new):
            self._queue.move_all_to_active_or_backoff_queue(event, old=old, new=new)
            self._timer.took(event.label, started)

    def on_delete(self, node: Node) -> None:
        started = self._timer.now()
        self._queue.move_all_to_active_or_backoff_queue(NODE_DELETE, old=node)
        self._cache.remove_node(node.metadata.name)
        self._timer.took(_NODE_DELETE, started)


def _at_most(priority: int) -> Callable[[Pod], bool]:
    """Match waiting pods that a nominated pod of this priority held back."""
    return lambda waiting: waiting.priority <= priority
