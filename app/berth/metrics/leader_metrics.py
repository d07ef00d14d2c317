"""Whether this process leads."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.metrics import families
from berth.metrics.family import Counters, numbers


class LeaderMetrics(Collector):
    """Told by the elector of one lease. Registers itself with *registry*."""

    def __init__(self, lease: str, registry: CollectorRegistry) -> None:
        self._lease = lease
        self._leads = False
        self._slow_path = Counters(families.LEADER_SLOW_PATH)
        registry.register(self)

    def on_master(self, leads: bool) -> None:
        """Leadership begins or ends."""
        self._leads = leads

    def on_slow_path(self) -> None:
        """A renewal had to read the Lease first."""
        self._slow_path.add(self._lease)

    def collect(self) -> Iterator[Metric]:
        yield numbers(families.LEADER, {(self._lease,): float(self._leads)})
        yield self._slow_path.collect()
