"""Numbers that somebody keeps anyway, read when Prometheus asks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.runtime.clock import Clock
from berth.runtime.connection_limit import ConnectionCounts
from berth.runtime.metrics import Distribution, distributions, number, numbers
from berth.scheduler.metrics.families import berth, kube

POD_POPPED: Final = "PodPopped"
POD: Final = "pod"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"


class SubQueues(Protocol):
    """The waiting pods, as far as they are counted."""

    def pending_counts(self) -> Mapping[str, int]: ...
    def entity_counts(self) -> Mapping[tuple[str, str], int]: ...
    def rejected_counts(self) -> Mapping[tuple[str, str], int]: ...
    def waiting_since(self) -> Mapping[str, float]: ...


class Queue(Protocol):
    """The scheduling queue, as far as it is counted."""

    @property
    def sub_queues(self) -> SubQueues: ...
    def incoming_counts(self) -> Mapping[tuple[str, str], int]: ...
    def incoming_entity_counts(self) -> Mapping[tuple[str, str, str], int]: ...
    def in_flight_counts(self) -> Mapping[str, int]: ...


class QueueCollector(Collector):
    """Sizes of the queue and what passed through it. Linear in the number of waiting pods."""

    def __init__(self, queue: Queue, *, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        queue, now = self._queue, self._clock.now()
        pending = queue.sub_queues.pending_counts()
        yield numbers(kube.PENDING_PODS, {(name,): size for name, size in pending.items()})
        incoming = queue.incoming_counts()
        yield numbers(
            kube.QUEUE_INCOMING_PODS,
            {(event, name): count for (name, event), count in incoming.items()},
        )
        yield numbers(kube.QUEUED_ENTITIES, queue.sub_queues.entity_counts())
        yield numbers(
            kube.QUEUE_INCOMING_ENTITIES,
            {
                (event, name, kind): count
                for (name, event, kind), count in queue.incoming_entity_counts().items()
            },
        )
        yield numbers(kube.UNSCHEDULABLE_PODS, queue.sub_queues.rejected_counts())
        in_flight = {POD_POPPED: 0, **queue.in_flight_counts()}
        yield numbers(kube.IN_FLIGHT_EVENTS, {(e,): count for e, count in in_flight.items()})
        oldest = {name: now - since for name, since in queue.sub_queues.waiting_since().items()}
        yield numbers(berth.OLDEST_PENDING, {(name,): oldest.get(name, 0.0) for name in pending})


class CacheCollector(Collector):
    """The sizes of the cache, by what is in it, and how much of it is wrong."""

    def __init__(
        self, counts: Callable[[], Mapping[str, int]], *, drift: Callable[[], int]
    ) -> None:
        self._counts = counts
        self._drift = drift

    def collect(self) -> Iterator[Metric]:
        yield numbers(kube.CACHE_SIZE, {(kind,): n for kind, n in self._counts().items()})
        yield number(berth.CACHE_DRIFT, self._drift())


class Profile(Protocol):
    """A profile, as far as it is counted."""

    @property
    def name(self) -> str: ...
    @property
    def evaluations(self) -> Mapping[str, Mapping[str, int]]:
        """Extension point to plugin to how often it had a say."""
        ...


class ProfileCollector(Collector):
    """How often plugins had a say; those that never had are left out."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        """*profiles* may be the view of a dict that changes."""
        self._profiles = profiles

    def collect(self) -> Iterator[Metric]:
        counts: dict[tuple[str, ...], float] = {}
        preemptions = 0
        for profile in self._profiles:
            for point, by_plugin in profile.evaluations.items():
                if point == "PostFilter":
                    preemptions += by_plugin.get(DEFAULT_PREEMPTION, 0)
                    continue
                counts |= {(point, p, profile.name): n for p, n in by_plugin.items() if n}
        yield numbers(kube.PLUGIN_EVALUATION, counts)
        yield number(kube.PREEMPTION_ATTEMPTS, preemptions)


class Configuration(Protocol):
    """The configuration in force, as far as it is counted."""

    @property
    def generation(self) -> int: ...
    @property
    def loaded_at(self) -> float: ...
    @property
    def reloads(self) -> Mapping[str, int]: ...


class ConfigurationCollector(Collector):
    """Which configuration is in force, and what became of attempts to change it."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def collect(self) -> Iterator[Metric]:
        live = self._configuration
        yield number(berth.CONFIG_GENERATION, live.generation)
        yield number(berth.CONFIG_LOADED_AT, live.loaded_at)
        yield numbers(berth.CONFIG_RELOADS, {(r,): n for r, n in live.reloads.items()})


