"""resourceVersion, resourceVersionMatch, limit and continue: what is answered, and in which words.

The table is that of "Kubernetes API Concepts"; the words are apimachinery's and apiserver's.
"""

import base64
import json
from typing import Any

import pytest

from tests.cluster.serving import Serving, pod, status

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def serving() -> Serving:
    """A server with the pods a (version 2), b (3) and c (4)."""
    serving = Serving()
    await serving.pods("a", "b", "c")
    return serving


def names(answer: Any) -> str:
    return "".join(item["metadata"]["name"] for item in answer["items"])


def invalid(*causes: tuple[str, str, str]) -> tuple[int, Any]:
    told = [{"reason": r, "message": m, "field": f} for f, r, m in causes]
    said = [f"{field}: {message}" for field, _, message in causes]
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": told}
    return status(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {text}', details)


def forbidden(why: str, field: str = "resourceVersionMatch") -> tuple[int, Any]:
    return invalid((field, "FieldValueForbidden", f"Forbidden: {why}"))


UNLESS_VERSION = "resourceVersionMatch is forbidden unless resourceVersion is provided"


TOKEN = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"p"}').decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "want", "version"),
    [
        pytest.param("", "abc", "4", id="the latest"),
        pytest.param("resourceVersion=0", "abc", "4", id="any"),
        pytest.param("resourceVersion=3", "abc", "4", id="not older than that"),
        pytest.param("resourceVersion=&limit=2", "ab", "4", id="a page of the latest"),
        pytest.param("resourceVersion=0&limit=2", "ab", "4", id="a page of any"),
        pytest.param("resourceVersion=3&limit=5", "ab", "3", id="a page of exactly that"),
        pytest.param("resourceVersion=3&resourceVersionMatch=Exact", "ab", "3", id="exactly that"),
        pytest.param(
            "resourceVersion=2&resourceVersionMatch=Exact&limit=5", "a", "2", id="exactly, in pages"
        ),
        pytest.param(
            "resourceVersion=0&resourceVersionMatch=NotOlderThan", "abc", "4", id="not older: any"
        ),
        pytest.param(
            "resourceVersion=3&resourceVersionMatch=NotOlderThan&limit=2", "ab", "4", id="not older"
        ),
        pytest.param("limit=-1", "abc", "4", id="a negative limit is none"),
        pytest.param("watch=false&watch=0", "abc", "4", id="no watch"),
    ],
)
async def test_what_is_listed(serving: Serving, query: str, want: str, version: str) -> None:
    answer = await serving.get(f"{PODS}?{query}")
    assert (names(answer), answer["metadata"]["resourceVersion"]) == (want, version)


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param("resourceVersionMatch=Exact", forbidden(UNLESS_VERSION), id="no version"),
        pytest.param(
            "resourceVersionMatch=Exact&resourceVersion=0",
            forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
            id="exactly any",
        ),
        pytest.param(
            "resourceVersionMatch=Newest&continue=x",
            invalid(
                ("resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {UNLESS_VERSION}"),
                (
                    "resourceVersionMatch",
                    "FieldValueForbidden",
                    "Forbidden: resourceVersionMatch is forbidden when continue is provided",
                ),
                (
                    "resourceVersionMatch",
                    "FieldValueNotSupported",
                    'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
                ),
            ),
            id="all at once",
        ),
        pytest.param(
            "sendInitialEvents=true",
            forbidden("sendInitialEvents is forbidden for list", "sendInitialEvents"),
            id="a list that streams",
        ),
        pytest.param(
            "watch=1&sendInitialEvents=true",
            forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            id="a watch that streams a list, of no kind",
        ),
        pytest.param(
            "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
            forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            ),
            id="a watch that matches",
        ),
        pytest.param(
            "watch=1&resourceVersion=x",
            status(
                500,
                "",
                'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": '
                "invalid syntax",
            ),
            id="a watch from what is no version",
        ),
        pytest.param(
            "resourceVersion=x",
            status(
                400,
                "BadRequest",
                'invalid resource version: resourceVersion: Invalid value: "x": '
                'strconv.ParseUint: parsing "x": invalid syntax',
            ),
            id="a list of what is no version",
        ),
        pytest.param(
            "resourceVersion=18446744073709551616",
            status(
                400,
                "BadRequest",
                'invalid resource version: resourceVersion: Invalid value: "18446744073709551616": '
                'strconv.ParseUint: parsing "18446744073709551616": value out of range',
            ),
            id="a version of more than 64 bits",
        ),
        pytest.param(
            f"resourceVersion=3&continue={TOKEN}",
            status(
                400,
                "BadRequest",
                "specifying resource version is not allowed when using continue",
            ),
            id="a version and a token",
        ),
        pytest.param(
            "resourceVersion=3&continue=bogus",
            status(
                400,
                "BadRequest",
                "invalid continue token: continue key is not valid: illegal base64 data at input "
                "byte 4",
            ),
            id="a version and what is no token",
        ),
        pytest.param(
            "limit=x",
            status(400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax'),
            id="a limit that is no number",
        ),
        pytest.param(
            "watch=1&timeoutSeconds=9223372036854775808",
            status(
                400,
                "BadRequest",
                'strconv.ParseInt: parsing "9223372036854775808": value out of range',
            ),
            id="a time out of range",
        ),
    ],
)
async def test_what_is_refused(serving: Serving, query: str, want: Any) -> None:
    assert await serving.request("GET", f"{PODS}?{query}") == want


