"""Times of bindings, as a watch tells, independently of who binds."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock
from berth.tools.bench.api_server import PODS_PATH
from berth.tools.bench.process import BenchError, Measured

LOOK_SECONDS: Final = 0.005
STALL_SECONDS: Final = 60.0
"""Without a bind for so long, no further ones are waited for."""


class _Meta(msgspec.Struct, rename="camel", frozen=True):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_refused(self) -> bool:
        """Whether a condition says that the pod is not scheduled."""
        return any(
            condition.type == "PodScheduled" and condition.status == "False"
            for condition in self.status.conditions
        )

    @property
    def is_told(self) -> bool:
        """Whether a condition says that the pod fits nowhere."""
        return any(condition.reason == "Unschedulable" for condition in self.status.conditions)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _List(msgspec.Struct):
    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] = []


_decode_event = msgspec.json.Decoder(_Event).decode
decode_list = msgspec.json.Decoder(_List).decode
decode_pod = msgspec.json.Decoder(_Pod).decode


class Binds:
    """Pods that were seen to get a node while they were followed."""

    def __init__(
        self, client: ApiClient, *, clock: Clock, path: str = PODS_PATH, selector: str = ""
    ) -> None:
        """Of those at *path* that the label *selector* selects."""
        self._client = client
        self._path = path
        self._selector = selector
        self._clock = clock
        self._watching: asyncio.Task[None] | None = None
        self.times: dict[str, float] = {}
        """When each pod, ``namespace/name``, was first seen to have a node, monotonic seconds."""
        self.refused: set[str] = set()
        """Pods of which a condition has said that they are not scheduled."""

    async def until(self, enough: int, scheduler: Measured) -> None:
        """Return when *enough* pods are bound, or some are and no more come."""
        await self.until_true(lambda: len(self.times) >= enough, scheduler)

    async def until_true(self, is_done: Callable[[], bool], scheduler: Measured) -> None:
        """Return when *is_done*, or pods are bound and nothing more happens to any.

        BenchError if nothing happens at all.
        """
        seen, since = self._seen(), self._clock.monotonic()
        while not is_done():
            await self._clock.sleep(LOOK_SECONDS)
            scheduler.check()
            if self._watching is not None and self._watching.done():
                self._watching.result()
            now = self._clock.monotonic()
            if self._seen() > seen:
                seen, since = self._seen(), now
            elif now - since > STALL_SECONDS:
                if not self.times:
                    raise BenchError(
                        f"no pod was bound within {STALL_SECONDS:.0f} s; the scheduler said:\n"
                        f"{scheduler.last_words()}"
                    )
                return

    def _seen(self) -> int:
        return len(self.times) + len(self.refused)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Follow pods until the end of the block; no bind after its begin is missed."""
        answer = await self._client.request("GET", self._path, params={"limit": "1"})
        version = decode_list(answer).metadata.resource_version
        self._watching = asyncio.create_task(self._watch(version), name="watch binds")
        try:
            yield
        finally:
            self._watching.cancel()

    async def _watch(self, version: str) -> None:
        params = {"resourceVersion": version}
        if self._selector:
            params["labelSelector"] = self._selector
        lines = self._client.watch(self._path, params)
        async with aclosing(lines):
            async for line in lines:
                if not line:
                    continue
                pod = _decode_event(line).object
                if pod.spec.node_name:
                    self.times.setdefault(pod.key, self._clock.monotonic())
                elif pod.is_refused:
                    self.refused.add(pod.key)
        raise BenchError("the API server ended the watch")
