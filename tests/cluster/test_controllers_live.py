"""Controllers and hollow kubelets against the embedded API server, over a socket."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from berth.client.api_client import ApiClient
from berth.client.connect import connect
from berth.client.errors import NotFoundError
from berth.clock import RealClock
from berth.cluster.actions import MERGE, STRATEGIC_MERGE
from berth.cluster.bootstrap import bootstrap
from berth.cluster.controllers.run import Controllers
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.kubelet.hollow_kubelets import HollowKubelets, Settings
from berth.cluster.kubelet.pod_lifecycles import Timings
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from tests.cluster.bodies import workload

pytestmark = pytest.mark.wall

WEB = "/apis/apps/v1/namespaces/default/deployments/web"
ON_NODE = {"spec": {"template": {"spec": {"nodeName": "node-0"}}}}
"""There is no scheduler here: the template says where its pods run."""


class Cluster:
    """A running cluster of one node."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def ask(
        self, method: str, path: str, body: Object | None = None, kind: str = MERGE
    ) -> Any:
        content_type = kind if method == "PATCH" else "application/json"
        encoded = None if body is None else msgspec.json.encode(body)
        return msgspec.json.decode(
            await self._client.request(method, path, body=encoded, content_type=content_type)
        )

    async def count(self, path: str) -> int:
        return len((await self.ask("GET", path))["items"])

    async def until_rolled_out(self, replicas: int) -> Object:
        """Wait for what ``kubectl rollout status`` waits for."""
        while True:
            deployment: Object = await self.ask("GET", WEB)
            status = deployment.get("status") or {}
            counts = {
                status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")
            }
            current = status.get("observedGeneration") == deployment["metadata"]["generation"]
            if current and counts == {replicas}:
                return deployment
            await asyncio.sleep(0.02)

    async def until_count(self, path: str, wanted: int) -> None:
        while True:
            if await self.count(path) == wanted:
                return
            await asyncio.sleep(0.02)

    async def until_gone(self, path: str) -> None:
        try:
            while True:
                await self.ask("GET", path)
                await asyncio.sleep(0.02)
        except NotFoundError:
            return


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    clock, rng = RealClock(), random.Random(5)
    server = ApiServer(Registry(RESOURCES), Store(), clock=clock, rng=rng)
    await bootstrap(server.writes)
    port = await server.start("127.0.0.1", 0)
    client = await connect(kubeconfig=None, master=f"http://127.0.0.1:{port}", qps=1e6, burst=10**6)
    kubelets = HollowKubelets(
        client, Settings(nodes=1, timings=Timings(stop_seconds=0.1)), clock=clock, rng=rng
    )
    controllers = Controllers(client, clock=clock, rng=rng)
    tasks = [
        asyncio.create_task(kubelets.run(), name="kubelets"),
        asyncio.create_task(controllers.run(), name="controllers"),
    ]
    await kubelets.registered.wait()
    try:
        async with asyncio.timeout(20):
            yield Cluster(client)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()
        await server.stop()


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
