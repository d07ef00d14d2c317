"""What Prometheus is told of extenders."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from berth.runtime.clock import FakeClock
from berth.scheduler.extender.breaker import TRIP_AFTER
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.metrics.collectors import BreakerCollector
from berth.scheduler.metrics.recorders import ExtenderMetrics
from tests.builders import node, pod
from tests.scheduler.extender.fakes import FakeNetwork, config
from tests.scheduler.extender.fakes import extenders as made_of


def lines(registry: CollectorRegistry, start: str) -> list[str]:
    return [
        line for line in generate_latest(registry).decode().splitlines() if line.startswith(start)
    ]


async def fail(extenders: Extenders) -> None:
    (extender,) = extenders
    with pytest.raises(ExtenderError):
        await extender.filter(PodInfo(pod("p")), [node("a")])


async def test_calls_and_breakers() -> None:
    registry, clock = CollectorRegistry(), FakeClock()
    metrics = ExtenderMetrics(registry)
    network = FakeNetwork({"/p/filter": 500})
    extenders = made_of(network, config("http://me:secret@x/p/"), clock=clock, calls=metrics)
    registry.register(BreakerCollector(extenders.breaker_states))
    states = []
    for _ in range(TRIP_AFTER + 1):
        await fail(extenders)
        states += lines(registry, "berth_extender_breaker_state")
    clock.advance(1)
    states += lines(registry, "berth_extender_breaker_state")

    assert lines(registry, "berth_extender_request_duration_seconds_count") == [
        f'berth_extender_request_duration_seconds_count{{extender="http://x/p",outcome="{outcome}"'
        f',verb="filter"}} {count}'
        for outcome, count in (("failure", "5.0"), ("not_sent", "1.0"))
    ]
    assert [line.rpartition(" ")[2] for line in states] == ["0.0"] * 4 + ["2.0", "2.0", "1.0"]
    assert states[0].startswith('berth_extender_breaker_state{extender="http://x/p"}')
