"""What other schedulers ask of us, as their extender."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.metrics import own_families
from berth.metrics.family import Counters, Histograms


class ExtenderServerMetrics(Collector):
    """Told by the endpoints. Registers itself with *registry*."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._duration = Histograms(own_families.EXTENDER_SERVER_CALLS)
        self._asked = Counters(own_families.EXTENDER_SERVER_NODES_ASKED)
        self._passed = Counters(own_families.EXTENDER_SERVER_NODES_PASSED)
        self._errors = Counters(own_families.EXTENDER_SERVER_ERRORS)
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
