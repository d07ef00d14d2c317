"""The comparison of the cache with what is watched, now and then."""

import asyncio
import logging

import pytest
from prometheus_client import CollectorRegistry

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.cache.cache import Cache
from berth.scheduler.metrics.collectors import CacheCollector
from berth.service.cache_check import PERIOD, CacheCheck
from tests.builders import node, pod
from tests.scheduler.metrics.reading import counted


class Scene:
    """A cache, and what is watched."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.clock = FakeClock()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.check = CacheCheck(self.cache, nodes=self.nodes, pods=self.pods, clock=self.clock)
        self.registry = CollectorRegistry()
        self.registry.register(
            CacheCollector(self.cache.counts, drift=lambda: self.check.differences)
        )

    def drift(self) -> float:
        (number,) = counted(self.registry, "berth_cache_drift_objects").values()
        return number


async def test_agreement() -> None:
    scene = Scene()
    scene.nodes["n"] = node("n")
    scene.cache.add_node(node("n"))
    await scene.check.look()
    assert scene.drift() == 0


async def test_differences_are_counted_and_told_until_they_have_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    scene.nodes["watched"] = node("watched")
    scene.pods["default/p"] = pod("p", node="watched")
    scene.pods["default/waits"] = pod("waits")
    scene.cache.add_node(node("cached"))
    with caplog.at_level(logging.WARNING):
        await scene.check.look()
    assert scene.drift() == 3
    assert [vars(record)["difference"] for record in caplog.records] == [
        "nodes missing in the cache: watched",
        "nodes only in the cache: cached",
        "pods missing in the cache: default/p",
    ]

    scene.nodes.clear()
    scene.pods.clear()
    scene.cache.remove_node("cached")
    await scene.check.look()
    assert scene.drift() == 0


async def test_it_is_done_every_five_minutes() -> None:
    scene = Scene()
    scene.nodes["n"] = node("n")
    running = asyncio.create_task(scene.check.run(), name="check")
    await asyncio.sleep(0)
    scene.clock.advance(PERIOD - 1)
    await asyncio.sleep(0)
    assert scene.drift() == 0
    scene.clock.advance(1)
    async with asyncio.timeout(60):
        while not scene.drift():
            await asyncio.sleep(0)
            assert not running.done()
    running.cancel()
