"""What is asked of extenders, and which of them are left alone."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.metrics import own_families
from berth.metrics.family import Histograms, numbers


class ExtenderMetrics(Collector):
    """Told of every call to an extender. Registers itself with *registry*."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Histograms(own_families.EXTENDER_CALLS)
        registry.register(self)

    def called(self, extender: str, verb: str, outcome: str, *, seconds: float) -> None:
        """A call ended, or was not made."""
        self._calls.observe(seconds, extender, verb, outcome)

    def collect(self) -> Iterator[Metric]:
        yield self._calls.collect()


class BreakerCollector(Collector):
    """The state of each extender's circuit breaker, by name of the extender."""

    def __init__(self, states: Callable[[], Mapping[str, int]]) -> None:
        self._states = states

    def collect(self) -> Iterator[Metric]:
        states = {(name,): float(state) for name, state in self._states().items()}
        yield numbers(own_families.EXTENDER_BREAKERS, states)
