"""Paths below no group and version: discovery, OpenAPI, the version, health and metrics."""

import asyncio
from collections.abc import Sequence

import msgspec
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.cluster import errors
from berth.cluster.http import discovery, openapi
from berth.cluster.http.metrics import ApiMetrics
from berth.cluster.http.negotiation import JSON
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.runtime.metrics import metrics_text
from berth.runtime.release import PATCHES, previous


def version_of(release: str) -> Object:
    """Return what ``/version`` says of a server of *release*."""
    major, minor = release.split(".")
    oldest = previous(release).split(".")[1]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": oldest,
        "gitVersion": f"v{PATCHES[release]}+berth",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "cpython",
        "platform": "",
    }


class Pages:
    """Serves all that is not a resource: it hardly changes, and is hardly asked."""

    def __init__(self, registry: Registry, routes: Sequence[Route]) -> None:
        """*routes* are those that do not follow from *registry*."""
        self._registry = registry
        self._routes = routes
        self._revision = 0
        self._documents = openapi.Documents()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None or self._revision != self._registry.revision:
            self._app, self._revision = self._made(), self._registry.revision
        # What ends in a slash is the same page.
        path = scope["path"].rstrip("/") or "/"
        await self._app({**scope, "path": path}, receive, send)

    def _made(self) -> ASGIApp:
        kinds = tuple(self._registry)
        routes = [
            *discovery.routes(kinds),
            *openapi.routes(kinds, self._documents),
            *self._routes,
            Route("/version", self._version),
        ]
        index = msgspec.json.encode({"paths": sorted(route.path for route in routes)})

        async def root(_request: Request) -> Response:
            return Response(index, media_type=JSON)

        routes.append(Route("/", root))
        return Starlette(routes=routes, exception_handlers={HTTPException: _refused})

    async def _version(self, _request: Request) -> Response:
        said = msgspec.json.encode(version_of(self._registry.release))
        return Response(msgspec.json.format(said, indent=2), media_type=JSON)


def metrics_route(metrics: ApiMetrics) -> Route:
    """Return what Prometheus scrapes: *metrics*, and those of the process.

    Millions of characters take as long as thousands of requests, so they are written in a thread.
    """
    one_at_a_time = asyncio.Lock()

    async def answer(request: Request) -> Response:
        async with one_at_a_time:
            registry = CollectorRegistry()
            registry.register(metrics.scrape())
            ProcessCollector(registry=registry)
            GCCollector(registry=registry)
            accept = request.headers.get("accept", "")
            content, content_type = await asyncio.to_thread(metrics_text, registry, accept)
        return Response(content, headers={"Content-Type": content_type})

    return Route("/metrics", answer)


async def _refused(request: Request, exc: Exception) -> Response:
    """Answer what no route does: the router says only 404 and 405.

    As in the API server, whose router takes what is below the version for a resource.
    """
    is_wrong_method = isinstance(exc, HTTPException) and exc.status_code == 405
    if is_wrong_method or request.url.path.startswith("/version/"):
        error = errors.method_not_allowed() if is_wrong_method else errors.path_not_found()
        return Response(msgspec.json.encode(error.status()), error.code, media_type=JSON)
    nothing = errors.NothingThereError()
    return Response(nothing.message, nothing.code, media_type="text/plain")
