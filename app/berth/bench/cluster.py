"""``berth bench cluster``: what a large embedded cluster costs, and how fast its API answers.

::

    berth up: API server, controllers, kubelets, scheduler  <-- requests, watches -- this process
                     ^ /proc: CPU and memory ------------------------------------------|

The pods name their nodes, so the scheduler only watches them; the kubelets report each as running.
Everything goes over TLS, as with ``berth up``.
"""

import asyncio
import math
import ssl
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from http.client import OK, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from berth.bench import workloads
from berth.bench.process import BenchError, Measured, running
from berth.bench.throughput import BERTH, START_SECONDS, at_once
from berth.client.api_client import ApiClient
from berth.client.connect import Endpoint, client_of, find
from berth.clock import Clock
from berth.cluster.kubelet.node_template import NodeTemplate

NAMESPACES: Final = 50
PAGE: Final = 500
"""Objects of a page, as ``kubectl get`` asks for them."""
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
READY_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 0.25
QUIET_SECONDS: Final = 2.0
QUIET_WRITES: Final = 10
"""Per second."""
HEARTBEATS: Final = ("leases", "nodes")
"""Resources that kubelets write for ever."""
SHOWN: Final = 5
"""Pods that an error names."""
WRITING_VERBS: Final = ("DELETE", "PATCH", "POST", "PUT")
MIB: Final = 2**20

