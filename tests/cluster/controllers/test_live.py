"""Controllers and hollow kubelets against the embedded API server, over a socket."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest

from berth.cluster.actions import STRATEGIC_MERGE
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.bodies import workload
from tests.cluster.controllers.live import WEB, Cluster, running

pytestmark = pytest.mark.wall

ON_NODE = {"spec": {"template": {"spec": {"nodeName": "node-0"}}}}
"""There is no scheduler here: the template says where its pods run."""


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running() as cluster:
        yield cluster


async def create_web(cluster: Cluster, namespace: str = "default") -> None:
    body = workload(replicas=4)
    body["metadata"]["namespace"] = namespace
    body["spec"]["template"]["spec"] |= ON_NODE["spec"]["template"]["spec"]
    await cluster.ask("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)


async def test_a_deployment_lives_and_dies(cluster: Cluster) -> None:
    await create_web(cluster)
    await cluster.until_rolled_out(4)

    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    await cluster.ask("PATCH", WEB, image, STRATEGIC_MERGE)
    rolled = await cluster.until_rolled_out(4)
    pods = (await cluster.ask("GET", "/api/v1/namespaces/default/pods"))["items"]
    await cluster.ask("PATCH", f"{WEB}/scale", {"spec": {"replicas": 1}})
    await cluster.until_rolled_out(1)
    await cluster.ask("DELETE", WEB)
    await cluster.until_count("/api/v1/pods", 0)

    revision = rolled["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    images = {
        pod["spec"]["containers"][0]["image"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    }
    assert (revision, images) == ("2", {"nginx:2"})
    assert rolled["metadata"]["generation"] == 2, "that of the image, none of the revision"
    assert await cluster.count("/apis/apps/v1/replicasets") == 0


async def test_a_namespace_goes_with_all_that_is_in_it(cluster: Cluster) -> None:
    await cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "demo"}})
    await create_web(cluster, "demo")
    await cluster.until_count("/api/v1/namespaces/demo/pods", 4)

    await cluster.ask("DELETE", "/api/v1/namespaces/demo")
    await cluster.until_gone("/api/v1/namespaces/demo")

    assert await cluster.count("/api/v1/pods") == 0


async def test_orphans_stay(cluster: Cluster) -> None:
    await create_web(cluster)
    await cluster.until_rolled_out(4)

    await cluster.ask("DELETE", WEB, {"propagationPolicy": "Orphan"})
    await cluster.until_gone(WEB)

    (left,) = (await cluster.ask("GET", "/apis/apps/v1/replicasets"))["items"]
    assert not left["metadata"].get("ownerReferences")
    assert await cluster.count("/api/v1/pods") == 4


async def test_pods_that_do_not_fit_are_replaced_and_fail_again(cluster: Cluster) -> None:
    """Overcommit is visible: the node refuses what a scheduler should not have sent."""
    body = workload(replicas=1)
    spec = body["spec"]["template"]["spec"]
    spec |= ON_NODE["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "5"}}
    await cluster.ask("POST", "/apis/apps/v1/namespaces/default/deployments", body)

    failed: list[Object] = []
    while not failed:
        pods = (await cluster.ask("GET", "/api/v1/pods"))["items"]
        failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
        await asyncio.sleep(0.02)
    await cluster.ask("DELETE", WEB)

    assert failed[0]["status"]["reason"] == "OutOfcpu"


async def test_other_workloads_fill_a_namespace_and_go_with_it(cluster: Cluster) -> None:
    await cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "demo"}})
    template = workload()["spec"]["template"]
    template["spec"] |= ON_NODE["spec"]["template"]["spec"]
    labels = template["metadata"]["labels"]
    controller = {"replicas": 2, "selector": labels, "template": template}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stateful_set = {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": template,
        "volumeClaimTemplates": [claim],
    }
    for path, name, spec in (
        ("/api/v1/namespaces/demo/replicationcontrollers", "rc", controller),
        ("/apis/apps/v1/namespaces/demo/statefulsets", "db", stateful_set),
    ):
        body = {"metadata": {"name": name, "namespace": "demo"}, "spec": spec}
        await cluster.ask("POST", path, body)
    await cluster.until_count("/api/v1/namespaces/demo/pods", 4)
    await cluster.until_count("/api/v1/namespaces/demo/persistentvolumeclaims", 2)

    await cluster.ask("DELETE", "/api/v1/namespaces/demo")
    await cluster.until_gone("/api/v1/namespaces/demo")

    for path in ("/api/v1/pods", "/api/v1/persistentvolumeclaims", "/apis/apps/v1/statefulsets"):
        assert await cluster.count(path) == 0


MAPS = "/api/v1/namespaces/default/configmaps"


def referring_to(owner: Object) -> Object:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": True,
    }


async def test_any_kind_is_orphaned_and_collected(cluster: Cluster) -> None:
    root = await cluster.ask("POST", MAPS, {"metadata": {"name": "root"}})
    for path, spec in (
        (MAPS, {}),
        ("/api/v1/namespaces/default/secrets", {}),
        ("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}]}}),
    ):
        metadata = {"name": "leaf", "ownerReferences": [referring_to(root)]}
        await cluster.ask("POST", path, {"metadata": metadata, **spec})

    await cluster.ask("DELETE", f"{MAPS}/root")
    for plural in ("configmaps", "secrets", "services"):
        await cluster.until_gone(f"/api/v1/namespaces/default/{plural}/leaf")

    await cluster.ask("POST", MAPS, {"metadata": {"name": "alone"}})
    await cluster.ask("DELETE", f"{MAPS}/alone", {"propagationPolicy": "Orphan"})
    await cluster.until_gone(f"{MAPS}/alone")


async def test_in_the_foreground_the_owner_goes_last(cluster: Cluster) -> None:
    root = await cluster.ask("POST", MAPS, {"metadata": {"name": "root"}})
    metadata = {
        "name": "leaf",
        "ownerReferences": [referring_to(root)],
        "finalizers": ["example.com/held"],
    }
    await cluster.ask("POST", MAPS, {"metadata": metadata})
    await cluster.ask("DELETE", f"{MAPS}/root", {"propagationPolicy": "Foreground"})

    while True:
        leaf = await cluster.ask("GET", f"{MAPS}/leaf")
        if "deletionTimestamp" in leaf["metadata"]:
            break
        await asyncio.sleep(0.02)
    assert leaf["metadata"]["finalizers"] == ["example.com/held"]
    await cluster.ask("GET", f"{MAPS}/root")
    await cluster.ask("PATCH", f"{MAPS}/leaf", {"metadata": {"finalizers": None}})
    await cluster.until_gone(f"{MAPS}/root")


async def test_a_kind_that_is_served_later_is_collected(cluster: Cluster) -> None:
    gadgets = dataclasses.replace(
        find("", "v1", "configmaps"),
        group="example.com",
        kind="Gadget",
        plural="gadgets",
        singular="gadget",
        storage="",
    )
    cluster.registry.add(gadgets)
    path = gadgets.collection_path("default")
    root = await cluster.ask("POST", path, {"metadata": {"name": "root"}})
    await cluster.ask(
        "POST", MAPS, {"metadata": {"name": "leaf", "ownerReferences": [referring_to(root)]}}
    )
    metadata = {"name": "leaf", "ownerReferences": [referring_to(root)]}
    await cluster.ask("POST", path, {"metadata": metadata})
    await cluster.ask("DELETE", f"{path}/root")

    await cluster.until_gone(f"{path}/leaf")
    await cluster.until_gone(f"{MAPS}/leaf")
