"""How quantities are written wherever an object has them."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.schemas import builtin
from berth.cluster.schemas.checks import MALFORMED
from berth.cluster.schemas.quantities import write_canonically
from tests.cluster.every_kind import named
from tests.cluster.planting import CREATED, planted
from tests.cluster.serving import Serving

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def container(**resources: Any) -> Any:
    return {"spec": {"containers": [{"name": "c", "resources": resources}]}}


@pytest.mark.parametrize(
    ("schema", "obj", "want"),
    [
        pytest.param(
            "api.core.v1.Pod",
            container(requests={"cpu": 0.5, "memory": "1024Mi"}, limits={"cpu": "1000m"}),
            container(requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "1"}),
            id="resources of a container",
        ),
        pytest.param(
            "api.core.v1.Pod",
            container(requests={"cpu": "1234567n"}),
            container(requests={"cpu": "2m"}),
            id="resource lists are rounded up to thousandths",
        ),
        pytest.param(
            "api.core.v1.Pod",
            {"spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.1"}}]}},
            {"spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "100m"}}]}},
            id="a field",
        ),
        pytest.param(
            "api.resource.v1.ResourceSlice",
            {
                "spec": {
                    "devices": [
                        {
                            "name": "d",
                            "capacity": {
                                "memory": {
                                    "value": "2048Mi",
                                    "requestPolicy": {"validValues": ["1024Ki", "2e3"]},
                                }
                            },
                        }
                    ]
                }
            },
            {
                "spec": {
                    "devices": [
                        {
                            "name": "d",
                            "capacity": {
                                "memory": {
                                    "value": "2Gi",
                                    "requestPolicy": {"validValues": ["1Mi", "2e3"]},
                                }
                            },
                        }
                    ]
                }
            },
            id="a list, in a map of objects",
        ),
        pytest.param(
            "api.core.v1.Pod",
            container(requests={"cpu": "much", "memory": None}),
            container(requests={"cpu": "much", "memory": None}),
            id="what is none stays for others to refuse",
        ),
        pytest.param(
            "api.core.v1.Pod",
            {"spec": {"containers": "none", "overhead": 3}},
            {"spec": {"containers": "none", "overhead": 3}},
            id="other shapes too",
        ),
    ],
)
def test_quantities_are_written_canonically(schema: str, obj: Any, want: Any) -> None:
    write_canonically(builtin.schema(f"io.k8s.{schema}"), obj)
    assert obj == want


@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        pytest.param("POST", DEPLOYMENTS, "application/json", id="created"),
        pytest.param("PUT", f"{DEPLOYMENTS}/old", "application/json", id="replaced"),
        pytest.param("PATCH", f"{DEPLOYMENTS}/old", "application/merge-patch+json", id="patched"),
        pytest.param(
            "PATCH",
            f"{DEPLOYMENTS}/new?fieldManager=me",
            "application/apply-patch+yaml",
            id="applied",
        ),
    ],
)
async def test_an_object_is_stored_so_however_it_comes(
    method: str, path: str, content_type: str
) -> None:
    serving = Serving()
    old = {"metadata": {"name": "old"}, "spec": {"replicas": 1}}
    await serving.request("POST", DEPLOYMENTS, old)
    template = container(requests={"cpu": "0.5"}, limits={"cpu": "1000m"})
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "old" if "old" in path else "new"},
        "spec": {"template": template},
    }
    _, answer = await serving.request(method, path, body, content_type=content_type)
    (got,) = answer["spec"]["template"]["spec"]["containers"]
    assert got["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (
            "autoscaling/v2/horizontalpodautoscalers",
            ("spec", "metrics", 1, "pods", "target", "averageValue"),
        ),
        ("v1/persistentvolumes", ("spec", "capacity", "storage")),
        ("storage.k8s.io/v1/csistoragecapacities", ("capacity",)),
        (
            "apps/v1/deployments",
            ("spec", "template", "spec", "volumes", 0, "emptyDir", "sizeLimit"),
        ),
        (
            "resource.k8s.io/v1/resourceslices",
            ("spec", "devices", 0, "capacity", "memory", "value"),
        ),
        ("node.k8s.io/v1/runtimeclasses", ("overhead", "podFixed", "cpu")),
    ],
)
async def test_what_is_no_quantity_is_refused(key: str, path: tuple[str | int, ...]) -> None:
    serving = Serving(resources=RESOURCES)
    resource = CREATED[key]
    collection = resource.collection_path("default" if resource.namespaced else "")
    code, answer = await serving.request("POST", collection, planted(named(key), path, "much"))
    assert code == 400, answer
    assert answer["message"].endswith(MALFORMED)
