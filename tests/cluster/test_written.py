"""The data of ControllerRevisions is bytes: what a client wrote may not change, nor how."""

from typing import Any

import httpx
import pytest

from berth.cluster.kinds.builtin import RESOURCES
from tests.cluster.serving import Serving

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
LABELS = b'{"metadata":{"labels":{"a":"b"}}}'
OPERATIONS = b'[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]'
CONFIGURATION = (
    b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r",'
    b'"labels":{"a":"b"}}}'
)
COMPACT = b'{"metadata":{"name":"r"},"revision":1,"data":{"b":1,"a":{"c":2}}}'
SORTED = b'{"metadata":{"name":"r"},"revision":1,"data":{"a":{"c":2},"b":1}}'
SPACED = b'{"metadata": {"name": "r"}, "revision": 1, "data": {"a": {"c": 2}, "b": 1}}'


async def send(method: str, path: str, content: bytes, media_type: str, to: Serving) -> Any:
    return await to.http.request(
        method, path, content=content, headers={"content-type": media_type}
    )


@pytest.fixture
async def serving() -> Serving:
    serving = Serving(resources=RESOURCES)
    await serving.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return serving


@pytest.mark.parametrize(
    ("created", "method", "content", "media_type", "code"),
    [
        pytest.param(SPACED, "PUT", SPACED, "application/json", 200, id="said in the same way"),
        pytest.param(SPACED, "PUT", SORTED, "application/json", 422, id="without white space"),
        pytest.param(SORTED, "PUT", COMPACT, "application/json", 422, id="in another order"),
        pytest.param(SPACED, "PATCH", LABELS, MERGE, 422, id="a patch drops white space"),
        pytest.param(SPACED, "PATCH", OPERATIONS, JSON_PATCH, 422, id="so does a JSON patch"),
        pytest.param(COMPACT, "PATCH", LABELS, MERGE, 200, id="it leaves the order"),
        pytest.param(COMPACT, "PATCH", OPERATIONS, JSON_PATCH, 200, id="so does a JSON patch, too"),
        pytest.param(COMPACT, "PATCH", LABELS, STRATEGIC, 422, id="a strategic patch sorts"),
        pytest.param(COMPACT, "PATCH", CONFIGURATION, APPLY, 422, id="so does what is applied"),
        pytest.param(SORTED, "PATCH", LABELS, STRATEGIC, 200, id="what is sorted stays so"),
        pytest.param(SORTED, "PATCH", CONFIGURATION, APPLY, 200, id="also when it is applied to"),
        pytest.param(
            SPACED.replace(b": ", b" : "), "DELETE", b"", "application/json", 200, id="deleted"
        ),
    ],
)
async def test_what_is_written(
    serving: Serving, created: bytes, method: str, content: bytes, media_type: str, code: int
) -> None:
    answer = await send("POST", REVISIONS, created, "application/json", serving)
    assert answer.status_code == 201
    asked = f"{REVISIONS}/r?fieldManager=test"
    answer = await send(method, asked, content, media_type, serving)
    assert answer.status_code == code, answer.text
    if code == 422:
        assert answer.json()["details"]["causes"][0]["field"] == "data"


async def test_it_is_shown_without_white_space(serving: Serving) -> None:
    await send("POST", REVISIONS, SPACED, "application/json", serving)
    shown: httpx.Response = await serving.http.get(f"{REVISIONS}/r")
    listed = await serving.http.get(REVISIONS)
    for answer in (shown, listed):
        assert '"data":{"a":{"c":2},"b":1}' in answer.text
