"""A scheduler, an API server, and the proxy between them; and what must be true after any fault."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec

from berth.cluster.actions import MERGE
from berth.cluster.bootstrap import bootstrap
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.storage.store import Store
from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.connections import Connections
from berth.kube.client.rate_limit import TokenBucket
from berth.kube.objects.meta import ListHead
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock, RealClock
from berth.scheduler.cache.comparer import Comparison, Counted, compare, placed
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.scheduler_service import SchedulerService
from berth.tools.up.verify import verify
from berth_plugins.registry import IN_TREE
from tests.cluster.at_once import at_once
from tests.faults.proxy import LOOPBACK, Fault, Proxy

HURRY: Final = 20.0
LOG_CAPACITY: Final = 50
"""Changes per kind that the API server remembers: few, so that it soon forgets."""
LOOK_INTERVAL: Final = 0.01
PATIENCE: Final = 60.0

T = TypeVar("T", bound=msgspec.Struct)


class HurriedClock(RealClock):
    """The machine's clock, running fast: a backoff of a second is over in 50 ms."""

    def __init__(self) -> None:
        self._started = super().now()

    def now(self) -> float:
        return self._started + (super().now() - self._started) * HURRY

    def monotonic(self) -> float:
        return super().monotonic() * HURRY

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / HURRY)


class World:
    """One API server that survives its own restarts, and a scheduler that sees it by *proxy*."""

    def __init__(self) -> None:
        self.clock = HurriedClock()
        self.rng = random.Random(1)
        self.store = Store(log_capacity=LOG_CAPACITY)
        self.proxy = Proxy(0)
        self.direct: ApiClient
        """A client that no fault touches."""
        self.service: SchedulerService
        self.pods: set[str] = set()
        """Paths of the pods that were created and have to be bound."""
        self._server: ApiServer
        self._wall = RealClock()

    async def start_server(self) -> None:
        """Serve what is stored, on another port than before."""
        self._server = ApiServer(Registry(RESOURCES), self.store, clock=self._wall, rng=self.rng)
        at_once(bootstrap(self._server.writes))
        port = await self._server.start(LOOPBACK, 0)
        self.proxy.server_port = port
        self.direct = await connect(kubeconfig=None, master=f"http://{LOOPBACK}:{port}", qps=0)

    async def stop_server(self) -> None:
        await self.direct.close()
        await self._server.stop()

    async def create_nodes(self, *names: str, cpu: int = 4) -> None:
        for name in names:
            amounts = {"cpu": str(cpu), "memory": "16Gi", "pods": "110"}
            node = {"metadata": {"name": name}, "status": {"allocatable": amounts}}
            await self.create("nodes", node)
            # No controller runs that would find the node ready.
            untainted = msgspec.json.encode({"spec": {"taints": None}})
            await self.direct.request(
                "PATCH", f"/api/v1/nodes/{name}", body=untainted, content_type=MERGE
            )

    async def create_pods(self, *names: str, cpu: str = "100m") -> None:
        for name in names:
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
            pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
            await self.create("namespaces/default/pods", pod)
            self.pods.add(f"/api/v1/namespaces/default/pods/{name}")

    async def create(self, collection: str, obj: dict[str, Any]) -> None:
        await self.direct.request("POST", f"/api/v1/{collection}", body=msgspec.json.encode(obj))

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Return when something has become true; TimeoutError when it does not."""
        async with asyncio.timeout(PATIENCE):
            while not is_true():
                await self._wall.sleep(LOOK_INTERVAL)

    async def check(self) -> None:
        """Wait until all is bound and known, then assert what must hold after any fault.

        The cache equals the API's view, no node is over-full, every pod was bound exactly once.
        """
        wanted = Counter(dict.fromkeys(self.pods, 1))
        with contextlib.suppress(TimeoutError):  # the asserts tell better what is wrong
            await self.until(lambda: self.proxy.bound >= wanted and self.service.is_idle)
        assert self.proxy.bound == wanted, f"bound {self.proxy.bound}, not {wanted}"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while not (comparison := await self.comparison()).is_clean:
                    await self._wall.sleep(LOOK_INTERVAL)
        assert comparison.is_clean, comparison.lines()
        await self.until(lambda: not self.service.cache.counts()["assumed_pods"])
        self.service.cache.check_invariants()
        verification = await verify(self.direct)
        assert verification.is_good, verification.lines()
        handlers = (self.service.pods, self.service.nodes)
        assert [reflector.handler_failures for reflector in handlers] == [0, 0]

    async def comparison(self) -> Comparison:
        nodes, pods = await self._all("nodes", Node), await self._all("pods", Pod)
        names = [node.metadata.name for node in nodes]
        return compare(Counted.by(self.service.cache), nodes=names, pods=placed(pods))

    async def _all(self, plural: str, kind: type[T]) -> list[T]:
        head = msgspec.json.decode(
            await self.direct.request("GET", f"/api/v1/{plural}"), type=ListHead
        )
        return [msgspec.json.decode(item, type=kind) for item in head.items]


@asynccontextmanager
async def world(*nodes: str, cpu: int = 4, faults: Sequence[Fault] = ()) -> AsyncIterator[World]:
    """Give a cluster of *nodes* with a scheduler that has seen them; its death is the test's.

    *faults* are there from its first request on.
    """
    made = World()
    made.proxy.faults = list(faults)
    await made.start_server()
    url = await made.proxy.start()
    client = hurried_client(url, made.clock)
    made.service = SchedulerService(
        client,
        default_configuration(args_models(IN_TREE)),
        clock=made.clock,
        rng=made.rng,
    )
    try:
        await made.create_nodes(*nodes, cpu=cpu)
        async with asyncio.TaskGroup() as tasks:
            scheduling = tasks.create_task(made.service.run(), name="scheduler")
            await made.until(made.service.pods.synced.is_set)
            yield made
            scheduling.cancel()
    finally:
        await client.close()
        await made.proxy.stop()
        await made.stop_server()


def hurried_client(url: str, clock: Clock) -> ApiClient:
    """Make what :func:`berth.kube.client.connect.connect` makes, on another clock."""
    return ApiClient(
        Connections(url, tls=False, server_hostname=None, clock=clock),
        url,
        user_agent="test",
        limiter=TokenBucket(qps=0, burst=1, clock=clock),
        clock=clock,
    )
