"""The page, served to the browsers of this machine."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.runtime.same_machine import SameMachine
from berth.service.ui.allowed import Page
from berth.service.ui.headers import SecurityHeaders
from berth.service.ui.sessions import TOKEN, Sessions


class LocalPage:
    """The page while it is served; made by :func:`local_page`."""

    def __init__(self, scheduler: ASGIApp, *, program: str, say: Callable[[str], None]) -> None:
        self._say = say
        self._sessions = Sessions(Page(scheduler), program=program, renewed=self.tell)
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
    scheduler: ASGIApp, *, port: int, program: str, say: Callable[[str], None]
) -> AsyncIterator[LocalPage]:
    """Serve the page until the end of the block, with the endpoints of *scheduler* beside it.

    It is on loopback, on any port if *port* is taken. *say* is told the link to open, and another
    one each time a link was used; *program* is what shows what is said. The server has to be run
    in the block.
    """
    page = LocalPage(scheduler, program=program, say=say)
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
