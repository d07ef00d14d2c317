"""Authenticates and authorizes requests, in front of everything that berth serves."""

import json
import logging
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from berth.kube.client.errors import ApiError
from berth.kube.client.reviews import ReviewError, User
from berth.runtime.http_server import PEER_CERTIFICATE
from berth.service.server.access.authentication import (
    Authenticator,
    Headers,
    NotReviewedError,
    UnauthenticatedError,
)
from berth.service.server.access.authorization import Authorizer

log = logging.getLogger(__name__)

LONGEST_TOLD: Final = 200
"""Characters of a path that get into the log."""

NOT_REVIEWED: Final = (
    "the API server could not be asked whose token this is, so it is not known who sent the request"
)
NO_ACCESS_REVIEW: Final = "the API server could not be asked whether the user may do this"

RETRY_AFTER: Final = "1"
"""Seconds, for clients of a request that could not be reviewed."""

NOT_CACHED: Final = "no-cache, private"
"""Responses are for this user only, and for now."""


class DelegatedAccess:
    """An ASGI application that lets authorized requests through to *application*.

    It authorizes the same path that *application* routes by. A refused request is answered with a
    ``Status`` as API servers word it, 401 or 403, and nothing of it reaches the application.

    While the API server cannot be asked, the answer is 503 to a token and 500 to a user, with the
    reason, but without what the API server said: that is for the log. To a token kube-scheduler
    answers a bare 401 then, which sends people looking for what is wrong with their token.
    """

    def __init__(
        self, application: ASGIApp, *, authenticator: Authenticator, authorizer: Authorizer
    ) -> None:
        self.authenticator = authenticator
        self._application = application
        self._authorizer = authorizer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def uncached(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Cache-Control", NOT_CACHED)
            await send(message)

        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} connections are not served")
        refusal = await self._refusal(scope)
        await (refusal or self._application)(scope, receive, uncached)

    async def _refusal(self, scope: Scope) -> Response | None:
        path, verb = scope["path"], scope["method"].lower()
        certificate = scope.get("state", {}).get(PEER_CERTIFICATE)
        try:
            user = await self.authenticator.authenticate(_headers(scope), certificate=certificate)
        except NotReviewedError:
            answer = status_answer(503, "ServiceUnavailable", NOT_REVIEWED)
            answer.headers["Retry-After"] = RETRY_AFTER
            return answer
        except UnauthenticatedError as exc:
            log.debug("request refused, its sender is unknown", extra={"error": str(exc)})
            return status_answer(401, "Unauthorized", "Unauthorized")
        try:
            if await self._authorizer.allows(user, path=path, verb=verb):
                return None
        except (ApiError, ReviewError) as exc:
            log.warning(
                "authorization could not be checked",
                extra={"user": user.username, "path": path[:LONGEST_TOLD], "error": str(exc)},
            )
            text = f"Internal Server Error: {json.dumps(path)}: {NO_ACCESS_REVIEW}\n"
            return PlainTextResponse(text, 500)
        return status_answer(403, "Forbidden", _forbidden(user, path=path, verb=verb))


def _forbidden(user: User, *, path: str, verb: str) -> str:
    quoted = [json.dumps(text, ensure_ascii=False) for text in (user.username, path)]
    return f"forbidden: User {quoted[0]} cannot {verb} path {quoted[1]}"


def _headers(scope: Scope) -> Headers:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]


def status_answer(code: int, reason: str, message: str) -> Response:
    """Return a ``metav1.Status`` that refuses, spelled as API servers do."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": {}} if code == 403 else {}),
        "code": code,
    }
    return Response(
        json.dumps(status, indent=2, ensure_ascii=False),
        code,
        headers={"X-Content-Type-Options": "nosniff"},
        media_type="application/json",
    )
