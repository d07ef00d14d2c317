"""Loading the objects of manifests into a cluster, with its controllers."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.cluster import install_order
from berth.cluster.access.users import ADMIN
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.in_process_api import InProcessApi
from berth.cluster.loading import FEATURES_PAGE, KINDS_PAGE, Loader
from berth.cluster.sources import Gathered
from berth.cluster.storage.database import Database
from berth.runtime.clock import RealClock

pytestmark = pytest.mark.wall

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]


class Loading:
    """A cluster, and what was said when objects were loaded."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.api: InProcessApi = cluster.in_process("test", user=ADMIN)
        self.said: list[str] = []

    async def load(self, *objects: Object, namespace: str = "default") -> Loader:
        loader = Loader(
            self.api,
            clock=RealClock(),
            say=self.said.append,
            namespace=namespace,
            is_kept=self.cluster.is_restored,
        )
        await loader.load(Gathered([("file", object_) for object_ in objects]))
        return loader

    async def get(self, path: str) -> Any:
        return msgspec.json.decode(await self.api.request("GET", path))


@asynccontextmanager
async def loading(folder: Path | None = None) -> AsyncIterator[Loading]:
    """Run a cluster with controllers, kept in *folder* if it is given."""
    database = None if folder is None else Database(folder)
    cluster = EmbeddedCluster(clock=RealClock(), rng=random.Random(1), database=database)
    await cluster.start(0)
    controllers = asyncio.create_task(cluster.run_controllers())
    try:
        async with asyncio.timeout(30):
            yield Loading(cluster)
    finally:
        controllers.cancel()
        await asyncio.gather(controllers, return_exceptions=True)
        await cluster.stop()


def obj(kind: str, name: str, api: str = "v1", *, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def pod(name: str, **more: Any) -> Object:
    return obj("Pod", name, spec={"containers": [{"name": "c", "image": "i"}]}, **more)


WIDGETS = obj(
    "CustomResourceDefinition",
    "widgets.example.com",
    "apiextensions.k8s.io/v1",
    spec={
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
)
WIDGET = obj("Widget", "w", "example.com/v1", namespace="shop", size=3)


async def test_what_others_need_comes_first() -> None:
    async with loading() as world:
        critical = pod("p", namespace="shop")
        critical["spec"]["priorityClassName"] = "high"
        loader = await world.load(
            WIDGET,
            critical,
            WIDGETS,
            obj("PriorityClass", "high", "scheduling.k8s.io/v1", value=7),
            obj("Namespace", "shop"),
        )
        assert (world.said, loader.refused.objects) == ([], 0)
        assert (await world.get("/api/v1/namespaces/shop/pods/p"))["spec"]["priority"] == 7
        found = await world.get("/apis/example.com/v1/namespaces/shop/widgets/w")
        assert found["size"] == 3


async def test_objects_without_a_namespace_go_where_it_is_said() -> None:
    async with loading() as world:
        await world.load(
            pod("here"), pod("there", namespace="default"), obj("Namespace", "n"), namespace="team"
        )
        assert world.said == []
        await world.load(pod("again"), namespace="team")
        for path in ("team/pods/here", "team/pods/again", "default/pods/there"):
            assert await world.get(f"/api/v1/namespaces/{path}")


async def test_what_is_refused_says_where_to_look_and_the_rest_is_loaded() -> None:
    async with loading() as world:
        loader = await world.load(
            obj("Rollout", "r", "argoproj.io/v1alpha1"),
            obj("ConfigMap", "bad", data={"a": 1}),
            obj("ConfigMap", "good"),
        )
        assert loader.refused.lines() == ["2 objects refused, 0 of them with pods"]
        bad, rollout, page = world.said
        assert bad.startswith("not loaded: file: ConfigMap 'bad': ")
        assert rollout == (
            "not loaded: file: Rollout 'r': no matches for kind \"Rollout\" in version"
            ' "argoproj.io/v1alpha1"; docs/reference/embedded-api.md lists what is served'
        )
        assert page == "docs/embedded.md explains what the cluster supports"
        assert await world.get("/api/v1/namespaces/default/configmaps/good")


async def test_loading_again_into_a_kept_cluster(tmp_path: Path) -> None:
    objects = (obj("Namespace", "shop"), WIDGETS, WIDGET, pod("p", namespace="shop"))
    async with loading(tmp_path) as world:
        assert not world.cluster.is_restored
        await world.load(*objects)
        loader = await world.load(pod("p", namespace="shop"))
        assert loader.refused.objects == 1
        before = await world.get("/api/v1/namespaces/shop/pods/p")
    async with loading(tmp_path) as world:
        assert world.cluster.is_restored
        loader = await world.load(*objects, obj("ConfigMap", "new"), obj("ConfigMap", "new"))
        assert loader.refused.objects == 1
        assert world.said == [
            "not loaded: file: ConfigMap 'new': configmaps \"new\" already exists",
            "4 objects exist; to change them, use kubectl apply",
            "docs/embedded.md explains what the cluster supports",
        ]
        assert await world.get("/api/v1/namespaces/shop/pods/p") == before
        assert await world.get("/apis/example.com/v1/namespaces/shop/widgets/w")


@pytest.mark.parametrize("page", [KINDS_PAGE, FEATURES_PAGE])
def test_the_pages_are_there(page: str) -> None:
    assert (ROOT / page).exists()


def test_the_order() -> None:
    kinds = [
        ("v1", "Pod"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("monitoring.coreos.com/v1", "Prometheus"),
        ("serving.knative.dev/v1", "Service"),
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("v1", "Namespace"),
    ]
    objects = [obj(kind, "x", api) for api, kind in kinds]
    ordered = [object_["kind"] for object_ in sorted(objects, key=install_order.place)]
    assert ordered == [
        "Namespace",
        "CustomResourceDefinition",
        "ClusterRole",
        "Service",
        "Pod",
        "Deployment",
        "Prometheus",
        "Service",
        "ValidatingWebhookConfiguration",
    ]
