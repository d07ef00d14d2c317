"""What is asked of the API server about users, and what its answers mean."""

import json
from typing import Any

import pytest

from berth.kube.client.errors import ForbiddenError
from berth.kube.client.reviews import (
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    ReviewError,
    User,
    review_access,
    review_token,
)
from tests.kube.client.fake_api import FakeApi, Request

JANE = User(username="jane", uid="7", groups=("dev",), extra={"scope": ("a", "b")})


def answering(status: Any) -> FakeApi:
    return FakeApi(lambda _request: json.dumps({"status": status}).encode())


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(
            {
                "authenticated": True,
                "user": {
                    "username": "jane",
                    "uid": "7",
                    "groups": ["dev"],
                    "extra": {"scope": ["a", "b"]},
                },
                "audiences": ["x"],
            },
            JANE,
            id="somebody's",
        ),
        pytest.param(
            {"authenticated": True, "user": {"username": "jane"}},
            User(username="jane"),
            id="of a user with a name and no more",
        ),
        pytest.param({"authenticated": False}, None, id="nobody's"),
        pytest.param({}, None, id="nobody's, in short"),
        pytest.param({"authenticated": True, "user": {}}, None, id="of a user without a name"),
        pytest.param({"user": {"username": "jane"}, "error": "expired"}, None, id="no longer good"),
    ],
)
async def test_whose_a_token_is(status: Any, want: User | None) -> None:
    api = answering(status)
    assert await review_token(api, "secret") == want
    assert api.requests == [
        Request(
            "POST",
            TOKEN_REVIEWS,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "metadata": {},
                "spec": {"token": "secret"},
            },
        )
    ]


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"allowed": True}, True, id="allowed"),
        pytest.param({"allowed": False}, False, id="not allowed"),
        pytest.param({}, False, id="not said"),
        pytest.param({"allowed": True, "denied": True}, False, id="denied whoever allows it"),
    ],
)
async def test_what_somebody_may_do(status: Any, want: bool) -> None:
    api = answering(status)
    assert await review_access(api, JANE, path="/metrics", verb="get") == want
    assert api.requests == [
        Request(
            "POST",
            ACCESS_REVIEWS,
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "metadata": {},
                "spec": {
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                    "user": "jane",
                    "groups": ["dev"],
                    "uid": "7",
                    "extra": {"scope": ["a", "b"]},
                },
            },
        )
    ]


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"{}", b'{"status": {"allowed": 1}}', b'{"\xff": 1}', b'{"x": ' + b"[" * 20_000],
)
async def test_an_answer_that_is_none(answer: bytes) -> None:
    with pytest.raises(ReviewError, match=ACCESS_REVIEWS):
        await review_access(FakeApi(lambda _: answer), JANE, path="/", verb="get")


async def test_an_error_comes_through() -> None:
    refusal = ForbiddenError(403, "Forbidden", "no reviews for you")
    with pytest.raises(ForbiddenError, match="no reviews for you"):
        await review_token(FakeApi(lambda _: refusal), "secret")
