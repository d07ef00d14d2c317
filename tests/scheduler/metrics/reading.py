"""Reads what is exported, as Prometheus does."""

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from berth.runtime.metrics import metrics_text
from tests.harness import Harness


@dataclass(frozen=True, slots=True)
class Shape:
    """All about a family but its numbers; ``buckets`` are written as Go writes them."""

    kind: str
    stability: str | None
    labels: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()


def exported(registry: CollectorRegistry) -> dict[str, Metric]:
    """Return the families of a scrape, counters by their whole name."""
    text, _ = metrics_text(registry, "")
    return {
        f"{m.name}_total" if m.type == "counter" else m.name: m
        for m in text_string_to_metric_families(text.decode())
    }


def shape_of(metric: Metric) -> Shape:
    first, _, rest = metric.documentation.partition(" ")
    labels = {name for sample in metric.samples for name in sample.labels} - {"le"}
    bounds = dict.fromkeys(s.labels["le"] for s in metric.samples if "le" in s.labels)
    graded = first.startswith("[") and bool(rest)
    return Shape(
        metric.type, first.strip("[]") if graded else None, tuple(sorted(labels)), tuple(bounds)
    )


def counted(registry: CollectorRegistry, family: str) -> dict[tuple[str, ...], float]:
    """Return the numbers of a counter or gauge, or how often a histogram observed something.

    By label values in the order of the labels' names.
    """
    metric = exported(registry).get(family)
    if metric is None:
        return {}
    name = f"{family}_count" if metric.type == "histogram" else family
    return {_values(s.labels): s.value for s in metric.samples if s.name == name}


def summed(registry: CollectorRegistry, family: str) -> dict[tuple[str, ...], float]:
    """Return the sums of a histogram's observations, by label values."""
    samples = exported(registry)[family].samples
    return {_values(s.labels): s.value for s in samples if s.name == f"{family}_sum"}


def attempts(harness: Harness) -> dict[str, float]:
    """Return how many attempts ended how."""
    found = counted(harness.registry, "scheduler_schedule_attempts_total")
    return {result: count for (_, result), count in found.items()}


def _values(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels[name] for name in sorted(labels))
