"""The text that Prometheus reads."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector


def metrics_text(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return all metrics and their content type, in the best format that *accept* names.

    Must run on the event loop, for it reads what changes there.
    """
    encode, content_type = choose_encoder(accept)
    return encode(_Observed(registry)), content_type


class _Observed(Collector):
    """Leaves out families with no samples, as Go's client does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        return (metric for metric in self._registry.collect() if metric.samples)
