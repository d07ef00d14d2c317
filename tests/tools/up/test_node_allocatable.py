"""Devices that take cpu of their node, on a cluster: from the slice to the status of the pod."""

from typing import Final

import pytest

from tests.tools.up.world import PODS, Object, pod, running_world, why_pending

pytestmark = [pytest.mark.wall, pytest.mark.slow]

DEVICES: Final = "/apis/resource.k8s.io/v1"
CONFIG: Final[Object] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "featureGates": {"DRANodeAllocatableResources": True},
    "emulatedVersion": "1.36",
}


def slice_of(node: str) -> Object:
    mappings = {"cpu": {"allocationMultiplier": "2"}}
    devices = [
        {"name": f"accelerator-{index}", "nodeAllocatableResourceMappings": mappings}
        for index in range(2)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": "slice"}, "spec": spec}


async def test_the_second_of_two_pods_waits_for_the_cpus_of_the_first() -> None:
    async with running_world(nodes=1, cpu="4", config=CONFIG) as world:
        [node] = await world.items("/api/v1/nodes")
        await world.create(f"{DEVICES}/deviceclasses", {"metadata": {"name": "any"}, "spec": {}})
        await world.create(f"{DEVICES}/resourceslices", slice_of(node))
        for name in ("first", "second"):
            requests = [{"name": "one", "exactly": {"deviceClassName": "any"}}]
            await world.create(
                f"{DEVICES}/namespaces/default/resourceclaims",
                {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}},
            )
            using = pod(
                name, cpu="500m", resourceClaims=[{"name": "one", "resourceClaimName": name}]
            )
            using["spec"]["containers"][0]["resources"]["claims"] = [{"name": "one"}]
            await world.create(PODS, using)
            if name == "first":
                pods = await world.until_running(name)
        assert pods["first"]["status"]["nodeAllocatableResourceClaimStatuses"] == [
            {"resourceClaimName": "first", "containers": ["c"], "resources": {"cpu": "2"}}
        ]
        pods = await world.until(PODS, lambda pods: bool(why_pending(pods["second"])))
        assert why_pending(pods["second"]).startswith(
            "0/1 nodes are available: 1 Insufficient cpu."
        )
        await world.ask("DELETE", f"{PODS}/first")
        await world.until_running("second")
