"""Jobs whose pods start together or not at all (WorkloadWithJob), on a clock that does not wait."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from berth.cluster.bootstrap import default_storage_class
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.kubelet.hollow_kubelets import Settings
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.scheduler.config.feature_gates import enabled_features
from berth.scheduler.config.load import from_object
from berth.service.plugin_sources import KnownPlugins
from berth.tools.autoscaler.node_groups import NodeGroups
from berth.tools.up.scenario.actions import NodeGroup
from berth.tools.up.scenario.simulation import Simulation, running

Object = dict[str, Any]

GATES: Final = dict.fromkeys(("GenericWorkload", "GangScheduling", "WorkloadWithJob"), True)
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
PODS: Final = "/api/v1/namespaces/default/pods"
EVENTS: Final = "/api/v1/namespaces/default/events"
SCHEDULING: Final = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
WORKLOADS, GROUPS = f"{SCHEDULING}/workloads", f"{SCHEDULING}/podgroups"


def job(name: str, **spec: Any) -> Object:
    """An Indexed Job of four pods, each of which wants a CPU for a minute."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"berth.dev/run-seconds": "60"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    shape = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}
    return {"metadata": {"name": name}, "spec": {**shape, "template": template, **spec}}


class World:
    def __init__(self, simulation: Simulation, clock: VirtualClock) -> None:
        self.simulation = simulation
        self.clock = clock

    async def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        encoded = None if body is None else msgspec.json.encode(body)
        answer: Object = msgspec.json.decode(
            await self.simulation.api.request(method, path, body=encoded)
        )
        return answer

    async def items(self, path: str) -> list[Object]:
        found: list[Object] = (await self.ask("GET", path))["items"]
        return found

    async def until(self, path: str, is_so: Callable[[list[Object]], bool]) -> list[Object]:
        while not is_so(found := await self.items(path)):
            await self.clock.sleep(0.5)
        return found

    async def until_nothing_is_left(self) -> None:
        for path in (JOBS, PODS, WORKLOADS, GROUPS):
            await self.until(path, lambda found: not found)

    async def add_node(self, name: str) -> None:
        await self.simulation.add_nodes(NodeGroup(name=name, allocatable={"cpu": "2"}))


def on_a_virtual_clock(test: Callable[[World], Awaitable[None]]) -> None:
    """Run *test* on a cluster with a node that has two CPUs."""
    clock, rng = VirtualClock(), random.Random(3)
    plugins = KnownPlugins()
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": GATES,
    }
    config = from_object(head, source="test", args_models=plugins.args_models)

    async def run() -> None:
        features = enabled_features(GATES)
        cluster = EmbeddedCluster(clock=clock, rng=rng, insecure=True, features=features.gates)
        await cluster.start(0, objects=[default_storage_class()])
        nodes = (NodeGroup(name="first", allocatable={"cpu": "2"}),)
        async with running(
            cluster,
            config,
            nodes,
            kubelets=Settings(),
            groups=NodeGroups(()),
            plugins=plugins,
            clock=clock,
            rng=rng,
        ) as simulation:
            await asyncio.wait_for(test(World(simulation, clock)), timeout=3600)
        await cluster.stop()

    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        runner.run(run())


def phases(pods: list[Object]) -> list[str]:
    return [pod["status"]["phase"] for pod in pods]


def is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


async def a_gang_waits_for_room(world: World) -> None:
    await world.ask("POST", JOBS, job("train"))
    await world.until(PODS, lambda pods: len(pods) == 4)
    await world.clock.sleep(120)  # two would fit
    pods = await world.items(PODS)
    assert not any(map(is_bound, pods))
    [workload], [group] = await world.items(WORKLOADS), await world.items(GROUPS)
    name = group["metadata"]["name"]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {name}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert [reference["kind"] for reference in group["metadata"]["ownerReferences"]] == [
        "Job",
        "Workload",
    ]

    await world.add_node("second")
    await world.until(PODS, lambda pods: phases(pods) == ["Running"] * 4)
    [done] = await world.until(JOBS, lambda jobs: "completionTime" in jobs[0]["status"])
    assert done["status"]["completedIndexes"] == "0-3"
    messages = {each["message"] for each in await world.items(EVENTS)}
    assert f"Created Workload {workload['metadata']['name']} for Job train" in messages

    await world.ask("DELETE", f"{JOBS}/train", {"propagationPolicy": "Background"})
    await world.until_nothing_is_left()


async def everything_goes_with_a_job(world: World) -> None:
    await world.add_node("second")
    for propagation in ("Background", "Foreground"):
        await world.ask("POST", JOBS, job("train"))
        await world.until(PODS, lambda pods: phases(pods) == ["Running"] * 4)
        await world.ask("DELETE", f"{JOBS}/train", {"propagationPolicy": propagation})
        await world.until_nothing_is_left()


def test_a_job_that_does_not_fit_waits_as_a_whole() -> None:
    on_a_virtual_clock(a_gang_waits_for_room)


def test_a_job_that_is_deleted_takes_its_group_with_it() -> None:
    on_a_virtual_clock(everything_goes_with_a_job)
