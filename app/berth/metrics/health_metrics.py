"""How often each health check was asked, and what it said: ``/metrics/slis`` (spec §8)."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.metrics.family import Counters, Family, Kind, Stability, numbers

HEALTHCHECK: Final = Family(
    name="kubernetes_healthcheck",
    kind=Kind.GAUGE,
    text="This metric records the result of a single healthcheck.",
    stability=Stability.STABLE,
    labels=("name", "type"),
)
HEALTHCHECKS: Final = Family(
    name="kubernetes_healthchecks_total",
    kind=Kind.COUNTER,
    text="This metric records the results of all healthcheck.",
    stability=Stability.STABLE,
    labels=("name", "status", "type"),
)


class HealthMetrics(Collector):
    """Told of each answer of a check; for a registry of its own."""

    def __init__(self) -> None:
        self._healthy: dict[tuple[str, str], float] = {}
        self._answers = Counters(HEALTHCHECKS)

    def answered(self, check: str, probe: str, *, healthy: bool) -> None:
        """*check* was asked as a part of *probe*, like ``readyz``."""
        self._healthy[check, probe] = float(healthy)
        self._answers.add(check, "success" if healthy else "error", probe)

    def reset(self) -> None:
        """Forget all."""
        self._healthy.clear()
        self._answers = Counters(HEALTHCHECKS)

    def collect(self) -> Iterator[Metric]:
        yield numbers(HEALTHCHECK, self._healthy)
        yield self._answers.collect()
