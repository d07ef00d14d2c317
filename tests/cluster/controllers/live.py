"""A running cluster of one node: embedded API server, controllers and a hollow kubelet."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from berth.cluster.actions import MERGE
from berth.cluster.bootstrap import bootstrap
from berth.cluster.controllers.run import Controllers
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool
from berth.cluster.kubelet.pod_lifecycles import Timings
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.errors import NotFoundError
from berth.runtime.clock import RealClock

WEB = "/apis/apps/v1/namespaces/default/deployments/web"


class Cluster:
    """A running cluster of one node."""

    def __init__(self, client: ApiClient, registry: Registry) -> None:
        self._client = client
        self.registry = registry
        self.url = client.url

    async def ask(
        self, method: str, path: str, body: Object | None = None, kind: str = MERGE
    ) -> Any:
        content_type = kind if method == "PATCH" else "application/json"
        encoded = None if body is None else msgspec.json.encode(body)
        return msgspec.json.decode(
            await self._client.request(method, path, body=encoded, content_type=content_type)
        )

    async def count(self, path: str) -> int:
        return len((await self.ask("GET", path))["items"])

    async def until_observed(self) -> Object:
        """Wait until the controller has seen what is wanted of the Deployment; return that."""
        while True:
            deployment: Object = await self.ask("GET", WEB)
            observed = (deployment.get("status") or {}).get("observedGeneration")
            if observed == deployment["metadata"]["generation"]:
                return deployment
            await asyncio.sleep(0.02)

    async def until_rolled_out(self, replicas: int) -> Object:
        """Wait for what ``kubectl rollout status`` waits for."""
        while True:
            deployment = await self.until_observed()
            status = deployment["status"]
            counts = {
                status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")
            }
            if counts == {replicas}:
                return deployment
            await asyncio.sleep(0.02)

    async def until_count(self, path: str, wanted: int) -> None:
        while True:
            if await self.count(path) == wanted:
                return
            await asyncio.sleep(0.02)

    async def until_gone(self, path: str) -> None:
        try:
            while True:
                await self.ask("GET", path)
                await asyncio.sleep(0.02)
        except NotFoundError:
            return


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    clock, rng = RealClock(), random.Random(5)
    registry = Registry(RESOURCES)
    server = ApiServer(registry, Store(), clock=clock, rng=rng)
    server.open()
    await bootstrap(server.writes)
    port = await server.start("127.0.0.1", 0)
    client = await connect(kubeconfig=None, master=f"http://127.0.0.1:{port}", qps=1e6, burst=10**6)
    kubelets = HollowKubelets(
        client, Settings([NodePool(1)], timings=Timings(stop_seconds=0.1)), clock=clock, rng=rng
    )
    server.containers.append(kubelets.containers)
    controllers = Controllers(client, registry, clock=clock, rng=rng)
    tasks = [
        asyncio.create_task(kubelets.run(), name="kubelets"),
        asyncio.create_task(controllers.run(), name="controllers"),
    ]
    await kubelets.ready.wait()
    try:
        async with asyncio.timeout(100):
            yield Cluster(client, registry)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()
        await server.stop()
