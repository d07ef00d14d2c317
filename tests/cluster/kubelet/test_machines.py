"""Hollow nodes that come and go while the others run."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from berth.cluster.in_process_api import InProcessApi, Turns
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.cluster.kubelet.stages.load import load
from berth.cluster.resources import Object
from berth.runtime.duration import Duration
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"
LARGE = NodeTemplate(cpu="64", zones=0, labels={"pool": "large"})
REALISTIC = load("realistic")
SELDOM = KubeletConfiguration(node_status_update_frequency=Duration.of(60.0))


class World:
    """A server with hollow kubelets, no controllers."""

    def __init__(self, **settings: Any) -> None:
        self.serving = Serving()
        self.kubelets = HollowKubelets(
            InProcessApi(
                self.serving.server.app,
                user_agent="kubelet",
                turns=Turns(),
                clock=self.serving.clock,
            ),
            Settings(**{"pools": [NodePool(1)], "lease_seconds": None, **settings}),
            clock=self.serving.clock,
            rng=random.Random(1),
        )

    async def until(self, path: str, is_so: Callable[[Object], bool]) -> Object:
        """Let everyone work until *is_so* of what is at *path*."""
        for _ in range(200):
            await self.serving.settle()
            found: Object = await self.serving.get(path)
            if is_so(found):
                return found
            self.serving.clock.advance(0.5)
        raise AssertionError(found)

    async def has_nodes(self, *names: str) -> Object:
        return await self.until(
            "/api/v1/nodes",
            lambda found: [item["metadata"]["name"] for item in found["items"]] == list(names),
        )

    async def bind(self, name: str, node: str) -> None:
        made = pod(name)
        made["spec"]["nodeName"] = node
        await self.serving.post(PODS, made)


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    made = World(**getattr(request, "param", {}))
    await made.serving.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    running = asyncio.create_task(made.kubelets.run())
    yield made
    running.cancel()
    await asyncio.wait([running])


async def test_a_machine_that_comes_registers_and_runs_pods(world: World) -> None:
    await world.has_nodes("node-0")

    world.kubelets.add_node(LARGE, "large-a")

    nodes = (await world.has_nodes("large-a", "node-0"))["items"]
    assert [node["status"]["allocatable"]["cpu"] for node in nodes] == ["64", "4"]
    assert nodes[0]["metadata"]["labels"]["pool"] == "large"
    addresses = {node["status"]["addresses"][0]["address"] for node in nodes}
    assert len(addresses) == 2
    await world.bind("p", "large-a")
    await world.until(f"{PODS}/p", lambda found: found["status"]["phase"] == "Running")


async def test_nothing_is_reported_of_a_machine_that_is_gone(world: World) -> None:
    world.kubelets.add_node(LARGE, "large-a")
    await world.has_nodes("large-a", "node-0")
    await world.bind("lost", "large-a")
    await world.bind("kept", "node-0")
    for name in ("lost", "kept"):
        await world.until(f"{PODS}/{name}", lambda found: found["status"]["phase"] == "Running")

    world.kubelets.remove_node("large-a")
    for name in ("lost", "kept"):
        await world.serving.request("DELETE", f"{PODS}/{name}")

    left = await world.until(PODS, lambda found: len(found["items"]) == 1)
    assert left["items"][0]["metadata"]["name"] == "lost"
    assert left["items"][0]["status"]["phase"] == "Running"


async def test_a_machine_may_come_again_under_its_name(world: World) -> None:
    world.kubelets.add_node(LARGE, "large-a")
    await world.has_nodes("large-a", "node-0")
    world.kubelets.remove_node("large-a")
    world.kubelets.remove_node("large-a")
    await world.serving.request("DELETE", "/api/v1/nodes/large-a")

    world.kubelets.add_node(LARGE, "large-a")

    await world.has_nodes("large-a", "node-0")
    with pytest.raises(ValueError, match="'large-a': there is such a machine already"):
        world.kubelets.add_node(LARGE, "large-a")


@pytest.mark.parametrize("world", [{"pools": []}], indirect=True)
async def test_kubelets_without_nodes_are_ready_at_once(world: World) -> None:
    await asyncio.wait_for(world.kubelets.registered.wait(), 60)


@pytest.mark.parametrize(
    ("world", "seconds"),
    [
        pytest.param({"stages": REALISTIC}, 10.0, id="ten seconds by default"),
        pytest.param(
            {"stages": REALISTIC, "configuration": SELDOM}, 60.0, id="as the configuration says"
        ),
    ],
    indirect=["world"],
)
async def test_new_images_are_in_the_status_when_the_kubelet_updates_it(
    world: World, seconds: float
) -> None:
    await world.has_nodes("node-0")
    await world.bind("p", "node-0")
    await world.until(f"{PODS}/p", lambda found: found["status"]["phase"] == "Running")
    running_since = world.serving.clock.monotonic()

    await world.until("/api/v1/nodes/node-0", lambda found: bool(found["status"].get("images")))

    took = world.serving.clock.monotonic() - running_since
    assert seconds - 3.0 <= took <= seconds + 1.0, "from the pull, before the pod ran"
