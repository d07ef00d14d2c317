"""Answers in protobuf: for clients that take nothing else."""

from typing import Any

import pytest

from berth.cluster.http.rendering import PARTIAL
from berth.cluster.schemas import builtin, protobuf
from berth.cluster.schemas.types import Schema
from tests.cluster.serving import PODS as POD_KIND
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = {"accept": protobuf.MEDIA_TYPE}
STATUS = builtin.meta("Status")


@pytest.fixture
def serving() -> Serving:
    return Serving()


async def asked(serving: Serving, method: str, path: str, **more: Any) -> tuple[int, bytes]:
    answer = await serving.http.request(method, path, headers=PROTOBUF, **more)
    assert answer.headers["content-type"].startswith(protobuf.MEDIA_TYPE)
    return answer.status_code, answer.content


def read(content: bytes, schema: Schema) -> Any:
    return protobuf.decode(content, schema)


async def test_an_object_is_what_it_is_in_json(serving: Serving) -> None:
    stored = await serving.post(PODS, pod("p", labels={"a": "b"}))
    code, content = await asked(serving, "GET", f"{PODS}/p")
    assert (code, read(content, POD_KIND.schema)) == (200, stored)
    json = {**pod("q"), "spec": {"containers": [{"name": "c"}], "hostUsers": False}}
    code, content = await asked(serving, "POST", PODS, json=json)
    assert (code, read(content, POD_KIND.schema)["spec"]["hostUsers"]) == (201, False)


async def test_a_list(serving: Serving) -> None:
    await serving.pods("a", "b")
    code, content = await asked(serving, "GET", PODS)
    metadata, *items = messages(content)
    assert code == 200
    assert [each[0] for each in (metadata, *items)] == [1, 2, 2]
    names = [protobuf.read_message(each, POD_KIND.schema)["metadata"]["name"] for _, each in items]
    assert names == ["a", "b"]
    assert protobuf.read_message(metadata[1], builtin.meta("ListMeta"))["resourceVersion"] == "3"


def messages(content: bytes) -> list[tuple[int, Any]]:
    """Return the fields of what is in the envelope."""
    assert content.startswith(protobuf.MAGIC)
    envelope = dict(protobuf.raw_fields(content[len(protobuf.MAGIC) :]))
    return list(protobuf.raw_fields(envelope[2]))


async def test_a_refusal(serving: Serving) -> None:
    code, content = await asked(serving, "GET", f"{PODS}/missing")
    status = read(content, STATUS)
    assert (code, status["reason"], status["details"]["name"]) == (404, "NotFound", "missing")


async def test_a_watch_sends_frames(serving: Serving) -> None:
    await serving.pods("a")
    query = "watch=1&resourceVersion=0&timeoutSeconds=1&sendInitialEvents=true"
    query += "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    serving.clock.advance(0)
    watching = serving.http.build_request("GET", f"{PODS}?{query}", headers=PROTOBUF)
    await serving.server._endpoints.close()  # what there is, and no more
    answer = await serving.http.send(watching)
    assert answer.headers["content-type"] == f"{protobuf.MEDIA_TYPE};stream=watch"
    content, found = answer.content, []
    while content:
        length = int.from_bytes(content[:4], "big")
        frame, content = content[4 : 4 + length], content[4 + length :]
        event = dict(protobuf.raw_fields(frame))
        obj = read(bytes(dict(protobuf.raw_fields(event[2]))[1]), POD_KIND.schema)
        found.append((bytes(event[1]).decode(), obj["metadata"].get("name")))
    assert found == [("ADDED", "a"), ("BOOKMARK", None)]


async def test_metadata_only(serving: Serving) -> None:
    await serving.pods("a", "b")
    partial = {"accept": f"{protobuf.MEDIA_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    answer = await serving.http.get(f"{PODS}/a", headers=partial)
    found = read(answer.content, PARTIAL)
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert found["metadata"] == (await serving.get(f"{PODS}/a"))["metadata"]
    partial = {"accept": partial["accept"].replace("Metadata;", "MetadataList;")}
    answer = await serving.http.get(PODS, headers=partial)
    _, *items = messages(answer.content)
    names = [protobuf.read_message(each, PARTIAL)["metadata"]["name"] for _, each in items]
    assert names == ["a", "b"]