Given = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How large the cluster is, and how long to look at it."""

    nodes: int = 5_000
    pods: int = 50_000
    watchers: int = 100
    changes: int = 500
    """Changes that every watcher is told of."""
    gets: int = 2_000
    idle_seconds: float = 40.0
    """A multiple of the interval of node leases, 10 s."""
    is_kept: bool = False
    """Keep the cluster on disk, and start it again at the end."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, in words."""

    what: str
    value: str


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Row]:
    """Start a cluster and yield what was measured, as it is; BenchError when that cannot be."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        async with _up(settings, Path(folder), clock=clock) as bench:
            for step in (
                bench.start_nodes,
                bench.idle,
                bench.create_pods,
                bench.idle,
                bench.get,
                bench.list_objects,
                bench.list_table,
                bench.list_pages,
                bench.fan_out,
                bench.check,
            ):
                async for row in step():
                    yield row
        if settings.is_kept:
            started = clock.monotonic()
            async with _up(settings, Path(folder), clock=clock) as bench:
                yield Row("started again", f"{clock.monotonic() - started:.1f} s")
                async for row in bench.check():
                    yield row


@asynccontextmanager
async def _up(settings: Settings, folder: Path, *, clock: Clock) -> AsyncIterator["_Bench"]:
    kubeconfig, output = folder / "kubeconfig", folder / "up.log"
    command = (
        *BERTH,
        "up",
        f"--nodes={settings.nodes}",
        f"--kubeconfig-out={kubeconfig}",
        "--debug-port=0",
        *((f"--data-dir={folder / 'data'}",) if settings.is_kept else ()),
    )
    async with running(command, output=output) as process:
        deadline = clock.monotonic() + START_SECONDS
        while "API server at" not in output.read_text(encoding="utf-8"):
            process.check()
            if clock.monotonic() > deadline:
                raise BenchError(f"the API server did not start within {START_SECONDS:.0f} s")
            await clock.sleep(0.05)
        endpoint = await find(kubeconfig=str(kubeconfig), context=None, master=None, clock=clock)
        client = client_of(endpoint, qps=0, burst=1, user_agent="berth-bench", clock=clock)
        try:
            yield _Bench(settings, process, endpoint, client, clock=clock)
        finally:
            await client.close()


class _Bench:
    """The measurements; each is an iterator of rows."""

    def __init__(
        self,
        settings: Settings,
        process: Measured,
        endpoint: Endpoint,
        client: ApiClient,
        *,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._process = process
        self._endpoint = endpoint
        self._client = client
        self._clock = clock
        self._pods = 0
        self._idle_share = 0.0
        """Of a core, that heartbeats take."""

    async def start_nodes(self) -> AsyncIterator[Row]:
        started = self._clock.monotonic()
        await self._until_nodes()
        seconds = self._clock.monotonic() - started
        used = self._process.cpu_seconds()
        yield Row("nodes registered", f"{seconds:.1f} s, {used:.1f} s of CPU with the start")

    async def idle(self) -> AsyncIterator[Row]:
        await self._until_quiet()
        seconds = self._settings.idle_seconds
        before, renewals = self._process.cpu_seconds(), await self._renewals()
        await self._clock.sleep(seconds)
        used = self._process.cpu_seconds() - before
        renewals = await self._renewals() - renewals
        share = self._idle_share = used / seconds
        memory = self._process.memory() / MIB
        what = f"idle, {self._settings.nodes} nodes, {self._pods} pods"
        each = f", {used / renewals * 1e6:.0f} µs for a lease renewal" if renewals else ""
        yield Row(what, f"{share:.1%} of a core{each}, {memory:.0f} MiB")

    async def create_pods(self) -> AsyncIterator[Row]:
        names = [f"bench-{number:02}" for number in range(NAMESPACES)]
        for name in names:
            body = msgspec.json.encode({"metadata": {"name": name}})
            await self._client.request("POST", "/api/v1/namespaces", body=body)
        await self._until_quiet()  # pods need the service accounts of their namespaces
        nodes = NodeTemplate().names(self._settings.nodes)
        count = self._settings.pods

        def create(number: int) -> Given:
            path = f"/api/v1/namespaces/{names[number % NAMESPACES]}/pods"
            body = msgspec.json.encode(_pod(number, nodes[number % len(nodes)]))
            return lambda: self._client.request("POST", path, body=body)

        before, started = self._process.cpu_seconds(), self._clock.monotonic()
        await at_once(create(number) for number in range(count))
        seconds = self._clock.monotonic() - started
        await self._until_running()
        all_seconds = self._clock.monotonic() - started
        heartbeats = self._idle_share * all_seconds
        used = (self._process.cpu_seconds() - before - heartbeats) / count
        self._pods = count
        yield Row("pods created", f"{count / seconds:.0f}/s")
        yield Row("pods created and reported as running", f"{count / all_seconds:.0f}/s")
        yield Row("CPU of a pod until then, without heartbeats", f"{used * 1e6:.0f} µs")

    async def get(self) -> AsyncIterator[Row]:
        yield Row("get a pod", _percentiles(await self._gets(self._settings.gets)))

    async def list_objects(self) -> AsyncIterator[Row]:
        yield await self._listing("list all pods", "application/json")

    async def list_table(self) -> AsyncIterator[Row]:
        yield await self._listing("list all pods as a Table", TABLE)

    async def list_pages(self) -> AsyncIterator[Row]:
        yield await self._listing(f"the same in pages of {PAGE}", TABLE, limit=PAGE)

    async def fan_out(self) -> AsyncIterator[Row]:
        """Change pods, each when all watchers were told of the one before."""
        settings = self._settings
        watchers = [_Watcher(self._endpoint) for _ in range(settings.watchers)]
        try:
            answer = await self._client.request("GET", "/api/v1/pods", params={"limit": "1"})
            version = msgspec.json.decode(answer, type=_List).metadata.resource_version
            for watcher in watchers:
                await watcher.start(version)
            await self._until_quiet()
            before, started = self._process.cpu_seconds(), self._clock.monotonic()
            took = []
            for number in range(settings.changes):
                changed = self._clock.monotonic()
                await self._change(number)
                await asyncio.gather(*(watcher.seen(number + 1) for watcher in watchers))
                took.append(self._clock.monotonic() - changed)
            seconds = self._clock.monotonic() - started
            used = self._process.cpu_seconds() - before
        finally:
            for watcher in watchers:
                watcher.close()
        told = settings.changes * settings.watchers
        yield Row(f"change told to {settings.watchers} watchers", _percentiles(took))
        cost = f"{used / told * 1e6:.1f} µs of CPU each"
        yield Row("watch events delivered", f"{told / seconds:.0f}/s, {cost}")

    async def _change(self, number: int) -> None:
        body = msgspec.json.encode({"metadata": {"labels": {"changed": str(number)}}})
        await self._client.request(
            "PATCH", _path(number), body=body, content_type="application/merge-patch+json"
        )

    async def _gets(self, count: int) -> list[float]:
        """Return how many seconds each GET of a pod took, one after the other."""
        took = []
        for number in range(count):
            started = self._clock.monotonic()
            await self._client.request("GET", _path(number % self._settings.pods))
            took.append(self._clock.monotonic() - started)
        return took

    async def _listing(self, what: str, accept: str, limit: int = 0) -> Row:
        """List all pods while somebody else gets single ones."""
        before, started = self._process.cpu_seconds(), self._clock.monotonic()
        listing = asyncio.create_task(self._list(accept, limit))
        waits: list[float] = []
        while not listing.done():
            waits += await self._gets(1)
        size = await listing
        seconds = self._clock.monotonic() - started
        used = self._process.cpu_seconds() - before
        return Row(
            what,
            f"{seconds:.2f} s, {used:.2f} s of CPU, {size / 1e6:.0f} MB;"
            f" a get meanwhile {_percentiles(waits)}, at most {max(waits) * 1e3:.0f}",
        )

    async def _list(self, accept: str, limit: int) -> int:
        """Read all pages, on a thread of their own; return their bytes."""
        headers = {"Accept": accept, "Authorization": await self._endpoint.authorization()}
        return await asyncio.to_thread(_read_pages, self._endpoint, headers, limit)

    async def _until_nodes(self) -> None:
        """Return when all nodes are registered."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while (found := await self._count("/api/v1/nodes")) < self._settings.nodes:
            self._process.check()
            if self._clock.monotonic() > deadline:
                raise BenchError(f"{found} nodes after {READY_SECONDS:.0f} s")
            await self._clock.sleep(LOOK_SECONDS)

    async def check(self) -> AsyncIterator[Row]:
        """Raise BenchError unless all pods are there and run."""
        if await self._count("/api/v1/pods") != self._settings.pods:
            raise BenchError("there are not as many pods as were created")
        if waiting := await self._not_running():
            raise BenchError(f"there are pods that do not run: {waiting}")
        yield Row("memory, at most", f"{self._process.peak_memory() / MIB:.0f} MiB")

    async def _count(self, path: str, **selection: str) -> int:
        """Count the objects; with a selector, tell only whether there are any."""
        answer = await self._client.request("GET", path, params={**selection, "limit": "1"})
        found = msgspec.json.decode(answer, type=_List)
        return len(found.items) + (found.metadata.remaining_item_count or 0)

    async def _until_running(self) -> None:
        """Return when all pods run. Events about them may be yet to come."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while waiting := await self._not_running():
            self._process.check()
            if self._clock.monotonic() > deadline:
                raise BenchError(f"pods that do not run after {READY_SECONDS:.0f} s: {waiting}")
            await self._clock.sleep(LOOK_SECONDS)

    async def _not_running(self) -> str:
        """Name some pods that do not run, with their status; "" when all do."""
        query = {"fieldSelector": "status.phase!=Running", "limit": str(SHOWN)}
        answer = await self._client.request("GET", "/api/v1/pods", params=query)
        items = msgspec.json.decode(answer, type=_List).items
        pods = [msgspec.json.decode(item, type=_Pod) for item in items]
        return "; ".join(f"{each.metadata.name}: {each.status}" for each in pods)

    async def _until_quiet(self) -> None:
        """Return when next to nothing is written, but for the heartbeats of nodes."""
        deadline = self._clock.monotonic() + READY_SECONDS
        before, writes = -math.inf, await self._writes()
        while writes - before > QUIET_SECONDS * QUIET_WRITES:
            self._process.check()
            if self._clock.monotonic() > deadline:
                raise BenchError(f"there are still writes after {READY_SECONDS:.0f} s")
            await self._clock.sleep(QUIET_SECONDS)
            before, writes = writes, await self._writes()

    async def _writes(self) -> float:
        """Return how many writes the API server has counted, without heartbeats."""
        return sum(
            count
            for labels, count in await self._requests()
            if not any(f'resource="{resource}"' in labels for resource in HEARTBEATS)
            and any(f'verb="{verb}"' in labels for verb in WRITING_VERBS)
        )

    async def _renewals(self) -> float:
        """Return how often leases were renewed."""
        return sum(
            count
            for labels, count in await self._requests()
            if 'resource="leases"' in labels and 'verb="PATCH"' in labels
        )

    async def _requests(self) -> list[tuple[str, float]]:
        """Return what the API server has counted of requests, with their labels."""
        text = (await self._client.request("GET", "/metrics")).decode()
        return [
            (labels, float(count))
            for line in text.splitlines()
            if line.startswith("apiserver_request_total{")
            for labels, _, count in (line.rpartition(" "),)
        ]


class _Watcher:
    """Counts the events of a watch of all pods. Reads bytes: a client that is cheap."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._reading: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._count = 0
        self._more = asyncio.Event()

    async def start(self, version: str) -> None:
        """Watch from *version* on; return when the server has accepted the watch."""
        url = urlsplit(self._endpoint.url)
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port, ssl=self._endpoint.tls, limit=4 * MIB
        )
        self._writer = writer
        writer.write(
            f"GET /api/v1/pods?watch=1&resourceVersion={version} HTTP/1.1\r\n"
            f"Host: {url.netloc}\r\nAccept: application/json\r\n"
            f"Authorization: {await self._endpoint.authorization()}\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.splitlines()[0]:
            raise BenchError(f"watch: {head.decode()}")
        self._reading = asyncio.create_task(self._read(reader), name="watcher")

    async def seen(self, count: int) -> None:
        """Return when there were so many events."""
        while self._count < count:
            self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b'{"type":"MODIFIED"'):
                self._count += 1
                self._more.set()


