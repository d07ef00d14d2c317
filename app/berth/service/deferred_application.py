"""An HTTP application that is made when it is first asked: nobody waits for it before."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class DeferredApplication:
    """Serves what *make* returns, which is called in a thread: imports must not hold up the loop.

    FastAPI and the models of all answers take 0.5 s to import and to build, as long as everything
    that a scheduler needs to bind its first pod.
    """

    def __init__(self, make: "Callable[[], ASGIApp]") -> None:
        self._make = make
        self._making: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if self._making is None:
            making = asyncio.to_thread(self._make)
            self._making = asyncio.create_task(making, name="make HTTP application")
        application = await asyncio.shield(self._making)  # a client that goes does not end it
        await application(scope, receive, send)
