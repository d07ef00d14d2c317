"""A cluster of real processes: embedded API server, kubelets, and replicas of the scheduler.

Each replica speaks to the API server through a proxy of its own, which notes what it binds.
"""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import yaml
from aiohttp import web
from yarl import URL

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.errors import ApiError
from berth.kube.informer.watch_event import WatchEvent
from berth.runtime.clock import RealClock

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
PODS = "/api/v1/namespaces/default/pods"
PASSED_ON = ("Content-Type", "User-Agent", "Accept")
clock = RealClock()


class Bind(NamedTuple):
    """A request to bind: when it arrived, for which pod, and how it was answered."""

    at: float
    pod: str
    status: int


class Proxy:
    """Stands before the API server at *target*."""

    def __init__(self, target: str) -> None:
        self.url = ""
        self.binds: list[Bind] = []
        self._target = target

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Proxy"]:
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout()
        ) as self._session:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield self
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        arrived = clock.monotonic()
        async with self._session.request(
            request.method,
            URL(self._target + request.raw_path, encoded=True),
            data=await request.read(),
            headers={k: v for k, v in request.headers.items() if k in PASSED_ON},
        ) as answer:
            if request.path.endswith("/binding"):
                self.binds.append(Bind(arrived, request.path.split("/")[-2], answer.status))
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        return response


class Process:
    """A ``berth`` command as a process. Its output goes to a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    def send(self, number: signal.Signals) -> float:
        """Send a signal; return when."""
        self._process.send_signal(number)
        return clock.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def exit_status(self) -> int:
        return await asyncio.wait_for(self._process.wait(), timeout=30)

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8")


class Replica(NamedTuple):
    process: Process
    proxy: Proxy


class Cluster:
    """What a test of several replicas needs. Made by :func:`cluster`."""

    def __init__(self, url: str, client: ApiClient, folder: Path, cleanup: AsyncExitStack) -> None:
        self.url = url
        self.client = client
        self.placements: dict[str, list[str]] = {}
        """Per pod the nodes that it was seen to have, one after the other."""
        self._folder = folder
        self._cleanup = cleanup

    async def replica(self, name: str, flags: Sequence[str]) -> Replica:
        """Start ``berth run``."""
        proxy = await self._cleanup.enter_async_context(Proxy(self.url).serving())
        process = await self._cleanup.enter_async_context(
            berth(
                "run",
                f"--master={proxy.url}",
                "--secure-port=0",
                *flags,
                log=self._folder / f"{name}.log",
            )
        )
        return Replica(process, proxy)

    async def holder(self) -> str:
        """Return who holds the lease; "" for nobody."""
        try:
            lease = msgspec.json.decode(await self.client.request("GET", LEASE))
        except ApiError:
            return ""
        holder: str = lease["spec"]["holderIdentity"]
        return holder

    async def create_pods(
        self,
        names: Sequence[str],
        *,
        cpu: str,
        labels: Mapping[str, str] | None = None,
        **spec: object,
    ) -> None:
        """Create pods with one container; *spec* is what their specs have beside it."""
        for name in names:
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels or {}},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
                    ],
                    **spec,
                },
            }
            await self.client.request("POST", PODS, body=msgspec.json.encode(pod))

    async def follow(self) -> None:
        """Note every node that a pod gets, for ever."""
        async with aclosing(self.client.watch("/api/v1/pods", {})) as lines:
            async for line in lines:
                if not line:
                    continue
                event = msgspec.json.decode(line, type=WatchEvent[msgspec.Raw])
                pod: Any = msgspec.json.decode(event.object)
                node = pod["spec"].get("nodeName", "")
                seen = self.placements.setdefault(pod["metadata"]["name"], [])
                if node and seen[-1:] != [node]:
                    seen.append(node)

    @property
    def bound(self) -> int:
        return sum(bool(nodes) for nodes in self.placements.values())

    @property
    def times_bound(self) -> Counter[int]:
        """How many pods were bound how many times."""
        return Counter(len(nodes) for nodes in self.placements.values())


@asynccontextmanager
async def berth(*argv: str, log: Path) -> AsyncIterator[Process]:
    """Run ``berth`` with these arguments; it is gone afterwards."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "berth", *argv, stdout=output, stderr=output
        )
    try:
        yield Process(process, log)
    finally:
        if process.returncode is None:
            process.kill()  # also one that is stopped
            await process.wait()


@asynccontextmanager
async def cluster(folder: Path, *, nodes: int, cpu: str) -> AsyncIterator[Cluster]:
    """Start API server, controllers and *nodes* hollow nodes with that much *cpu*, as processes."""
    kubeconfig, template = folder / "kubeconfig", folder / "node.yaml"
    template.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "node"},
                "status": {"allocatable": {"cpu": cpu}},
            }
        ),
        encoding="utf-8",
    )
    async with AsyncExitStack() as cleanup:
        await cleanup.enter_async_context(
            berth(
                # The proxies look into what passes through them.
                "cluster",
                "--insecure",
                f"--kubeconfig-out={kubeconfig}",
                log=folder / "cluster.log",
            )
        )
        await until(kubeconfig.exists, "the API server is up")
        url = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"][
            "server"
        ]
        client = await connect(kubeconfig=None, master=url, qps=0, user_agent="test")
        cleanup.push_async_callback(client.close)
        await cleanup.enter_async_context(
            berth(
                "kubelets",
                f"--master={url}",
                f"--nodes={nodes}",
                f"--node-template={template}",
                log=folder / "kubelets.log",
            )
        )
        made = Cluster(url, client, folder, cleanup)
        following = asyncio.create_task(made.follow(), name="follow pods")
        try:
            yield made
        finally:
            following.cancel()
            await asyncio.wait([following])


async def until(true: Any, what: str, *, seconds: float = 30.0) -> float:
    """Wait until *true* says so, and return when that was; AssertionError if it takes too long."""
    deadline = clock.monotonic() + seconds
    while not true():
        assert clock.monotonic() < deadline, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.01)
    return clock.monotonic()
