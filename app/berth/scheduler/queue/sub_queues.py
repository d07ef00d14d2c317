"""The places where a pod waits, to look at (spec §3.1)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from berth.scheduler.framework.pod_info import QueuedPodGroupInfo, QueuedPodInfo
from berth.scheduler.queue.backoff import BackoffQueue
from berth.scheduler.queue.heap import PodHeap
from berth.scheduler.queue.unschedulable import UnschedulablePods


class SubQueue(StrEnum):
    """Where a pod waits; the values are those of the ``queue`` label in metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    INCOMPLETE = "incomplete"
    """Its PodGroup has not been seen yet. This and the next only where groups are queued as one."""
    PENDING = "pending"
    """Its group is being tried, and takes it in when it comes back."""


# Plain strings: hashing a member of an enum costs more than the rest of counting.
ACTIVE, BACKOFF = SubQueue.ACTIVE.value, SubQueue.BACKOFF.value
UNSCHEDULABLE, GATED = SubQueue.UNSCHEDULABLE.value, SubQueue.GATED.value

POD = "pod"
"""The type of an entity that is no group, as the ``type`` label has it."""


class SubQueues:
    """The waiting pods, each in one of three places. Only the scheduling queue moves them."""

    def __init__(
        self,
        active: PodHeap,
        backoff: BackoffQueue,
        unschedulable: UnschedulablePods,
        *,
        max_in_unschedulable: float,
    ) -> None:
        self._active = active
        self._backoff = backoff
        self._unschedulable = unschedulable
        self._max_in_unschedulable = max_in_unschedulable

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the waiting pod ``namespace/name``."""
        return self._active.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def entity_of(self, queued: QueuedPodInfo) -> QueuedPodInfo:
        """Return what has the history and the place of a waiting pod: it, or its group."""
        return queued

    def place_of(self, key: str) -> SubQueue | None:
        """Return where the pod ``namespace/name`` waits; None if it does not."""
        if self._active.get(key):
            return SubQueue.ACTIVE
        if self._backoff.get(key):
            return SubQueue.BACKOFF
        if queued := self._unschedulable.get(key):
            return SubQueue.GATED if queued.gating_plugin else SubQueue.UNSCHEDULABLE
        return None

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
                return iter(self._unschedulable.gated())
            case SubQueue.INCOMPLETE | SubQueue.PENDING:
                return iter(())

    def groups(self) -> Iterable[QueuedPodGroupInfo]:
        """Return the groups that wait as one entity."""
        return ()

    def entities(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
        """Yield what is in a sub-queue as :meth:`pods` does, groups that are entities as one."""
        return self.pods(sub_queue)

    def in_any_order(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
        """Yield the pods of a sub-queue in no particular order, which saves the sort."""
        match sub_queue:
            case SubQueue.ACTIVE:
                return iter(self._active)
            case SubQueue.BACKOFF:
                return iter(self._backoff)
            case _:
                return self.pods(sub_queue)

    def first_active(self) -> QueuedPodInfo | None:
        """Return the pod that is next; linear in the number of active pods."""
        return self._active.first()

    def ahead_of(self, key: str) -> int:
        """Return how many active pods come before that of *key*, itself active."""
        return self._active.ahead_of(key)

    async def all_ahead_of(self, keys: Iterable[str]) -> dict[str, int]:
        """Return how many active pods come before those of *keys* that are active now.

        Linear in the number of active pods, however many *keys*; yields to others meanwhile.
        """
        return await self._active.all_ahead_of(keys)

    def next_try(self, queued: QueuedPodInfo) -> float | None:
        """Return when a waiting pod is ready to be tried at the latest, in seconds since 1970.

        None: it is ready, or gated. An idle scheduler tries a rejected pod before its backoff ends;
        an unschedulable pod is tried by the next flush of leftovers.
        """
        entity = self.entity_of(queued)
        match self.place_of(queued.key):
            case SubQueue.BACKOFF:
                # The second in which the backoff ends is part of it.
                return (entity.backoff_expiration or 0.0) + 1
            case SubQueue.UNSCHEDULABLE:
                return entity.timestamp + self._max_in_unschedulable
            case _:
                return None

    def pending_counts(self) -> dict[str, int]:
        """Return the sizes of the sub-queues, for ``pending_pods``."""
        gated = self._unschedulable.gated_count
        return {
            ACTIVE: len(self._active),
            BACKOFF: len(self._backoff),
            UNSCHEDULABLE: len(self._unschedulable) - gated,
            GATED: gated,
        }

    def entity_counts(self) -> dict[tuple[str, str], int]:
        """Return the sizes by sub-queue and type of entity, for ``queued_entities``."""
        return {(name, POD): size for name, size in self.pending_counts().items()}

    def rejected_counts(self) -> Counter[tuple[str, str]]:
        """Return how many waiting pods each plugin rejected, by plugin and profile.

        For ``unschedulable_pods``; linear in the number of waiting pods.
        """
        return Counter(
            (plugin, queued.pod.spec.scheduler_name)
            for queued in self
            for plugin in queued.unschedulable_plugins | queued.pending_plugins
        )

    def waiting_since(self) -> dict[str, float]:
        """Return by sub-queue since when its oldest pod waits: since it could first be tried.

        For pods that never could, since they were put there. Empty ones are left out; linear in the
        number of waiting pods.
        """
        oldest: dict[str, float] = {}
        for waiting, name in (
            (self._active, ACTIVE),
            (self._backoff, BACKOFF),
            (self._unschedulable, UNSCHEDULABLE),
        ):
            for queued in waiting:
                since = queued.pending_since
                where = GATED if queued.gating_plugin else name
                oldest[where] = min(oldest.get(where, since), since)
        return oldest

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Yield all waiting pods in no particular order."""
        yield from self._active
        yield from self._backoff
        yield from self._unschedulable

    def check_invariants(self) -> None:
        """Raise AssertionError if two views disagree; for tests and debugging, linear in pods."""
        keys = [queued.key for queued in self]
        assert len(keys) == len(set(keys)), "a pod is in two sub-queues"
        self._active.check_invariants()
        self._backoff.check_invariants()
        self._unschedulable.check_invariants()
        for queued in (*self._active, *self._backoff):
            assert not queued.gating_plugin, f"{queued.key} is gated"
        for queued in self._active:
            assert queued.initial_attempt_timestamp is not None, queued.key
