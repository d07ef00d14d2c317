"""A cluster that is rebalanced, whole and in this process, on a clock that jumps ahead."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from berth.cluster.access.users import ADMIN, CONTROLLER_MANAGER, KUBELETS, SCHEDULER, User
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.in_process_api import InProcessApi
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.kube.client.api import Api
from berth.runtime.clock import FakeClock, rfc3339
from berth.runtime.virtual_time import VirtualTimeLoop
from berth.scheduler.config.load import default_configuration
from berth.service.listed_snapshot import snapshot_of
from berth.service.plugin_sources import KnownPlugins
from berth.service.scheduler_service import SchedulerService
from berth.tools.rebalance.patient_api import PatientApi
from berth.tools.rebalance.proposal import Proposal
from berth.tools.rebalance.propose import Goals, propose
from berth.tools.rebalance.rebalancing import Rebalancing
from berth_plugins.registry import IN_TREE

T = TypeVar("T")
Object = dict[str, Any]

START = 1_767_225_600.0
LOOK_SECONDS = 2.0
LIMIT_SECONDS = 3_600.0
"""Virtual ones, after which a scenario has failed."""
APPS = "/apis/apps/v1/namespaces/default"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


class MeddlingApi:
    """Lets somebody act before a request, or in its place."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.before: Callable[[str, str], Coroutine[Any, Any, None]] | None = None

    def accepting(self, media_type: str) -> Api:
        assert isinstance(self._api, InProcessApi)
        return self._api.accepting(media_type)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        if self.before is not None:
            await self.before(method, path)
        return await self._api.request(
            method, path, params=params, body=body, content_type=content_type, timeout=timeout
        )

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        return self._api.watch(path, params)


class UnorderedCluster(EmbeddedCluster):
    """Its controllers make pods some time after they could, in another order than they should."""

    order: random.Random
    clock: FakeClock

    def in_process(self, user_agent: str, *, user: User) -> Any:
        made = super().in_process(user_agent, user=user)
        if user is not CONTROLLER_MANAGER:
            return made

        async def wait(method: str, path: str) -> None:
            if method == "POST" and path.endswith("/pods"):
                await self.clock.sleep(self.order.uniform(0, 3))

        api = MeddlingApi(made)
        api.before = wait
        return api


class World:
    """Speaks JSON to the API, as a user does, and rebalances."""

    def __init__(self, cluster: EmbeddedCluster, clock: FakeClock) -> None:
        self.clock = clock
        self.api = MeddlingApi(cluster.in_process("rebalance", user=ADMIN))
        self.told: list[str] = []
        self.proposals: list[Proposal] = []
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

    async def until(self, path: str, is_so: Callable[[dict[str, Object]], bool]) -> None:
        """Let time pass until *is_so* of the items at *path*."""
        began = self.clock.monotonic()
        while not is_so(items := await self.items(path)):
            if self.clock.monotonic() - began > LIMIT_SECONDS:
                raise AssertionError(f"{path} is never so: {sorted(items)}")
            await self.clock.sleep(LOOK_SECONDS)

    async def until_running(self, count: int) -> None:
        await self.until(PODS, lambda pods: len(pods) == count == len(running(pods)))

    async def workload(
        self, name: str, *, replicas: int, cpu: str, kind: str = "deployments", **spec: Any
    ) -> None:
        labels = {"app": name}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
        body: Object = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        }
        if kind == "statefulsets":
            body |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        await self.ask("POST", f"{APPS}/{kind}", {"metadata": {"name": name}, "spec": body})

    async def budget(self, name: str, *, available: int) -> None:
        """Make a budget, and wait until it is known how many disruptions it allows."""
        spec = {"minAvailable": available, "selector": {"matchLabels": {"app": name}}}
        await self.ask("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
        await self.until(
            BUDGETS,
            lambda found: (found[name].get("status") or {}).get("disruptionsAllowed", 0) > 0,
        )

    async def pod(self, name: str, *, cpu: str, **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        await self.ask(
            "POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        )

    async def cordon(self, *names: str, unschedulable: bool | None = True) -> None:
        for name in names:
            body = {"spec": {"unschedulable": unschedulable}}
            await self.ask("PATCH", f"/api/v1/nodes/{name}", body)
        await self.clock.sleep(LOOK_SECONDS)

    async def cordoned(self) -> set[str]:
        nodes = await self.items("/api/v1/nodes")
        return {name for name, each in nodes.items() if each["spec"].get("unschedulable")}

    async def annotated(self) -> dict[str, Object]:
        nodes = await self.items("/api/v1/nodes")
        return {
            name: found
            for name, each in nodes.items()
            if (found := each["metadata"].get("annotations") or {})
        }

    def rebalancing(self, run: str = "this/1/now", *, timeout: float = 120, **goals: Any) -> Any:
        keeps = goals.pop("keeps_cordons", False)
        api = PatientApi(self.api, clock=self.clock, timeout=timeout)

        async def proposed(uncordoned: Collection[str]) -> Proposal:
            snapshot = await snapshot_of(api, time=rfc3339(self.clock.now()))
            return propose(snapshot, Goals(**goals), IN_TREE, uncordoned=uncordoned)

        return Rebalancing(
            api,
            proposed,
            run=run,
            clock=self.clock,
            tell=self.told.append,
            show=self.proposals.append,
            timeout=timeout,
            keeps_cordons=keeps,
        )


def running(pods: Mapping[str, Object]) -> dict[str, str]:
    """Return the nodes of the pods that are ready, by name of pod."""
    return {
        name: pod["spec"]["nodeName"]
        for name, pod in pods.items()
        if (pod.get("status") or {}).get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }


def run(
    scenario: Callable[[World], Coroutine[Any, Any, T]],
    *,
    nodes: int = 4,
    cpu: str = "4",
    zones: int = 2,
    seed: int = 1,
) -> T:
    """Run *scenario* in a cluster with these nodes."""
    clock = FakeClock(START)
    template = NodeTemplate(cpu=cpu, zones=zones)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(_run(scenario, clock, Settings([NodePool(nodes, template)]), seed))


async def _run(
    scenario: Callable[[World], Coroutine[Any, Any, T]],
    clock: FakeClock,
    settings: Settings,
    seed: int,
) -> T:
    rng = random.Random(seed)
    cluster = UnorderedCluster(clock=clock, rng=rng, insecure=True)
    cluster.order, cluster.clock = random.Random(seed), clock
    await cluster.start(0)
    plugins = KnownPlugins()
    service = SchedulerService(
        cluster.in_process("berth-scheduler", user=SCHEDULER),
        default_configuration(plugins.args_models),
        clock=clock,
        rng=rng,
        plugins=plugins,
    )
    kubelets = HollowKubelets(
        cluster.in_process("kubelet", user=KUBELETS), settings, clock=clock, rng=rng
    )
    working = [
        asyncio.create_task(part(), name=name)
        for name, part in (
            ("controllers", cluster.run_controllers),
            ("kubelets", kubelets.run),
            ("scheduler", service.run),
        )
    ]
    try:
        await kubelets.ready.wait()
        playing = asyncio.create_task(scenario(World(cluster, clock)))
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
