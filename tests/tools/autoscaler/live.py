"""A cluster with an autoscaler, whole and in this process, on a clock that jumps ahead."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from berth.cluster.access.users import ADMIN, KUBELETS, SCHEDULER
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.runtime.clock import FakeClock
from berth.runtime.virtual_time import VirtualTimeLoop
from berth.scheduler.config.load import default_configuration
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService
from berth.tools.autoscaler.autoscaler import ClusterAutoscaler
from berth.tools.autoscaler.node_groups import NodeGroup, NodeGroups
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.planning_thread import Beside
from berth.tools.up.autoscaling import access_rights, cluster_autoscaler

T = TypeVar("T")
Object = dict[str, Any]

START = 1_767_225_600.0
LOOK_SECONDS = 5.0
LIMIT_SECONDS = 7_200.0
"""Virtual ones, after which a scenario has failed."""


class World:
    """Speaks JSON to the API, as a user does."""

    def __init__(
        self, cluster: EmbeddedCluster, autoscaler: ClusterAutoscaler, clock: FakeClock
    ) -> None:
        self.clock = clock
        self.autoscaler = autoscaler
        self._client = cluster.in_process("tests", user=ADMIN)

    async def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        encoded = None if body is None else msgspec.json.encode(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = await self._client.request(method, path, body=encoded, content_type=kind)
        decoded: Object = msgspec.json.decode(answer)
        return decoded

    async def items(self, path: str) -> dict[str, Object]:
        """Return what is at *path*, by name."""
        found = (await self.ask("GET", path))["items"]
        return {each["metadata"]["name"]: each for each in found}

    async def until(self, path: str, is_so: Callable[[dict[str, Object]], bool]) -> float:
        """Let time pass until *is_so* of the items at *path*; return how long it took."""
        began = self.clock.monotonic()
        while not is_so(items := await self.items(path)):
            if self.clock.monotonic() - began > LIMIT_SECONDS:
                raise AssertionError(items)
            await self.clock.sleep(LOOK_SECONDS)
        return self.clock.monotonic() - began

    async def until_nodes(self, *names: str) -> float:
        return await self.until("/api/v1/nodes", lambda nodes: set(nodes) == set(names))

    async def until_running(self, count: int) -> float:
        def enough(pods: dict[str, Object]) -> bool:
            phases = [pod["status"].get("phase") for pod in pods.values()]
            return phases.count("Running") == count == len(phases)

        return await self.until("/api/v1/namespaces/default/pods", enough)

    async def events(self, reason: str) -> list[str]:
        """Return the messages of the autoscaler's events with *reason*."""
        return [
            item["message"]
            for item in (await self.ask("GET", "/api/v1/events"))["items"]
            if item["reason"] == reason and item["source"]["component"] == "cluster-autoscaler"
        ]

    async def until_event(self, reason: str) -> list[str]:
        while not (found := await self.events(reason)):
            await self.clock.sleep(LOOK_SECONDS)
        return found

    async def deployment(self, name: str, *, replicas: int, cpu: str, **spec: Any) -> None:
        labels = {"app": name}
        resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
        container = {"name": "c", "image": "i", "resources": resources}
        body = {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [container], **spec},
                },
            },
        }
        await self.ask("POST", "/apis/apps/v1/namespaces/default/deployments", body)

    async def scale(self, name: str, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/default/deployments/{name}"
        await self.ask("PATCH", path, {"spec": {"replicas": replicas}})


def run(
    scenario: Callable[[World], Coroutine[Any, Any, T]],
    *groups: NodeGroup,
    options: AutoscalingOptions | None = None,
    seed: int = 1,
    beside: Beside | None = None,
) -> T:
    """Run *scenario* in a cluster with these *groups* and no other nodes."""
    clock = FakeClock(START)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(
            _run(scenario, clock, groups, options or AutoscalingOptions(), seed, beside)
        )


async def _run(
    scenario: Callable[[World], Coroutine[Any, Any, T]],
    clock: FakeClock,
    groups: Sequence[NodeGroup],
    options: AutoscalingOptions,
    seed: int,
    beside: Beside | None,
) -> T:
    rng = random.Random(seed)
    cluster = EmbeddedCluster(clock=clock, rng=rng, insecure=True)
    await cluster.start(0, objects=access_rights())
    plugins = KnownPlugins()
    service = SchedulerService(
        cluster.in_process("berth-scheduler", user=SCHEDULER),
        default_configuration(plugins.args_models),
        clock=clock,
        rng=rng,
        plugins=plugins,
    )
    kubelets = HollowKubelets(
        cluster.in_process("kubelet", user=KUBELETS), Settings(), clock=clock, rng=rng
    )
    autoscaler = cluster_autoscaler(
        cluster,
        lambda: service,
        NodeGroups(groups, options),
        kubelets,
        clock=clock,
        rng=rng,
        beside=beside,
    )
    await autoscaler.restore()
    working = [
        asyncio.create_task(part(), name=name)
        for name, part in (
            ("controllers", cluster.run_controllers),
            ("kubelets", kubelets.run),
            ("scheduler", service.run),
        )
    ]
    try:
        await kubelets.registered.wait()
        while not service.is_synced:
            await clock.sleep(LOOK_SECONDS)
        working.append(asyncio.create_task(autoscaler.run(), name="autoscaler"))
        playing = asyncio.create_task(scenario(World(cluster, autoscaler, clock)))
        await asyncio.wait([playing, *working], return_when=asyncio.FIRST_COMPLETED)
        for task in working:
            if task.done():
                task.result()
        return await playing
    finally:
        for task in working:
            task.cancel()
        await asyncio.wait(working)
        await cluster.stop()
