"""The parts of one replica's core that go by ownership."""

from collections.abc import Callable, Mapping
from typing import Any

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.binding import Binding
from berth.scheduler.event_handlers import NodeHandler
from berth.scheduler.framework.listers import Listers
from berth.scheduler.shards.binding import ShardedBindingCycle
from berth.scheduler.shards.foreign import ForeignPods
from berth.scheduler.shards.handlers import ShardedNodeHandler, ShardedPodHandler
from berth.scheduler.shards.offers import Offers, OfferWrites
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.scheduler import ShardedScheduler
from berth.scheduler.shards.slots import Slots


class ShardParts:
    """Made before the core, which is given its methods as what makes its parts."""

    def __init__(
        self,
        slots: Slots,
        *,
        writes: OfferWrites,
        pods: Mapping[str, Pod],
        listers: Listers,
        clock: Clock,
        catch_up: Callable[[], None],
        groups_by_spec: bool = True,
    ) -> None:
        """*catch_up* has all be told that the watch of pods has put off.

        *groups_by_spec* says whether the spec of a pod tells what group it belongs to, if any: not
        where labels or annotations do.
        """
        self.ownership = Ownership(slots)
        self.offers = Offers(writes, clock)
        self._pods = pods
        self._listers = listers
        self._catch_up = catch_up
        self._groups_by_spec = groups_by_spec

    def scheduler(self, **parts: Any) -> ShardedScheduler:
        self._scheduler = ShardedScheduler(
            ownership=self.ownership,
            offers=self.offers,
            listers=self._listers,
            catch_up=self._catch_up,
            **parts,
        )
        return self._scheduler

    def binding_cycle(self, **parts: Any) -> ShardedBindingCycle:
        return ShardedBindingCycle(offers=self.offers, **parts)

    def pod_handler(self, **parts: Any) -> ShardedPodHandler:
        self._pod_handler = ShardedPodHandler(
            ownership=self.ownership,
            offers=self.offers,
            pods=self._pods,
            catch_up=self._catch_up,
            **parts,
        )
        self.foreign_pods = ForeignPods(
            self.ownership,
            assumed=parts["cache"].assumed,
            minding=self._pod_handler.minding,
            waiting=self._groups_by_spec,
        )
        return self._pod_handler

    def node_handler(self, **parts: Any) -> NodeHandler:
        return ShardedNodeHandler(
            ownership=self.ownership,
            pod_handler=self._pod_handler,
            catch_up=self._catch_up,
            **parts,
        )

    def become(self, active: frozenset[int]) -> None:
        """From now on, decide about the nodes and pods of *active* slots; what is being bound to
        others goes on."""
        before = self.ownership.active
        if active != before:
            self.ownership.become(active)
            self._pod_handler.hand_over(before, active)
            for binding in self._scheduler.bindings:
                if self._home(binding) in before - active:
                    self.offers.withdraw(binding.pod.uid)

    def close(self, slots: frozenset[int]) -> None:
        """Offer no pods to nodes of *slots*, and to those of all others again."""
        opened = self.ownership.closed - slots
        self.ownership.close(slots)
        if opened:
            self._pod_handler.nodes_opened()

    def slot_of_pod(self, pod: Pod) -> int:
        """Return the slot whose holder decides about *pod*, which has no node."""
        return self.ownership.slot_of_pod(pod, self._scheduler.cache.table)

    def is_drained(self, slot: int) -> bool:
        """Whether no bind is under way for *slot*: to one of its nodes, or of one of its pods."""
        return not any(
            self._home(binding) == slot
            or (binding.pod.uid not in self.offers.pods and self._slot(binding) == slot)
            for binding in self._scheduler.bindings
        )

    def _slot(self, binding: Binding) -> int:
        return self.ownership.slot_of_node(binding.pod.node_name)

    def _home(self, binding: Binding) -> int:
        return self.ownership.slots.home_of(binding.pod.pod)
