"""kubectl's protobuf bodies, read as the JSON they stand for."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.schemas import builtin, protobuf
from berth.cluster.schemas.types import ListOf, MapOf, Scalar, Schema, Type
from berth.kube.documents import DEPTH_LIMIT
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


def kind(group: str, name: str) -> Schema:
    found = builtin.schema_of(group, "v1", name)
    assert found is not None
    return found


METADATA = field(1, field(1, "x") + field(11, field(1, "app") + field(2, "web")))


@pytest.mark.parametrize(
    ("content", "kind_name", "want"),
    [
        pytest.param(
            CREATE_NAMESPACE,
            "Namespace",
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
            "Secret",
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "/wA="}, "type": "t"},
            id="bytes become base64",
        ),
        pytest.param(
            body(
                "authorization.k8s.io/v1",
                "SelfSubjectAccessReview",
                field(2, field(1, field(2, "list") + field(5, "pods"))),
            ),
            "SelfSubjectAccessReview",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}},
            },
            id="kubectl auth can-i list pods",
        ),
        pytest.param(
            body("scheduling.k8s.io/v1", "PriorityClass", METADATA + field(2, -7) + field(3, 1)),
            "PriorityClass",
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
            "Service",
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
            body("v1", "ServiceAccount", METADATA + field(4, 0)),
            "ServiceAccount",
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "x", "labels": {"app": "web"}},
                "automountServiceAccountToken": False,
            },
            id="false that somebody set",
        ),
        pytest.param(
            body("v1", "Pod", field(2, field(11, 0) + field(4, 0) + field(25, 0))),
            "Pod",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "spec": {"terminationGracePeriodSeconds": 0, "priority": 0},
            },
            id="zeros that somebody set, and one that says nothing",
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
            "Deployment",
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
def test_decode(content: bytes, kind_name: str, want: Any) -> None:
    group = want["apiVersion"].rpartition("/")[0]
    assert protobuf.decode(content, kind(group, kind_name)) == want


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{}", id="JSON"),
        pytest.param(CREATE_NAMESPACE[:-3], id="cut short"),
        pytest.param(protobuf.MAGIC + b"\x0b", id="a wire type that is not used"),
        pytest.param(protobuf.MAGIC + b"\xff" * 20, id="a number without end"),
        pytest.param(body("v1", "Namespace", field(1, 3)), id="a number for an object"),
    ],
)
def test_bodies_that_cannot_be_read(content: bytes) -> None:
    with pytest.raises(protobuf.ProtobufError):
        protobuf.decode(content, kind("", "Namespace"))


def test_unknown_numbers_are_skipped() -> None:
    content = body("v1", "Namespace", METADATA + field(99, "x"))
    decoded = protobuf.decode(content, kind("", "Namespace"))
    assert decoded["metadata"]["name"] == "x"


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


KINDS = [each for each in builtin.kinds() if "list" in each.verbs]
NUMBERS = {"int32": st.integers(-(2**31), 2**31 - 1), "int64": st.integers(-(2**63), 2**63 - 1)}
TEXTS = st.text(max_size=4)
JSON = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **NUMBERS,
    "boolean": st.booleans(),
    "bytes": st.sampled_from(["", "YQ==", "/wA="]),
    "number": st.floats(allow_nan=False),
    "string": TEXTS,
    "IntOrString": NUMBERS["int32"] | TEXTS,
    "MicroTime": st.sampled_from(
        [
            "2026-11-22T08:44:10.000001Z",
            "1969-12-31T23:59:59.500000Z",
            "0001-01-01T00:00:02.000000Z",
        ]
    ),
    "Quantity": st.sampled_from(["1", "100m", "2Gi"]),
    "Time": st.sampled_from(
        ["2026-11-22T08:44:10Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:02Z"]
    ),
    "FieldsV1": st.dictionaries(TEXTS, JSON, max_size=2),
    "JSON": JSON,
    "JSONSchemaPropsOrArray": st.just({"type": "string"}) | st.just([{"type": "string"}, {}]),
    "JSONSchemaPropsOrBool": st.booleans() | st.just({"type": "string"}),
    "JSONSchemaPropsOrStringArray": st.just(["a", "b"]) | st.just({"type": "string"}),
    "RawExtension": st.dictionaries(TEXTS, JSON, max_size=2),
}


def values(draw: st.DrawFn, each: Type, depth: int) -> Any:
    match each:
        case Scalar(name):
            return draw(SCALARS[name])
        case ListOf(item):
            return [values(draw, item, depth - 1) for _ in range(draw(st.integers(1, 2)))]
        case MapOf(item):
            keys = draw(st.lists(TEXTS, min_size=1, max_size=2, unique=True))
            return {key: values(draw, item, depth - 1) for key in keys}
        case Schema():
            return fields_of(draw, each, depth)


def fields_of(draw: st.DrawFn, schema: Schema, depth: int) -> Any:
    """Some fields; none that says nothing, for those protobuf does not tell from missing ones."""
    found = {}
    for name, each in schema.fields.items():
        if depth > 0 and each.number and draw(st.integers(0, 2)) == 0:
            value = values(draw, each.type, depth - 1)
            inlined_and_empty = len(each.number) > 1 and value in ({}, "", 0, False)
            if not inlined_and_empty and (value or not each.by_value):
                found[name] = value
    return found


@st.composite
def objects(draw: st.DrawFn) -> tuple[Schema, Any]:
    each = draw(st.sampled_from(KINDS))
    schema = builtin.schema_of(each.group, each.version, each.kind)
    assert schema is not None
    api_version = f"{each.group}/{each.version}" if each.group else each.version
    return schema, {
        "apiVersion": api_version,
        "kind": each.kind,
        **fields_of(draw, schema, 6),
    }


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(objects())
def test_what_is_written_is_read_again(one: tuple[Schema, Any]) -> None:
    schema, obj = one
    assert protobuf.decode(protobuf.encode(obj, schema), schema) == obj


def revision(depth: int) -> bytes:
    """A ControllerRevision whose data is nested so deeply."""
    raw = b'{"a":' * depth + b"1" + b"}" * depth
    return body("apps/v1", "ControllerRevision", METADATA + field(2, field(1, raw)) + field(3, 1))


def definition(depth: int) -> bytes:
    """A CustomResourceDefinition whose schema is nested so deeply, by ``not``."""
    [of_not] = builtin.schema(builtin.JSON_SCHEMA_PROPS).fields["not"].number
    props = b""
    for _ in range(depth):
        props = field(of_not, props)
    version = field(1, "v1") + field(4, field(1, props))
    [of_versions] = kind_of_versions().fields["versions"].number
    spec = field(1, "g") + field(of_versions, version)
    return body("apiextensions.k8s.io/v1", "CustomResourceDefinition", METADATA + field(2, spec))


def kind_of_versions() -> Schema:
    found = kind("apiextensions.k8s.io", "CustomResourceDefinition").fields["spec"].type
    assert isinstance(found, Schema)
    return found


@pytest.mark.parametrize("depth", [DEPTH_LIMIT, 100_000])
@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("/apis/apps/v1/namespaces/default/controllerrevisions", revision),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
    ],
)
async def test_bodies_that_are_too_deep(
    path: str, made: Callable[[int], bytes], depth: int
) -> None:
    serving = Serving(resources=RESOURCES)
    depth = min(depth, 2_000) if made is definition else depth
    code, answer = await serving.request("POST", path, made(depth), **PROTOBUF)
    assert (code, "exceeded max depth" in answer["message"]) == (400, True), answer
    code, _ = await serving.request("POST", path, made(DEPTH_LIMIT // 4), **PROTOBUF)
    assert code != 500
