"""The application that routers are included in, described in ``/openapi.json``."""

from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.runtime.release import version
from berth.service.server.index_page import HEADERS, HTML, index_page, is_for_people
from berth.service.server.refusal import problems

DESCRIPTION: Final = "/openapi.json"
"""Has what ``/`` leaves out: the paths with parameters."""

LONGEST_TARGET: Final = 8 * 2**10
"""Bytes of a path and its query, as customary. Each of the parameters costs microseconds."""
LARGEST_HEAD: Final = 64 * 2**10
"""Bytes of all header fields; a token and the names of a user's groups take some thousand."""


class Application(FastAPI):
    """Has nothing but ``/``, which lists the paths that are included in it, to people as links.

    The heads of requests are limited, and errors in parameters do not repeat their values. Whatever
    serves GET serves HEAD, as Go's servers do: some probes use it.
    """

    def __init__(
        self,
        *,
        title: str = "berth",
        description: str = "Why pods are on their nodes, or pending.",
        about: str = "",
    ) -> None:
        """*about* is what ``/`` tells people besides, as HTML."""
        super().__init__(
            title=title,
            version=version(),
            description=description,
            openapi_url=DESCRIPTION,
            docs_url=None,  # its page loads scripts from elsewhere
            redoc_url=None,
        )
        self.router.default = _not_found
        self.add_exception_handler(RequestValidationError, _wrong_parameters)
        self.paths: set[str] = set()
        """What is served, but for paths with parameters."""

        @self.get(
            "/",
            summary="List of endpoints",
            response_model=dict[str, list[str]],
            responses={200: {"content": {HTML: {"schema": {"type": "string"}}}}},
        )
        async def index(request: Request) -> Response | dict[str, list[str]]:
            paths = sorted({DESCRIPTION, *self.paths})
            if is_for_people(request.headers.get("accept", "")):
                return HTMLResponse(index_page(title, paths, about=about), headers=HEADERS)
            return {"paths": paths}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the server, which has the original, sends no body
        refusal = _too_large(scope) if scope["type"] == "http" else None
        await (refusal or super().__call__)(scope, receive, send)

    def include_router(self, router: APIRouter, *args: Any, **kwargs: Any) -> None:
        """Serve the routes of *router* as they are, with no prefix and nothing else of their own.

        FastAPI would make each a second time at the first request, which is half of the time that
        an application takes to be put together.
        """
        assert not args
        assert not kwargs
        self.router.routes += router.routes
        routes = [route for route in router.routes if isinstance(route, APIRoute)]
        self.paths |= {route.path for route in routes if "{" not in route.path}


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Say that nothing is served at a path, in the words of Go's servers."""
    await PlainTextResponse("404 page not found\n", 404)(scope, receive, send)


def _too_large(scope: Scope) -> ASGIApp | None:
    """Return what to answer to a request whose head is larger than any that makes sense."""
    if len(scope["path"]) + len(scope["query_string"]) > LONGEST_TARGET:
        return PlainTextResponse("414 URI too long\n", 414)
    if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
        return PlainTextResponse("431 request header fields too large\n", 431)
    return None


async def _wrong_parameters(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": problems(error.errors())}, 422)
