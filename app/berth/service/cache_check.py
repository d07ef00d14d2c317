"""Compares the cache with what is watched, for ``berth_cache_drift_objects``."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Final

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.cache.view import CacheView

log = logging.getLogger(__name__)

PERIOD: Final = 300.0
"""Seconds between two comparisons: each takes some seconds of CPU for a million pods."""

MOST_TOLD: Final = 100
"""Differences that are logged, of those that are found at a time."""

BATCH: Final = 2_000
"""Objects compared before others on the event loop get a turn."""


class CacheCheck:
    """Compares *cache* with the *nodes* and *pods* that are watched, by key.

    A change reaches both in the same turn of the event loop. So each object can be compared at a
    moment of its own, and those of a large cluster need not hold up everything else.

    /debug/compare asks the API server instead: that costs it a list of everything, this nothing.
    """

    def __init__(
        self, cache: CacheView, *, nodes: Mapping[str, Node], pods: Mapping[str, Pod], clock: Clock
    ) -> None:
        self._cache = cache
        self._nodes = nodes
        self._pods = pods
        self._clock = clock
        self.differences = 0
        """How many the last comparison found."""

    async def run(self) -> None:
        """Compare every PERIOD, for ever."""
        while True:
            await self._clock.sleep(PERIOD)
            await self.look()

    async def look(self) -> None:
        """Compare now."""
        differences = 0
        for number, difference in enumerate(self._differences(), 1):
            if difference:
                differences += 1
            if difference and differences <= MOST_TOLD:
                log.warning("cache mismatch", extra={"difference": difference})
            if number % BATCH == 0:
                await asyncio.sleep(0)
        self.differences = differences

    def _differences(self) -> Iterator[str]:
        """Yield how each object differs, "" for one that does not."""
        table = self._cache.table
        for name in [*self._nodes]:
            is_missing = name in self._nodes and name not in table.row_of
            yield f"nodes missing in the cache: {name}" if is_missing else ""
        for name in [*table.row_of]:
            is_redundant = name in table.row_of and name not in self._nodes
            yield f"nodes only in the cache: {name}" if is_redundant else ""
        for key in [*self._pods]:
            yield self._of_pod(key)
        for counted in [*self._cache.pods()]:
            yield self._of_counted(counted.uid)

    def _of_pod(self, key: str) -> str:
        """Compare a pod of the API, which counts if it is bound and has not finished."""
        pod = self._pods.get(key)
        if pod is None or not pod.spec.node_name or pod.is_terminated:
            return ""
        counted = self._cache.pod(pod.metadata.uid)
        if counted is None:
            return f"pods missing in the cache: {key}"
        if counted.node_name != pod.spec.node_name:
            on, not_on = pod.spec.node_name, counted.node_name
            return f"pods on another node: {key} is on {on}, not on {not_on}"
        return ""

    def _of_counted(self, uid: str) -> str:
        """Compare a pod of the cache. One that is assumed may be ahead of the API."""
        counted = self._cache.pod(uid)
        if counted is None:
            return ""
        pod = self._pods.get(counted.key)
        is_there = pod is not None and pod.metadata.uid == uid and not pod.is_terminated
        if pod is not None and is_there and (pod.spec.node_name or self._cache.is_assumed(uid)):
            return ""
        return f"pods only in the cache: {counted.key}"
