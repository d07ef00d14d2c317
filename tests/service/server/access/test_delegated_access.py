"""What becomes of a request before the application sees it."""

import json
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from berth.kube.client.errors import UnavailableError
from berth.kube.client.reviews import TOKEN_REVIEWS
from berth.runtime.clock import FakeClock
from berth.scheduler.config.options import (
    DelegatingAuthenticationOptions,
    DelegatingAuthorizationOptions,
)
from berth.service.server.access.secure_serving import with_delegated_access
from tests.kube.client.fake_api import FakeApi, Request


def reviewer(request: Request) -> bytes | Exception:
    """Know joe by his token; let him get /metrics. Fail about /trouble, and the token unlucky."""
    spec = request.body["spec"]
    if request.path == TOKEN_REVIEWS and spec["token"] == "unlucky":
        return UnavailableError("10.0.0.1: connection refused", sent=False)
    if request.path == TOKEN_REVIEWS:
        user = {"username": 'j"o"e'}
        known = spec["token"] == "good"
        return json.dumps({"status": {"authenticated": known, "user": user}}).encode()
    path = spec["nonResourceAttributes"]["path"]
    if path == "/trouble":
        return UnavailableError("10.0.0.1: connection refused", sent=False)
    return json.dumps({"status": {"allowed": path == "/metrics"}}).encode()


class Application:
    """Says yes, and remembers for what."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(scope["path"])
        cache = {"Cache-Control": "max-age=9"} if scope["path"] == "/livez" else {}
        await PlainTextResponse("yes", headers=cache)(scope, receive, send)


async def ask(path: str, *, token: str = "", method: str = "GET") -> tuple[httpx.Response, bool]:
    """Return the answer, and whether the application was asked."""
    application, api = Application(), FakeApi(reviewer)
    access = with_delegated_access(
        application,
        DelegatingAuthenticationOptions(),
        DelegatingAuthorizationOptions(),
        tokens=api,
        permissions=api,
        clock=FakeClock(),
    )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(access), base_url="http://berth"
    ) as client:
        answer = await client.request(method, path, headers=headers)
    return answer, bool(application.asked)


def status(code: int, reason: str, message: str, **details: Any) -> Any:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **details,
        "code": code,
    }


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_probes_are_for_everybody(path: str) -> None:
    answer, asked = await ask(path)
    assert (answer.status_code, answer.text, asked) == (200, "yes", True)


async def test_who_may_use_a_path_uses_it() -> None:
    answer, asked = await ask("/metrics", token="good")
    assert (answer.status_code, answer.text, asked) == (200, "yes", True)


@pytest.mark.parametrize(
    ("path", "token", "method", "want"),
    [
        pytest.param(
            "/metrics",
            "bad",
            "GET",
            status(401, "Unauthorized", "Unauthorized"),
            id="a token of nobody",
        ),
        pytest.param(
            "/healthz",
            "bad",
            "GET",
            status(401, "Unauthorized", "Unauthorized"),
            id="a token of nobody where none is needed",
        ),
        pytest.param(
            "/configz",
            "",
            "GET",
            status(
                403,
                "Forbidden",
                'forbidden: User "system:anonymous" cannot get path "/configz"',
                details={},
            ),
            id="nobody",
        ),
        pytest.param(
            "/explain/pods/a/b%22?x=1",
            "good",
            "POST",
            status(
                403,
                "Forbidden",
                r'forbidden: User "j\"o\"e" cannot post path "/explain/pods/a/b\""',
                details={},
            ),
            id="somebody who may not",
        ),
    ],
)
async def test_refusals_say_nothing_else(path: str, token: str, method: str, want: Any) -> None:
    answer, asked = await ask(path, token=token, method=method)
    assert (answer.status_code, answer.json(), asked) == (want["code"], want, False)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-cache, private"


async def test_it_is_not_told_what_is_wrong_with_the_api_server() -> None:
    answer, asked = await ask("/trouble", token="good")
    assert (answer.status_code, answer.text, asked) == (
        500,
        'Internal Server Error: "/trouble": '
        "the API server could not be asked whether the user may do this\n",
        False,
    )


async def test_a_token_that_nobody_could_be_asked_about_is_not_called_wrong() -> None:
    answer, asked = await ask("/debug/queue", token="unlucky")
    message = (
        "the API server could not be asked whose token this is, so it is not known who sent the"
        " request"
    )
    assert answer.json() == status(503, "ServiceUnavailable", message)
    assert (answer.status_code, answer.headers["retry-after"], asked) == (503, "1", False)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/healthz", "no-cache, private", id="unless told otherwise, none"),
        pytest.param("/livez", "max-age=9", id="as the application says"),
    ],
)
async def test_caching(path: str, want: str) -> None:
    answer, _ = await ask(path)
    assert answer.headers["cache-control"] == want
