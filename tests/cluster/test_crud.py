"""Creating, reading, changing: identity, concurrency, and what is said when it is refused."""

from typing import Any

import pytest

from berth.cluster import errors
from tests.cluster.serving import NOW_TEXT, Serving, pod, status, unmanaged

PODS = "/api/v1/namespaces/default/pods"
WEB = "/apis/apps/v1/namespaces/default/deployments"
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@pytest.fixture
def serving() -> Serving:
    return Serving()


async def test_a_new_object_gets_its_identity(serving: Serving) -> None:
    body = {
        **pod("p", uid="mine", creationTimestamp=None, generation=7, managedFields=[{}]),
        "status": {"phase": "Running"},
    }
    created = await serving.post(PODS, body)
    uid = created["metadata"].pop("uid")
    assert len(uid) == 36
    assert unmanaged(created) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "creationTimestamp": NOW_TEXT,
            "generation": 1,
            "resourceVersion": "2",
        },
        "spec": {
            "containers": [{"name": "c", "image": "pause", "resources": {}}],
            "restartPolicy": "Always",
        },
        "status": {"phase": "Pending"},
    }
    assert (await serving.get(f"{PODS}/p"))["metadata"]["uid"] == uid


async def test_names_are_generated(serving: Serving) -> None:
    body = {**pod("x"), "metadata": {"generateName": "web-"}}
    names = {(await serving.post(PODS, body))["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(
        len(name) == 9 and set(name[4:]) <= set("bcdfghjklmnpqrstvwxz2456789") for name in names
    )


async def test_a_node_comes_with_its_status(serving: Serving) -> None:
    body = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    made = await serving.post("/api/v1/nodes", body)
    assert made["status"]["capacity"] == {"cpu": "4"}
    assert made["status"]["nodeInfo"]["kubeletVersion"] == ""


@pytest.mark.parametrize(
    ("path", "body", "want"),
    [
        pytest.param(
            PODS,
            pod("p"),
            status(409, "AlreadyExists", 'pods "p" already exists', {"name": "p", "kind": "pods"}),
            id="the name is taken",
        ),
        pytest.param(
            PODS,
            {"metadata": {"name": "q"}},
            status(
                422,
                "Invalid",
                'Pod "q" is invalid: spec.containers: Required value',
                {
                    "name": "q",
                    "kind": "Pod",
                    "causes": [
                        {
                            "reason": "FieldValueRequired",
                            "message": "Required value",
                            "field": "spec.containers",
                        }
                    ],
                },
            ),
            id="validation refuses it",
        ),
        pytest.param(
            PODS,
            {**pod(""), "metadata": {}},
            status(
                422,
                "Invalid",
                'Pod "" is invalid: metadata.name: Required value: name or generateName is '
                "required",
                {
                    "kind": "Pod",
                    "causes": [
                        {
                            "reason": "FieldValueRequired",
                            "message": "Required value: name or generateName is required",
                            "field": "metadata.name",
                        }
                    ],
                },
            ),
            id="no name",
        ),
        pytest.param(
            PODS,
            pod("q", namespace="other"),
            status(
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
            ),
            id="another namespace",
        ),
        pytest.param(
            PODS,
            pod("q", resourceVersion="1"),
            status(500, "", "resourceVersion should not be set on objects to be created"),
            id="a version before there is one",
        ),
        pytest.param(
            PODS,
            {**pod("q"), "apiVersion": "v2"},
            status(
                400,
                "BadRequest",
                'Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered for '
                'version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"',
            ),
            id="another version",
        ),
        pytest.param(
            PODS,
            {**pod("q"), "kind": "Node"},
            status(
                400,
                "BadRequest",
                'Node in version "v1" cannot be handled as a Pod: converting (v1.Node) to '
                "(core.Pod): unknown conversion",
            ),
            id="another kind",
        ),
        pytest.param(
            PODS,
            {"metadata": {"name": 1}},
            status(
                400,
                "BadRequest",
                'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number '
                "into Go struct field ObjectMeta.metadata.name of type string",
            ),
            id="a name that is no text",
        ),
        pytest.param(
            "/api/v1/pods",
            pod("q"),
            status(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
                {},
            ),
            id="a pod in no namespace",
        ),
    ],
)
async def test_creates_that_are_refused(serving: Serving, path: str, body: Any, want: Any) -> None:
    await serving.pods("p")
    assert await serving.request("POST", path, body) == want
    assert serving.store.version == 2


async def test_what_is_not_there(serving: Serving) -> None:
    details = {"name": "web", "group": "apps", "kind": "deployments"}
    want = status(404, "NotFound", 'deployments.apps "web" not found', details)
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        body: Any = None if method in ("GET", "DELETE") else {"metadata": {"name": "web"}}
        kind = {"content_type": "application/merge-patch+json"} if method == "PATCH" else {}
        assert await serving.request(method, f"{WEB}/web", body, **kind) == want


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/teapots",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/p",
        "/api/v1/namespaces/default/pods/p/log",
        "/api/v1/namespaces/default/pods/p/status/x",
    ],
)
async def test_paths_that_nobody_serves(serving: Serving, path: str) -> None:
    message = "the server could not find the requested resource"
    assert await serving.request("GET", path) == status(404, "NotFound", message, {})


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/nothing"), ("POST", "/apis/apps/v2/deployments"), ("GET", "/api/v2/")],
)
async def test_paths_below_no_version(serving: Serving, method: str, path: str) -> None:
    assert await serving.request(method, path) == (404, "404 page not found\n")


