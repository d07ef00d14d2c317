"""Where a waiting pod may be, and what there is to see of it from outside (spec §3.1)."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from enum import StrEnum

from berth.clock import Clock
from berth.framework.pod_info import QueuedPodInfo
from berth.queue.backoff import Backoff, BackoffQueue
from berth.queue.heap import PodHeap, SortKey
from berth.queue.in_flight import InFlight
from berth.queue.known_signatures import KnownSignatures
from berth.queue.nominator import Nominator, PodLookup
from berth.queue.unschedulable import UnschedulablePods


class SubQueue(StrEnum):
    """Where a pod waits; the values are those of the ``queue`` label in metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


# Plain strings, for hashing an enum's member costs more than the rest of counting.
ACTIVE, BACKOFF = SubQueue.ACTIVE.value, SubQueue.BACKOFF.value
UNSCHEDULABLE, GATED = SubQueue.UNSCHEDULABLE.value, SubQueue.GATED.value


class SubQueues:
    """The sub-queues and the questions about them; what changes them is in the scheduling queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: SortKey,
        pod_lookup: PodLookup,
        backoff: Backoff,
        max_in_unschedulable: float,
        signature_profiles: Container[str],
    ) -> None:
        self._clock = clock
        self._max_in_unschedulable = max_in_unschedulable
        self._active = PodHeap(sort_key)
        self._backoff = BackoffQueue(clock=clock, backoff=backoff, sort_key=sort_key)
        self._known = KnownSignatures(signature_profiles)
        self._unschedulable = UnschedulablePods(self._known.signature_of)
        self._in_flight = InFlight()
        self._incoming: Counter[tuple[str, str]] = Counter()
        self.nominator = Nominator(pod_lookup)

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

    def waiting(self, sub_queue: SubQueue) -> Iterator[QueuedPodInfo]:
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

        Linear in the number of active pods, however many are asked for; others get a turn.
        """
        return await self._active.all_ahead_of(keys)

    def next_try(self, queued: QueuedPodInfo) -> float | None:
        """Return when a waiting pod is ready to be tried at the latest, in seconds since 1970.

        None: it is ready, or gated. Of a rejected pod in backoff an idle scheduler takes notice
        before that; an unschedulable one is found by the next look for leftovers.
        """
        match self.sub_queue_of(queued.key):
            case SubQueue.BACKOFF:
                # The second in which the rest ends counts as rest.
                return (queued.backoff_expiration or 0.0) + 1
            case SubQueue.UNSCHEDULABLE:
                return queued.timestamp + self._max_in_unschedulable
            case _:
                return None

    def in_flight(self) -> dict[str, int]:
        """Return, by UID, how many events are kept for each pod that is in flight."""
        return self._in_flight.uids()

    @property
    def has_active(self) -> bool:
        """Whether a pod is ready to be tried."""
        return len(self._active) > 0

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
            ACTIVE: len(self._active),
            BACKOFF: len(self._backoff),
            UNSCHEDULABLE: len(self._unschedulable) - gated,
            GATED: gated,
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
            (self._active, ACTIVE),
            (self._backoff, BACKOFF),
            (self._unschedulable, UNSCHEDULABLE),
        ):
            for queued in waiting:
                since = queued.initial_attempt_timestamp
                if since is None:
                    since = queued.timestamp
                where = GATED if queued.gating_plugin else name
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
        waiting_signatures = {self._known.signature_of(queued) for queued in self._unschedulable}
        assert set(self._known) <= waiting_signatures, "nobody hears for a known signature"
        for queued in (*self._active, *self._backoff):
            assert not queued.gating_plugin, f"{queued.key} is gated"
        for queued in self._active:
            assert queued.initial_attempt_timestamp is not None, queued.key
