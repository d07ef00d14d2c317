"""kr8s, which finds kinds by discovery and waits by watches."""

from pathlib import Path

import kr8s
import pytest
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, new_class

from tests.clients import FOREIGN_AND_SLOW
from tests.clients.test_kubernetes import deployment

pytestmark = [
    *FOREIGN_AND_SLOW,
    # It warns of releases of Kubernetes that are newer than itself.
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]


async def test_a_pod_is_created_and_waited_for(kubeconfig: Path, namespace: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    pod = await Pod(
        {
            "metadata": {"name": "one", "namespace": namespace},
            "spec": {"containers": [{"name": "c", "image": "web:1"}]},
        },
        api=api,
    )
    await pod.create()
    await pod.wait("condition=Ready", timeout=30)
    assert await pod.ready()
    await pod.label(tier="front")
    found = [each async for each in api.get("pods", namespace=namespace, label_selector="tier")]
    assert [each.name for each in found] == ["one"]
    await pod.delete()
    await pod.wait("delete", timeout=60)


async def test_a_deployment_is_scaled(kubeconfig: Path, namespace: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    web = await Deployment(
        {**deployment(1), "metadata": {"name": "web", "namespace": namespace}}, api=api
    )
    await web.create()
    await web.wait("condition=Available", timeout=30)
    await web.scale(3)
    await web.wait("jsonpath='{.status.readyReplicas}'=3", timeout=30)
    pods = await web.pods()
    assert len(pods) == 3


async def test_kinds_are_looked_up_by_short_name(kubeconfig: Path, namespace: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    await (
        await ConfigMap({"metadata": {"name": "c", "namespace": namespace}, "data": {}}, api=api)
    ).create()
    found = [each.name async for each in api.get("cm", namespace=namespace)]
    assert "c" in found
    assert new_class("CSINode", "storage.k8s.io/v1", namespaced=False).kind == "CSINode"
