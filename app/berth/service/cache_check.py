"""Compares the cache with what is watched, for ``berth_cache_drift_objects``."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from berth.cache.cache import Cache
from berth.cache.comparer import Counted, compare, placed
from berth.clock import Clock
from berth.objects.node import Node
from berth.objects.pod import Pod

log = logging.getLogger(__name__)

PERIOD: Final = 300.0
"""Seconds between two comparisons: each holds up everything else for 1.5 s per million pods."""


class CacheCheck:
    """Compares *cache* with the *nodes* and *pods* that are watched, by key.

    /debug/compare asks the API server instead: that costs it a list of everything, this nothing.
    """

    def __init__(
        self, cache: Cache, *, nodes: Mapping[str, Node], pods: Mapping[str, Pod], clock: Clock
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
        # Both sides at one moment; the rest in a thread, for among 50,000 pods it takes long.
        counted, there = Counted.by(self._cache), placed(self._pods.values())
        nodes = [node.metadata.name for node in self._nodes.values()]
        found = await asyncio.to_thread(compare, counted, nodes=nodes, pods=there)
        for line in found.lines():
            log.warning("cache mismatch", extra={"difference": line})
        self.differences = sum(
            len(names)
            for names in (
                found.missing_nodes, found.redundant_nodes,
                found.missing_pods, found.redundant_pods, found.misplaced_pods,
            )
        )  # fmt: skip
