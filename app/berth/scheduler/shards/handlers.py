"""Event handlers of a replica that shares the cluster: whose pod it is may change."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.event_handlers import NodeHandler, PodHandler
from berth.scheduler.framework.events import ActionType, ClusterEvent, EventResource
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.shards.offers import Offers
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import minds_other_nodes, offered_to

SHARDS_CHANGE: Final = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ShardsChange")
"""Nodes that were for nobody are for somebody."""


class ShardedPodHandler(PodHandler):
    """Queues the pods that this replica decides about, and counts others' offers.

    A pod that is offered to another's node counts there as an assumed one, on every replica: it
    will be bound there unless it is refused.
    """

    def __init__(
        self,
        *,
        ownership: Ownership,
        offers: Offers,
        pods: Mapping[str, Pod],
        catch_up: Callable[[], None],
        **parts: Any,
    ) -> None:
        """*pods* is the informer's store, by namespace/name; *catch_up* has it tell of what it has
        put off."""
        super().__init__(**parts)
        self._ownership = ownership
        self._offers = offers
        self._pods = pods
        self._catch_up = catch_up
        self._table = self._cache.table
        self._offered: dict[str, Pod] = {}
        """By UID, the pods without a node that are offered, whoever offers them."""
        self.minding: set[str] = set()
        """The namespaces in which it has decided about pods that mind other nodes. For reading
        only."""

    def on_add(self, pod: Pod) -> None:
        super().on_add(pod)
        status = pod.status
        if not pod.spec.node_name and (status.conditions or status.nominated_node_name):
            self._see(pod, is_ours=self._is_ours(pod))

    def on_update(self, old: Pod, new: Pod) -> None:
        self._offers.saw(new)
        if old.spec.node_name:
            super().on_update(old, new)
            return
        if new.spec.node_name:
            super().on_update(old, new)
            self._offered.pop(new.metadata.uid, None)
            if old.status.nominated_node_name:
                self._queue.nominator.delete_nominated_pod_if_exists(new.metadata.uid)
            self._ownership.ours.discard(new.metadata.uid)
            return
        was_ours, is_ours = self._was_ours(old), self._is_ours(new)
        if was_ours and is_ours:
            if offered_to(new) and not offered_to(old):
                self._offers.withdraw(new.metadata.uid)  # the node is gone, or ours by now
            super().on_update(old, new)
        elif is_ours:
            self._take_up(new)
        elif was_ours:
            self._give_up(old)
        self._see(new, is_ours=is_ours)

    def on_delete(self, pod: Pod) -> None:
        self._offers.saw_gone(pod)
        super().on_delete(pod)
        if not pod.spec.node_name:
            self._offered.pop(pod.metadata.uid, None)
            self._queue.nominator.delete_nominated_pod_if_exists(pod.metadata.uid)
            if not self._was_ours(pod):
                self._uncount(pod)
            self._ownership.ours.discard(pod.metadata.uid)

    def hand_over(self, before: frozenset[int], now: frozenset[int]) -> None:
        """Take up the waiting pods of slots that are active *now*, give up those of others.

        Linear in the number of pods.
        """
        self._catch_up()
        self._rejudge(self._pods.values(), before ^ now)

    def nodes_opened(self) -> None:
        """Try again the pods that wait: there are nodes that they could not be offered to."""
        self._queue.move_all_to_active_or_backoff_queue(SHARDS_CHANGE)

    def rejudge_offers_to(self, node: str) -> None:
        """Look again who decides about the pods that are offered to *node*, which came or went."""
        self._rejudge([pod for pod in self._offered.values() if offered_to(pod) == node], None)

    def _rejudge(self, pods: Collection[Pod], slots: frozenset[int] | None) -> None:
        for pod in pods:
            if pod.spec.node_name or pod.spec.scheduler_name not in self._scheduler_names:
                continue
            if slots is not None and self._ownership.slot_of_pod(pod, self._table) not in slots:
                continue
            is_ours = self._is_ours(pod)
            if not is_ours:
                self._give_up(pod)
            elif not self._was_ours(pod):
                self._take_up(pod)
            self._see(pod, is_ours=is_ours)

    def _take_up(self, pod: Pod) -> None:
        """Decide about *pod* from now on; after the own binding cycle, if that has offered it."""
        if self._bindings.get(pod.metadata.uid) is not None:
            self._ownership.ours.add(pod.metadata.uid)
            self._offers.withdraw(pod.metadata.uid)
        else:
            self._uncount(pod)
            self._add_waiting(pod)

    def _give_up(self, pod: Pod) -> None:
        """Leave *pod* to another replica."""
        if self._groups is not None:
            self._groups.forget(pod)
        self._queue.delete(pod)
        self._ownership.ours.discard(pod.metadata.uid)

    def _add_waiting(self, pod: Pod) -> None:
        self._ownership.ours.add(pod.metadata.uid)
        namespace = pod.metadata.namespace
        if namespace not in self.minding and minds_other_nodes(pod.spec):
            self.minding.add(namespace)
            self._catch_up()
        super()._add_waiting(pod)

    def _see(self, pod: Pod, *, is_ours: bool) -> None:
        """Count what others mean to do with *pod*: where they offer it, or preempt for it."""
        node, uid = offered_to(pod), pod.metadata.uid
        if node:
            self._offered[uid] = pod
        else:
            self._offered.pop(uid, None)
        if is_ours or pod.spec.scheduler_name not in self._scheduler_names:
            return
        if self._cache.pod(uid) is None:
            if node in self._table.row_of:
                self._cache.assume_pod(PodInfo(pod).on_node(node))
        elif not node:
            self._uncount(pod)
        if pod.status.nominated_node_name:
            self._queue.nominator.add_nominated_pod(PodInfo(pod))
        else:
            self._queue.nominator.delete_nominated_pod_if_exists(uid)

    def _uncount(self, pod: Pod) -> None:
        """Forget a pod that was assumed where another offered it."""
        uid = pod.metadata.uid
        counted = self._cache.pod(uid)
        if counted is not None and self._cache.is_assumed(uid) and self._bindings.get(uid) is None:
            self._cache.forget_pod(counted)

    def _is_ours(self, pod: Pod) -> bool:
        return super()._is_ours(pod) and self._ownership.has_pod(pod, self._table)

    def _was_ours(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._ownership.ours


class ShardedNodeHandler(NodeHandler):
    """Also looks again at the pods that are offered to a node that comes, goes or gets a slot."""

    def __init__(
        self,
        *,
        ownership: Ownership,
        pod_handler: ShardedPodHandler,
        catch_up: Callable[[], None],
        **parts: Any,
    ) -> None:
        """*catch_up* is as for pods: a node may become one of this replica by its record."""
        super().__init__(**parts)
        self._ownership = ownership
        self._pod_handler = pod_handler
        self._catch_up = catch_up

    def on_add(self, node: Node) -> None:
        if self._ownership.saw_node(node):
            self._catch_up()
        super().on_add(node)
        self._pod_handler.rejudge_offers_to(node.metadata.name)

    def on_update(self, old: Node, new: Node) -> None:
        changed = self._ownership.saw_node(new)
        if changed:
            self._catch_up()
        super().on_update(old, new)
        if changed:
            self._queue.move_all_to_active_or_backoff_queue(SHARDS_CHANGE)
            self._pod_handler.rejudge_offers_to(new.metadata.name)

    def on_delete(self, node: Node) -> None:
        super().on_delete(node)
        self._ownership.forget_node(node.metadata.name)
        self._pod_handler.rejudge_offers_to(node.metadata.name)
