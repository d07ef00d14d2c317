"""A kopf operator with a kind of its own, unchanged from its registry, against the cluster."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from berth.cluster import Cluster
from berth.cluster.resources import Object
from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.errors import NotFoundError
from tests.cluster.custom.definitions import DEFINITIONS, definition, version

pytestmark = [pytest.mark.wall, pytest.mark.slow]

OPERATOR: Final = Path(__file__).with_name("operator.py")
FINALIZER: Final = "gardens.example.com/operator"
GROUP: Final = "gardens.example.com"
GARDEN: Final = f"/apis/{GROUP}/v1/namespaces/default/gardens/rose"
LOOK_SECONDS: Final = 0.05
LIMIT_SECONDS: Final = 60

GARDENS: Final = definition(
    "Garden",
    version(
        spec={
            "type": "object",
            "required": ["plants"],
            "properties": {"plants": {"type": "array", "items": {"type": "string"}}},
        },
        subresources={"status": {}},
        additionalPrinterColumns=[
            {"name": "Planted", "type": "integer", "jsonPath": ".status.planted"}
        ],
    ),
    group=GROUP,
    shortNames=["gd"],
)


class World:
    """Speaks JSON to the API."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def ask(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Any:
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._client.request(method, path, body=encoded, content_type=content_type)
        return msgspec.json.decode(answer)

    async def until(self, path: str, wanted: Callable[[Object], Any]) -> Object:
        """Look until what is at *path* is as *wanted*."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                found: Object = await self.ask("GET", path)
                if wanted(found):
                    return found
                await asyncio.sleep(LOOK_SECONDS)

    async def until_gone(self, path: str) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            with suppress(NotFoundError):
                while True:
                    await self.ask("GET", path)
                    await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """Yield a cluster with the kind and its operator, which runs in a process of its own."""
    async with Cluster(load=GARDENS) as cluster:
        client = await connect(kubeconfig=str(cluster.kubeconfig))
        operator = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kopf", "run", "--namespace=default", str(OPERATOR)),
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        )
        try:
            yield World(client)
        finally:
            operator.terminate()
            await operator.wait()
            await client.close()


async def test_an_operator_follows_its_objects() -> None:
    async with world() as found:
        garden = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Garden",
            "metadata": {"name": "rose", "namespace": "default"},
            "spec": {"plants": ["a", "b"]},
        }
        await found.ask("POST", GARDEN.removesuffix("/rose"), garden)
        planted = await found.until(GARDEN, lambda each: "plant" in each.get("status", {}))
        assert planted["status"]["planted"] == 2
        assert planted["status"]["plant"] == {"first": "a"}
        assert planted["metadata"]["finalizers"] == [FINALIZER]
        assert planted["metadata"]["generation"] == 1

        patch = {"spec": {"plants": ["a", "b", "c"]}}
        await found.ask("PATCH", GARDEN, patch, "application/merge-patch+json")
        replanted = await found.until(GARDEN, lambda each: each["status"].get("replanted"))
        assert replanted["status"]["planted"] == 3
        assert replanted["metadata"]["generation"] == 2

        await found.ask("DELETE", GARDEN)
        await found.until_gone(GARDEN)
        await found.ask("DELETE", f"{DEFINITIONS}/gardens.{GROUP}")
        await found.until_gone(f"{DEFINITIONS}/gardens.{GROUP}")
