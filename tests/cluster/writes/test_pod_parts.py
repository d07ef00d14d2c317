"""``pods/ephemeralcontainers`` and ``pods/resize``: what may change of a pod, and what may not."""

from typing import Any

import pytest

from berth.cluster.resources import Object
from tests.cluster.access.secured import Secured

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = [("content-type", "application/strategic-merge-patch+json")]
DEBUGGER = {"name": "debugger", "image": "busybox", "targetContainerName": "c"}


class Scene:
    """A pod with requests and limits, the same for cpu and half for memory."""

    def __init__(self) -> None:
        self.secured = Secured()

    async def create(self) -> None:
        resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
        containers = [{"name": "c", "image": "nginx", "resources": resources}]
        spec = {"containers": containers, "nodeName": "n"}
        await self.secured.create(PODS, {"metadata": {"name": "p"}, "spec": spec})

    async def read(self) -> Any:
        return (await self.secured.ask("GET", f"{PODS}/p"))[1]

    async def patch(self, part: str, spec: Object, **metadata: Any) -> tuple[int, Any]:
        body = {"spec": spec, **({"metadata": metadata} if metadata else {})}
        return await self.secured.ask("PATCH", f"{PODS}/p/{part}", body, headers=STRATEGIC)

    async def refusal(self, part: str, spec: Object) -> str:
        code, status = await self.patch(part, spec)
        assert code == 422, status
        return str(status["message"]).removeprefix('Pod "p" is invalid: ')


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.create()
    return scene


def ephemeral(*containers: Object) -> Object:
    return {"ephemeralContainers": list(containers)}


def resized(**resources: Any) -> Object:
    return {"containers": [{"name": "c", "resources": resources}]}


async def test_a_debugger_is_added(scene: Scene) -> None:
    code, pod = await scene.patch("ephemeralcontainers", ephemeral(DEBUGGER))
    (container,) = pod["spec"]["ephemeralContainers"]
    assert (code, container["imagePullPolicy"], container["name"]) == (200, "Always", "debugger")
    assert pod["metadata"]["generation"] == 2
    code, pod = await scene.patch("ephemeralcontainers", ephemeral({**DEBUGGER, "name": "second"}))
    names = [
        ephemeral_container["name"] for ephemeral_container in pod["spec"]["ephemeralContainers"]
    ]
    assert (code, sorted(names)) == (200, ["debugger", "second"])
    code, same = await scene.secured.ask("GET", f"{PODS}/p/ephemeralcontainers")
    assert (code, same) == (200, pod)


async def test_nothing_else_changes(scene: Scene) -> None:
    spec = {**ephemeral(DEBUGGER), "containers": [{"name": "c", "image": "other"}]}
    _, pod = await scene.patch("ephemeralcontainers", spec, labels={"a": "b"})
    assert pod["spec"]["containers"][0]["image"] == "nginx"
    assert "a" not in pod["metadata"].get("labels", {})


@pytest.mark.parametrize(
    ("container", "why"),
    [
        pytest.param(
            {**DEBUGGER, "name": "c", "targetContainerName": ""},
            'spec.ephemeralContainers[0].name: Duplicate value: "c"',
            id="the name of another container",
        ),
        pytest.param(
            {**DEBUGGER, "targetContainerName": "x"},
            'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
            id="a target that is none",
        ),
        pytest.param(
            {**DEBUGGER, "ports": [{"containerPort": 80}]},
            "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral "
            "Container",
            id="ports",
        ),
        pytest.param(
            {**DEBUGGER, "resources": {"requests": {"cpu": "1"}}},
            "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral "
            "Container",
            id="resources",
        ),
        pytest.param(
            {"name": "debugger"},
            "spec.ephemeralContainers[0].image: Required value",
            id="no image",
        ),
    ],
)
async def test_ephemeral_containers_that_cannot_be(
    scene: Scene, container: Object, why: str
) -> None:
    assert await scene.refusal("ephemeralcontainers", ephemeral(container)) == why


async def test_ephemeral_containers_stay_as_they_are(scene: Scene) -> None:
    await scene.patch("ephemeralcontainers", ephemeral(DEBUGGER))
    changed = await scene.refusal("ephemeralcontainers", ephemeral({**DEBUGGER, "image": "x"}))
    assert changed == (
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debugger" may not be '
        "changed\n"
    )
    pod = await scene.read()
    pod["spec"].pop("ephemeralContainers")
    code, status = await scene.secured.ask("PUT", f"{PODS}/p/ephemeralcontainers", pod)
    assert code == 422
    assert status["message"].endswith("may not be removed\n")


