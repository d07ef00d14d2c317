"""The CPU that each of several replicas takes for a pod, over HTTP, each in a thread of its own.

What a thread takes says what rate a replica could carry on a core of its own: with more cores than
this machine has, too. What replicas take without pods is measured before, and is not part of it.
"""

import asyncio
import random
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, ExitStack
from typing import Final

import msgspec

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.features import default_features
from berth.kube.client.connect import Endpoint, client_of
from berth.kube.client.errors import ApiError
from berth.runtime.clock import RealClock, cpu_time_of_this_thread
from berth.runtime.loop_thread import LoopThread
from berth.runtime.release import RELEASE
from berth.scheduler.config.load import default_configuration
from berth.scheduler.metrics.selection import Selection
from berth.scheduler.profile.build import args_models
from berth.scheduler.shards.slots import Slots
from berth.service.leaderelection.build import make_membership
from berth.service.scheduler_service import SchedulerService
from berth.tools.bench.process import BenchError
from berth.tools.bench.results import Figure, figure
from berth.tools.bench.shards.world import node_of, pod_of, untainted
from berth_plugins.registry import IN_TREE

KINDS: Final[Mapping[str, Collection[str]]] = {
    "plain": (),
    "spread": (),
    "apart": (),
    "gangs": ("GenericWorkload", "GangScheduling"),
}
"""Kinds of pods, and the feature gates that they need."""
APP_PODS: Final = 50
"""Also the pods of a gang."""
NAMESPACES: Final = tuple(f"team-{number}" for number in range(32))
"""Pods with rules that reach across nodes have one home for each namespace."""
SLOTS: Final = 64
BATCH: Final = 200
"""Pods that are created with one write to the connection."""
LOOK_SECONDS: Final = 0.1
IDLE_SECONDS: Final = 4.0
"""How long replicas are watched without pods: for two looks at the Leases."""
PATIENCE: Final = 300.0