def test_no_error_is_shared() -> None:
    """Each raise of the same one would add to its traceback, and hold a request for ever."""
    assert [name for name, each in vars(errors).items() if isinstance(each, Exception)] == []


async def test_a_put_replaces_all_but_the_status(serving: Serving) -> None:
    first = await serving.post(PODS, pod("p", labels={"a": "1"}))
    body = pod("p", annotations={"b": "2"}, uid=first["metadata"]["uid"])
    body |= {"status": {"phase": "Running"}}
    body["spec"]["nodeName"] = "n"
    code, second = await serving.request("PUT", f"{PODS}/p", body)
    assert code == 200
    assert second["status"] == {"phase": "Pending"}
    assert second["spec"]["nodeName"] == "n"
    assert unmanaged(second)["metadata"] == {
        "name": "p",
        "namespace": "default",
        "uid": first["metadata"]["uid"],
        "creationTimestamp": NOW_TEXT,
        "annotations": {"b": "2"},
        "generation": 2,
        "resourceVersion": "3",
    }


async def test_a_status_write_changes_status_and_metadata_only(serving: Serving) -> None:
    first = await serving.post(PODS, pod("p"))
    body = {**pod("p", labels={"a": "1"}), "status": {"phase": "Running"}}
    body["spec"] = {}
    code, second = await serving.request("PUT", f"{PODS}/p/status", body)
    assert code == 200
    want = {**first, "status": {"phase": "Running"}}
    want["metadata"] |= {"resourceVersion": "3", "labels": {"a": "1"}}
    assert unmanaged(second) == unmanaged(want)
    body["status"]["phase"] = "Teapot"
    code, answer = await serving.request("PUT", f"{PODS}/p/status", body)
    message = 'Pod "p" is invalid: status.phase: Invalid value: "Teapot": is not a phase'
    assert (code, answer["message"]) == (422, message)
    body = {**pod("p", labels={"a b": "1"}), "status": {"phase": "Running"}}
    code, answer = await serving.request("PUT", f"{PODS}/p/status", body)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.labels")


async def test_version_zero_is_any_version(serving: Serving) -> None:
    await serving.post(PODS, pod("p"))
    body = pod("p", labels={"a": "1"}, resourceVersion="0")
    code, answer = await serving.request("PUT", f"{PODS}/p", body)
    assert (code, answer["metadata"]["resourceVersion"]) == (200, "3")


@pytest.mark.parametrize(
    ("timeout", "code"),
    [("", 200), ("32s", 200), ("1m0.5s", 200), ("0", 200), ("invalid", 400), ("5", 400)],
)
async def test_a_timeout_is_a_duration(serving: Serving, timeout: str, code: int) -> None:
    got, answer = await serving.request("GET", f"{PODS}?timeout={timeout}")
    assert got == code
    if code == 400:
        assert answer["message"] == "invalid timeout specified in the request URL"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        pytest.param(
            {"resourceVersion": "1"},
            409,
            f'Operation cannot be fulfilled on deployments.apps "web": {MODIFIED}',
            id="an old version",
        ),
        pytest.param(
            {"resourceVersion": "9" * 5_000},
            500,
            f'strconv.ParseUint: parsing "{"9" * 100}": value out of range',
            id="more digits than a version has",
        ),
        pytest.param(
            {"resourceVersion": "abc"},
            500,
            'strconv.ParseUint: parsing "abc": invalid syntax',
            id="no version",
        ),
        pytest.param(
            {"name": "api"},
            400,
            "the name of the object (api) does not match the name on the URL (web)",
            id="another name",
        ),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_concurrent_changes(
    serving: Serving, method: str, change: Any, code: int, message: str
) -> None:
    await serving.post(WEB, {"metadata": {"name": "web"}})
    body = {"metadata": {"name": "web", **change}}
    got, answer = await serving.request(
        method, f"{WEB}/web", body, content_type=TYPES.get(method, "application/json")
    )
    assert (got, answer["message"]) == (code, message)


