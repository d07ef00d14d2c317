"""The page, served to the browsers of this machine."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.runtime.same_machine import SameMachine
from berth.service.ui.files import Files, is_of_page
from berth.service.ui.headers import SecurityHeaders
from berth.service.ui.sessions import TOKEN, Sessions


class LocalPage:
    """The page while it is served; made by :func:`local_page`."""

    def __init__(self, page: "Page", *, program: str, say: Callable[[str], None]) -> None:
        self._say = say
        self._sessions = Sessions(page, program=program, renewed=self.tell)
        self.server = HttpServer(SecurityHeaders(SameMachine(self._sessions)))

    @property
    def link(self) -> str:
        """What a browser has to open to get a session. It works once; then it is another one."""
        return f"{self.server.url}/?{TOKEN}={self._sessions.token}"

    def tell(self) -> None:
        """Say which link to open."""
        self._say(f"page at {self.link}")


@asynccontextmanager
async def local_page(
    scheduler: ASGIApp,
    *,
    port: int,
    program: str,
    say: Callable[[str], None],
    is_recording: bool = False,
) -> AsyncIterator[LocalPage]:
    """Serve the page until the end of the block, with the endpoints of *scheduler* beside it.

    It is on loopback, on any port if *port* is taken. *say* is told the link to open, and another
    one each time a link was used; *program* is what shows what is said. The server has to be run
    in the block. If *scheduler* shows a recording, the page asks it for other moments.
    """
    page = LocalPage(Page(scheduler, is_recording=is_recording), program=program, say=say)
    try:
        await page.server.start(LOOPBACK, port)
    except OSError:
        say(f"--ui-port {port} is not available; the page has another one")
        await page.server.start(LOOPBACK, 0)
    try:
        page.tell()
        yield page
    finally:
        await page.server.stop()


# Requests that the page may make of a scheduler: it reads, and asks what-if questions.


READING: Final = ("GET", "HEAD")

QUESTION: Final = "/simulate"
"""Is posted to, and changes nothing."""

MOMENT: Final = "/debug/recording"
"""Is posted to where a recording is shown, and changes only which moment of it."""

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

    def __init__(self, scheduler: ASGIApp, *, is_recording: bool = False) -> None:
        self._scheduler = scheduler
        self._files = Files(is_recording=is_recording)
        self._posts = {QUESTION, MOMENT} if is_recording else {QUESTION}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application: ASGIApp
        if is_of_page(scope["path"]):
            application = self._files
        else:
            application = _refusal(scope["method"], scope["path"], self._posts) or self._scheduler
        await application(scope, receive, send)


def _refusal(method: str, path: str, posts: Collection[str]) -> ASGIApp | None:
    """Return what to answer instead of a scheduler, if anything; *posts* may be posted to."""
    if method not in READING and not (method == "POST" and path in posts):
        return PlainTextResponse(
            f"405 only GET, HEAD, and POST to {' and '.join(sorted(posts))} are allowed here\n",
            405,
            headers={"Allow": ", ".join(READING)},
        )
    first, *segments = path.split("/")
    names_endpoint = not first and segments and segments[0] in ENDPOINTS
    if not names_endpoint or not NOT_IN_NAMES.isdisjoint(segments) or "\\" in path:
        return PlainTextResponse("404 page not found\n", 404)
    return None
