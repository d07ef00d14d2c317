"""Who is connected to our ports, and who was not let in."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.connection_limit import ConnectionCounts
from berth.metrics import own_families
from berth.metrics.family import numbers


class ConnectionCollector(Collector):
    """Connections, by the name of the port."""

    def __init__(self, ports: Mapping[str, ConnectionCounts]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        ports = self._ports
        yield numbers(own_families.HTTP_CONNECTIONS, {(p,): c.open for p, c in ports.items()})
        dropped: dict[tuple[str, ...], float] = {}
        for port, counts in ports.items():
            dropped[port, "displaced"] = counts.displaced
            dropped[port, "refused"] = counts.refused
            dropped[port, "handshake"] = counts.failed_handshakes
            dropped[port, "not_accepted"] = counts.failed_accepts
        yield numbers(own_families.HTTP_DROPPED, dropped)
