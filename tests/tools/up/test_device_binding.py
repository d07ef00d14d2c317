"""Devices that must get ready before their pod is bound, over the HTTP of an embedded cluster."""

import pytest

from tests.tools.up.world import PODS, Object, pod, running_world, why_pending

pytestmark = [pytest.mark.wall, pytest.mark.slow]

DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

CONFIG: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        # More than one look every five seconds.
        {"pluginConfig": [{"name": "DynamicResources", "args": {"bindingTimeout": "6s"}}]}
    ],
}


def device_slice(node: str) -> Object:
    device = {
        "name": "gpu-0",
        "bindsToNode": True,
        "bindingConditions": ["Attached"],
        "bindingFailureConditions": ["AttachFailed"],
    }
    return {
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }


async def test_a_pod_is_not_bound_when_its_claim_loses_the_allocation() -> None:
    async with running_world(nodes=1, config=CONFIG) as world:
        [node] = await world.items("/api/v1/nodes")
        await world.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
        await world.create(SLICES, device_slice(node))
        wanted = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        claim = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [wanted]}}}
        await world.create(CLAIMS, claim)
        mine = [{"name": "gpu", "resourceClaimName": "gpu"}]
        await world.create(PODS, pod("train", resourceClaims=mine))
        found = await world.until(
            CLAIMS, lambda claims: "reservedFor" in (claims["gpu"].get("status") or {})
        )

        # A strange driver takes the allocation back while the pod waits for its device.
        allocated = found["gpu"]
        assert allocated["status"]["allocation"]["devices"]["results"][0]["bindingConditions"]
        lost = {**allocated, "status": {}}
        await world.ask("PUT", f"{CLAIMS}/gpu/status", lost)
        pods = await world.until(PODS, lambda pods: bool(why_pending(pods["train"])))

    assert "nodeName" not in pods["train"]["spec"]
    assert why_pending(pods["train"]) == (
        'running PreBind plugin "DynamicResources": device binding timeout: '
        "context deadline exceeded"
    )
