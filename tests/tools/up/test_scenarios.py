"""Preemption, volumes and devices, over the HTTP of an embedded cluster."""

import pytest

from tests.tools.up.world import PODS, Object, pod, running, running_world, why_pending

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


async def test_a_budget_is_respected_when_there_is_another_way() -> None:
    async with running_world(nodes=2, cpu="4") as world:
        await world.create(PRIORITIES, priority("high", 1000), priority("middle", 100))
        nodes = sorted(await world.items("/api/v1/nodes"))
        kept = pod("kept", cpu="4", labels={"app": "kept"}, nodeSelector=on(nodes[0]))
        other = pod("other", cpu="4", priorityClassName="middle", nodeSelector=on(nodes[1]))
        await world.create(PODS, kept, other)
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
        await world.create(BUDGETS, {"metadata": {"name": "kept"}, "spec": budget})
        await world.until_running("kept", "other")
        told = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}
        await world.until(BUDGETS, lambda found: told.items() <= found["kept"]["status"].items())

        await world.create(PODS, pod("high", cpu="4", priorityClassName="high"))
        pods = await world.until_running("high")

    assert running(pods) == {"kept": nodes[0], "high": nodes[1]}


async def test_two_preemptors_do_not_take_the_same_room() -> None:
    async with running_world(nodes=2, cpu="4") as world:
        await world.create(PRIORITIES, priority("high", 1000))
        nodes = sorted(await world.items("/api/v1/nodes"))
        low = [pod(f"low-{i}", cpu="4") for i in range(2)]
        await world.create(PODS, *low)
        await world.until_running("low-0", "low-1")

        high = [pod(f"high-{i}", cpu="3", priorityClassName="high") for i in range(2)]
        await world.create(PODS, *high)
        pods = await world.until_running("high-0", "high-1")

    assert sorted(running(pods).values()) == nodes
    assert sorted(running(pods)) == ["high-0", "high-1"]


# Volumes.


def storage_class(mode: str) -> Object:
    provisioner = "rancher.io/local-path"
    return {"metadata": {"name": "fast"}, "provisioner": provisioner, "volumeBindingMode": mode}


def volume_claim(name: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def node_of(volume: Object) -> str:
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    [node] = term["matchExpressions"][0]["values"]
    return str(node)


def with_volume(name: str, claim: str) -> Object:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return pod(name, volumes=[volume])


async def test_a_volume_is_made_where_the_pod_goes_and_deleted_with_its_claim() -> None:
    async with running_world(nodes=2) as world:
        await world.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer"))
        await world.create(VOLUME_CLAIMS, volume_claim("data"))
        await world.create(PODS, with_volume("db", "data"))
        pods = await world.until_running("db")
        claim = (await world.items(VOLUME_CLAIMS))["data"]
        volume = (await world.items(VOLUMES))[claim["spec"]["volumeName"]]

        await world.ask("DELETE", f"{PODS}/db")
        await world.ask("DELETE", f"{VOLUME_CLAIMS}/data")
        await world.until(VOLUMES, lambda left: not left)

    assert claim["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
    }
    assert node_of(volume) == running(pods)["db"]
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]


async def test_the_volumes_of_a_stateful_set_bind_and_its_pods_run() -> None:
    async with running_world(nodes=3) as world:
        await world.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer"))
        claim = volume_claim("data")
        labels = {"app": "db"}
        template = {"metadata": {"labels": labels}, "spec": pod("db")["spec"]}
        spec = {
            "replicas": 3,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": template,
            "volumeClaimTemplates": [claim],
        }
        await world.create(STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec})
        pods = await world.until_running("db-0", "db-1", "db-2")
        claims = await world.items(VOLUME_CLAIMS)
        volumes = await world.items(VOLUMES)
        sets = await world.until(
            STATEFUL_SETS, lambda sets: sets["db"]["status"].get("readyReplicas") == 3
        )

    assert sorted(claims) == ["data-db-0", "data-db-1", "data-db-2"]
    nodes_of_volumes = {
        name: node_of(volumes[claim["spec"]["volumeName"]]) for name, claim in claims.items()
    }
    assert nodes_of_volumes == {f"data-{name}": node for name, node in running(pods).items()}
    assert {each["status"]["phase"] for each in (*claims.values(), *volumes.values())} == {"Bound"}
    assert sets["db"]["status"]["updatedReplicas"] == 3


def is_failed_binding(event: Object) -> bool:
    return bool(event["reason"] == "FailedScheduling")


async def test_a_failed_binding_leaves_nothing_assumed_and_nothing_reserved() -> None:
    """The pod is deleted while its volume is made, and held: so binding it is refused."""
    async with running_world(nodes=1) as world:
        [node] = await world.items("/api/v1/nodes")
        await world.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer"))
        await world.create(VOLUME_CLAIMS, volume_claim("data"))
        await world.create(DEVICE_CLASSES, GPU_CLASS)
        await world.create(SLICES, device_slice(node, 1))
        await world.create(CLAIMS, {"metadata": {"name": "gpu"}, **TEMPLATE["spec"]})
        db = with_volume("db", "data")
        db["metadata"]["finalizers"] = ["example.com/held"]
        db["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
        await world.create(PODS, db)
        await world.until(VOLUME_CLAIMS, lambda found: "annotations" in found["data"]["metadata"])

        await world.ask("DELETE", f"{PODS}/db")
        pods = await world.until(PODS, lambda _: not world.service.scheduler.binding_count)
        claims = await world.items(CLAIMS)
        volume_claims = await world.items(VOLUME_CLAIMS)
        events = await world.until(
            "/api/v1/namespaces/default/events",
            lambda found: any(map(is_failed_binding, found.values())),
        )

        assert "nodeName" not in pods["db"]["spec"]
        assert volume_claims["data"]["status"]["phase"] == "Bound"
        assert not claims["gpu"]["status"].get("reservedFor")
        [failed] = filter(is_failed_binding, events.values())
        assert failed["message"] in (
            'running Bind plugin "DefaultBinder": Operation cannot be fulfilled on '
            'pods/binding "db": pod db is being deleted, cannot be assigned to a host',
            # The pod garbage collector looks every 20 seconds, and may have been there first.
            'running PreBind plugin "VolumeBinding": binding volumes: pod does not exist any more:'
            ' pod "db" not found',
        )
        # The same volume and the same device are free for the next pod.
        db["metadata"] = {"name": "next"}
        await world.create(PODS, db)
        pods = await world.until_running("next")

    assert running(pods) == {"next": node}


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
