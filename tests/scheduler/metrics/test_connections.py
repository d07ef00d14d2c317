"""Who is connected to our ports, and who was not let in."""

from prometheus_client import CollectorRegistry

from berth.runtime.connection_limit import ConnectionCounts
from berth.scheduler.metrics.collectors import ConnectionCollector
from tests.scheduler.metrics.reading import counted


def test_connections_by_port() -> None:
    secure, extender = ConnectionCounts(), ConnectionCounts()
    registry = CollectorRegistry()
    registry.register(ConnectionCollector({"secure": secure, "extender": extender}))
    secure.open, secure.displaced, secure.refused = 3, 5, 7
    extender.failed_handshakes, extender.failed_accepts = 11, 13

    assert counted(registry, "berth_http_connections") == {("secure",): 3, ("extender",): 0}
    dropped = counted(registry, "berth_http_connections_dropped_total")
    assert {key: count for key, count in dropped.items() if count} == {
        ("secure", "displaced"): 5,
        ("secure", "refused"): 7,
        ("extender", "handshake"): 11,
        ("extender", "not_accepted"): 13,
    }