def _read_pages(endpoint: Endpoint, headers: Mapping[str, str], limit: int) -> int:
    """List all pods; return the bytes of all answers."""
    assert isinstance(endpoint.tls, ssl.SSLContext)
    size, continue_token = 0, ""
    with closing(HTTPSConnection(urlsplit(endpoint.url).netloc, context=endpoint.tls)) as http:
        while True:
            asked = {"limit": limit, "continue": continue_token} if limit else {}
            http.request("GET", f"/api/v1/pods?{urlencode(asked)}", headers=dict(headers))
            answer = http.getresponse()
            if answer.status != OK:
                raise BenchError(f"list: {answer.status} {answer.read()!r:.500}")
            if not limit:
                while part := answer.read(MIB):
                    size += len(part)
                return size
            page = answer.read()
            size += len(page)
            continue_token = msgspec.json.decode(page, type=_List).metadata.continue_
            if not continue_token:
                return size


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _Name(msgspec.Struct, frozen=True):
    name: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Name
    status: dict[str, Any] = {}


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


def _pod(number: int, node: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{number:06}", "labels": {"app": f"app-{number % 100}"}},
        "spec": {**workloads.requests(100, 128), "nodeName": node},
    }


def _path(number: int) -> str:
    return f"/api/v1/namespaces/bench-{number % NAMESPACES:02}/pods/pod-{number:06}"


def _percentiles(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return f"{seconds[0] * 1e3:.2f} ms"
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return f"p50 {cuts[49] * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f} ms"