TYPES = {"PATCH": "application/strategic-merge-patch+json"}


async def test_another_object_of_that_name(serving: Serving) -> None:
    web = await serving.post(WEB, {"metadata": {"name": "web"}})
    body = {"metadata": {"name": "web", "uid": "other"}}
    code, answer = await serving.request("PUT", f"{WEB}/web", body)
    assert (code, answer["message"]) == (
        409,
        'Operation cannot be fulfilled on deployments.apps "web": StorageError: invalid object, '
        "Code: 4, Key: /registry/deployments/default/web, ResourceVersion: 0, AdditionalErrorMsg: "
        "Precondition failed: UID in precondition: other, UID in object meta: "
        f"{web['metadata']['uid']}",
    )
    code, answer = await serving.request("PATCH", f"{WEB}/web", body, content_type=TYPES["PATCH"])
    assert (code, answer["message"]) == (
        422,
        'Deployment.apps "web" is invalid: metadata.uid: Invalid value: "other": '
        "field is immutable",
    )


async def test_a_change_of_nothing_writes_nothing(serving: Serving) -> None:
    first = await serving.post(PODS, pod("p"))
    kind = {"content_type": "application/merge-patch+json"}
    assert await serving.request("PATCH", f"{PODS}/p", {}, **kind) == (200, first)
    assert await serving.request("PUT", f"{PODS}/p", first) == (200, first)
    assert serving.store.version == 2


@pytest.mark.parametrize(
    ("kind", "body", "want"),
    [
        pytest.param(
            "merge-patch+json", {"metadata": {"labels": {"a": "b"}}}, {"a": "b"}, id="merge"
        ),
        pytest.param(
            "strategic-merge-patch+json",
            {"metadata": {"labels": {"a": "b", "old": None}}},
            {"a": "b"},
            id="strategic merge",
        ),
        pytest.param(
            "json-patch+json",
            [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
            {"a": "b"},
            id="JSON patch",
        ),
    ],
)
async def test_patches(serving: Serving, kind: str, body: Any, want: Any) -> None:
    await serving.pods("p")
    code, answer = await serving.request(
        "PATCH", f"{PODS}/p", body, content_type=f"application/{kind}"
    )
    assert (code, answer["metadata"]["labels"]) == (200, want)


@pytest.mark.parametrize(
    ("kind", "body", "code", "reason"),
    [
        pytest.param("apply-patch+cbor", b"{}", 415, "UnsupportedMediaType", id="CBOR"),
        pytest.param("json", b"{}", 415, "UnsupportedMediaType", id="no patch"),
        pytest.param("merge-patch+json", b"{", 400, "BadRequest", id="not JSON"),
        pytest.param("merge-patch+json", b"[]", 400, "BadRequest", id="no object comes of it"),
        pytest.param("json-patch+json", b"{}", 400, "BadRequest", id="not an array"),
        pytest.param(
            "json-patch+json",
            b'[{"op": "remove", "path": "/nothing"}]',
            422,
            "Invalid",
            id="it does not fit",
        ),
    ],
)
async def test_patches_that_are_refused(
    serving: Serving, kind: str, body: bytes, code: int, reason: str
) -> None:
    await serving.pods("p")
    got, answer = await serving.request(
        "PATCH", f"{PODS}/p", body, content_type=f"application/{kind}"
    )
    assert (got, answer["code"], answer["reason"]) == (code, code, reason)


async def test_dry_runs_answer_and_keep_nothing(serving: Serving) -> None:
    created = await serving.post(f"{PODS}?dryRun=All", pod("p"))
    assert created["spec"]["restartPolicy"] == "Always"
    await serving.pods("p")
    kind = {"content_type": "application/merge-patch+json"}
    body = {"metadata": {"labels": {"a": "b"}}}
    _, patched = await serving.request("PATCH", f"{PODS}/p?dryRun=All", body, **kind)
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert (await serving.request("DELETE", f"{PODS}/p?dryRun=All"))[0] == 200
    assert "labels" not in (await serving.get(f"{PODS}/p"))["metadata"]
    assert (await serving.request("POST", f"{PODS}?dryRun=Some", pod("q")))[0] == 422


async def test_a_bug_is_a_status_too(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    code, answer = await serving.request("POST", path, {"metadata": {"name": "p"}})
    assert (code, answer["reason"]) == (500, "InternalError")
    assert answer["message"] == "Internal error occurred: ZeroDivisionError: a bug"
    assert "request failed" in caplog.messages
    await serving.pods("p")
