"""``berth bench cluster``: what a large embedded cluster costs, and how fast its API answers.

::

    berth up: API server, controllers, kubelets, scheduler  <-- requests, watches -- this process
                     ^ /proc: CPU and memory ------------------------------------------|

The pods name their nodes, so the scheduler only watches them; the kubelets report each as running.
Everything goes over TLS, as with ``berth up``.
"""

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.cluster.kubelet.node_template import NodePool
from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import Endpoint, client_of, find
from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.api_server import BERTH, START_SECONDS, at_once
from berth.tools.bench.names import CLUSTER_PODS, CLUSTER_WATCHERS
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.results import Figure, figure, percentiles, used_figure
from berth.tools.bench.watchers import MIB, ListOfAny, Watcher, read_pages

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

Given = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How large the cluster is, and how long to look at it."""

    nodes: int = 5_000
    pods: int = CLUSTER_PODS
    watchers: int = CLUSTER_WATCHERS
    changes: int = 500
    """Changes that every watcher is told of."""
    gets: int = 2_000
    idle_seconds: float = 40.0
    """A multiple of the interval of node leases, 10 s."""
    is_kept: bool = False
    """Keep the cluster on disk, and start it again at the end."""


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Start a cluster and measure it; BenchError when that cannot be."""
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
                async for each in step():
                    yield each
        if settings.is_kept:
            started = clock.monotonic()
            async with _up(settings, Path(folder), clock=clock) as bench:
                yield figure("started again", clock.monotonic() - started, "s")
                async for each in bench.check(" after that"):
                    yield each


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

    async def start_nodes(self) -> AsyncIterator[Figure]:
        started = self._clock.monotonic()
        await self._until_nodes()
        seconds = self._clock.monotonic() - started
        yield figure("nodes registered", seconds, "s")
        yield used_figure("CPU of that and of the start", self._process.used(), "s")

    async def idle(self) -> AsyncIterator[Figure]:
        await self._until_quiet()
        seconds = self._settings.idle_seconds
        before, renewals = self._process.used(), await self._renewals()
        await self._clock.sleep(seconds)
        used = self._process.used().since(before)
        renewals = await self._renewals() - renewals
        self._idle_share = used.cpu / seconds
        yield figure("idle", self._idle_share * 100, "% of a CPU", pods=self._pods)
        if renewals:
            yield used_figure(
                "idle, per renewal of a lease", used, "µs", count=int(renewals), pods=self._pods
            )
        yield figure("memory", self._process.memory() / MIB, "MiB", pods=self._pods)

    async def create_pods(self) -> AsyncIterator[Figure]:
        names = [f"bench-{number:02}" for number in range(NAMESPACES)]
        for name in names:
            body = msgspec.json.encode({"metadata": {"name": name}})
            await self._client.request("POST", "/api/v1/namespaces", body=body)
        await self._until_quiet()  # pods need the service accounts of their namespaces
        nodes = NodePool(self._settings.nodes).names()
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
        yield figure("pods created", count / seconds, "1/s")
        yield figure("pods created and reported as running", count / all_seconds, "1/s")
        yield figure("CPU of a pod until then, without heartbeats", used * 1e6, "µs")

    async def get(self) -> AsyncIterator[Figure]:
        for percentile in percentiles("get a pod", await self._gets(self._settings.gets)):
            yield percentile

    async def list_objects(self) -> AsyncIterator[Figure]:
        for listed in await self._listing("list all pods", "application/json"):
            yield listed

    async def list_table(self) -> AsyncIterator[Figure]:
        for listed in await self._listing("list all pods as a Table", TABLE):
            yield listed

    async def list_pages(self) -> AsyncIterator[Figure]:
        for listed in await self._listing(f"the same in pages of {PAGE}", TABLE, limit=PAGE):
            yield listed

    async def fan_out(self) -> AsyncIterator[Figure]:
        """Change pods, each when all watchers were told of the one before."""
        settings = self._settings
        watchers = [Watcher(self._endpoint) for _ in range(settings.watchers)]
        try:
            answer = await self._client.request("GET", "/api/v1/pods", params={"limit": "1"})
            version = msgspec.json.decode(answer, type=ListOfAny).metadata.resource_version
            for watcher in watchers:
                await watcher.start(version)
            await self._until_quiet()
            before, started = self._process.used(), self._clock.monotonic()
            took = []
            for number in range(settings.changes):
                changed = self._clock.monotonic()
                await self._change(number)
                await asyncio.gather(*(watcher.seen(number + 1) for watcher in watchers))
                took.append(self._clock.monotonic() - changed)
            seconds = self._clock.monotonic() - started
            used = self._process.used().since(before)
        finally:
            for watcher in watchers:
                watcher.close()
        told = settings.changes * settings.watchers
        for percentile in percentiles(f"change told to {settings.watchers} watchers", took):
            yield percentile
        yield figure("watch events delivered", told / seconds, "1/s")
        yield used_figure("CPU of a watch event", used, "µs", count=told)

    async def _change(self, number: int) -> None:
        body = msgspec.json.encode({"metadata": {"labels": {"changed": str(number)}}})
        await self._client.request(
            "PATCH",
            _path(number % self._settings.pods),
            body=body,
            content_type="application/merge-patch+json",
        )

    async def _gets(self, count: int) -> list[float]:
        """Return how many seconds each GET of a pod took, one after the other."""
        took = []
        for number in range(count):
            started = self._clock.monotonic()
            await self._client.request("GET", _path(number % self._settings.pods))
            took.append(self._clock.monotonic() - started)
        return took

    async def _listing(self, what: str, accept: str, limit: int = 0) -> list[Figure]:
        """List all pods while somebody else gets single ones."""
        before, started = self._process.used(), self._clock.monotonic()
        listing = asyncio.create_task(self._list(accept, limit))
        waits: list[float] = []
        while not listing.done():
            waits += await self._gets(1)
        size = await listing
        seconds = self._clock.monotonic() - started
        used = self._process.used().since(before)
        return [
            figure(what, seconds, "s", outcome=f"{size / 1e6:.0f} MB"),
            used_figure(f"{what}, CPU", used, "s"),
            *percentiles(f"{what}, a get meanwhile", waits, percents=(50,)),
        ]

    async def _list(self, accept: str, limit: int) -> int:
        """Read all pages, on a thread of their own; return their bytes."""
        headers = {"Accept": accept, "Authorization": await self._endpoint.authorization()}
        return await asyncio.to_thread(read_pages, self._endpoint, headers, limit)

    async def _until_nodes(self) -> None:
        """Return when all nodes are registered."""
        deadline = self._clock.monotonic() + READY_SECONDS
        while (count := await self._count("/api/v1/nodes")) < self._settings.nodes:
            self._process.check()
            if self._clock.monotonic() > deadline:
                raise BenchError(f"{count} nodes after {READY_SECONDS:.0f} s")
            await self._clock.sleep(LOOK_SECONDS)

    async def check(self, when: str = "") -> AsyncIterator[Figure]:
        """Raise BenchError unless all pods are there and run."""
        if await self._count("/api/v1/pods") != self._settings.pods:
            raise BenchError("there are not as many pods as were created")
        if waiting := await self._not_running():
            raise BenchError(f"there are pods that do not run: {waiting}")
        yield figure(f"peak memory{when}", self._process.peak_memory() / MIB, "MiB")

    async def _count(self, path: str, **selection: str) -> int:
        """Count the objects; with a selector, tell only whether there are any."""
        answer = await self._client.request("GET", path, params={**selection, "limit": "1"})
        page = msgspec.json.decode(answer, type=ListOfAny)
        return len(page.items) + (page.metadata.remaining_item_count or 0)

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
        items = msgspec.json.decode(answer, type=ListOfAny).items
        pods = [msgspec.json.decode(item, type=_Pod) for item in items]
        return "; ".join(f"{pod.metadata.name}: {pod.status}" for pod in pods)

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


class _Name(msgspec.Struct, frozen=True):
    name: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Name
    status: dict[str, Any] = {}


def _pod(number: int, node: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{number:06}", "labels": {"app": f"app-{number % 100}"}},
        "spec": {**workloads.requests(100, 128), "nodeName": node},
    }


def _path(number: int) -> str:
    return f"/api/v1/namespaces/bench-{number % NAMESPACES:02}/pods/pod-{number:06}"
