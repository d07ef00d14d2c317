"""The official Python client: typed and dynamic, blocking."""

from __future__ import annotations  # which would have half of the client loaded

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, dynamic, utils, watch

from tests.clients import FOREIGN_AND_SLOW

pytestmark = FOREIGN_AND_SLOW

LABELS = {"app": "web"}


def deployment(replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {"containers": [{"name": "c", "image": "web:1"}]},
            },
        },
    }


@pytest.fixture
def api(kubeconfig: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kubeconfig)) as made:
        yield made


def scaled(apps: client.AppsV1Api, namespace: str, *, replicas: int) -> client.V1Scale:
    """Replace the scale, again if the controller has changed the Deployment meanwhile."""
    while True:
        scale = apps.read_namespaced_deployment_scale("web", namespace)
        scale.spec.replicas = replicas
        try:
            return apps.replace_namespaced_deployment_scale("web", namespace, scale)
        except client.exceptions.ApiException as exc:
            if exc.status != 409:
                raise


def test_objects_are_created_listed_patched_and_deleted(
    api: client.ApiClient, namespace: str
) -> None:
    apps = client.AppsV1Api(api)
    created = apps.create_namespaced_deployment(namespace, deployment(2))
    assert created.spec.strategy.rolling_update.max_surge == "25%"

    apps.patch_namespaced_deployment("web", namespace, {"metadata": {"labels": {"tier": "front"}}})
    found = apps.list_namespaced_deployment(namespace, label_selector="tier=front")
    assert [item.metadata.name for item in found.items] == ["web"]

    assert scaled(apps, namespace, replicas=3).spec.replicas == 3

    apps.delete_namespaced_deployment("web", namespace, propagation_policy="Foreground")


def test_a_watch_sees_pods_become_running(api: client.ApiClient, namespace: str) -> None:
    client.AppsV1Api(api).create_namespaced_deployment(namespace, deployment(2))
    running = set()
    stream = watch.Watch()
    for event in stream.stream(
        client.CoreV1Api(api).list_namespaced_pod, namespace, timeout_seconds=30
    ):
        pod = event["object"]
        if pod.status.phase == "Running":
            running.add(pod.metadata.name)
        if len(running) == 2:
            stream.stop()
    assert len(running) == 2


def test_create_from_dict_takes_whole_manifests(api: client.ApiClient, namespace: str) -> None:
    utils.create_from_dict(
        api,
        {"apiVersion": "v1", "kind": "List", "items": [deployment(1)]},
        namespace=namespace,
    )
    assert client.AppsV1Api(api).read_namespaced_deployment("web", namespace).spec.replicas == 1


def test_an_object_is_applied_by_two_managers(api: client.ApiClient, namespace: str) -> None:
    deployments = dynamic.DynamicClient(api).resources.get(api_version="apps/v1", kind="Deployment")
    applied = deployments.server_side_apply(
        body=deployment(2), name="web", namespace=namespace, field_manager="first"
    )
    assert [managedField["manager"] for managedField in applied.metadata.managedFields] == ["first"]

    with pytest.raises(client.ApiException, match=r'conflict with \\"first\\"'):
        deployments.server_side_apply(
            body=deployment(5), name="web", namespace=namespace, field_manager="second"
        )
    forced = deployments.server_side_apply(
        body=deployment(5),
        name="web",
        namespace=namespace,
        field_manager="second",
        force_conflicts=True,
    )
    assert forced.spec.replicas == 5


def test_a_conflict_is_an_api_exception(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    config_map = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
    stale = core.create_namespaced_config_map(namespace, config_map)
    core.patch_namespaced_config_map("c", namespace, {"data": {"a": "2"}})
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map("c", namespace, stale)
    assert refused.value.status == 409
