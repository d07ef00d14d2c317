"""What a real server hands on to a kubelet, a pod or a service, and nobody answers here."""

import pytest

from berth.cluster.resources import Object
from tests.cluster.http.subresources.scene import CORE, ENDED, RUNNING, STARTED, Scene

POD = f"{CORE}/pods/p"
REFUSED = "connect: connection refused"
HOLLOW = f"dial tcp 172.18.0.0:10250: {REFUSED} (node hollow is hollow: no container runs there)"
NOT_REACHED = "error trying to reach service: dial tcp"
DONE: Object = {
    "terminated": {"startedAt": STARTED, "finishedAt": ENDED, "exitCode": 0, "reason": "Completed"}
}


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.create_nodes()
    return scene


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("how", ["exec?command=ls", "attach", "portforward"])
async def test_containers(scene: Scene, how: str, method: str) -> None:
    await scene.create_pod()
    await scene.report("p", c=RUNNING)
    assert await scene.refused(f"{POD}/{how}", method=method) == (
        500,
        "",
        f"error dialing backend: {HOLLOW}",
    )


async def test_a_node_that_is_not_hollow(scene: Scene) -> None:
    await scene.create_pod(node="other")
    assert (await scene.refused(f"{POD}/exec", method="POST"))[2] == (
        f"error dialing backend: dial tcp 10.0.0.9:10250: {REFUSED}"
    )


async def test_a_node_without_an_address(scene: Scene) -> None:
    addresses = [{"type": "InternalDNS", "address": "n.example.com"}]
    silent: Object = {"metadata": {"name": "silent"}, "status": {"addresses": addresses}}
    await scene.secured.create("/api/v1/nodes", silent)
    await scene.create_pod(node="silent")
    assert (await scene.refused(f"{POD}/exec", method="POST"))[2] == (
        "no preferred addresses found; known addresses: [{InternalDNS n.example.com}]"
    )


@pytest.mark.parametrize("how", ["exec", "attach", "portforward"])
async def test_a_pod_without_node(scene: Scene, how: str) -> None:
    await scene.create_pod(node="")
    assert await scene.refused(f"{POD}/{how}", method="POST") == (
        400,
        "BadRequest",
        "pod p does not have a host assigned",
    )


async def test_what_exec_needs(scene: Scene) -> None:
    await scene.create_pod("p", "a", "b")
    assert (await scene.refused(f"{POD}/exec"))[2] == (
        "a container name must be specified for pod p, choose one of: [a b]"
    )
    await scene.report("p", "Succeeded", a=DONE, b=DONE)
    assert (await scene.refused(f"{POD}/exec?container=a"))[2] == (
        "cannot exec into a container in a completed pod; current phase is Succeeded"
    )
    assert (await scene.refused(f"{CORE}/pods/no/exec"))[:2] == (404, "NotFound")


PORTS: Object = {"name": "c", "image": "nginx", "ports": [{"containerPort": 8080, "name": "web"}]}


@pytest.mark.parametrize(
    ("name", "port"),
    [("p", 8080), ("p:web", 8080), ("p:9", 9), ("https:p:web", 8080), ("http:p:", 8080)],
)
@pytest.mark.parametrize("rest", ["", "/a//b?c=d"])
async def test_pods_by_proxy(scene: Scene, name: str, port: int, rest: str) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [PORTS], "nodeName": "hollow"}}
    await scene.secured.create(f"{CORE}/pods", body)
    await scene.report("p", c=RUNNING)
    assert await scene.refused(f"{CORE}/pods/{name}/proxy{rest}") == (
        503,
        "ServiceUnavailable",
        f"{NOT_REACHED} 10.64.0.2:{port}: {REFUSED}",
    )


async def test_a_pod_without_address(scene: Scene) -> None:
    await scene.create_pod(node="")
    assert (await scene.refused(f"{POD}/proxy/"))[2] == "address not allowed"
    assert (await scene.refused(f"{CORE}/pods/a:b:c:d/proxy"))[2] == (
        'invalid service request "a:b:c:d"'
    )


@pytest.mark.parametrize(
    ("name", "address"),
    [("hollow", "172.18.0.0:10250"), ("hollow:9100", "172.18.0.0:9100")],
)
async def test_nodes_by_proxy(scene: Scene, name: str, address: str) -> None:
    path = f"/api/v1/nodes/{name}/proxy/metrics"
    assert (await scene.refused(path))[2] == f"{NOT_REACHED} {address}: {REFUSED}"


async def test_services_by_proxy(scene: Scene) -> None:
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80, "name": "http"}]}}
    await scene.secured.create(f"{CORE}/services", service)
    web = f"{CORE}/services/web"
    none = (503, "ServiceUnavailable", 'no endpoints available for service "web"')
    assert await scene.refused(f"{web}/proxy/") == none
    assert (await scene.refused(f"{web}:admin/proxy/"))[2] == (
        'no service port "admin" found for service "web"'
    )
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    endpoints = {
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.64.0.8"], "conditions": {"ready": False}},
            {"addresses": ["10.64.0.9"], "conditions": {"ready": True}},
        ],
        "ports": [{"name": "http", "port": 8080}],
    }
    await scene.secured.create(slices, endpoints)
    for name in ("web", "web:http", "web:80", "http:web:http"):
        said = await scene.refused(f"{CORE}/services/{name}/proxy/a", method="PUT")
        assert said == (503, "ServiceUnavailable", f"{NOT_REACHED} 10.64.0.9:8080: {REFUSED}")