async def test_they_are_not_created_with_the_pod(scene: Scene) -> None:
    spec = {"containers": [{"name": "c", "image": "nginx"}], **ephemeral(DEBUGGER)}
    code, status = await scene.secured.ask("POST", PODS, {"metadata": {"name": "q"}, "spec": spec})
    assert (code, status["message"]) == (
        422,
        'Pod "q" is invalid: spec.ephemeralContainers: Forbidden: cannot be set on create',
    )


async def test_a_resize(scene: Scene) -> None:
    code, pod = await scene.patch("resize", resized(requests={"cpu": "2"}, limits={"cpu": "3"}))
    assert (code, pod["metadata"]["generation"]) == (200, 2)
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi"},
        "limits": {"cpu": "3", "memory": "2Gi"},
    }


async def test_a_resize_by_the_main_resource_is_refused(scene: Scene) -> None:
    code, status = await scene.patch("", resized(requests={"cpu": "2"}))
    assert code == 422
    assert "pod updates may not change fields other than" in status["message"]


async def test_a_resize_changes_nothing_else(scene: Scene) -> None:
    spec = {"containers": [{"name": "c", "image": "other"}], "priority": 7}
    before = await scene.read()
    code, pod = await scene.patch("resize", spec, labels={"a": "b"})
    *_, entry = pod["metadata"].pop("managedFields")
    for each in (before, pod):
        each["metadata"].pop("managedFields", None)
        each["metadata"].pop("resourceVersion")
    assert (code, pod) == (200, before)
    # The client has spoken of it, all the same.
    assert entry["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"c"}'] == {"f:image": {}}


async def test_defaults_of_limits_are_told_of_at_creation_only(scene: Scene) -> None:
    limits = {"limits": [{"type": "Container", "default": {"cpu": "4"}}]}
    await scene.secured.create(
        "/api/v1/namespaces/default/limitranges", {"metadata": {"name": "l"}, "spec": limits}
    )
    code, pod = await scene.patch("resize", resized(requests={"cpu": "2"}))
    assert (code, pod["spec"]["containers"][0]["resources"]["limits"]["cpu"]) == (200, "4")
    assert "annotations" not in pod["metadata"]


async def test_a_status_speaks_of_claims_of_the_pod(scene: Scene) -> None:
    code, status = await scene.secured.ask(
        "PATCH",
        f"{PODS}/p/status",
        {"status": {"resourceClaimStatuses": [{"name": "other"}]}},
        headers=STRATEGIC,
    )
    assert (code, status["message"]) == (
        422,
        'Pod "p" is invalid: status.resourceClaimStatuses[0].name: Invalid value: "other": '
        "must match the name of an entry in `spec.resourceClaims`",
    )


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        pytest.param(
            {"limits": {"memory": None}},
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
            id="a limit removed",
        ),
        pytest.param(
            {"requests": {"cpu": None}},
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            id="a request removed",
        ),
        pytest.param(
            {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
            "spec: Forbidden: only cpu and memory resources are mutable",
            id="a device",
        ),
        pytest.param(
            {"requests": {"memory": "2Gi"}, "limits": {"cpu": "1"}},
            'spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of '
            "resizing",
            id="another class of service",
        ),
    ],
)
async def test_a_resize_that_cannot_be(scene: Scene, resources: Object, why: str) -> None:
    assert await scene.refusal("resize", resized(**resources)) == why


async def test_a_kubelet_that_does_not_resize(scene: Scene) -> None:
    pod = await scene.read()
    running = {"running": {"startedAt": "2023-11-14T22:13:10Z"}}
    container = {"name": "c", "image": "", "imageID": "", "ready": True, "restartCount": 0}
    pod["status"] |= {"phase": "Running", "containerStatuses": [{**container, "state": running}]}
    assert (await scene.secured.ask("PUT", f"{PODS}/p/status", pod))[0] == 200
    assert await scene.refusal("resize", resized(requests={"cpu": "2"})) == (
        "spec: Forbidden: Pod running on node without support for resize"
    )
