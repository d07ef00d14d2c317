"""Many schedulers' worth of questions at once, over HTTP, on an embedded cluster."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import msgspec
import pytest

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.client.api_client import ApiClient
from berth.kube.client.rate_limit import TokenBucket
from berth.runtime.addresses import LOOPBACK
from berth.runtime.clock import RealClock
from berth.runtime.http_server import HttpServer
from berth.scheduler.config.load import default_configuration, load
from berth.scheduler.profile.build import args_models
from berth.service.applications import extender_port_application
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.service.server.test_openapi import ask_all

PODS: Final = "/api/v1/namespaces/default/pods"
CLIENTS: Final = 8
NUM_PODS: Final = 500
ROOM: Final = {"n0": 150, "n1": 150, "n2": 100, "n3": 60, "n4": 40}
"""How many pods of 100m each node has CPU for: as many as there are in all."""
LIMIT_SECONDS: Final = 50
LOOK_SECONDS: Final = 0.02


class World:
    """An extender that is ready, and the API server behind it."""

    def __init__(
        self, service: SchedulerService, api: ApiClient, *, http: httpx.AsyncClient
    ) -> None:
        self.service = service
        self.api = api
        self.url = str(http.base_url).rstrip("/")
        self._http = http

    async def ask(self, verb: str, question: Any) -> Any:
        answer = await self._http.post(
            f"/extender/{verb}",
            content=msgspec.json.encode(question),
            headers={"Content-Type": "application/json"},
            timeout=LIMIT_SECONDS,
        )
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    async def pods(self) -> list[dict[str, Any]]:
        answer = msgspec.json.decode(await self.api.request("GET", PODS))
        items: list[dict[str, Any]] = answer["items"]
        return items


@asynccontextmanager
async def extender(text: str | None = None) -> AsyncIterator[World]:
    """Run one by the configuration *text*, or by default."""
    clock, rng = RealClock(), random.Random(1)
    cluster = EmbeddedCluster(clock=clock, rng=rng, insecure=True)
    await cluster.start(0)
    api, own = await cluster.connect("test"), await cluster.connect("extender")
    models = args_models(IN_TREE)
    config = default_configuration(models)
    if text is not None:
        config = load(text, source="test", args_models=models)
    service = SchedulerService(own, config, clock=clock, rng=rng, schedules=False)
    server = HttpServer(extender_port_application(service, max_body_bytes=2**20))
    for name, room in ROOM.items():
        await api.request("POST", "/api/v1/nodes", body=msgspec.json.encode(_node(name, room)))
    running = asyncio.create_task(service.run_extender(), name="extender")
    await server.start(LOOPBACK, 0)
    try:
        async with asyncio.timeout(LIMIT_SECONDS), httpx.AsyncClient(base_url=server.url) as http:
            await until(lambda: service.is_synced)
            yield World(service, api, http=http)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop()
        await api.close()
        await own.close()
        await cluster.stop()


async def until(is_so: Callable[[], bool]) -> None:
    while True:
        if is_so():
            return
        await asyncio.sleep(LOOK_SECONDS)


def _node(name: str, room: int) -> dict[str, Any]:
    amounts = {"cpu": f"{room * 100}m", "memory": "100Gi", "pods": "1000"}
    return {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}


def _pod(name: str, *, cpu: str = "100m") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    anything = {"operator": "Exists"}  # nobody says that the nodes are ready
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "tolerations": [anything]},
    }


def _question(pod: dict[str, Any]) -> dict[str, Any]:
    return {"Pod": pod, "Nodes": None, "NodeNames": list(ROOM)}


async def place(world: World, pod: dict[str, Any]) -> int:
    """Schedule *pod* as kube-scheduler would with this extender; return how often it took."""
    meta = pod["metadata"]
    for attempt in range(1, 1_000):
        left = (await world.ask("filter", _question(pod)))["NodeNames"]
        if not left:
            continue
        scores = await world.ask("prioritize", {**_question(pod), "NodeNames": left})
        binding = {
            "PodName": meta["name"],
            "PodNamespace": meta["namespace"],
            "PodUID": meta["uid"],
            "Node": max(scores, key=lambda each: each["Score"])["Host"],
        }
        said = await world.ask("bind", binding)
        if not said["Error"]:
            return attempt
        assert said["Error"].endswith("no longer fits: Insufficient cpu"), said
    raise AssertionError(f"pod {meta['name']} found no node")


@pytest.mark.wall
@pytest.mark.slow
async def test_eight_clients_never_overcommit_a_node() -> None:
    """There is room for all pods and for none more, so every mistake shows."""
    async with extender() as world:
        created = [
            msgspec.json.decode(
                await world.api.request("POST", PODS, body=msgspec.json.encode(_pod(f"p{i:03}")))
            )
            for i in range(NUM_PODS)
        ]
        waiting = iter(created)

        async def client() -> None:
            for pod in waiting:
                await place(world, pod)

        async with asyncio.TaskGroup() as tasks:
            for number in range(CLIENTS):
                tasks.create_task(client(), name=f"client {number}")

        placed = Counter(pod["spec"].get("nodeName") for pod in await world.pods())
        assert placed == ROOM
        await until(lambda: not world.service.cache.counts()["assumed_pods"])
        world.service.cache.check_invariants()
        assert (await world.ask("filter", _question(_pod("more"))))["NodeNames"] == []


@pytest.mark.wall
async def test_the_extender_schedules_nothing_itself() -> None:
    async with extender() as world:
        body = msgspec.json.encode(_pod("alone"))
        pod = msgspec.json.decode(await world.api.request("POST", PODS, body=body))
        await until(lambda: "default/alone" in world.service.pods.store)
        assert world.service.queue.sub_queues.pending_counts() == {
            "active": 0, "backoff": 0, "unschedulable": 0, "gated": 0,
        }  # fmt: skip

        assert await place(world, pod) == 1

        (bound,) = await world.pods()
        assert bound["spec"]["nodeName"] in ROOM


@pytest.mark.wall
@pytest.mark.parametrize(
    ("connection", "taken"),
    [
        pytest.param({}, 0, id="by default there is none"),
        pytest.param({"qps": 50}, 1, id="obeyed if somebody set it"),
    ],
)
async def test_the_rate_limit_of_binds(connection: dict[str, int], taken: int) -> None:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    async with extender(json.dumps({**header, "clientConnection": connection})) as world:
        body = msgspec.json.encode(_pod("alone"))
        pod = msgspec.json.decode(await world.api.request("POST", PODS, body=body))
        await until(lambda: "default/alone" in world.service.pods.store)
        limiter = TokenBucket(qps=1e-9, burst=5, clock=RealClock())
        assert isinstance(world.service.client, ApiClient)
        world.service.client.limiter = limiter

        assert await place(world, pod) == 1

        assert round(5 - limiter._tokens) == taken


@pytest.mark.wall
async def test_questions_are_answered_by_the_configuration_in_force() -> None:
    two = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "no-fit",
                "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
            },
            {"schedulerName": "default-scheduler"},
        ],
    }
    question = _question(_pod("large", cpu="1000"))
    async with extender() as world:
        assert (await world.ask("filter", question))["NodeNames"] == []

        world.service.reconfigure(
            load(json.dumps(two), source="test", args_models=args_models(IN_TREE))
        )

        assert sorted((await world.ask("filter", question))["NodeNames"]) == sorted(ROOM)
        assert (await world.ask("default-scheduler/filter", question))["NodeNames"] == []
        assert sum(world.service.queue.sub_queues.pending_counts().values()) == 0


@pytest.mark.wall
@pytest.mark.slow
async def test_answers_are_as_described() -> None:
    async with extender() as world:
        asked = await asyncio.to_thread(ask_all, world.url)

    verbs = {"filter", "prioritize", "preempt", "bind"}
    assert {f"POST /extender/{verb}" for verb in verbs} <= {*asked}
