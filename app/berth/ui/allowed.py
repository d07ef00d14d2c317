"""What the page may ask of a scheduler: it reads, and asks what-if questions."""

from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.ui.files import Files, is_of_page

READING: Final = ("GET", "HEAD")

QUESTION: Final = "/simulate"
"""The one path that is posted to; it changes nothing."""


class Page:
    """An ASGI application: the files of the page, and beside them the endpoints of *scheduler*.

    What could change anything is refused.
    """

    def __init__(self, scheduler: ASGIApp) -> None:
        self._scheduler = scheduler
        self._files = Files()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        application: ASGIApp = self._scheduler
        if is_of_page(path):
            application = self._files
        elif method not in READING and (method, path) != ("POST", QUESTION):
            application = PlainTextResponse(
                "405 only GET, HEAD, and POST to /simulate are allowed here\n",
                405,
                headers={"Allow": ", ".join(READING)},
            )
        await application(scope, receive, send)
