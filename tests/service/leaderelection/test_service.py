"""The scheduler of a replica: what a standby does, and when it begins to schedule."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client import CollectorRegistry

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import RealClock
from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import API_VERSION, KIND
from berth.scheduler.profile.build import args_models
from berth.service.applications import scheduler_application
from berth.service.leaderelection.build import make_elector
from berth.service.leaderelection.elector import LeadershipLostError
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.service.leaderelection.lease_api import LEASE, LEASES

pytestmark = pytest.mark.wall

clock = RealClock()
PATIENT = {"leaseDuration": "60s", "renewDeadline": "30s", "retryPeriod": "50ms"}
"""Takes a free lease at once, and does not lose it on a busy machine."""
SHORT = {"leaseDuration": "1s", "renewDeadline": "500ms", "retryPeriod": "50ms"}
NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
POD = {
    "metadata": {"name": "p"},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "tolerations": [{"operator": "Exists"}],  # nobody says that the node is ready
    },
}


class Scene:
    """A cluster with a node, a waiting pod, and a lease that somebody else holds."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    async def post(self, path: str, obj: dict[str, Any]) -> None:
        await self.client.request("POST", path, body=msgspec.json.encode(obj))

    async def hold_lease(self, holder: str) -> None:
        await self.client.request(
            "PATCH",
            LEASE,
            body=msgspec.json.encode({"spec": {"holderIdentity": holder}}),
            content_type="application/merge-patch+json",
        )

    async def node_of_pod(self) -> str:
        answer = await self.client.request("GET", "/api/v1/namespaces/default/pods/p")
        node: str = msgspec.json.decode(answer)["spec"].get("nodeName", "")
        return node


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    cluster = EmbeddedCluster(clock=clock, rng=random.Random(1))
    await cluster.start(0)
    client = await cluster.connect("test")
    made = Scene(client)
    await made.post("/api/v1/nodes", NODE)
    await made.post("/api/v1/namespaces/default/pods", POD)
    lease = {
        "metadata": {"name": "kube-scheduler"},
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600},
    }
    await made.post(LEASES, lease)
    yield made
    await client.close()
    await cluster.stop()


@asynccontextmanager
async def replica(
    scene: Scene, *, election: Mapping[str, str] = PATIENT, **settings: object
) -> AsyncIterator[tuple[SchedulerService, asyncio.Task[None]]]:
    config = from_object(
        {"apiVersion": API_VERSION, "kind": KIND, "leaderElection": election, **settings},
        source="test",
        args_models=args_models(IN_TREE),
    )
    rng = random.Random(1)
    registry = CollectorRegistry()
    elector = make_elector(scene.client, config, registry=registry, clock=clock, rng=rng)
    service = SchedulerService(
        scene.client, config, clock=clock, rng=rng, elector=elector, registry=registry
    )
    running = asyncio.create_task(service.run(), name="replica")
    yield service, running
    running.cancel()
    await asyncio.wait([running])


async def until(true: Callable[[], bool]) -> None:
    deadline = clock.monotonic() + 10
    while not true():
        assert clock.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_standby_knows_everything_and_does_nothing(scene: Scene) -> None:
    async with replica(scene) as (service, _):
        await until(lambda: service.pods.synced.is_set() and service.nodes.synced.is_set())
        await asyncio.sleep(0.3)

        assert service.queue.sub_queues.pending_counts()["active"] == 1
        assert service.cache.counts()["nodes"] == 1
        assert not service.scheduler.binding_cycle.scheduled
        assert await scene.node_of_pod() == ""

        await scene.hold_lease("")
        await until(lambda: service.scheduler.binding_cycle.scheduled == 1)
        assert await scene.node_of_pod() == "n"


async def test_the_first_request_of_a_new_leader_is_a_binding(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes over knows everything: it lists, watches and reads nothing anew."""
    asked: list[str] = []
    request, watch = ApiClient.request, ApiClient.watch

    def requested(self: ApiClient, method: str, path: str, **more: Any) -> Awaitable[bytes]:
        asked.append(f"{method} {path}")
        return request(self, method, path, **more)

    def watched(self: ApiClient, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes]:
        asked.append(f"WATCH {path}")
        return watch(self, path, params)

    async with replica(scene) as (service, _):
        await until(lambda: service.is_synced)
        await scene.hold_lease("")
        monkeypatch.setattr(ApiClient, "request", requested)
        monkeypatch.setattr(ApiClient, "watch", watched)
        await until(lambda: service.scheduler.binding_cycle.scheduled == 1)
    others = [each for each in asked if LEASE not in each and "/events" not in each]
    assert others[0] == "POST /api/v1/namespaces/default/pods/p/binding"
    assert not [other for other in others if other.startswith(("GET", "WATCH"))]


async def test_caches_may_be_filled_only_when_it_leads(scene: Scene) -> None:
    async with replica(scene, delayCacheUntilActive=True) as (service, _):
        await asyncio.sleep(0.3)
        assert not service.pods.synced.is_set()

        await scene.hold_lease("")
        await until(lambda: service.scheduler.binding_cycle.scheduled == 1)
        assert await scene.node_of_pod() == "n"


@pytest.mark.parametrize("delayed", [False, True])
async def test_losing_the_lease_ends_everything(scene: Scene, *, delayed: bool) -> None:
    await scene.hold_lease("")
    elects = replica(scene, election=SHORT, delayCacheUntilActive=delayed)
    async with elects as (service, running):
        await until(lambda: service.is_leading or running.done())
        await scene.hold_lease("another")
        await until(running.done)

        lost = running.exception()
        while isinstance(lost, ExceptionGroup):
            (lost,) = lost.exceptions
        assert isinstance(lost, LeadershipLostError)


async def test_stopping_gives_the_lease_back(scene: Scene) -> None:
    await scene.hold_lease("")
    async with replica(scene) as (service, _):
        await until(lambda: service.scheduler.binding_cycle.scheduled == 1)

    lease = msgspec.json.decode(await scene.client.request("GET", LEASE))
    assert lease["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize("delayed", [False, True])
async def test_what_probes_are_told_of_a_replica(scene: Scene, *, delayed: bool) -> None:
    async def probe(path: str) -> tuple[int, str]:
        transport = httpx.ASGITransport(scheduler_application(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
            answer = await client.get(path)
            return answer.status_code, answer.text

    ready = (200, "ok")
    waiting = (
        500,
        "[+]leaderElection ok\n[+]shutdown ok\n"
        "[-]sched-handler-sync failed: reason withheld\n"
        "[+]watches ok\nreadyz check failed\n",
    )
    async with replica(scene, delayCacheUntilActive=delayed) as (service, _):
        assert await probe("/readyz") == waiting
        if not delayed:
            await until(lambda: service.is_synced)
            assert await probe("/readyz") == ready
        assert await probe("/livez") == (200, "ok")

        await scene.hold_lease("")
        await until(lambda: service.scheduler.binding_cycle.scheduled == 1)
        assert await probe("/readyz") == ready

        service.begin_termination()
        assert await probe("/readyz") == (
            500,
            "[+]leaderElection ok\n[-]shutdown failed: reason withheld\n"
            "[+]sched-handler-sync ok\n[+]watches ok\nreadyz check failed\n",
        )
        assert await probe("/healthz?verbose") == (
            200,
            "[+]leaderElection ok\nhealthz check passed\n",
        )
        assert await probe("/livez") == (200, "ok")
