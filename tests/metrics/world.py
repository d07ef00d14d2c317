"""A scheduler in process with everything that exports metrics, as the service puts it together."""

import random
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from app.client.lanes import Lane, LaneStats
from app.framework.interface import Plugin
from app.metrics.leader_metrics import LeaderMetrics
from app.metrics.owners import (
    CacheCollector,
    LaneCollector,
    ProfileCollector,
    QueueCollector,
    ReflectorCollector,
    TaskCollector,
)
from app.metrics.process import register_process
from plugins.registry import IN_TREE
from tests.harness import Harness


@dataclass
class FakeReflector:
    store: dict[str, object] = field(default_factory=dict)
    lists: int = 0
    malformed: int = 0
    handler_failures: int = 0


def export_everything(harness: Harness) -> CollectorRegistry:
    """Let the harness' registry collect what a whole service would."""
    registry = harness.registry
    lanes = {lane: LaneStats() for lane in Lane}
    for collector in (
        QueueCollector(harness.queue, clock=harness.clock),
        CacheCollector(harness.cache.counts),
        ProfileCollector(harness.scheduler.profiles.values()),
        TaskCollector({"binding": lambda: harness.scheduler.binding_count}),
        LaneCollector(lambda: lanes.items()),
        ReflectorCollector({"/api/v1/nodes": FakeReflector()}),
    ):
        registry.register(collector)
    LeaderMetrics("kube-scheduler", registry)
    register_process(registry)
    return registry


def with_plugins(*kinds: type[Plugin], dice: random.Random | None = None) -> Harness:
    """Return a harness whose profile has *kinds* besides the default plugins."""
    enabled = [{"name": kind.NAME} for kind in kinds]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    registry = {**IN_TREE, **{kind.NAME: kind for kind in kinds}}
    return Harness(config=config, registry=registry, dice=dice)
