"""The application that routers are included in, described in ``/openapi.json``."""

from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

DEFAULT_PORT: Final = 10261
"""Of ``berth up``: beside kube-scheduler's 10259, so that both can run on one machine."""


class Application(FastAPI):
    """Has nothing but ``/``, which lists the paths that are included in it."""

    def __init__(self) -> None:
        super().__init__(
            title="berth",
            version=version("berth"),
            description="Why pods are where they are, and why others have no node.",
            docs_url=None,  # its page loads scripts from elsewhere
            redoc_url=None,
        )
        self.router.default = _not_found
        self.paths: set[str] = set()
        """What is served, but for paths with parameters."""

        @self.get("/", summary="What there is")
        async def index() -> dict[str, list[str]]:
            return {"paths": sorted(self.paths)}

    def include_router(self, router: APIRouter, *args: Any, **kwargs: Any) -> None:
        super().include_router(router, *args, **kwargs)
        routes = [route for route in router.routes if isinstance(route, APIRoute)]
        self.paths |= {route.path for route in routes if "{" not in route.path}


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Say that nothing is served at a path, in the words of Go's servers."""
    await PlainTextResponse("404 page not found\n", 404)(scope, receive, send)
