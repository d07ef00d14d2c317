"""Binding and scaling."""

from typing import Any

import pytest

from berth.cluster.kinds import builtin as kinds
from berth.cluster.kinds.builtin import find
from berth.cluster.writes.subresources.scale import scale_of
from tests.cluster.every_kind import EVERY_KIND
from tests.cluster.serving import NOW_TEXT, Serving, pod, status, unmanaged

PODS = "/api/v1/namespaces/default/pods"
WEB = "/apis/apps/v1/namespaces/default/deployments/web"
TO_N = {"kind": "Binding", "apiVersion": "v1", "target": {"kind": "Node", "name": "n"}}


@pytest.fixture
def serving() -> Serving:
    return Serving()


async def test_a_bound_pod(serving: Serving) -> None:
    zone = {"topology.kubernetes.io/zone": "z", "kubernetes.io/hostname": "n"}
    await serving.post("/api/v1/nodes", {"metadata": {"name": "n", "labels": zone}})
    await serving.pods("p")
    body = {
        "status": {
            "nominatedNodeName": "m",
            "conditions": [{"type": "PodScheduled", "status": "False"}, {"type": "Other"}],
        }
    }
    kind = {"content_type": "application/merge-patch+json"}
    _, before = await serving.request("PATCH", f"{PODS}/p/status", body, **kind)
    binding = {**TO_N, "metadata": {"name": "p", "annotations": {"a": "b"}}}
    assert await serving.request("POST", f"{PODS}/p/binding", binding) == (
        201,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )
    after = await serving.get(f"{PODS}/p")
    before["metadata"] |= {
        "annotations": {"a": "b"},
        "labels": {"topology.kubernetes.io/zone": "z"},
        "resourceVersion": "5",
    }
    before["spec"]["nodeName"] = "n"
    before["status"] = {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": NOW_TEXT,
            },
            {"type": "Other", "status": "", "lastProbeTime": None, "lastTransitionTime": None},
        ],
    }
    assert after == before


def refused(why: str) -> Any:
    message = f'Operation cannot be fulfilled on pods/binding "p": {why}'
    return status(409, "Conflict", message, {"name": "p", "kind": "pods/binding"})


@pytest.mark.parametrize(
    ("spec", "metadata", "why"),
    [
        pytest.param(
            {"nodeName": "m"},
            {},
            'pod p is already assigned to node "m"',
            id="it has a node",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            {},
            "pod p has non-empty .spec.schedulingGates",
            id="it waits for its gates",
        ),
        pytest.param(
            {},
            {"uid": "other"},
            "Precondition failed: UID in precondition: other, UID in object meta: {uid}",
            id="it is another",
        ),
        pytest.param(
            {},
            {"resourceVersion": "1"},
            "Precondition failed: ResourceVersion in precondition: 1, "
            "ResourceVersion in object meta: 2",
            id="it has changed",
        ),
    ],
)
async def test_pods_that_cannot_be_bound(
    serving: Serving, spec: Any, metadata: Any, why: str
) -> None:
    body = pod("p")
    body["spec"] |= spec
    uid = (await serving.post(PODS, body))["metadata"]["uid"]
    binding = {**TO_N, "metadata": metadata}
    want = refused(why.format(uid=uid))
    assert await serving.request("POST", f"{PODS}/p/binding", binding) == want


async def test_a_pod_on_its_way_out_cannot_be_bound(serving: Serving) -> None:
    await serving.post(PODS, pod("p", finalizers=["f"]))
    await serving.request("DELETE", f"{PODS}/p")
    want = refused("pod p is being deleted, cannot be assigned to a host")
    assert await serving.request("POST", f"{PODS}/p/binding", TO_N) == want


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"target": {}}, 500, id="no node"),
        pytest.param({"target": {"kind": "Pod", "name": "x"}}, 500, id="not a node"),
        pytest.param({"target": {"kind": "Node", "name": "A_b"}}, 422, id="no name of a node"),
        pytest.param({**TO_N, "metadata": {"name": "q"}}, 400, id="another pod"),
        pytest.param({**TO_N, "metadata": [1]}, 400, id="metadata that is no object"),
        pytest.param({**TO_N, "metadata": {"labels": 1}}, 400, id="labels that are no object"),
        pytest.param(
            {**TO_N, "metadata": {"labels": {"a b": "c"}}}, 422, id="a label with a bad key"
        ),
        pytest.param(
            {**TO_N, "metadata": {"labels": {"a": "b" * 64}}}, 422, id="a label that is too long"
        ),
        pytest.param(
            {**TO_N, "metadata": {"annotations": {"a b": "c"}}}, 422, id="a bad annotation"
        ),
        pytest.param(
            {**TO_N, "metadata": {"annotations": {"a": "b" * 2**17, "c": "d" * 2**17}}},
            422,
            id="annotations that are too long together",
        ),
        pytest.param({"kind": "Pod"}, 400, id="not a binding"),
        pytest.param([], 400, id="not an object"),
    ],
)
async def test_bad_bindings(serving: Serving, body: Any, code: int) -> None:
    await serving.pods("p")
    got, answer = await serving.request("POST", f"{PODS}/p/binding", body)
    assert (got, answer["code"]) == (code, code)
    assert "nodeName" not in (await serving.get(f"{PODS}/p"))["spec"]


