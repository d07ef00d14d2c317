"""The application that routers are included in, described in ``/openapi.json``."""

from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

DESCRIPTION: Final = "/openapi.json"
"""Has what ``/`` leaves out: the paths with parameters."""


class Application(FastAPI):
    """Has nothing but ``/``, which lists the paths that are included in it.

    What can be asked for with GET can be with HEAD, as of Go's servers: some probes do.
    """

    def __init__(
        self,
        *,
        title: str = "berth",
        description: str = "Why pods are where they are, and why others have no node.",
    ) -> None:
        super().__init__(
            title=title,
            version=version("berth"),
            description=description,
            openapi_url=DESCRIPTION,
            docs_url=None,  # its page loads scripts from elsewhere
            redoc_url=None,
        )
        self.router.default = _not_found
        self.paths: set[str] = set()
        """What is served, but for paths with parameters."""

        @self.get("/", summary="What there is")
        async def index() -> dict[str, list[str]]:
            return {"paths": sorted({DESCRIPTION, *self.paths})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the server, which has the original, sends no body
        await super().__call__(scope, receive, send)

    def include_router(self, router: APIRouter, *args: Any, **kwargs: Any) -> None:
        super().include_router(router, *args, **kwargs)
        routes = [route for route in router.routes if isinstance(route, APIRoute)]
        self.paths |= {route.path for route in routes if "{" not in route.path}


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Say that nothing is served at a path, in the words of Go's servers."""
    await PlainTextResponse("404 page not found\n", 404)(scope, receive, send)
