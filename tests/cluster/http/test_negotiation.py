"""Which form an answer has: what clients accept, in the order of their choice."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.errors import StatusError
from berth.cluster.http.negotiation import (
    JSON,
    YAML,
    Representation,
    Shape,
    representation,
    to_yaml,
)
from berth.cluster.http.rendering import yaml_list
from berth.cluster.schemas.protobuf import MEDIA_TYPE as PROTOBUF
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TABLE_BETA = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

OBJECT = Representation()
REFUSED = (
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf"
)


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param("", OBJECT, id="nothing said"),
        pytest.param("*/*", OBJECT, id="anything"),
        pytest.param("text/html, application/*;q=0.8", OBJECT, id="a browser"),
        pytest.param(YAML, Representation(media_type=YAML), id="YAML"),
        pytest.param(PROTOBUF, Representation(media_type=PROTOBUF), id="only protobuf"),
        pytest.param(f"{PROTOBUF},{JSON}", OBJECT, id="protobuf, and JSON too"),
        pytest.param(f"{PROTOBUF},*/*", OBJECT, id="protobuf, and anything"),
        pytest.param(
            f"{TABLE},{TABLE_BETA},{JSON}",
            Representation(Shape.TABLE, JSON, "Table", "v1"),
            id="kubectl get",
        ),
        pytest.param(
            TABLE_BETA, Representation(Shape.TABLE, JSON, "Table", "v1beta1"), id="an old table"
        ),
        pytest.param(
            f"application/json;as=Table;v=v2;g=meta.k8s.io,{JSON}",
            OBJECT,
            id="a version of tables that is not known",
        ),
        pytest.param(
            f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}",
            Representation(Shape.TABLE, JSON, "Table", "v1"),
            id="tables are JSON",
        ),
        pytest.param(
            f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{PARTIAL},{JSON}",
            Representation(Shape.PARTIAL, JSON, "PartialObjectMetadata", "v1"),
            id="the metadata client of client-go",
        ),
    ],
)
def test_negotiation(accept: str, want: Representation) -> None:
    assert representation(accept) == want


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param(f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io", id="a table in protobuf"),
        pytest.param("application/json;as=Pod;v=v1;g=meta.k8s.io", id="another kind"),
    ],
)
def test_not_acceptable(accept: str) -> None:
    with pytest.raises(StatusError) as caught:
        representation(accept)
    assert (caught.value.code, caught.value.message) == (406, REFUSED)


@pytest.mark.parametrize(
    ("streams", "more"),
    [
        (False, ""),
        (True, ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
    ],
)
def test_nothing_that_is_served(streams: bool, more: str) -> None:
    with pytest.raises(StatusError) as caught:
        representation("text/html", streams=streams)
    assert caught.value.message == (
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
        f"application/vnd.kubernetes.protobuf{more}"
    )


def test_a_question_has_no_table() -> None:
    assert representation(f"{TABLE},{JSON}", tables=False) == OBJECT
    with pytest.raises(StatusError, match="only the following media types"):
        representation(TABLE, tables=False)


@pytest.fixture
def serving() -> Serving:
    return Serving()


async def asked(serving: Serving, path: str, accept: str) -> tuple[int, Any]:
    answer = await serving.http.get(path, headers={"accept": accept})
    return answer.status_code, msgspec.json.decode(answer.content)


@pytest.mark.parametrize(
    ("path", "accept", "why"),
    [
        pytest.param(
            PODS,
            PARTIAL,
            "you requested PartialObjectMetadata, but the requested object is a list "
            "(*core.PodList)",
            id="one object of a list",
        ),
        pytest.param(
            f"{PODS}/a",
            PARTIAL_LIST,
            "you requested PartialObjectMetadataList, but the requested object is not a list "
            "(*core.Pod)",
            id="a list of one object",
        ),
    ],
)
async def test_a_list_is_not_an_object(serving: Serving, path: str, accept: str, why: str) -> None:
    await serving.pods("a")
    code, status = await asked(serving, path, accept)
    assert (code, status["reason"], status["message"]) == (406, "NotAcceptable", why)


async def test_the_old_tables(serving: Serving) -> None:
    await serving.pods("a")
    for path in (PODS, f"{PODS}/a"):
        _, table = await asked(serving, path, TABLE_BETA)
        [row] = table["rows"]
        assert {table["apiVersion"], row["object"]["apiVersion"]} == {"meta.k8s.io/v1beta1"}


@pytest.mark.parametrize(
    ("include", "kind"),
    [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod")],
)
async def test_what_a_row_carries(serving: Serving, include: str, kind: str) -> None:
    await serving.pods("a")
    _, table = await asked(serving, f"{PODS}?includeObject={include}", TABLE)
    assert [row["object"]["kind"] for row in table["rows"]] == [kind]


async def test_a_row_may_carry_nothing(serving: Serving) -> None:
    await serving.pods("a")
    _, table = await asked(serving, f"{PODS}?includeObject=None", TABLE)
    assert [row["object"] for row in table["rows"]] == [None]


async def test_what_a_row_cannot_carry(serving: Serving) -> None:
    code, status = await asked(serving, f"{PODS}?includeObject=All", TABLE)
    assert (code, status["message"]) == (
        400,
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty",
    )
    assert (await asked(serving, f"{PODS}?includeObject=All", JSON))[0] == 200


async def test_answers_in_yaml(serving: Serving) -> None:
    await serving.pods("a")
    for path in (PODS, f"{PODS}/a", f"{PODS}/missing"):
        answer = await serving.http.get(path, headers={"accept": YAML})
        assert answer.headers["content-type"] == YAML
        assert yaml.safe_load(answer.text) == (await serving.http.get(path)).json()


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(any_json, max_size=3), st.sampled_from(["items", "rows"]))
def test_a_list_in_pieces_is_the_yaml_of_the_whole(items: list[Any], name: str) -> None:
    empty = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"}, name: []}
    pieces = yaml_list(msgspec.json.encode(empty), map(msgspec.json.encode, items))
    assert b"".join(pieces) == to_yaml({**empty, name: items})


async def test_a_watch_is_not_in_yaml(serving: Serving) -> None:
    answer = await serving.http.get(f"{PODS}?watch=1", headers={"accept": YAML})
    assert answer.status_code == 406


async def test_the_answer_to_a_question_is_no_table(serving: Serving) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    code, status = await serving.request("POST", path, body, accept=TABLE)
    assert (code, status["message"]) == (406, REFUSED)
    code, answer = await serving.request("POST", path, body, accept=f"{TABLE},{JSON}")
    assert (code, answer["status"]) == (201, {"allowed": True})


@pytest.mark.parametrize(
    ("query", "user_agent", "want"),
    [
        pytest.param("", "kubectl/v1.36.0", False, id="a program"),
        pytest.param("", "curl/8.5.0", True, id="curl"),
        pytest.param("", "Mozilla/5.0 (X11)", True, id="a browser"),
        pytest.param("?pretty=true", "kubectl/v1.36.0", True, id="asked for"),
        pytest.param("?pretty=0", "curl/8.5.0", False, id="asked not to"),
    ],
)
async def test_people_get_line_breaks(query: str, user_agent: str, want: bool) -> None:
    serving = Serving()
    await serving.pods("p")
    for path in (PODS, f"{PODS}/p"):
        answer = await serving.http.get(f"{path}{query}", headers={"user-agent": user_agent})
        assert ('\n  "apiVersion": "v1",\n' in answer.text) == want
        assert answer.json()["apiVersion"] == "v1"


@pytest.mark.parametrize("count", [0, 1, 100])
@pytest.mark.parametrize("accept", [JSON, TABLE])
async def test_long_lists_have_line_breaks_too(count: int, accept: str) -> None:
    serving = Serving()
    for i in range(count):
        await serving.post(PODS, pod(f"p{i}", annotations={"long": "x" * 10_000}))
    path = f"{PODS}?pretty=true"
    answer = await serving.http.get(path, headers={"accept": accept})
    plain = await serving.http.get(PODS, headers={"accept": accept})
    assert answer.content == msgspec.json.format(plain.content, indent=2)
