"""A scheduler that asks an extender as kube-scheduler does.

One pod at a time: filter, prioritize, assume; then bind, in the background and any number at once.
What fails is told by an event, forgotten and tried again after a backoff. Its requests are those
of Go's HTTP client: a connection for each that finds none idle, two kept idle, closed at the
timeout, nothing sent again.
"""

import asyncio
import heapq
import random
import ssl
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.informer.watch_event import WatchEvent
from berth.runtime.clock import RealClock
from berth.scheduler.config.types import Extender

Object = dict[str, Any]

IDLE_CONNECTIONS: Final = 2
"""Go's ``DefaultMaxIdleConnsPerHost``."""
FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
clock = RealClock()


class CallError(Exception):
    """The extender gave no answer, or said that it failed."""


class GoClient:
    """HTTP/1.1 to *address*, which shows a certificate of the host in *url*."""

    def __init__(
        self, url: str, *, address: tuple[str, int], tls: ssl.SSLContext, timeout: float
    ) -> None:
        parts = urlsplit(url)
        self._path, self._host, self._name = parts.path, parts.netloc, parts.hostname
        self._address = address
        self._tls = tls
        self._timeout = timeout
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, verb: str, question: Object) -> Any:
        """Return the answer's JSON. Raises CallError."""
        try:
            async with asyncio.timeout(self._timeout):
                status, body = await self._exchange(verb, msgspec.json.encode(question))
        except TimeoutError as exc:
            raise CallError("context deadline exceeded") from exc
        except (OSError, EOFError) as exc:
            raise CallError(f"connection: {exc!r}") from exc
        if status != 200:
            raise CallError(f"code {status}")
        return msgspec.json.decode(body)

    async def _exchange(self, verb: str, body: bytes) -> tuple[int, bytes]:
        reader, writer = await self._connection()
        is_kept = False
        try:
            head = (
                f"POST {self._path}/{verb} HTTP/1.1\r\nHost: {self._host}\r\n"
                "User-Agent: Go-http-client/1.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nAccept-Encoding: gzip\r\n\r\n"
            )
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            answer = await reader.readexactly(int(headers["content-length"]))
            is_kept = headers.get("connection") != "close" and len(self._idle) < IDLE_CONNECTIONS
            return int(lines[0].split(" ")[1]), answer
        finally:
            if is_kept:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(
            *self._address, ssl=self._tls, server_hostname=self._name
        )

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


class BindCall(NamedTuple):
    """A call of bind: when it was made, and when it was given up or answered."""

    pod: str
    began: float
    ended: float


@dataclass
class Pod:
    """A pod that waits."""

    manifest: Object
    attempts: int = 0

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def uid(self) -> str:
        uid: str = self.manifest["metadata"]["uid"]
        return uid


@dataclass
class KubeScheduler:
    """Places pods that take one of the *room* that each node has."""

    client: GoClient
    config: Extender
    room: Mapping[str, int]
    events: list[str] = field(default_factory=list)
    """Why pods could not be scheduled, one for each time."""
    binds: list[BindCall] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    """Where pods are by the watch, by name."""

    def __post_init__(self) -> None:
        self._assumed: dict[str, str] = {}
        self._active: deque[Pod] = deque()
        self._backoff: list[tuple[float, int, Pod]] = []
        self._rng = random.Random(1)
        self.binding: set[asyncio.Task[None]] = set()

    async def watch(self, api: ApiClient) -> None:
        """Learn of pods and where they are, for ever; of the former to schedule them."""
        async with aclosing(api.watch("/api/v1/pods", {"resourceVersion": "0"})) as lines:
            async for line in lines:
                if not line:  # the watch is open
                    continue
                event = msgspec.json.decode(line, type=WatchEvent[msgspec.Raw])
                manifest = msgspec.json.decode(event.object)
                pod = Pod(manifest)
                node = manifest["spec"].get("nodeName", "")
                if node:
                    self.bound[pod.name] = node
                    self._assumed.pop(pod.name, None)
                elif event.type == "ADDED":
                    self._active.append(pod)

    async def run(self) -> None:
        """Schedule one after the other, for ever."""
        try:
            while True:
                now = clock.monotonic()
                while self._backoff and self._backoff[0][0] <= now:
                    self._active.append(heapq.heappop(self._backoff)[2])
                if self._active:
                    await self._schedule_one(self._active.popleft())
                else:
                    await asyncio.sleep(0.01)
        finally:
            for task in self.binding:
                task.cancel()
            await asyncio.gather(*self.binding, return_exceptions=True)

    async def _schedule_one(self, pod: Pod) -> None:
        if pod.name in self.bound:
            return
        try:
            node = await self._find_node(pod)
        except CallError as exc:
            self._failed(pod, str(exc))
            return
        self._assumed[pod.name] = node
        task = asyncio.create_task(self._bind(pod, node), name=f"bind {pod.name}")
        self.binding.add(task)
        task.add_done_callback(self.binding.discard)

    async def _find_node(self, pod: Pod) -> str:
        taken = Counter(self.bound.values()) + Counter(self._assumed.values())
        names = [name for name, room in self.room.items() if taken[name] < room]
        if not names:
            raise CallError("its own view: Insufficient cpu")
        question = {"Pod": pod.manifest, "Nodes": None, "NodeNames": names}
        said = await self.client.post(self.config.filter_verb, question)
        if said["Error"]:
            raise CallError(said["Error"])
        left = said["NodeNames"]
        if not left:
            reasons = Counter((said["FailedNodes"] | said["FailedAndUnresolvableNodes"]).values())
            raise CallError(f"0/{len(names)} nodes are available: {dict(reasons)}")
        if len(left) == 1:
            only: str = left[0]
            return only
        scores = await self.client.post(
            self.config.prioritize_verb, {**question, "NodeNames": left}
        )
        best = max(score["Score"] for score in scores)
        ties: list[str] = [score["Host"] for score in scores if score["Score"] == best]
        return self._rng.choice(ties)

    async def _bind(self, pod: Pod, node: str) -> None:
        meta = pod.manifest["metadata"]
        question = {
            "PodName": pod.name,
            "PodNamespace": meta["namespace"],
            "PodUID": pod.uid,
            "Node": node,
        }
        began = clock.monotonic()
        error = ""
        try:
            error = (await self.client.post(self.config.bind_verb, question))["Error"]
        except CallError as exc:
            error = str(exc)
        finally:
            self.binds.append(BindCall(pod.name, began, clock.monotonic()))
        if error:
            self._assumed.pop(pod.name, None)
            if pod.name not in self.bound:  # else there is nothing to tell any more
                self._failed(pod, f"binding rejected: {error}")

    def _failed(self, pod: Pod, why: str) -> None:
        self.events.append(why)
        delay = min(FIRST_BACKOFF * 2**pod.attempts, LONGEST_BACKOFF)
        pod.attempts += 1
        heapq.heappush(self._backoff, (clock.monotonic() + delay, len(self.events), pod))


@asynccontextmanager
async def scheduling(scheduler: KubeScheduler, api: ApiClient) -> AsyncIterator[None]:
    """Run *scheduler* until the end of the block; raise what it fails with."""
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(scheduler.watch(api), name="watch"),
            tasks.create_task(scheduler.run(), name="schedule"),
        ]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
    scheduler.client.close()
