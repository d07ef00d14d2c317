"""Metric families: declared, counted, and written as the text that Prometheus reads."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import partial
from itertools import accumulate
from typing import Final, TypeAlias, TypeVar

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from berth.runtime.release import EffectiveVersion

LabelValues: TypeAlias = tuple[str, ...]
"""In the order of ``Family.labels``."""

Labels = TypeVar("Labels", bound=LabelValues)

INFINITY: Final = "+Inf"
_EXPONENT_FROM: Final = 1e6


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Stability(StrEnum):
    """What Kubernetes promises about a metric; said at the start of its help text."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    STABLE = "STABLE"


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One family, as declared; ``buckets`` are upper bounds without infinity."""

    name: str
    kind: Kind
    text: str
    stability: Stability | None
    """None for families of the process, which have no stability level."""
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    since: str = ""
    """The release of Kubernetes that came with it; "" if all have it."""
    until: str = ""
    """The release that has it no more."""
    hidden_since: str = ""
    """The release that deprecates it and does not show it unless it is asked to."""
    beta_since: str = ""
    """The release in which its stability becomes BETA."""

    def is_shown(self, version: EffectiveVersion, *, with_hidden: bool) -> bool:
        """Tell whether a process that is like *version* shows the family."""
        return not (
            (self.since and not version.is_since(self.since))
            or (self.until and version.is_since(self.until))
            or (self.hidden_since and version.is_since(self.hidden_since) and not with_hidden)
        )

    def in_version(self, version: EffectiveVersion) -> "Family":
        """Return the family with the stability that it has in *version*."""
        if self.beta_since and version.is_since(self.beta_since):
            return msgspec.structs.replace(self, stability=Stability.BETA)
        return self

    @property
    def help(self) -> str:
        return self.text if self.stability is None else f"[{self.stability}] {self.text}"

    @property
    def bounds(self) -> tuple[str, ...]:
        """The bucket bounds as Go writes them, infinity included."""
        return (*(go_float(bound) for bound in self.buckets), INFINITY)


counter = partial(Family, kind=Kind.COUNTER)
gauge = partial(Family, kind=Kind.GAUGE)
histogram = partial(Family, kind=Kind.HISTOGRAM)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return *count* bounds, each *factor* times the one before: ``exp(a,f,n)`` of the spec.

    Multiplied step by step, as Go does, so that the last digits agree.
    """
    bounds, bound = [], start
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)


def go_float(number: float) -> str:
    """Write a number as Go does in a ``le`` label: ``64``, ``0.001``, ``1e-05``, ``1.5e+06``."""
    text = repr(float(number)).removesuffix(".0")
    if number < _EXPONENT_FROM:
        return text
    mantissa, _, exponent = f"{Decimal(text).normalize():e}".partition("e")
    return f"{mantissa}e+{int(exponent):02d}"


def numbers(family: Family, by_labels: Mapping[Labels, float]) -> Metric:
    """Return a counter or gauge family with its numbers."""
    metric: CounterMetricFamily | GaugeMetricFamily
    if family.kind is Kind.COUNTER:
        metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
    else:
        metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, number in by_labels.items():
        metric.add_metric(labels, number)
    return metric


def number(family: Family, value: float) -> Metric:
    """Return a counter or gauge family without labels."""
    return numbers(family, {(): value})


class Counters:
    """The numbers of one counter family. Without labels it is 0 until counted, else nothing."""

    __slots__ = ("_values", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self._values: dict[LabelValues, float] = {} if family.labels else {(): 0}

    def add(self, *labels: str, amount: float = 1) -> None:
        values = self._values
        values[labels] = values.get(labels, 0) + amount

    def reset(self) -> None:
        """Forget what was counted by labels; a number without goes on, as in Kubernetes."""
        if self.family.labels:
            self._values.clear()

    def keep(self, is_kept: Callable[[LabelValues], bool]) -> None:
        """Forget what was counted by other labels."""
        self._values = {labels: n for labels, n in self._values.items() if is_kept(labels)}

    def copy(self) -> "Counters":
        """Return the numbers as they are now."""
        found = Counters(self.family)
        found._values = self._values.copy()
        return found

    def by(self, label: str) -> dict[str, float]:
        """Return the sums over all labels but one."""
        place, sums = self.family.labels.index(label), dict[str, float]()
        for labels, value in self._values.items():
            sums[labels[place]] = sums.get(labels[place], 0) + value
        return sums

    def collect(self) -> Metric:
        return numbers(self.family, self._values)


class Distribution:
    """How many observations fell into each bucket, and their sum."""

    __slots__ = ("bounds", "counts", "least", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.least = bounds[0]
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count *value* so many *times* in the first bucket whose bound is not below it."""
        # Most are in the first bucket: to look there first takes half the time.
        self.counts[bisect_left(self.bounds, value) if value > self.least else 0] += times
        self.total += value * times

    def copy(self) -> "Distribution":
        """Return the numbers as they are now."""
        found = Distribution(self.bounds)
        found.counts, found.total = self.counts.copy(), self.total
        return found


class Histograms:
    """The distributions of one histogram family, by label values; see :class:`Counters`."""

    __slots__ = ("_children", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self._children: dict[LabelValues, Distribution] = {}
        if not family.labels:
            self._children[()] = Distribution(family.buckets)

    def observe(self, value: float, *labels: str) -> None:
        """Count *value*."""
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = Distribution(self.family.buckets)
        # As Distribution.observe, without a call: a pod is observed dozens of times.
        child.counts[bisect_left(child.bounds, value) if value > child.least else 0] += 1
        child.total += value

    def reset(self) -> None:
        """Forget what was observed by labels; a distribution without goes on, as in Kubernetes."""
        if self.family.labels:
            self._children.clear()

    def collect(self) -> Metric:
        return distributions(self.family, self._children)


def distributions(family: Family, by_labels: Mapping[Labels, Distribution]) -> Metric:
    """Return a histogram family with its distributions, which have its buckets."""
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    for labels, child in by_labels.items():
        cumulative = zip(family.bounds, accumulate(child.counts), strict=True)
        metric.add_metric(labels, list(cumulative), child.total)
    return metric


def metrics_pieces(registry: CollectorRegistry, accept: str) -> tuple[Iterator[bytes], str]:
    """Return all metrics, family by family, and their content type, in the best format that
    *accept* names.

    Families with no samples are left out, as by Go's client. Each is as it is when its turn comes.
    Must run on the event loop where the collectors of *registry* read what changes there.
    """
    encode, content_type = choose_encoder(accept)
    return _pieces(registry, encode), content_type


def _pieces(registry: CollectorRegistry, encode: Callable[[Collector], bytes]) -> Iterator[bytes]:
    end = encode(_Families(()))
    for metric in registry.collect():
        if metric.samples:
            yield encode(_Families((metric,))).removesuffix(end)
    yield end


def metrics_text(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the same in one go."""
    pieces, content_type = metrics_pieces(registry, accept)
    return b"".join(pieces), content_type


class _Families(Collector):
    """Families that were collected already."""

    def __init__(self, families: tuple[Metric, ...]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
