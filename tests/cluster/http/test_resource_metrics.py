"""``metrics.k8s.io``: what nodes and pods use, over HTTP."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.resources import Object
from tests.cluster.serving import NOW_TEXT, Serving, status

METRICS = "/apis/metrics.k8s.io/v1beta1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
HOLLOW = {"containerRuntimeVersion": "hollow://1"}
USAGE = "berth.dev/usage-"


def node(name: str, *, runtime: Any = HOLLOW, **annotations: str) -> Object:
    amounts = {"cpu": "4", "memory": "10Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": name}, "annotations": annotations},
        "status": {"capacity": amounts, "allocatable": amounts, "nodeInfo": runtime},
    }


def pod(name: str, *, node: str = "n1", **annotations: str) -> Object:
    requests = {"cpu": "500m", "memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}, "annotations": annotations},
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": "main", "image": "i", "resources": {"requests": requests}},
                {"name": "side", "image": "i"},
            ],
        },
    }


RUNNING = {"running": {"startedAt": NOW_TEXT}}
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


class Measured(Serving):
    """A cluster of two hollow nodes and one that is not."""

    def __init__(self) -> None:
        super().__init__(resources=RESOURCES)

    async def fill(self) -> "Measured":
        await self.post("/api/v1/nodes", node("n1", **{f"{USAGE}memory": "1Gi"}))
        await self.post("/api/v1/nodes", node("n2", **{"berth.dev/failure": "stopped"}))
        await self.post("/api/v1/nodes", node("real", runtime={}))
        await self.pod(pod("a"), RUNNING, RUNNING)
        await self.pod(pod("b", **{f"{USAGE}memory": "3Gi", f"{USAGE}cpu": "2"}), RUNNING, RUNNING)
        await self.pod(pod("c"), RUNNING, WAITING)
        await self.pod(pod("d"), WAITING, WAITING)
        await self.pod(pod("e", node="n2"), RUNNING, RUNNING)
        await self.pod(pod("f", node="real"), RUNNING, RUNNING)
        return self

    async def pod(self, body: Object, *states: Object) -> None:
        """Create a pod whose containers are in these states."""
        await self.post("/api/v1/namespaces/default/pods", body)
        name = body["metadata"]["name"]
        containers = [
            {"name": each["name"], "state": state, "image": "", "imageID": "", "ready": True,
             "restartCount": 0}
            for each, state in zip(body["spec"]["containers"], states, strict=True)
        ]  # fmt: skip
        code, answer = await self.request(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{name}/status",
            {"status": {"phase": "Running", "containerStatuses": containers}},
            content_type="application/merge-patch+json",
        )
        assert code == 200, answer


async def test_a_pod() -> None:
    cluster = await Measured().fill()

    assert await cluster.get(f"{METRICS}/namespaces/default/pods/b") == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": "b",
            "namespace": "default",
            "creationTimestamp": NOW_TEXT,
            "labels": {"app": "b"},
        },
        "timestamp": NOW_TEXT,
        "window": "15s",
        "containers": [
            {"name": "main", "usage": {"cpu": "2", "memory": "3Gi"}},
            {"name": "side", "usage": {"cpu": "0", "memory": "0"}},
        ],
    }


async def test_a_node_uses_what_its_system_and_its_pods_use() -> None:
    cluster = await Measured().fill()

    found = await cluster.get(f"{METRICS}/nodes/n1")

    # 80m of the system, 251m of a, 2 of b, 250m of c
    # 1Gi of the system, 516Mi of a, 3Gi of b, 512Mi of c
    assert found["usage"] == {"cpu": "2581m", "memory": "5124Mi"}
    assert found["metadata"]["labels"] == {"zone": "n1"}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        pytest.param("pods", ["a", "b", "c"], id="pods that run, on hollow nodes that work"),
        pytest.param("namespaces/default/pods", ["a", "b", "c"], id="of a namespace"),
        pytest.param("namespaces/other/pods", [], id="of an empty one"),
        pytest.param("pods?labelSelector=app%3Db", ["b"], id="by label"),
        pytest.param("pods?fieldSelector=metadata.name%3Dc", ["c"], id="by name"),
        pytest.param("nodes", ["n1"], id="hollow nodes that work"),
        pytest.param("nodes?labelSelector=zone%3Dn2", [], id="nodes by label"),
    ],
)
async def test_lists(path: str, names: list[str]) -> None:
    cluster = await Measured().fill()

    found = await cluster.get(f"{METRICS}/{path}")

    assert found["metadata"] == {}
    assert found["kind"] == ("PodMetricsList" if "pods" in path else "NodeMetricsList")
    assert [item["metadata"]["name"] for item in found["items"]] == names


async def test_only_containers_that_run_use_anything() -> None:
    cluster = await Measured().fill()
    found = await cluster.get(f"{METRICS}/namespaces/default/pods/c")
    assert found["containers"] == [{"name": "main", "usage": {"cpu": "250m", "memory": "512Mi"}}]


@pytest.mark.parametrize(
    ("path", "message", "group", "kind", "name"),
    [
        pytest.param(
            "namespaces/default/pods/none",
            'pods "none" not found',
            "",
            "pods",
            "none",
            id="no such pod",
        ),
        pytest.param(
            "namespaces/default/pods/d",
            'pods.metrics.k8s.io "default/d" not found',
            "metrics.k8s.io",
            "pods",
            "default/d",
            id="none of its containers runs",
        ),
        pytest.param(
            "nodes/n2",
            'nodes.metrics.k8s.io "n2" not found',
            "metrics.k8s.io",
            "nodes",
            "n2",
            id="a machine that is down",
        ),
    ],
)
async def test_what_is_not_measured(
    path: str, message: str, group: str, kind: str, name: str
) -> None:
    cluster = await Measured().fill()
    details = {"name": name, "kind": kind} | ({"group": group} if group else {})
    assert await cluster.request("GET", f"{METRICS}/{path}") == status(
        404, "NotFound", message, details
    )


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        pytest.param(
            "pods",
            [
                ["a", "251m", "516Mi", "15s"],
                ["b", "2", "3Gi", "15s"],
                ["c", "250m", "512Mi", "15s"],
            ],
            id="pods: the sum of their containers",
        ),
        pytest.param("nodes", [["n1", "2581m", "5124Mi", "15s"]], id="nodes"),
        pytest.param("nodes/n1", [["n1", "2581m", "5124Mi", "15s"]], id="one"),
    ],
)
async def test_tables(path: str, rows: list[list[str]]) -> None:
    cluster = await Measured().fill()

    code, table = await cluster.request("GET", f"{METRICS}/{path}", accept=TABLE)

    assert code == 200
    assert [definition["name"] for definition in table["columnDefinitions"]] == [
        "Name", "cpu", "memory", "Window",
    ]  # fmt: skip
    assert [row["cells"] for row in table["rows"]] == rows


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nobody_writes_metrics(method: str) -> None:
    cluster = Measured()
    path = f"{METRICS}/nodes" if method == "POST" else f"{METRICS}/nodes/n1"
    code, answer = await cluster.request(method, path, {})
    assert (code, answer["reason"]) == (405, "MethodNotAllowed")


async def test_discovery_says_that_there_are_metrics() -> None:
    cluster = Measured()

    found = await cluster.get(METRICS)
    service = await cluster.get(
        "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
    )

    assert found["resources"] == [
        {
            "name": "nodes",
            "singularName": "",
            "namespaced": False,
            "kind": "NodeMetrics",
            "verbs": ["get", "list"],
        },
        {
            "name": "pods",
            "singularName": "",
            "namespaced": True,
            "kind": "PodMetrics",
            "verbs": ["get", "list"],
        },
    ]
    assert [condition["status"] for condition in service["status"]["conditions"]] == ["True"]


async def test_a_node_that_makes_no_sense_is_not_measured() -> None:
    cluster = await Measured().fill()
    odd = node("odd")
    odd["status"]["capacity"] = {"memory": "-1Gi"}
    cluster.store.create("nodes", odd)

    found = await cluster.get(f"{METRICS}/nodes")

    assert [item["metadata"]["name"] for item in found["items"]] == ["n1"]