def token(**parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param("a b", "", id="not base64"),
        pytest.param("e30x", "", id="not JSON"),
        pytest.param(
            token(v="berth/v1", rv=1, start="a"),
            ": server does not recognize this encoded version 'berth/v1'",
            id="another version",
        ),
        pytest.param(
            token(v="meta.k8s.io/v1", start="a"),
            ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            id="no version",
        ),
        pytest.param(
            token(v="meta.k8s.io/v1", rv=2),
            ": encoded start key empty (version meta.k8s.io/v1)",
            id="no key",
        ),
        pytest.param(token(v="meta.k8s.io/v1", rv=2, start="../../a"), "", id="a way out"),
        pytest.param(token(v="meta.k8s.io/v1", rv=-2, start="a"), "", id="before all time"),
    ],
)
async def test_tokens_that_are_none(serving: Serving, given: str, why: str) -> None:
    code, answer = await serving.request("GET", f"{PODS}?limit=1&continue={given}")
    assert (code, answer["reason"]) == (400, "BadRequest")
    said = f"invalid continue token: continue key is not valid{why}"
    assert answer["message"].startswith(said)
    assert answer["message"] == said or not why


@pytest.mark.parametrize("path", [PODS, "/api/v1/pods"])
async def test_a_list_goes_on_with_the_state_of_now_when_its_own_is_forgotten(path: str) -> None:
    serving = Serving(log_capacity=2)
    await serving.pods("a", "b", "c")
    first = await serving.get(f"{path}?limit=1")
    await serving.pods("aa", "d", "e", "f")
    code, refused = await serving.request(
        "GET", f"{path}?limit=2&continue={first['metadata']['continue']}"
    )
    assert (code, refused["reason"], refused["code"]) == (410, "Expired", 410)
    assert "use the continue token in this response" in refused["message"]
    rest, go_on = "", refused["metadata"]["continue"]
    while go_on:
        page = await serving.get(f"{path}?limit=2&continue={go_on}")
        rest += names(page)
        assert page["metadata"]["resourceVersion"] == "8"
        go_on = page["metadata"].get("continue")
    assert rest == "aabcdef"


async def test_exactly_what_is_forgotten_is_expired() -> None:
    serving = Serving(log_capacity=2)
    await serving.pods("a", "b", "c", "d", "e")
    query = "resourceVersion=2&resourceVersionMatch=Exact"
    message = "The resourceVersion for the provided list is too old."
    assert await serving.request("GET", f"{PODS}?{query}") == status(410, "Expired", message)


async def test_pages_with_a_selector_do_not_count_what_is_left(serving: Serving) -> None:
    await serving.post(PODS, pod("d", labels={"app": "x"}))
    await serving.post(PODS, pod("e", labels={"app": "x"}))
    page = await serving.get(f"{PODS}?labelSelector=app%3Dx&limit=1")
    assert (names(page), "remainingItemCount" in page["metadata"]) == ("d", False)
    path = f"{PODS}?labelSelector=app%3Dx&limit=1&continue={page['metadata']['continue']}"
    last = await serving.get(path)
    assert (names(last), last["metadata"]) == ("e", {"resourceVersion": "6"})


@pytest.mark.parametrize(
    ("version", "code"), [("", 200), ("0", 200), ("4", 200), ("5", 504), ("x", 400)]
)
async def test_a_get_may_say_how_new_it_wants_the_object(
    serving: Serving, version: str, code: int
) -> None:
    assert (await serving.request("GET", f"{PODS}/a?resourceVersion={version}"))[0] == code
