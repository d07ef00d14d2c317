"""Request bodies: formats, and fields that nobody knows."""

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from berth.cluster.errors import StatusError
from berth.cluster.http.bodies import Bodies, Patch
from berth.cluster.http.negotiation import as_json
from berth.cluster.http.requests import BODY_LIMIT
from berth.cluster.kinds.builtin import find
from berth.cluster.options import FieldValidation
from tests.cluster.serving import Serving, pod, status

PODS = "/api/v1/namespaces/default/pods"
CANNOT = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '


@pytest.fixture
def serving() -> Serving:
    return Serving()


def odd(name: str) -> Any:
    body = pod(name)
    body["spec"]["foo"] = 1
    body["spec"]["containers"][0]["bar"] = 1
    return body


YAML_POD = b"""
metadata:
  name: p
  annotations: {when: 2026-11-20T13:06:10Z, number: "1"}
spec: {containers: [{name: c, image: pause}]}
"""


async def test_yaml(serving: Serving) -> None:
    code, answer = await serving.request("POST", PODS, YAML_POD, content_type="application/yaml")
    assert code == 201, answer
    assert answer["metadata"]["annotations"] == {"when": "2026-11-20T13:06:10Z", "number": "1"}


@pytest.mark.parametrize(
    ("body", "content_type", "code", "reason"),
    [
        pytest.param(b"{", "application/json", 400, "BadRequest", id="half an object"),
        pytest.param(b"", "application/json", 400, "BadRequest", id="nothing"),
        pytest.param(b"\xff", "application/json", 400, "BadRequest", id="not text"),
        pytest.param(b"[" * 100_000, "application/json", 400, "BadRequest", id="too deep"),
        pytest.param(b"[]", "application/json", 400, "BadRequest", id="not an object"),
        pytest.param(b"a: {", "application/yaml", 400, "BadRequest", id="half a YAML object"),
        pytest.param(b"x", "text/plain", 415, "UnsupportedMediaType", id="prose"),
        pytest.param(b"k8s\0", "application/cbor", 415, "UnsupportedMediaType", id="CBOR"),
    ],
)
async def test_bodies_that_cannot_be_read(
    serving: Serving, body: bytes, content_type: str, code: int, reason: str
) -> None:
    got, answer = await serving.request("POST", PODS, body, content_type=content_type)
    assert (got, answer["code"], answer["reason"]) == (code, code, reason)


async def test_strict_validation_refuses_unknown_fields(serving: Serving) -> None:
    message = CANNOT + 'unknown field "spec.containers[0].bar", unknown field "spec.foo"'
    want = status(400, "BadRequest", message)
    assert await serving.request("POST", f"{PODS}?fieldValidation=Strict", odd("p")) == want
    assert (await serving.request("GET", f"{PODS}/p"))[0] == 404


async def test_strict_validation_refuses_repeated_fields(serving: Serving) -> None:
    body = msgspec.json.encode(pod("p")).replace(b'"name":"c"', b'"name":"c","name":"d"')
    want = status(400, "BadRequest", CANNOT + 'duplicate field "spec.containers[0].name"')
    assert await serving.request("POST", f"{PODS}?fieldValidation=Strict", body) == want


@pytest.mark.parametrize("padding", [0, 8 * 1024])
async def test_repeated_fields_of_yaml_are_told_by_line(serving: Serving, padding: int) -> None:
    text = b"metadata:\n  name: p\nspec:\n  containers:\n  - name: c\n    image: i\n    name: d\n"
    text += b"#" * padding  # a long text is read elsewhere
    yaml = {"content-type": "application/yaml"}
    path = f"{PODS}?dryRun=All&fieldValidation"
    line = 'line 7: key "name" already set in map'
    refused = await serving.http.post(f"{path}=Strict", content=text, headers=yaml)
    why = f"{CANNOT}yaml: unmarshal errors:\n  {line}"
    assert (refused.status_code, refused.json()["message"]) == (400, why)
    warned = await serving.http.post(f"{path}=Warn", content=text, headers=yaml)
    escaped = line.replace('"', '\\"')
    assert (warned.status_code, warned.headers["warning"]) == (201, f'299 - "{escaped}"')
    ignored = await serving.http.post(f"{path}=Ignore", content=text, headers=yaml)
    assert "warning" not in ignored.headers
    await serving.server.stop()


MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.mark.parametrize(
    ("content_type", "shown", "spec", "why"),
    [
        pytest.param(
            STRATEGIC,
            '"map[spec:map[foo:1]]"',
            {"foo": 1},
            'strict decoding error: unknown field "spec.foo"',
            id="an unknown field, and the patch itself",
        ),
        pytest.param(
            MERGE,
            '"{',
            {"foo": 1},
            'strict decoding error: unknown field "spec.foo"',
            id="an unknown field, and what a merge patch makes",
        ),
        pytest.param(
            STRATEGIC,
            '"map[spec:map[nodeName:5]]"',
            {"nodeName": 5},
            "cannot convert int64 to string",
            id="a number for a text",
        ),
        pytest.param(
            STRATEGIC,
            '"map[spec:map[nodeSelector:[a <nil>]]]"',
            {"nodeSelector": ["a", None]},
            "cannot restore map from slice",
            id="a list for a map",
        ),
        pytest.param(
            STRATEGIC,
            '"map[spec:map[securityContext:true]]"',
            {"securityContext": True},
            "cannot restore struct from: bool",
            id="a truth value for an object",
        ),
        pytest.param(
            MERGE,
            '"{',
            {"nodeName": 5},
            "json: cannot unmarshal number into Go struct field "
            "PodSpec.spec.nodeName of type string",
            id="a number for a text in a merge patch",
        ),
    ],
)
async def test_strict_validation_of_patches(
    serving: Serving, content_type: str, shown: str, spec: Any, why: str
) -> None:
    await serving.pods("p")
    code, answer = await serving.request(
        "PATCH", f"{PODS}/p?fieldValidation=Strict", {"spec": spec}, content_type=content_type
    )
    assert (code, answer["reason"]) == (422, "Invalid")
    assert answer["message"].startswith(f' "" is invalid: patch: Invalid value: {shown}')
    assert answer["message"].endswith(f'": {why}')
    [cause] = answer["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("patch", "FieldValueInvalid")


@pytest.mark.parametrize(
    ("validation", "warnings"),
    [
        pytest.param(
            "Warn",
            [
                r'299 - "unknown field \"spec.containers[0].bar\""',
                r'299 - "unknown field \"spec.foo\""',
            ],
            id="warned",
        ),
        pytest.param(
            "",
            [
                r'299 - "unknown field \"spec.containers[0].bar\""',
                r'299 - "unknown field \"spec.foo\""',
            ],
            id="warned by default",
        ),
        pytest.param("Ignore", [], id="ignored"),
    ],
)
async def test_unknown_fields_are_dropped_otherwise(
    serving: Serving, validation: str, warnings: list[str]
) -> None:
    path = f"{PODS}?fieldValidation={validation}"
    response = await serving.http.post(path, json=odd("p"))
    assert response.status_code == 201
    assert response.headers.get_list("warning") == warnings
    spec = (await serving.get(f"{PODS}/p"))["spec"]
    assert "foo" not in spec
    assert spec["containers"] == [{"name": "c", "image": "pause", "resources": {}}]


async def test_patches_drop_unknown_fields(serving: Serving) -> None:
    await serving.pods("p")
    merge = {"content-type": "application/merge-patch+json"}
    patch = b'{"metadata":{"labels":{"a":"b"}},"spec":{"foo":1}}'
    response = await serving.http.patch(f"{PODS}/p", content=patch, headers=merge)
    assert (response.status_code, "foo" in response.json()["spec"]) == (200, False)
    assert response.headers["warning"] == r'299 - "unknown field \"spec.foo\""'


@pytest.mark.parametrize(
    ("query", "why"),
    [
        pytest.param(
            "fieldValidation=Sloppy",
            'fieldValidation: Unsupported value: "Sloppy": supported values: "", "Ignore", '
            '"Strict", "Warn"',
            id="an unknown validation",
        ),
        pytest.param(
            "dryRun=Some",
            'dryRun: Unsupported value: ["Some"]: supported values: "All"',
            id="an unknown dry run",
        ),
    ],
)
async def test_options_that_there_are_not(serving: Serving, query: str, why: str) -> None:
    code, answer = await serving.request("POST", f"{PODS}?{query}", pod("p"))
    assert (code, answer["message"]) == (422, f'CreateOptions.meta.k8s.io "" is invalid: {why}')


async def test_an_unknown_dry_run_in_the_body_of_a_deletion(serving: Serving) -> None:
    await serving.pods("p")
    code, answer = await serving.request("DELETE", f"{PODS}/p", {"dryRun": ["Some"]})
    why = 'dryRun: Unsupported value: ["Some"]: supported values: "All"'
    assert (code, answer["message"]) == (422, f'DeleteOptions.meta.k8s.io "" is invalid: {why}')


async def test_repeated_fields_are_warned_of_when_that_is_asked_for(serving: Serving) -> None:
    body = msgspec.json.encode(pod("p")).replace(b'"name":"c"', b'"name":"c","name":"d"')
    json = {"content-type": "application/json"}
    path = f"{PODS}?dryRun=All"
    asked = await serving.http.post(f"{path}&fieldValidation=Warn", content=body, headers=json)
    assert asked.headers["warning"] == r'299 - "duplicate field \"spec.containers[0].name\""'
    assert "warning" not in (await serving.http.post(path, content=body, headers=json)).headers


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore", ""])
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"containers": [{"env": [{"name": "A", "value": 1}]}]},
            "json: cannot unmarshal number into Go struct field "
            "EnvVar.spec.containers.env.value of type string",
            id="a number for a string",
        ),
        pytest.param(
            {"nodeName": {}, "foo": 1},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.nodeName of type "
            "string",
            id="beside an unknown field",
        ),
        pytest.param(
            "text",
            "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec",
            id="text for an object",
        ),
    ],
)
async def test_wrong_types_never_reach_the_store(
    serving: Serving, spec: Any, why: str, validation: str
) -> None:
    await serving.pods("p")
    want = status(400, "BadRequest", f'Pod in version "v1" cannot be handled as a Pod: {why}')
    query = f"fieldValidation={validation}"
    body = {"metadata": {"name": "q"}, "spec": spec}
    assert await serving.request("POST", f"{PODS}?{query}", body) == want
    patch = {"spec": spec}
    code, answer = await serving.request(
        "PATCH", f"{PODS}/p?{query}", patch, content_type="application/merge-patch+json"
    )
    assert (code, answer["message"].endswith(why)) == (422, True)
    assert serving.store.version == 2