@pytest.mark.parametrize("key", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("path", "subresource"),
    [
        (path, subresource)
        for path in (PODS, "/api/v1/namespaces", "/apis/apps/v1/namespaces/default/deployments")
        for subresource in ("", "status", "resize", "ephemeralcontainers", "finalize", "scale")
    ],
)
async def test_no_subresource_takes_what_the_object_would_not(
    path: str, subresource: str, key: str
) -> None:
    serving = Serving(resources=kinds.RESOURCES)
    workload = {"metadata": {"name": "p"}, **EVERY_KIND["apps/v1/deployments"]}
    await serving.request("POST", path, workload if "apps" in path else pod("p"))
    url = f"{path}/p/{subresource}".rstrip("/")
    patch = {"metadata": {key: {"a b": "c"}}}
    await serving.request("PATCH", url, patch, content_type="application/merge-patch+json")
    shown = await serving.get(f"{path}/p")
    assert "a b" not in shown["metadata"].get(key, {})


async def test_binding_what_is_not_there(serving: Serving) -> None:
    want = status(404, "NotFound", 'pods "p" not found', {"name": "p", "kind": "pods"})
    assert await serving.request("POST", f"{PODS}/p/binding", TO_N) == want


async def web(serving: Serving) -> Any:
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }
    body = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": selector}}
    return await serving.post("/apis/apps/v1/namespaces/default/deployments", body)


async def test_the_scale_of_a_workload(serving: Serving) -> None:
    metadata = unmanaged(await web(serving))["metadata"]
    del metadata["generation"]
    assert await serving.get(f"{WEB}/scale") == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": 2},
        "status": {"replicas": 0, "selector": "app=web,!old,tier in (a,b)"},
    }


def test_the_scale_of_a_workload_that_selects_by_a_map() -> None:
    controllers = find("", "v1", "replicationcontrollers")
    assert controllers is not None
    body = {"metadata": {"name": "rc"}, "spec": {"selector": {"b": "2", "a": "1"}}}
    assert scale_of(controllers, body)["status"] == {"replicas": 0, "selector": "a=1,b=2"}


@pytest.mark.parametrize(
    ("method", "body", "replicas"),
    [
        pytest.param("PATCH", {"spec": {"replicas": 3}}, 3, id="kubectl scale"),
        pytest.param("PUT", {"spec": {"replicas": 5}}, 5, id="an autoscaler"),
        pytest.param("PUT", {"spec": {}}, 0, id="to nothing"),
    ],
)
async def test_scaling(serving: Serving, method: str, body: Any, replicas: int) -> None:
    before = await web(serving)
    kind = {"content_type": "application/merge-patch+json"} if method == "PATCH" else {}
    body = {"metadata": {"name": "web"}, **body}
    code, scale = await serving.request(method, f"{WEB}/scale", body, **kind)
    assert (code, scale["spec"].get("replicas", 0)) == (200, replicas)
    before["spec"]["replicas"] = replicas
    before["metadata"] |= {"generation": 2, "resourceVersion": "3"}
    assert unmanaged(await serving.get(WEB)) == unmanaged(before)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"spec": {"replicas": -1}}, 422, id="less than nothing"),
        pytest.param({"spec": {"replicas": "x"}}, 400, id="not a number"),
        pytest.param({"spec": 1}, 400, id="no spec"),
        pytest.param(
            {"metadata": {"name": "web", "resourceVersion": "1"}}, 409, id="an old version"
        ),
        pytest.param({"metadata": {"name": ""}, "spec": {}}, 400, id="no name"),
    ],
)
async def test_bad_scales(serving: Serving, body: Any, code: int) -> None:
    await web(serving)
    body = {"metadata": {"name": "web"}, **body}
    assert (await serving.request("PUT", f"{WEB}/scale", body))[0] == code
