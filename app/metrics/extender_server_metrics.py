"""What other schedulers ask of us, as their extender."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.metrics.families import ALPHA, counter, histogram
from app.metrics.family import Counters, Histograms, exponential

DURATION: Final = histogram(
    name="berth_extender_server_duration_seconds",
    stability=ALPHA,
    text="Seconds that calls took from their first byte to the answer, by HTTP status.",
    labels=("verb", "profile", "code"),
    buckets=exponential(0.0005, 2, 15),
)
ASKED: Final = counter(
    name="berth_extender_server_nodes_asked_total",
    stability=ALPHA,
    text="Nodes that calls were about.",
    labels=("verb", "profile"),
)
PASSED: Final = counter(
    name="berth_extender_server_nodes_passed_total",
    stability=ALPHA,
    text="Nodes that were left in answers.",
    labels=("verb", "profile"),
)
ERRORS: Final = counter(
    name="berth_extender_server_errors_total",
    stability=ALPHA,
    text="Calls that were answered with what went wrong.",
    labels=("verb", "profile"),
)


class ExtenderServerMetrics(Collector):
    """Told by the endpoints. Registers itself with *registry*."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._duration = Histograms(DURATION)
        self._asked = Counters(ASKED)
        self._passed = Counters(PASSED)
        self._errors = Counters(ERRORS)
        registry.register(self)

    def called(self, verb: str, profile: str, code: int, *, seconds: float) -> None:
        """A call was answered with HTTP status *code*."""
        self._duration.observe(seconds, verb, profile, str(code))

    def judged(self, verb: str, profile: str, *, asked: int, passed: int, failed: bool) -> None:
        """A call was about *asked* nodes, of which *passed* are in the answer."""
        self._asked.add(verb, profile, amount=asked)
        self._passed.add(verb, profile, amount=passed)
        if failed:
            self._errors.add(verb, profile)

    def collect(self) -> Iterator[Metric]:
        for instrument in (self._duration, self._asked, self._passed, self._errors):
            yield instrument.collect()