NULLS = b"""
metadata: {name: p, labels: , annotations: {1: one}}
spec:
  nodeName: ~
  containers: [{name: c, image: pause, ports: null}]
status: null
"""


@pytest.mark.parametrize("content_type", ["application/yaml", "application/json"])
async def test_nulls_are_as_good_as_nothing(serving: Serving, content_type: str) -> None:
    body = NULLS if content_type.endswith("yaml") else as_json(NULLS, "application/yaml")
    code, answer = await serving.request("POST", PODS, body, content_type=content_type)
    assert code == 201, answer
    assert answer["metadata"]["annotations"] == {"1": "one"}
    assert "labels" not in answer["metadata"]
    assert answer["spec"] == {
        "containers": [{"name": "c", "image": "pause", "resources": {}}],
        "restartPolicy": "Always",
    }


async def test_a_null_is_unknown_under_an_unknown_name(serving: Serving) -> None:
    body = {**pod("p"), "foo": None}
    want = status(400, "BadRequest", CANNOT + 'unknown field "foo"')
    assert await serving.request("POST", f"{PODS}?fieldValidation=Strict", body) == want


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param(
            "merge-patch+json",
            {"spec": {"containers": [{"name": "c", "image": "x", "ports": None}]}},
            id="below a list",
        ),
        pytest.param(
            "json-patch+json",
            [
                {"op": "replace", "path": "/spec/containers/0/image", "value": "x"},
                {"op": "add", "path": "/spec/nodeName", "value": None},
            ],
            id="as a value",
        ),
        pytest.param(
            "strategic-merge-patch+json",
            {"spec": {"containers": [{"name": "c", "image": "x", "ports": None}]}},
            id="in an element that merges",
        ),
    ],
)
async def test_patches_leave_no_nulls(serving: Serving, kind: str, patch: Any) -> None:
    await serving.pods("p")
    code, answer = await serving.request(
        "PATCH", f"{PODS}/p", patch, content_type=f"application/{kind}"
    )
    assert (code, answer["spec"]) == (
        200,
        {
            "containers": [{"name": "c", "image": "x", "resources": {}}],
            "restartPolicy": "Always",
        },
    )


