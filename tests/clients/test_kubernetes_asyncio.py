"""kubernetes-asyncio, the client that berth uses itself, as others use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes_asyncio import client, config, dynamic, watch

from tests.clients import FOREIGN_AND_SLOW
from tests.clients.test_kubernetes import deployment

pytestmark = FOREIGN_AND_SLOW


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[client.ApiClient]:
    async with await config.new_client_from_config(str(kubeconfig)) as made:
        yield made


async def test_objects_are_created_watched_and_deleted(
    api: client.ApiClient, namespace: str
) -> None:
    apps, core = client.AppsV1Api(api), client.CoreV1Api(api)
    await apps.create_namespaced_deployment(namespace, deployment(2))
    running = set()
    async with watch.Watch().stream(
        core.list_namespaced_pod, namespace, timeout_seconds=30
    ) as events:
        async for event in events:
            if event["object"].status.phase == "Running":
                running.add(event["object"].metadata.name)
            if len(running) == 2:
                break
    assert len(running) == 2
    await apps.delete_namespaced_deployment("web", namespace)


async def test_an_object_is_applied(api: client.ApiClient, namespace: str) -> None:
    known = await dynamic.DynamicClient(api)
    deployments = await known.resources.get(api_version="apps/v1", kind="Deployment")
    applied = await deployments.server_side_apply(
        body=deployment(2), name="web", namespace=namespace, field_manager="first"
    )
    assert applied.metadata.managedFields[0].operation == "Apply"
