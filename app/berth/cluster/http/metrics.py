"""Metrics of the API server: families of kube-apiserver 1.36, and what records them.

Everything runs on one event loop, so observations go to plain numbers, found once per kind of
request; prometheus-client only words them for a scrape, in a thread of its own and from a copy.

There are as many series as there are kinds that are served, times what may be asked of them: those
of a custom resource go with its definition.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from berth.cluster.http.flow_schemas import FlowControl
from berth.cluster.http.in_flight import InFlight
from berth.cluster.http.negotiation import APPLY_PATCH, media_type
from berth.cluster.http.paths import Target
from berth.cluster.http.requests import Request
from berth.cluster.options import flag
from berth.cluster.resource_paths import WATCH
from berth.cluster.resources import ResourceType
from berth.runtime.metrics import (
    Counters,
    Distribution,
    Family,
    Stability,
    counter,
    exponential,
    gauge,
    histogram,
    numbers,
)

STABLE, ALPHA = Stability.STABLE, Stability.ALPHA

_KIND = ("group", "version", "resource", "subresource", "scope", "component")
_SECONDS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)

REQUESTS: Final = counter(
    name="apiserver_request_total",
    stability=STABLE,
    text="Number of requests, by verb, dry run, resource, scope, component and HTTP status code.",
    labels=("verb", "dry_run", *_KIND, "code"),
)
DURATIONS: Final = histogram(
    name="apiserver_request_duration_seconds",
    stability=STABLE,
    text="Time from a request to the end of its answer in seconds. A watch counts when it ends.",
    labels=("verb", "dry_run", *_KIND),
    buckets=_SECONDS,
)
SLI_DURATIONS: Final = histogram(
    name="apiserver_request_sli_duration_seconds",
    stability=ALPHA,
    text="Time from a request to the end of its answer in seconds, including webhooks.",
    labels=("verb", *_KIND),
    buckets=_SECONDS,
)
SIZES: Final = histogram(
    name="apiserver_response_sizes",
    stability=STABLE,
    text="Size of answers to GET and LIST in bytes.",
    labels=("verb", *_KIND),
    buckets=exponential(1000, 10, 7),
)
IN_FLIGHT: Final = gauge(
    name="apiserver_current_inflight_requests",
    stability=STABLE,
    text="Largest number of requests in progress during the last second.",
    labels=("request_kind",),
)
LONG_RUNNING: Final = gauge(
    name="apiserver_longrunning_requests",
    stability=STABLE,
    text="Number of long-running requests in progress: watches, logs and connections.",
    labels=("verb", *_KIND),
)
WATCH_EVENTS: Final = counter(
    name="apiserver_watch_events_total",
    stability=ALPHA,
    text="Number of events sent to watchers, bookmarks included.",
    labels=("group", "version", "resource"),
)
WATCH_EVENT_SIZES: Final = histogram(
    name="apiserver_watch_events_sizes",
    stability=ALPHA,
    text="Size of events sent to watchers in bytes.",
    labels=("group", "version", "resource"),
    buckets=exponential(1024, 2, 8),
)
TERMINATED_WATCHERS: Final = counter(
    name="apiserver_terminated_watchers_total",
    stability=ALPHA,
    text="Number of watches that the server ended because their clients were too slow.",
    labels=("group", "resource"),
)
LISTS: Final = counter(
    name="apiserver_cache_list_total",
    stability=ALPHA,
    text="Number of lists.",
    labels=("group", "resource", "index"),
)
FETCHED: Final = counter(
    name="apiserver_cache_list_fetched_objects_total",
    stability=ALPHA,
    text="Number of objects read to answer lists.",
    labels=("group", "resource", "index"),
)
RETURNED: Final = counter(
    name="apiserver_cache_list_returned_objects_total",
    stability=ALPHA,
    text="Number of objects in answers to lists.",
    labels=("group", "resource"),
)
OBJECTS: Final = gauge(
    name="apiserver_resource_objects",
    stability=ALPHA,
    text="Number of stored objects, by resource.",
    labels=("group", "resource"),
)
STORAGE_OBJECTS: Final = gauge(
    name="apiserver_storage_objects",
    stability=STABLE,
    text="Deprecated: use apiserver_resource_objects. Number of stored objects, by resource.",
    labels=("resource",),
)

DEPRECATED_APIS: Final = gauge(
    name="apiserver_requested_deprecated_apis",
    stability=STABLE,
    text="Deprecated APIs that were requested.",
    labels=("group", "version", "resource", "subresource", "removed_release"),
)

COMPONENT: Final = "apiserver"
CONNECTIONS: Final = frozenset({"attach", "exec", "portforward", "proxy"})
LONG_RUNNING_PARTS: Final = CONNECTIONS | {"log"}
DEPRECATED: Final = frozenset({("", "v1", "componentstatuses"), ("", "v1", "endpoints")})
"""Group, version and resource; of neither is it said when it will be gone."""
MEASURED_SIZES: Final = frozenset({"GET", "LIST"})

_OBJECT_VERBS: Final = {"HEAD": "GET"}
_COLLECTION_VERBS: Final = {"DELETE": "DELETECOLLECTION", "GET": "LIST", "HEAD": "LIST"}


class Series:
    """The numbers of one kind of request."""

    __slots__ = ("codes", "durations", "is_long_running", "labels", "running", "sizes")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        """Verb, dry run, and those of ``_KIND``."""
        self.codes: dict[int, int] = {}
        self.durations = Distribution(DURATIONS.buckets)
        self.sizes = Distribution(SIZES.buckets)
        self.running = 0
        self.is_long_running = labels[0] == "WATCH" or labels[5] in LONG_RUNNING_PARTS
        """Whether it is a watch, or one of those that last as long as the client likes."""

    @property
    def verb(self) -> str:
        return self.labels[0]

    def copy(self) -> "Series":
        """Return the numbers as they are now."""
        found = Series(self.labels)
        found.codes = self.codes.copy()
        found.durations, found.sizes = self.durations.copy(), self.sizes.copy()
        found.running = self.running
        return found

    def answered(self, code: int, seconds: float, size: int) -> None:
        """Count an answer that was sent."""
        codes = self.codes
        codes[code] = codes.get(code, 0) + 1
        _observe(self.durations, seconds)
        if self.labels[0] in MEASURED_SIZES:
            _observe(self.sizes, size)


class WatchSeries:
    """The numbers of the watches of one resource."""

    __slots__ = ("events", "labels", "sizes", "terminated")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        """Group, version, resource."""
        self.sizes = Distribution(WATCH_EVENT_SIZES.buckets)
        self.events = 0
        self.terminated = 0

    def copy(self) -> "WatchSeries":
        """Return the numbers as they are now."""
        found = WatchSeries(self.labels)
        found.sizes, found.events, found.terminated = (
            self.sizes.copy(),
            self.events,
            self.terminated,
        )
        return found

    def sent(self, size: int) -> None:
        """Count an event."""
        self.events += 1
        _observe(self.sizes, size)


def _observe(distribution: Distribution, value: float) -> None:
    distribution.counts[bisect_left(distribution.bounds, value)] += 1
    distribution.total += value


class ApiMetrics:
    """Everything that is measured of one API server."""

    def __init__(
        self,
        in_flight: InFlight,
        flow_control: FlowControl,
        count_objects: Callable[[], Mapping[tuple[str, str], int]],
    ) -> None:
        """*count_objects* returns how many there are, by group and plural."""
        self._in_flight = in_flight
        self._flow_control = flow_control
        self._count_objects = count_objects
        self._series: dict[tuple[str, ...], Series] = {}
        self._watches: dict[tuple[str, str, str], WatchSeries] = {}
        self._lists = Counters(LISTS)
        self._fetched = Counters(FETCHED)
        self._returned = Counters(RETURNED)

    def series(self, request: Request, target: Target) -> Series:
        """Return where requests like this one are counted."""
        resource, namespace, name, subresource = target
        verb = _verb(request, target)
        scope = "namespace" if namespace else "cluster"
        if name or verb == "POST":
            scope = "resource"
        dry_run = "All" if request.query.get("dryRun") else ""
        part = "" if subresource == WATCH else subresource
        labels = (verb, dry_run, resource.group, resource.version, resource.plural, part, scope)
        found = self._series.get(labels)
        if found is None:
            found = self._series[labels] = Series((*labels, COMPONENT))
        return found

    def watches(self, resource: ResourceType) -> WatchSeries:
        """Return where events of *resource* are counted."""
        labels = (resource.group, resource.version, resource.plural)
        found = self._watches.get(labels)
        if found is None:
            found = self._watches[labels] = WatchSeries(labels)
        return found

    def listed(self, resource: ResourceType, *, fetched: int, returned: int) -> None:
        """Count a list, and the objects that were read and returned."""
        labels = resource.group, resource.plural
        self._lists.add(*labels, "")
        self._fetched.add(*labels, "", amount=fetched)
        self._returned.add(*labels, amount=returned)

    def keep(self, resources: Iterable[ResourceType]) -> None:
        """Forget the kinds that are not among *resources*."""
        kinds = {(each.group, each.version, each.plural) for each in resources}
        self._series = {key: each for key, each in self._series.items() if key[2:5] in kinds}
        self._watches = {key: each for key, each in self._watches.items() if key in kinds}
        stored = {(group, plural) for group, _, plural in kinds}
        for counters in self._counters:
            counters.keep(lambda labels: labels[:2] in stored)

    def scrape(self) -> Collector:
        """Return what is measured now, to be worded anywhere."""
        return _Scrape(
            series=[each.copy() for each in self._series.values()],
            watches=[each.copy() for each in self._watches.values()],
            peaks=self._in_flight.peaks(),
            flows=self._flow_control.measured(),
            counters=[each.copy() for each in self._counters],
            objects=self._count_objects(),
        )

    @property
    def _counters(self) -> tuple[Counters, ...]:
        return self._lists, self._fetched, self._returned


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scrape(Collector):
    """What was measured up to a moment."""

    series: Sequence[Series]
    watches: Sequence[WatchSeries]
    peaks: Mapping[str, int]
    flows: Sequence[tuple[Family, Mapping[tuple[str, ...], float]]]
    counters: Sequence[Counters]
    objects: Mapping[tuple[str, str], int]

    def collect(self) -> Iterator[Metric]:
        codes = {(*s.labels, str(code)): n for s in self.series for code, n in s.codes.items()}
        yield numbers(REQUESTS, codes)
        # A kind of request of which none is answered has no distribution yet.
        done = [each for each in self.series if each.codes]
        yield _histogram(DURATIONS, ((s.labels, s.durations) for s in done))
        short = [each for each in done if not (each.is_long_running or each.labels[1])]
        yield _histogram(SLI_DURATIONS, (((s.verb, *s.labels[2:]), s.durations) for s in short))
        sized = [each for each in short if each.verb in MEASURED_SIZES]
        yield _histogram(SIZES, (((s.verb, *s.labels[2:]), s.sizes) for s in sized))
        long = [each for each in self.series if each.is_long_running]
        yield numbers(LONG_RUNNING, {(s.verb, *s.labels[2:]): s.running for s in long})
        old = {(*s.labels[2:6], ""): 1 for s in done if s.labels[2:5] in DEPRECATED}
        yield numbers(DEPRECATED_APIS, old)
        yield numbers(IN_FLIGHT, {(kind,): n for kind, n in self.peaks.items()})
        for family, by_labels in self.flows:
            yield numbers(family, by_labels)
        yield numbers(WATCH_EVENTS, {each.labels: each.events for each in self.watches})
        yield _histogram(WATCH_EVENT_SIZES, ((each.labels, each.sizes) for each in self.watches))
        slow: dict[tuple[str, ...], float] = {}
        for each in self.watches:
            labels = each.labels[0], each.labels[2]
            slow[labels] = slow.get(labels, 0) + each.terminated
        yield numbers(TERMINATED_WATCHERS, slow)
        for counters in self.counters:
            yield counters.collect()
        yield numbers(OBJECTS, self.objects)
        qualified = {(f"{p}.{g}" if g else p,): n for (g, p), n in self.objects.items()}
        yield numbers(STORAGE_OBJECTS, qualified)


def _verb(request: Request, target: Target) -> str:
    """Return the verb as metrics have it, in capitals."""
    method = request.method
    if target.subresource == WATCH:
        return "WATCH"
    if target.subresource in CONNECTIONS:
        return "CONNECT"
    if target.name:
        if method == "PATCH" and media_type(request.content_type) == APPLY_PATCH:
            return "APPLY"
        return _OBJECT_VERBS.get(method, method)
    if method == "GET" and request.query and flag(request.query, "watch"):
        return "WATCH"
    return _COLLECTION_VERBS.get(method, method)


def _histogram(
    family: Family, distributions: Iterable[tuple[tuple[str, ...], Distribution]]
) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    for labels, each in distributions:
        cumulative = zip(family.bounds, accumulate(each.counts), strict=True)
        metric.add_metric(labels, list(cumulative), each.total)
    return metric
