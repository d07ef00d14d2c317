"""What a request may say at most: sizes, depths, numbers. No answer is a 500."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.errors import LONGEST_CAUSE, MOST_CAUSES, invalid
from berth.kube.documents import DEPTH_LIMIT
from berth.kube.field_errors import FieldError
from tests.cluster.serving import PODS as PODS_TYPE
from tests.cluster.serving import Serving, pod, status
from tests.kube.test_documents import LAUGHS

PODS = "/api/v1/namespaces/default/pods"
JSON_PATCH = {"content_type": "application/json-patch+json"}
DIGITS = "9" * 5_000


@pytest.fixture
def serving() -> Serving:
    return Serving()


def nested(levels: int) -> bytes:
    """A pod with so many objects inside each other, its own included."""
    inside = b'{"a":' * (levels - 1) + b"1" + b"}" * (levels - 1)
    return msgspec.json.encode(pod("p"))[:-1] + b',"x":' + inside + b"}"


async def test_the_depth_of_a_body(serving: Serving) -> None:
    said = (
        "the object provided is unrecognized: exceeded max depth: "
        f"it is nested deeper than {DEPTH_LIMIT} levels"
    )
    for levels in (DEPTH_LIMIT + 1, 984, 100_000):
        want = status(400, "BadRequest", said)
        assert await serving.request("POST", PODS, nested(levels)) == want
    code, _ = await serving.request("POST", PODS, nested(DEPTH_LIMIT))
    assert code == 201


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        pytest.param(b"apiVersion: v1", "61706956657273696f6e3a207631", id="short"),
        pytest.param(b"a" * 31, f"{'61' * 30} ...", id="long"),
        pytest.param(b"{'a': 1}", "{'a': 1}", id="nearly JSON"),
        pytest.param(b"", "<empty>", id="nothing"),
    ],
)
async def test_a_body_that_is_no_json(serving: Serving, body: bytes, shown: str) -> None:
    headers = {"content_type": "application/json"}
    code, answer = await serving.request("POST", PODS, body, **headers)
    said, _, rest = answer["message"].partition("; json parse error: ")
    assert (code, said) == (
        400,
        "the object provided is unrecognized (must be of type Pod): couldn't get version/kind",
    )
    assert rest.endswith(f" ({shown})")


async def test_a_depth_that_a_patch_makes(serving: Serving) -> None:
    await serving.pods("p")
    operations = [{"op": "add", "path": "/x", "value": {}}] + [
        {"op": "copy", "from": "/x", "path": "/x" * depth} for depth in range(2, 2 * DEPTH_LIMIT)
    ]
    code, answer = await serving.request("PATCH", f"{PODS}/p", operations, **JSON_PATCH)
    assert (code, answer["reason"]) == (422, "Invalid")
    assert (await serving.get(f"{PODS}/p"))["spec"]["containers"]


async def test_too_many_operations(serving: Serving) -> None:
    await serving.pods("p")
    test = {"op": "test", "path": "/kind", "value": "Pod"}
    code, answer = await serving.request("PATCH", f"{PODS}/p", [test] * 10_001, **JSON_PATCH)
    assert (code, answer["message"]) == (
        413,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
        "got 10001",
    )


@pytest.mark.parametrize("size", [100, 10_000])
async def test_aliases_do_not_grow(serving: Serving, size: int) -> None:
    body = LAUGHS.encode().ljust(size)  # small ones and large ones are read in different threads
    code, answer = await serving.request("POST", PODS, body, content_type="application/yaml")
    want = "error converting YAML to JSON: yaml: document contains excessive aliasing"
    assert (code, answer["message"]) == (400, want)


async def test_long_yaml(serving: Serving) -> None:
    body = msgspec.json.encode(pod("p", annotations={f"k{n}": "v" for n in range(1_000)}))
    code, _ = await serving.request("POST", PODS, body, content_type="application/yaml")
    assert code == 201


@pytest.mark.parametrize(
    ("method", "query"),
    [
        pytest.param("GET", f"limit={DIGITS}", id="limit"),
        pytest.param("GET", "limit=9223372036854775808", id="a limit of 65 bits"),
        pytest.param("GET", f"resourceVersion={DIGITS}", id="resourceVersion"),
        pytest.param("GET", f"watch=1&timeoutSeconds={DIGITS}", id="timeoutSeconds"),
        pytest.param("GET", f"continue={DIGITS}", id="continue"),
        pytest.param("GET", "continue=%ff%00%C3%BC", id="continue in no alphabet"),
        pytest.param("GET", "&".join(["a=1"] * 1_000), id="many parameters"),
        pytest.param("DELETE", f"gracePeriodSeconds={DIGITS}", id="gracePeriodSeconds"),
        pytest.param("DELETE", f"dryRun={DIGITS}", id="dryRun"),
        pytest.param("POST", f"fieldValidation={DIGITS}", id="fieldValidation"),
    ],
)
async def test_parameters(serving: Serving, method: str, query: str) -> None:
    body = pod("p") if method == "POST" else None
    code, answer = await serving.request(method, f"{PODS}?{query}", body)
    assert (code, answer["reason"]) in ((400, "BadRequest"), (422, "Invalid"))
    assert len(answer["message"]) < 400


async def test_a_propagation_policy_of_any_length(serving: Serving) -> None:
    code, answer = await serving.request("DELETE", f"{PODS}?propagationPolicy={DIGITS}")
    assert (code, answer["reason"]) == (422, "Invalid")
    assert len(answer["message"]) < 2_000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"gracePeriodSeconds":' + b"9" * 30 + b"}", id="a grace of 30 digits"),
        pytest.param(b'{"gracePeriodSeconds":' + b"9" * 5_000 + b"}", id="of 5,000"),
        pytest.param(b'{"gracePeriodSeconds":true}', id="yes"),
        pytest.param(b'{"preconditions":[]}' * 2, id="two values"),
    ],
)
async def test_delete_options(serving: Serving, body: bytes) -> None:
    await serving.pods("p")
    code, answer = await serving.request("DELETE", f"{PODS}/p", body)
    assert (code, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("seconds", [2**40, 2**63 - 1])
async def test_a_grace_beyond_the_calendar(serving: Serving, seconds: int) -> None:
    await serving.pods("p")
    await serving.post(f"{PODS}/p/binding", {"target": {"name": "n"}})
    code, answer = await serving.request("DELETE", f"{PODS}/p", {"gracePeriodSeconds": seconds})
    assert code == 200
    assert answer["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"
    code, _ = await serving.request("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})
    assert code == 200


async def test_numbers_of_more_than_64_bits(serving: Serving) -> None:
    body = pod("p")
    body["spec"]["priority"] = 2**63
    code, answer = await serving.request("POST", PODS, body)
    assert (code, answer["message"]) == (
        400,
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number '
        "9223372036854775808 into Go struct field PodSpec.spec.priority of type int32",
    )


async def test_repeated_fields_with_long_numbers(serving: Serving) -> None:
    body = msgspec.json.encode(pod("p")).replace(b'"name":"c"', b'"name":"c","a":1.5,"a":12')
    code, _ = await serving.request("POST", f"{PODS}?fieldValidation=Strict", body)
    assert code == 400


@pytest.mark.parametrize("length", [b"9" * 5_000, b"-1", b"x", b"3145729"])
async def test_the_length_that_a_body_claims(serving: Serving, length: bytes) -> None:
    headers = {"content-type": "application/json", "content-length": length.decode()}
    request = serving.http.build_request("POST", PODS, headers=headers, content=b"")
    request.headers["content-length"] = length.decode()
    response = await serving.http.send(request)
    assert response.status_code in (400, 413)


def test_what_is_wrong_in_many_places() -> None:
    """The answer stays small, and says how much it leaves out."""
    found = [FieldError("x" * 10**6, "FieldValueInvalid", "y" * 10**6)] * 10_000
    refused = invalid(PODS_TYPE, "p", found).status()
    assert len(refused["details"]["causes"]) == MOST_CAUSES
    assert refused["message"].endswith(", and 9900 more]")
    assert len(msgspec.json.encode(refused)) < 6 * MOST_CAUSES * LONGEST_CAUSE


SHARED = Serving()

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
parts = st.sampled_from(["metadata", "spec", "status", "kind", "apiVersion", "x", "$patch"])


@given(
    st.dictionaries(parts, anything) | anything,
    st.sampled_from(
        [
            ("POST", PODS, "application/json"),
            ("POST", "/apis/apps/v1/namespaces/default/deployments", "application/json"),
            ("POST", f"{PODS}/p/binding", "application/json"),
            ("PUT", f"{PODS}/p", "application/json"),
            ("PUT", f"{PODS}/p/status", "application/json"),
            ("PUT", "/api/v1/namespaces/default/finalize", "application/json"),
            ("PATCH", f"{PODS}/p", "application/merge-patch+json"),
            ("PATCH", f"{PODS}/p", "application/strategic-merge-patch+json"),
            ("PATCH", f"{PODS}/p", "application/json-patch+json"),
            ("DELETE", f"{PODS}/p", "application/json"),
        ]
    ),
)
async def test_any_value_gets_an_answer(value: Any, to: tuple[str, str, str]) -> None:
    serving = SHARED
    await serving.request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
    await serving.request("POST", PODS, pod("p"))
    method, path, content_type = to
    code, answer = await serving.request(
        method, path, msgspec.json.encode(value), content_type=content_type
    )
    # Patches that cannot be merged are errors of the server's in Kubernetes, too, and bindings that
    # name no node.
    assert code < 500 or re.search("patch type|^\\[?target", answer["message"]), answer


@given(
    st.sampled_from(
        [
            "limit", "continue", "resourceVersion", "resourceVersionMatch", "dryRun",
            "sendInitialEvents", "timeoutSeconds", "labelSelector", "fieldSelector", "pretty",
            "fieldValidation", "includeObject", "gracePeriodSeconds", "propagationPolicy",
            "orphanDependents", "allowWatchBookmarks", "fieldManager",
        ]
    ),
    st.text(max_size=20) | st.integers().map(str),
    st.sampled_from(["GET", "POST", "DELETE"]),
)  # fmt: skip
async def test_any_parameter_gets_an_answer(name: str, value: str, method: str) -> None:
    body = msgspec.json.encode(pod("p")) if method == "POST" else None
    response = await SHARED.http.request(
        method,
        PODS,
        params={name: value},
        content=body,
        headers={"content-type": "application/json"},
    )
    assert response.status_code < 500 or response.json()["reason"] == "Timeout"  # yet to come


@given(st.text(max_size=20), st.text(max_size=20), st.sampled_from(["GET", "PUT", "OPTIONS"]))
async def test_any_path_gets_an_answer(namespace: str, name: str, method: str) -> None:
    scope = {
        "type": "http",
        "method": method,
        "path": f"/api/v1/namespaces/{namespace}/pods/{name}",
        "query_string": b"",
        "headers": [(b"accept", name.encode()), (b"content-type", namespace.encode())],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await SHARED.server.app(scope, receive, send)
    assert sent[0]["status"] < 500, sent
