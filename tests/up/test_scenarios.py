"""Preemption, volumes and devices, over the HTTP of an embedded cluster."""

import asyncio
from typing import Any

import pytest

from tests.up.world import PODS, Object, pod, running, running_world, why_pending

pytestmark = pytest.mark.wall

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
VOLUME_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"


def priority(name: str, value: int) -> Object:
    return {"metadata": {"name": name}, "value": value}


def on(node: str) -> Object:
    return {"kubernetes.io/hostname": node}


# Preemption.


async def test_the_fewest_and_lowest_are_evicted_and_the_pod_lands_where_it_was_nominated() -> None:
    async with running_world(nodes=3, cpu="4") as world:
        await world.create(PRIORITIES, priority("high", 1000), priority("middle", 100))
        nodes = sorted(await world.items("/api/v1/nodes"))
        many = [pod(f"many-{i}", cpu="2", nodeSelector=on(nodes[0])) for i in range(2)]
        above = pod("above", cpu="4", priorityClassName="middle", nodeSelector=on(nodes[1]))
        lowest = pod("lowest", cpu="4", nodeSelector=on(nodes[2]))
        await world.create(PODS, *many, above, lowest)
        await world.until_running("many-0", "many-1", "above", "lowest")

        await world.create(PODS, pod("high", cpu="4", priorityClassName="high"))
        pods = await world.until_running("high")

    assert running(pods) == {
        "many-0": nodes[0],
        "many-1": nodes[0],
        "above": nodes[1],
        "high": nodes[2],
    }


# Volumes.


def storage_class(mode: str) -> Object:
    return {"metadata": {"name": "fast"}, "provisioner": "hollow", "volumeBindingMode": mode}


def volume_claim(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def with_volume(name: str, claim: str) -> Object:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return pod(name, volumes=[volume])


async def test_a_volume_is_made_for_the_node_that_the_pod_was_given() -> None:
    async with running_world(nodes=2) as world:
        await world.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer"))
        await world.create(VOLUME_CLAIMS, volume_claim("data"))
        await world.create(PODS, with_volume("db", "data"))
        pods = await world.until_running("db")
        claim = (await world.items(VOLUME_CLAIMS))["data"]
        volume = (await world.items(VOLUMES))[claim["spec"]["volumeName"]]

    assert claim["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
    }
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == [running(pods)["db"]]
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]


# Devices.


def device_slice(node: str, count: int) -> Object:
    return {
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{i}"} for i in range(count)],
        },
    }


TEMPLATE: Object = {
    "metadata": {"name": "one-gpu"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    },
}
GPU_CLASS: Object = {
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}


def with_device(name: str) -> Object:
    claim = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    return pod(name, resourceClaims=[claim])


async def test_eight_pods_share_the_devices_of_two_nodes_and_the_ninth_waits() -> None:
    async with running_world(nodes=2) as world:
        nodes = sorted(await world.items("/api/v1/nodes"))
        await world.create(DEVICE_CLASSES, GPU_CLASS)
        await world.create(SLICES, *(device_slice(node, 4) for node in nodes))
        await world.create(TEMPLATES, TEMPLATE)
        eight = [f"train-{i}" for i in range(8)]
        await world.create(PODS, *map(with_device, eight))
        await world.until_running(*eight)
        await world.create(PODS, with_device("ninth"))
        pods = await world.until(PODS, lambda pods: "nodes" in why_pending(pods["ninth"]))
        claims = await world.items(CLAIMS)
        used = [
            (result["pool"], result["device"])
            for claim in claims.values()
            for result in (claim["status"].get("allocation") or {"devices": {"results": []}})[
                "devices"
            ]["results"]
        ]
        assert sorted(used) == [(node, f"gpu-{i}") for node in nodes for i in range(4)]
        assert why_pending(pods["ninth"]) == (
            "0/2 nodes are available: 2 cannot allocate all claims. "
            "still not schedulable, preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling."
        )

        await world.ask("DELETE", f"{PODS}/train-3")
        pods = await world.until_running("ninth")
        claims = await world.until(CLAIMS, lambda claims: len(claims) == 8)

    assert sorted(running(pods)) == ["ninth", *(name for name in eight if name != "train-3")]
    assert all(claim["status"]["reservedFor"] for claim in claims.values())
