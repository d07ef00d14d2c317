"""A scheduler in process with everything that exports metrics, as the service puts it together."""

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from berth.kube.client.writes.lanes import Lane, LaneStats
from berth.kube.informer.reflector import PROCESSING_SECONDS, Unreadable
from berth.runtime.metrics import Distribution
from berth.scheduler.metrics.collectors import (
    CacheCollector,
    ConfigurationCollector,
    LaneCollector,
    ProfileCollector,
    QueueCollector,
    ReflectorCollector,
    TaskCollector,
)
from berth.scheduler.metrics.process import register_process
from berth.scheduler.metrics.recorders import LeaderMetrics
from tests.harness import Harness


@dataclass
class FakeReflector:
    store: dict[str, object] = field(default_factory=dict)
    lists: int = 0
    malformed: int = 0
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    handler_failures: int = 0
    path: str = "/api/v1/nodes"
    version: str = "7"
    queued: int = 0
    processing: Distribution = field(default_factory=lambda: Distribution(PROCESSING_SECONDS))


@dataclass
class FakeConfiguration:
    generation: int = 1
    loaded_at: float = 0.0
    reloads: dict[str, int] = field(default_factory=dict)


def export_everything(harness: Harness) -> CollectorRegistry:
    """Let the harness' registry collect what a whole service would."""
    registry = harness.registry
    lanes = {lane: LaneStats() for lane in Lane}
    for collector in (
        QueueCollector(harness.queue, clock=harness.clock),
        CacheCollector(harness.cache.counts, drift=lambda: 0),
        ProfileCollector(harness.scheduler.profiles.values()),
        ConfigurationCollector(FakeConfiguration()),
        TaskCollector({"binding": lambda: harness.scheduler.binding_count}),
        LaneCollector(lambda: lanes.items()),
        ReflectorCollector({"/api/v1/nodes": FakeReflector()}),
    ):
        registry.register(collector)
    LeaderMetrics("kube-scheduler", registry)
    register_process(registry)
    return registry
