"""The page, served to the browsers of this machine."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from berth.addresses import LOOPBACK
from berth.http_server import HttpServer
from berth.same_machine import SameMachine
from berth.ui.allowed import Page
from berth.ui.headers import SecurityHeaders
from berth.ui.sessions import TOKEN, Sessions


@asynccontextmanager
async def local_page(
    scheduler: ASGIApp, *, port: int, program: str, say: Callable[[str], None]
) -> AsyncIterator[HttpServer]:
    """Serve the page until the end of the block, with the endpoints of *scheduler* beside it.

    It is on loopback, on any port if *port* is taken. *say* is told the link to open, and another
    one each time a link was used; *program* is what shows what is said. The server has to be run
    in the block.
    """

    def tell() -> None:
        say(f"page at {server.url}/?{TOKEN}={sessions.token}")

    sessions = Sessions(Page(scheduler), program=program, renewed=tell)
    server = HttpServer(SecurityHeaders(SameMachine(sessions)))
    try:
        await server.start(LOOPBACK, port)
    except OSError:
        say(f"--ui-port {port} is not available; the page has another one")
        await server.start(LOOPBACK, 0)
    try:
        tell()
        yield server
    finally:
        await server.stop()