class _Running:
    """A replica in a thread of its own."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self.service: SchedulerService
        self.cpu: Callable[[], float]

    async def start(self, url: str, gates: Collection[str], *, is_shared: bool) -> None:
        await self._thread.call(lambda: self._start(url, gates, is_shared=is_shared))

    async def _start(self, url: str, gates: Collection[str], *, is_shared: bool) -> None:
        clock, registry = RealClock(), Selection()
        turned_on = {"feature_gates": dict.fromkeys(gates, True)}
        config = default_configuration(
            args_models(IN_TREE), adjust=lambda config: config.model_copy(update=turned_on)
        )
        client = client_of(Endpoint(url), qps=0, burst=1, user_agent="berth", clock=clock)
        membership = None
        if is_shared:
            membership = make_membership(
                client,
                config,
                slots=Slots(SLOTS),
                registry=registry,
                clock=clock,
                rng=random.Random(),
            )
        self.service = SchedulerService(
            client,
            config,
            clock=clock,
            rng=random.Random(),
            elector=membership,
            shards=Slots(SLOTS) if is_shared else None,
            registry=registry,
        )
        self.cpu = cpu_time_of_this_thread()
        self._task = asyncio.create_task(self.service.run(), name="replica")

    async def stop(self) -> None:
        async def end() -> None:
            self._task.cancel()
            await asyncio.wait([self._task])

        await self._thread.call(end)

    @property
    def slots(self) -> int:
        parts = self.service.shard_parts
        return SLOTS if parts is None else len(parts.ownership.active)


async def measure(nodes: int, pods: int, replicas: Sequence[int]) -> AsyncIterator[Figure]:
    """Yield the CPU per pod of the busiest replica and of all, by kind of pod; first without
    shards."""
    for kind in KINDS:
        for number in (0, *replicas):
            async for measured in _measure(kind, nodes, pods, number):
                yield measured


async def _measure(kind: str, nodes: int, pods: int, number: int) -> AsyncIterator[Figure]:
    with ExitStack() as threads:
        server = threads.enter_context(LoopThread("API server"))
        gates = KINDS[kind]
        cluster = EmbeddedCluster(
            clock=RealClock(),
            rng=random.Random(1),
            insecure=True,
            features={*default_features(RELEASE), *gates},
        )
        await server.call(lambda: cluster.start(0))
        client = await cluster.connect("bench")
        async with AsyncExitStack() as cleanup:
            cleanup.push_async_callback(server.call, cluster.stop)
            cleanup.push_async_callback(client.close)
            made = [node_of(count) for count in range(nodes)]
            await client.post_all([("/api/v1/nodes", msgspec.json.encode(node)) for node in made])
            for node in made:
                await client.request("PATCH", **untainted(node))
            for name in NAMESPACES:
                namespace = msgspec.json.encode({"metadata": {"name": name}})
                await client.request("POST", "/api/v1/namespaces", body=namespace)
                account = msgspec.json.encode({"metadata": {"name": "default"}})
                path = f"/api/v1/namespaces/{name}/serviceaccounts"
                await client.request("POST", path, body=account)
            running = []
            for count in range(max(number, 1)):
                replica = _Running(threads.enter_context(LoopThread(f"replica {count}")))
                await replica.start(cluster.url, gates, is_shared=number > 0)
                cleanup.push_async_callback(replica.stop)
                running.append(replica)
            share = SLOTS // len(running)
            await _until(lambda: all(r.service.is_synced and r.slots >= share for r in running))
            await _until(lambda: sum(r.slots for r in running) in (SLOTS, SLOTS * len(running)))
            if kind == "gangs":
                groups = [_group(app) for app in range(-(-pods // APP_PODS))]
                _check(await client.post_all(groups))
            before = [replica.cpu() for replica in running]
            await asyncio.sleep(IDLE_SECONDS)
            idle = [(r.cpu() - b) / IDLE_SECONDS for r, b in zip(running, before, strict=True)]
            before, started = [replica.cpu() for replica in running], time.monotonic()
            for first in range(0, pods, BATCH):
                batch = [_pod(kind, count) for count in range(first, min(first + BATCH, pods))]
                _check(await client.post_all(batch))
            cycles = [replica.service.scheduler.binding_cycle for replica in running]
            await _until(lambda: sum(cycle.scheduled for cycle in cycles) >= pods)
            caches = [replica.service.cache for replica in running]
            await _until(lambda: all(len(cache.pods()) >= pods for cache in caches))
            lasted = time.monotonic() - started
            used = [
                replica.cpu() - b - lasted * of_idle
                for replica, b, of_idle in zip(running, before, idle, strict=True)
            ]
            parts = [replica.service.shard_parts for replica in running]
            offers = sum(each.offers.made for each in parts if each is not None)
            rate, offered = (1.0 - max(idle)) * pods / max(used), offers / pods
            yield figure(
                f"{kind}: CPU of the busiest replica per pod",
                max(used) / pods * 1e6,
                "µs",
                outcome=f"{rate:.0f} pods/s at most, {offered:.2f} offers per pod,"
                f" {max(idle):.1%} of a core without pods",
                replicas=number,
                nodes=nodes,
            )
            yield figure(
                f"{kind}: CPU of all replicas per pod",
                sum(used) / pods * 1e6,
                "µs",
                replicas=number,
                nodes=nodes,
            )


def _pod(kind: str, count: int) -> tuple[str, bytes]:
    """Return where to post a pod, and the pod; all of an app are in one namespace."""
    app = count // APP_PODS
    namespace = NAMESPACES[app % len(NAMESPACES)]
    pod = pod_of("plain" if kind == "gangs" else kind, f"{kind}-{app}", f"p-{count}")
    pod["metadata"]["namespace"] = namespace
    if kind == "gangs":
        pod["spec"]["schedulingGroup"] = {"podGroupName": f"gang-{app}"}
    return f"/api/v1/namespaces/{namespace}/pods", msgspec.json.encode(pod)


def _group(app: int) -> tuple[str, bytes]:
    """Return where to post the group of an app, and the group."""
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACES[app % len(NAMESPACES)]}"
    policy = {"schedulingPolicy": {"gang": {"minCount": APP_PODS}}}
    group = {"metadata": {"name": f"gang-{app}"}, "spec": policy}
    return f"{path}/podgroups", msgspec.json.encode(group)


def _check(answers: Iterable[object]) -> None:
    for answer in answers:
        if isinstance(answer, ApiError):
            raise BenchError(str(answer))


async def _until(is_true: Callable[[], bool]) -> None:
    waited = 0.0
    while not is_true():
        if waited > PATIENCE:
            raise BenchError(f"not done after {PATIENCE:.0f} s")
        await asyncio.sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS
