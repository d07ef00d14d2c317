"""A DeviceTaintRule keeps a pod from its device, over the HTTP of an embedded cluster."""

import pytest

from tests.tools.up.world import PODS, Object, pod, running_world, why_pending

pytestmark = [pytest.mark.wall, pytest.mark.slow]

DEVICES = "/apis/resource.k8s.io/v1"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
CONFIG: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "featureGates": {"DRADeviceTaintRules": True, "DRAListTypeAttributes": True},
}
HAS_LINK = 'device.attributes["gpu.example.com"].links.includes("nv1")'


def slice_of(node: str) -> Object:
    return {
        "metadata": {"name": "gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": "gpu-0", "attributes": {"links": {"strings": ["nv0"]}}},
                {"name": "gpu-1", "attributes": {"links": {"strings": ["nv0", "nv1"]}}},
            ],
        },
    }


async def test_a_pod_gets_its_device_when_the_rule_is_gone() -> None:
    rule: Object = {
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"device": "gpu-1"},
            "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
        },
    }
    async with running_world(nodes=1, config=CONFIG, before={RULES: [rule]}) as world:
        [node] = await world.items("/api/v1/nodes")
        await world.create(f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
        await world.create(f"{DEVICES}/resourceslices", slice_of(node))
        exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": HAS_LINK}}]}
        wanted = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        claims = f"{DEVICES}/namespaces/default/resourceclaims"
        await world.create(claims, {"metadata": {"name": "gpu"}, "spec": wanted})
        mine = [{"name": "gpu", "resourceClaimName": "gpu"}]
        await world.create(PODS, pod("train", resourceClaims=mine))
        waiting = await world.until(PODS, lambda pods: bool(why_pending(pods["train"])))
        assert "cannot allocate all claims" in why_pending(waiting["train"])

        await world.ask("DELETE", f"{RULES}/broken")
        await world.until(PODS, lambda pods: "nodeName" in pods["train"]["spec"])
        [claim] = (await world.items(claims)).values()
        [device] = claim["status"]["allocation"]["devices"]["results"]
        assert device["device"] == "gpu-1"
