"""Asks the API server for everything, and compares it with the cache."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from berth.kube.client.api import Api
from berth.kube.informer.watch_event import decode_list
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.cache.comparer import Comparison, Counted, Placed, compare, placed
from berth.scheduler.cache.view import CacheView
from berth.scheduler.framework.kind import NODES, PODS, Kind
from berth.service.server.scheduler.debug.models import ComparisonReport, Difference, DifferenceKind

PAGE_SIZE: Final = 200
SECOND_LOOK: Final = 1.0
"""Seconds until what differs is looked at again: time for watches to catch up."""

T = TypeVar("T", Node, Pod)


class ClusterComparison:
    """Compares *cache* with the API server that *client* speaks to, one comparison at a time.

    What cannot be read as a whole is read as the watches read it.
    """

    def __init__(self, client: Api, cache: CacheView, *, clock: Clock) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def report(self, *, limit: int) -> ComparisonReport:
        """Compare now, and again what differs; return the first *limit* differences that stayed.

        Raises ApiError.
        """
        async with self._one_at_a_time:
            looks, nodes, pods, differences = 1, *await self._look()
            if differences:
                await self._clock.sleep(SECOND_LOOK)
                before = set(differences)
                looks, nodes, pods, again = 2, *await self._look()
                differences = [difference for difference in again if difference in before]
        return ComparisonReport(
            clean=not differences,
            at=rfc3339(self._clock.now()),
            looks=looks,
            nodes=nodes,
            pods=pods,
            total=len(differences),
            differences=tuple(differences[:limit]),
        )

    async def _look(self) -> tuple[int, int, list[Difference]]:
        """Return how many nodes and pods there are, and what differs."""
        nodes: list[str] = []
        pods: list[Placed] = []
        pod_count = 0
        async for node_page in self._pages(NODES):
            nodes += [node.metadata.name for node in node_page]
        async for pod_page in self._pages(PODS):
            pod_count += len(pod_page)
            pods += placed(pod_page)
        # In a thread, for among 50,000 pods it takes long enough to miss a lease.
        compared = await asyncio.to_thread(compare, Counted.by(self._cache), nodes=nodes, pods=pods)
        return len(nodes), pod_count, list(_differences(compared))

    async def _pages(self, kind: Kind[T]) -> AsyncIterator[list[T]]:
        """List by pages; others get a turn after each."""
        asked = {**kind.params, "limit": str(PAGE_SIZE)}
        while True:
            page = decode_list(await self._client.request("GET", kind.path, params=asked))
            yield list(_readable(page.items, kind))
            if not page.metadata.continue_:
                return
            asked["continue"] = page.metadata.continue_


def _readable(items: Sequence[msgspec.Raw], kind: Kind[T]) -> Iterator[T]:
    for item in items:
        data = bytes(item)
        try:
            yield kind.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            # What cannot be read in part either, the watches have reported already.
            with suppress(msgspec.MsgspecError, ValueError):
                yield kind.decode_partly(data, None)[0]


def _differences(compared: Comparison) -> Iterator[Difference]:
    kinds: Sequence[tuple[DifferenceKind, Sequence[str], str]] = (
        (DifferenceKind.MISSING_NODE, compared.missing_nodes, "node {} is missing in the cache"),
        (DifferenceKind.REDUNDANT_NODE, compared.redundant_nodes, "node {} is only in the cache"),
        (DifferenceKind.MISSING_POD, compared.missing_pods, "pod {} is missing in the cache"),
        (DifferenceKind.REDUNDANT_POD, compared.redundant_pods, "pod {} is only in the cache"),
        (DifferenceKind.MISPLACED_POD, compared.misplaced_pods, "pod {}"),
    )
    for kind, names, words in kinds:
        for name in names:
            # For a misplaced pod the comparer returns a sentence, which begins with the key.
            key = name.partition(" ")[0]
            yield Difference(kind=kind, object=key, words=words.format(name))
