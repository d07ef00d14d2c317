"""Requests that the page may make of a scheduler: it reads, and asks what-if questions."""

from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.service.ui.files import Files, is_of_page

READING: Final = ("GET", "HEAD")

QUESTION: Final = "/simulate"
"""The one path that is posted to; it changes nothing."""

ENDPOINTS: Final = frozenset(
    {
        "configz", "debug", "explain", "flagz", "healthz", "livez", "metrics", "openapi.json",
        "readyz", "simulate", "snapshot", "statusz",
    }
)  # fmt: skip
"""With what a path may begin."""

NOT_IN_NAMES: Final = frozenset({"", ".", ".."})
"""Segments of a path that a server may understand as another path."""


class Page:
    """An ASGI application: the files of the page, and beside them the endpoints of *scheduler*.

    What could change anything is refused.
    """

    def __init__(self, scheduler: ASGIApp) -> None:
        self._scheduler = scheduler
        self._files = Files()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application: ASGIApp
        if is_of_page(scope["path"]):
            application = self._files
        else:
            application = _refusal(scope["method"], scope["path"]) or self._scheduler
        await application(scope, receive, send)


def _refusal(method: str, path: str) -> ASGIApp | None:
    """Return what to answer instead of a scheduler, if anything."""
    if method not in READING and (method, path) != ("POST", QUESTION):
        return PlainTextResponse(
            "405 only GET, HEAD, and POST to /simulate are allowed here\n",
            405,
            headers={"Allow": ", ".join(READING)},
        )
    first, *segments = path.split("/")
    names_endpoint = not first and segments and segments[0] in ENDPOINTS
    if not names_endpoint or not NOT_IN_NAMES.isdisjoint(segments) or "\\" in path:
        return PlainTextResponse("404 page not found\n", 404)
    return None
