"""Services and what stands behind them in a running cluster, over a socket."""

import asyncio

import pytest

from berth.cluster.resources import Object
from tests.cluster.controllers.live import Cluster, running

pytestmark = pytest.mark.wall

PODS = "/api/v1/namespaces/default/pods"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


async def until_ready(cluster: Cluster, wanted: int) -> list[Object]:
    """Return the slices of the Service as soon as they have so many ready endpoints."""
    while True:
        slices: list[Object] = (await cluster.ask("GET", SLICES))["items"]
        ready = [
            endpoint
            for each in slices
            for endpoint in each["endpoints"] or ()
            if endpoint["conditions"]["ready"]
        ]
        if slices and len(ready) == wanted:
            return slices
        await asyncio.sleep(0.02)


async def test_endpoints_follow_the_pods() -> None:
    async with running() as cluster:
        ports = [{"port": 80, "targetPort": "http"}]
        service = {
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": ports},
        }
        await cluster.ask("POST", "/api/v1/namespaces/default/services", service)
        await until_ready(cluster, 0)
        container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}
        pod = {
            "metadata": {"name": "a", "labels": {"app": "web"}},
            "spec": {"nodeName": "node-0", "containers": [container]},
        }
        await cluster.ask("POST", PODS, pod)
        [found] = await until_ready(cluster, 1)
        endpoints = await cluster.ask("GET", "/api/v1/namespaces/default/endpoints/web")
        await cluster.ask("DELETE", f"{PODS}/a")
        await until_ready(cluster, 0)
        await cluster.ask("DELETE", "/api/v1/namespaces/default/services/web")
        await cluster.until_count(SLICES, 0)

    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    [subset] = endpoints["subsets"]
    assert [address["ip"] for address in subset["addresses"]] == found["endpoints"][0]["addresses"]


async def test_an_autoscaler_keeps_its_target_within_bounds() -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    async with running() as cluster:
        container = {"name": "c", "image": "i"}
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"nodeName": "node-0", "containers": [container]},
        }
        selector = {"matchLabels": {"app": "web"}}
        spec = {"replicas": 1, "selector": selector, "template": template}
        await cluster.ask("POST", deployments, {"metadata": {"name": "web"}, "spec": spec})
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        bounds = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5}
        body = {"metadata": {"name": "web"}, "spec": bounds}
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        await cluster.ask("POST", path, body)
        await cluster.until_rolled_out(3)
