"""A DaemonSet in a running cluster, over a socket; the test is the scheduler."""

import asyncio
from typing import Any

import pytest

from berth.cluster.actions import STRATEGIC_MERGE
from berth.cluster.resources import Object
from tests.cluster.controllers.live import Cluster, running

pytestmark = pytest.mark.wall

DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
PODS = "/api/v1/namespaces/default/pods"
LABELS = {"app": "agent"}


async def bind(cluster: Cluster) -> None:
    """Bind the pods that wait to the node that they name."""
    for pod in (await cluster.ask("GET", PODS))["items"]:
        if pod["spec"].get("nodeName"):
            continue
        affinity = pod["spec"]["affinity"]["nodeAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        [node] = term["matchFields"][0]["values"]
        name = pod["metadata"]["name"]
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await cluster.ask("POST", f"{PODS}/{name}/binding", body)


async def until_rolled_out(cluster: Cluster, generation: int) -> Object:
    """Wait for what ``kubectl rollout status`` waits for; return the one pod."""
    while True:
        await bind(cluster)
        status = (await cluster.ask("GET", f"{DAEMON_SETS}/agent")).get("status") or {}
        counts = {
            status.get(field)
            for field in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        }
        if status.get("observedGeneration") == generation and counts == {1}:
            pods: list[Object] = (await cluster.ask("GET", PODS))["items"]
            [pod] = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
            return pod
        await asyncio.sleep(0.02)


def image_of(pod: Object) -> Any:
    return pod["spec"]["containers"][0]["image"]


async def test_a_daemon_set_is_rolled_out_and_back() -> None:
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": "agent:1"}]},
    }
    spec = {"selector": {"matchLabels": LABELS}, "template": template}
    async with running() as cluster:
        body = {"metadata": {"name": "agent"}, "spec": spec}
        await cluster.ask("POST", DAEMON_SETS, body)
        images = [image_of(await until_rolled_out(cluster, 1))]
        new = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "agent:2"}]}}}}
        await cluster.ask("PATCH", f"{DAEMON_SETS}/agent", new, STRATEGIC_MERGE)
        images.append(image_of(await until_rolled_out(cluster, 2)))
        revisions = (await cluster.ask("GET", REVISIONS))["items"]
        [first] = [revision for revision in revisions if revision["revision"] == 1]
        # As kubectl rollout undo does it.
        await cluster.ask("PATCH", f"{DAEMON_SETS}/agent", first["data"], STRATEGIC_MERGE)
        images.append(image_of(await until_rolled_out(cluster, 3)))
        await cluster.ask("DELETE", f"{DAEMON_SETS}/agent")
        await cluster.until_count(PODS, 0)
        await cluster.until_count(REVISIONS, 0)

    assert images == ["agent:1", "agent:2", "agent:1"]
