"""A cluster with hollow nodes and a scheduler in this process, and what is said to its API."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from berth.cluster.access.users import ADMIN, KUBELETS, SCHEDULER
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.cluster.kubelet.pod_lifecycles import Timings
from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import RealClock
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.config.load import default_configuration, from_object
from berth.scheduler.config.types import Extender
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService

Object = dict[str, Any]

PODS: Final = "/api/v1/namespaces/default/pods"
LOOK_SECONDS: Final = 0.05
LIMIT_SECONDS: Final = 60


class World:
    """Speaks JSON to the API, as a user does."""

    def __init__(self, client: ApiClient, service: SchedulerService) -> None:
        self._client = client
        self.service = service

    async def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._client.request(method, path, body=encoded)
        decoded: Object = msgspec.json.decode(answer)
        return decoded

    async def create(self, path: str, *objects: Object) -> None:
        for obj in objects:
            await self.ask("POST", path, obj)

    async def items(self, path: str) -> dict[str, Object]:
        """Return what is at *path*, by name."""
        found = (await self.ask("GET", path))["items"]
        return {each["metadata"]["name"]: each for each in found}

    async def until(
        self, path: str, is_so: Callable[[dict[str, Object]], bool]
    ) -> dict[str, Object]:
        """Look at *path* until *is_so* of its items; return them."""
        while True:
            items = await self.items(path)
            if is_so(items):
                return items
            await asyncio.sleep(LOOK_SECONDS)

    async def until_running(self, *names: str) -> dict[str, Object]:
        """Wait for the pods of these names to run; return all pods."""
        return await self.until(PODS, lambda pods: set(names) <= running(pods).keys())


def running(pods: Mapping[str, Object]) -> dict[str, str]:
    """Return the nodes of the pods that run, by name of pod."""
    return {
        name: pod["spec"]["nodeName"]
        for name, pod in pods.items()
        if (pod.get("status") or {}).get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }


def why_pending(pod: Object) -> str:
    """Return what the scheduler says of a pod that it found no node for; "" if nothing yet."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or "")
    return ""


def pod(name: str, *, cpu: str = "100m", labels: Object | None = None, **spec: Any) -> Object:
    container: Object = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


@asynccontextmanager
async def running_world(
    *,
    nodes: int,
    cpu: str = "4",
    extenders: tuple[Extender, ...] = (),
    config: Object | None = None,
    plugins: KnownPlugins | None = None,
    before: Mapping[str, Sequence[Object]] | None = None,
    limit: float = LIMIT_SECONDS,
) -> AsyncIterator[World]:
    """Run everything; a scenario that does not come to its end fails after *limit* seconds.

    *config* is by default that of someone who configures nothing; it may enable *plugins*. Its
    ``featureGates`` are the cluster's as well. *before* are objects, by their path, that are there
    before the scheduler starts.
    """
    clock, rng = RealClock(), random.Random(1)
    plugins = plugins or KnownPlugins()
    configuration = (
        default_configuration(plugins.args_models)
        if config is None
        else from_object(config, source="test", args_models=plugins.args_models)
    ).model_copy(update={"extenders": extenders})
    features = features_of(configuration)
    cluster = EmbeddedCluster(
        clock=clock, rng=rng, features=features.gates, release=features.version.emulation
    )
    await cluster.start(0)
    clients = [await cluster.connect(user.name, user=user) for user in (SCHEDULER, KUBELETS, ADMIN)]
    settings = Settings(
        [NodePool(nodes, NodeTemplate(resources={"cpu": cpu, "memory": "8Gi", "pods": "110"}))],
        timings=Timings(stop_seconds=0.1),
    )
    kubelets = HollowKubelets(clients[1], settings, clock=clock, rng=rng)
    service = SchedulerService(clients[0], configuration, clock=clock, rng=rng, plugins=plugins)
    world = World(clients[2], service)
    for path, objects in (before or {}).items():
        await world.create(path, *objects)
    tasks = [
        asyncio.create_task(run(), name=name)
        for name, run in (
            ("controllers", cluster.run_controllers),
            ("kubelets", kubelets.run),
            ("scheduler", service.run),
        )
    ]
    try:
        async with asyncio.timeout(limit):
            await kubelets.ready.wait()
            yield world
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in clients:
            await client.close()
        await cluster.stop()