class TaskCollector(Collector):
    """How much is under way beside the scheduling cycle, by kube-scheduler's word for it."""

    def __init__(self, operations: Mapping[str, Callable[[], int]]) -> None:
        self._operations = operations

    def collect(self) -> Iterator[Metric]:
        under_way = {(name,): count() for name, count in self._operations.items()}
        yield numbers(kube.GOROUTINES, under_way)


class LaneStats(Protocol):
    """The counters of one write lane; times are in seconds."""

    @property
    def depth(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def superseded(self) -> int: ...
    @property
    def wait_total(self) -> float: ...
    @property
    def wait_longest(self) -> float: ...


class LaneCollector(Collector):
    """Writes to the API server, by lane."""

    def __init__(self, lanes: Callable[[], Iterable[tuple[str, LaneStats]]]) -> None:
        self._lanes = lanes

    def collect(self) -> Iterator[Metric]:
        lanes = {str(lane): stats for lane, stats in self._lanes()}
        yield numbers(berth.LANE_DEPTH, {(k,): s.depth for k, s in lanes.items()})
        yield numbers(berth.LANE_IN_FLIGHT, {(k,): s.in_flight for k, s in lanes.items()})
        endings: dict[tuple[str, ...], float] = {}
        for lane, stats in lanes.items():
            endings[lane, "done"] = stats.done
            endings[lane, "failed"] = stats.failed
            endings[lane, "dropped"] = stats.dropped
            endings[lane, "superseded"] = stats.superseded
        yield numbers(berth.LANE_WRITES, endings)
        yield numbers(berth.LANE_WAIT, {(k,): s.wait_total for k, s in lanes.items()})
        yield numbers(berth.LANE_LONGEST_WAIT, {(k,): s.wait_longest for k, s in lanes.items()})


class Unreadable(Protocol):
    """An object that could not be read as a whole."""

    @property
    def counts(self) -> bool: ...


class Reflector(Protocol):
    """What keeps a kind of object known, as far as it is counted."""

    @property
    def store(self) -> Mapping[str, object]: ...
    @property
    def lists(self) -> int: ...
    @property
    def malformed(self) -> int: ...
    @property
    def unreadable(self) -> Mapping[str, Unreadable]: ...
    @property
    def handler_failures(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def queued(self) -> int: ...
    @property
    def processing(self) -> Distribution: ...


INFORMER: Final = "kube-scheduler"
"""The name of all informers in metrics of client-go."""
VERSION_DIGITS: Final = 15
"""Of a resource version, so many of the last digits are shown: a float has no more."""


class ReflectorCollector(Collector):
    """What is known from the API server, by the path that it is read from."""

    def __init__(self, reflectors: Mapping[str, Reflector]) -> None:
        self._reflectors = reflectors

    def collect(self) -> Iterator[Metric]:
        reflectors = self._reflectors
        yield numbers(berth.WATCHED_OBJECTS, {(p,): len(r.store) for p, r in reflectors.items()})
        yield numbers(berth.LISTS, {(p,): r.lists for p, r in reflectors.items()})
        yield numbers(berth.MALFORMED_OBJECTS, {(p,): r.malformed for p, r in reflectors.items()})
        unreadable = {
            (path, str(counts).lower()): sum(
                unreadable.counts is counts for unreadable in reflector.unreadable.values()
            )
            for path, reflector in reflectors.items()
            for counts in (True, False)
        }
        yield numbers(berth.UNREADABLE_OBJECTS, unreadable)
        yield numbers(
            berth.HANDLER_FAILURES, {(p,): r.handler_failures for p, r in reflectors.items()}
        )
        yield from self._informers()

    def _informers(self) -> Iterator[Metric]:
        """Yield what client-go says of informers (1.37 spec N5.5); of those that were never synced,
        nothing.
        """
        synced = {_informer(r.path): r for r in self._reflectors.values() if r.version}
        yield numbers(kube.INFORMER_QUEUED, {labels: r.queued for labels, r in synced.items()})
        yield distributions(
            kube.INFORMER_PROCESSING, {labels: r.processing for labels, r in synced.items()}
        )
        versions = {labels: r.version[-VERSION_DIGITS:] for labels, r in synced.items()}
        yield numbers(
            kube.INFORMER_VERSION,
            {labels: float(last) for labels, last in versions.items() if last.isdecimal()},
        )


def _informer(path: str) -> tuple[str, str, str, str]:
    """Return the labels of what is read at *path*: name, group, version, resource."""
    prefix, version, resource = path.rsplit("/", 2)
    return INFORMER, prefix.removeprefix("/apis/") if prefix != "/api" else "", version, resource


class StuckLoop(Protocol):
    """The watchdog, as far as it is counted."""

    @property
    def stuck_seconds(self) -> float: ...
    @property
    def stalls(self) -> int: ...


class StuckLoopCollector(Collector):
    """Whether the event loop is stuck. May be asked by any thread."""

    def __init__(self, watchdog: StuckLoop) -> None:
        self._watchdog = watchdog

    def collect(self) -> Iterator[Metric]:
        yield number(berth.LOOP_STUCK, self._watchdog.stuck_seconds)
        yield number(berth.LOOP_STALLS, self._watchdog.stalls)


class Recording(Protocol):
    """A file that steps are recorded in."""

    @property
    def num_lines(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def num_bytes(self) -> int: ...


class RecordingCollector(Collector):
    """How much was recorded."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def collect(self) -> Iterator[Metric]:
        recording = self._recording
        results = {("written",): recording.num_lines, ("dropped",): recording.dropped}
        yield numbers(berth.RECORDED_LINES, results)
        yield number(berth.RECORDED_BYTES, recording.num_bytes)


class HasMoves(Protocol):
    """Who takes and gives slots."""

    moves: int
    expelled: int


class HasOffers(Protocol):
    """Who offers pods to the writers of other nodes."""

    made: int
    accepted: int
    refused: int


class HasSlots(Protocol):
    """What a replica decides about."""

    @property
    def active(self) -> Collection[int]: ...


class ShardCollector(Collector):
    """What one of several replicas holds, and what it leaves to the others."""

    def __init__(self, keeper: HasMoves, offers: HasOffers, ownership: HasSlots) -> None:
        self._keeper = keeper
        self._offers = offers
        self._ownership = ownership

    def collect(self) -> Iterator[Metric]:
        offers = self._offers
        yield number(berth.SHARD_SLOTS, len(self._ownership.active))
        yield number(berth.SHARD_MOVES, self._keeper.moves)
        yield number(berth.SHARD_EXPELLED, self._keeper.expelled)
        results = {("accepted",): offers.accepted, ("refused",): offers.refused}
        yield numbers(berth.SHARD_OFFERS, results)


class BreakerCollector(Collector):
    """The state of each extender's circuit breaker, by name of the extender."""

    def __init__(self, states: Callable[[], Mapping[str, int]]) -> None:
        self._states = states

    def collect(self) -> Iterator[Metric]:
        states = {(name,): float(state) for name, state in self._states().items()}
        yield numbers(berth.EXTENDER_BREAKERS, states)


class ShadowCollector(Collector):
    """What a shadow of another scheduler has found."""

    def __init__(
        self,
        *,
        compared: Mapping[Any, int],
        skipped: Mapping[Any, int],
        behind: Callable[[], int],
    ) -> None:
        """*compared* is by result, profile, plugin and order, *skipped* by reason."""
        self._compared = compared
        self._skipped = skipped
        self._behind = behind

    def collect(self) -> Iterator[Metric]:
        yield numbers(berth.SHADOW_COMPARISONS, self._compared)
        yield numbers(berth.SHADOW_SKIPPED, {(r,): n for r, n in self._skipped.items()})
        yield number(berth.SHADOW_BEHIND, self._behind())


class ConnectionCollector(Collector):
    """Connections, by the name of the port."""

    def __init__(self, ports: Mapping[str, ConnectionCounts]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        ports = self._ports
        yield numbers(berth.HTTP_CONNECTIONS, {(p,): c.open for p, c in ports.items()})
        dropped: dict[tuple[str, ...], float] = {}
        for port, counts in ports.items():
            dropped[port, "displaced"] = counts.displaced
            dropped[port, "refused"] = counts.refused
            dropped[port, "handshake"] = counts.failed_handshakes
            dropped[port, "not_accepted"] = counts.failed_accepts
        yield numbers(berth.HTTP_DROPPED, dropped)