async def test_times_that_the_server_writes_as_null_stay(serving: Serving) -> None:
    await serving.pods("p")
    await serving.post(f"{PODS}/p/binding", {"target": {"name": "n"}})
    bound = await serving.get(f"{PODS}/p")
    assert bound["status"]["conditions"][0]["lastProbeTime"] is None
    assert await serving.request("PUT", f"{PODS}/p/status", bound) == (200, bound)
    assert serving.store.version == 3


@pytest.mark.parametrize(
    ("size", "code"),
    [pytest.param(BODY_LIMIT, 201, id="just"), pytest.param(BODY_LIMIT + 1, 413, id="too much")],
)
@pytest.mark.parametrize("says_its_length", [True, False])
async def test_the_size_of_a_body(
    serving: Serving, size: int, code: int, *, says_its_length: bool
) -> None:
    body = msgspec.json.encode(pod("p")).ljust(size)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, size, 2**20):
            yield body[start : start + 2**20]

    content = body if says_its_length else chunks()
    json = {"content-type": "application/json"}
    response = await serving.http.post(PODS, content=content, headers=json)
    assert response.status_code == code
    if code == 413:
        message = "Request entity too large: limit is 3145728"
        want = status(413, "RequestEntityTooLarge", message, {})
        assert (413, response.json()) == want


async def test_a_binding_may_be_protobuf(serving: Serving) -> None:
    await serving.pods("p")
    target = b"\x1a\x01n"  # name: n
    message = b"\x0a\x00" + b"\x12" + bytes([len(target)]) + target
    body = b"k8s\0" + b"\x12" + bytes([len(message)]) + message
    protobuf = "application/vnd.kubernetes.protobuf"
    code, _ = await serving.request("POST", f"{PODS}/p/binding", body, content_type=protobuf)
    assert code == 201
    assert (await serving.request("GET", f"{PODS}/p"))[1]["spec"]["nodeName"] == "n"


CONFIG_MAPS = find("", "v1", "configmaps")
MAKES = {"metadata": {"labels": {"b": "<1>", "a": 1}, "annotations": None}, "z": [{"d": 1, "c": 2}]}
"""What a patch does to a ConfigMap."""


@pytest.mark.parametrize(
    ("content_type", "patch", "shown"),
    [
        pytest.param(
            MERGE,
            MAKES,
            '{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":'
            '{"labels":{"a":1,"b":"\\u003c1\\u003e"},"name":"m","namespace":"default"},'
            '"z":[{"c":2,"d":1}]}',
            id="objects that a merge patch touches are sorted, and so is what is new",
        ),
        pytest.param(
            "application/json-patch+json",
            [{"op": "add", "path": "/metadata/labels", "value": {"b": 1, "a": "1"}}],
            '{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":'
            '{"labels":{"b":1,"a":"1"},"name":"m","namespace":"default"}}',
            id="a JSON patch sorts what is on its way, and leaves the new value as it is",
        ),
        pytest.param(
            "application/json-patch+json",
            [{"op": "add", "path": "/kind", "value": "Bogus"}],
            '{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"Bogus","metadata":'
            '{"name":"m","namespace":"default"}}',
            id="the rest is as Go writes it",
        ),
    ],
)
def test_what_is_told_of_a_patch(content_type: str, patch: Any, shown: str) -> None:
    current = {
        "metadata": {"namespace": "default", "name": "m"},
        "data": {"b": "2", "a": "1"},
        "kind": "ConfigMap",
        "apiVersion": "v1",
    }
    bodies = Bodies(CONFIG_MAPS, FieldValidation.WARN, [])
    with pytest.raises(StatusError) as refused:
        bodies.patched(Patch(content_type, patch), current)
    want = json.dumps(shown)
    assert str(refused.value).startswith(f' "" is invalid: patch: Invalid value: {want}: ')


def test_a_strategic_patch_is_told_without_what_is_done_already() -> None:
    current = {"metadata": {"name": "m", "labels": {"a": "1"}}, "data": {"a": "1"}}
    patch = {
        "data": {"$patch": "replace", "a": 1},
        "binaryData": {"$retainKeys": ["b"], "b": "MQ=="},
    }
    bodies = Bodies(CONFIG_MAPS, FieldValidation.WARN, [])
    with pytest.raises(StatusError) as refused:
        bodies.patched(Patch(STRATEGIC, patch), current)
    assert str(refused.value) == (
        ' "" is invalid: patch: Invalid value: '
        '"map[binaryData:map[$retainKeys:[b] b:MQ==] data:map[a:1]]": '
        "cannot convert int64 to string"
    )
