"""Request bodies: formats, and fields that nobody knows."""

from typing import Any

import msgspec
import pytest

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


async def test_strict_validation_of_patches(serving: Serving) -> None:
    await serving.pods("p")
    code, answer = await serving.request(
        "PATCH",
        f"{PODS}/p?fieldValidation=Strict",
        {"spec": {"foo": 1}},
        content_type="application/merge-patch+json",
    )
    message = (
        'Pod "p" is invalid: patch: Invalid value: {"spec":{"foo":1}}: '
        'strict decoding error: unknown field "spec.foo"'
    )
    assert (code, answer["message"]) == (422, message)


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
async def test_unknown_fields_are_kept_otherwise(
    serving: Serving, validation: str, warnings: list[str]
) -> None:
    path = f"{PODS}?fieldValidation={validation}"
    response = await serving.http.post(path, json=odd("p"))
    assert response.status_code == 201
    assert response.headers.get_list("warning") == warnings
    assert (await serving.get(f"{PODS}/p"))["spec"]["foo"] == 1


async def test_an_unknown_validation(serving: Serving) -> None:
    code, _ = await serving.request("POST", f"{PODS}?fieldValidation=Sloppy", pod("p"))
    assert code == 400
