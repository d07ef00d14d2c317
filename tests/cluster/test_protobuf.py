"""kubectl's protobuf bodies, read as the JSON they stand for."""

from typing import Any

import pytest

from berth.cluster import protobuf
from berth.cluster.errors import StatusError
from tests.cluster.serving import Serving, pod

PROTOBUF = {"content_type": protobuf.MEDIA_TYPE}

CREATE_NAMESPACE = (
    b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x1c"
    b'\n\x14\n\x04demo\x12\0\x1a\0"\0*\x002\x008\0B\0\x12\0\x1a\x02\n\0\x1a\0"\0'
)
"""What kubectl 1.32 sends for ``kubectl create ns demo``, byte for byte."""


def field(number: int, value: int | bytes | str) -> bytes:
    """Encode one field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & ((1 << 64) - 1))
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def body(api_version: str, kind: str, message: bytes) -> bytes:
    envelope = field(1, field(1, api_version) + field(2, kind)) + field(2, message)
    return protobuf.MAGIC + envelope


METADATA = field(1, field(1, "x") + field(11, field(1, "app") + field(2, "web")))


@pytest.mark.parametrize(
    ("content", "model", "want"),
    [
        pytest.param(
            CREATE_NAMESPACE,
            "V1Namespace",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "demo"},
                "spec": {},
                "status": {},
            },
            id="kubectl create ns",
        ),
        pytest.param(
            body("v1", "Secret", field(2, field(1, "a") + field(2, b"\xff\0")) + field(3, "t")),
            "V1Secret",
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "/wA="}, "type": "t"},
            id="bytes become base64",
        ),
        pytest.param(
            body(
                "authorization.k8s.io/v1",
                "SelfSubjectAccessReview",
                field(2, field(1, field(2, "list") + field(5, "pods"))),
            ),
            "V1SelfSubjectAccessReview",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}},
            },
            id="kubectl auth can-i list pods",
        ),
        pytest.param(
            body("scheduling.k8s.io/v1", "PriorityClass", METADATA + field(2, -7) + field(3, 1)),
            "V1PriorityClass",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "x", "labels": {"app": "web"}},
                "value": -7,
                "globalDefault": True,
            },
            id="numbers can be negative",
        ),
        pytest.param(
            body(
                "v1",
                "Service",
                field(
                    2,
                    field(1, field(3, 80) + field(4, field(1, 0) + field(2, 8080)) + field(5, 0))
                    + field(1, field(3, 81) + field(4, field(1, 1) + field(3, "web"))),
                ),
            ),
            "V1Service",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "spec": {
                    "ports": [
                        {"port": 80, "targetPort": 8080},
                        {"port": 81, "targetPort": "web"},
                    ]
                },
            },
            id="ports by number and by name",
        ),
        pytest.param(
            body(
                "apps/v1",
                "Deployment",
                field(
                    2,
                    field(1, 0)
                    + field(5, 0)
                    + field(
                        3,
                        field(
                            2,
                            field(2, field(8, field(2, field(1, "cpu") + field(2, field(1, "1"))))),
                        ),
                    ),
                ),
            ),
            "V1Deployment",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "spec": {
                    "replicas": 0,
                    "template": {
                        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
                    },
                },
            },
            id="quantities, and a zero that is meant",
        ),
    ],
)
def test_decode(content: bytes, model: str, want: Any) -> None:
    assert protobuf.decode(content, model) == want


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b"{}", 400, id="JSON"),
        pytest.param(CREATE_NAMESPACE[:-3], 400, id="cut short"),
        pytest.param(protobuf.MAGIC + b"\x0b", 400, id="a wire type that is not used"),
        pytest.param(protobuf.MAGIC + b"\xff" * 20, 400, id="a number without end"),
        pytest.param(body("v1", "Namespace", field(1, 3)), 400, id="a number for an object"),
        pytest.param(body("v1", "Namespace", field(9, "x")), 415, id="a field nobody listed"),
        pytest.param(
            body("v1", "Namespace", field(1, field(13, "x"))), 415, id="a field not read here"
        ),
    ],
)
def test_bodies_that_cannot_be_read(content: bytes, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        protobuf.decode(content, "V1Namespace")
    assert caught.value.code == code


def test_what_is_not_read_is_named() -> None:
    content = body("v1", "Pod", field(2, field(18, b"")))
    with pytest.raises(StatusError, match=r"^field 2 of v1\.Pod is not read from protobuf"):
        protobuf.decode(content, "V1Pod")


async def test_kubectl_creates_a_namespace() -> None:
    serving = Serving()
    code, answer = await serving.request("POST", "/api/v1/namespaces", CREATE_NAMESPACE, **PROTOBUF)
    assert (code, answer["metadata"]["name"]) == (201, "demo")


async def test_kubectl_drain_deletes_without_grace() -> None:
    serving = Serving()
    path = "/api/v1/namespaces/default/pods/p"
    await serving.post("/api/v1/namespaces/default/pods", pod("p"))
    await serving.post(f"{path}/binding", {"target": {"name": "n"}})
    options = body("v1", "DeleteOptions", field(1, 0))
    assert (await serving.request("DELETE", path, options, **PROTOBUF))[0] == 200
    assert (await serving.request("GET", path))[0] == 404
