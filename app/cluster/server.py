"""The API server: one application on one store, and the HTTP server in front of it."""

import asyncio
import random
import socket
from collections.abc import Sequence

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.clock import Clock
from app.cluster import discovery, errors, openapi
from app.cluster.deletion import Deletions
from app.cluster.endpoints import Endpoints
from app.cluster.http_server import HttpServer
from app.cluster.identities import Identities
from app.cluster.negotiation import JSON
from app.cluster.paths import Paths, is_below_version
from app.cluster.resources import Object, ResourceType
from app.cluster.store import Store
from app.cluster.writes import Admission, Writes
from app.tasks import forever

TICK_SECONDS = 1.0
"""How often watches look at the clock: they end and send bookmarks to the second."""

VERSION: Object = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+berth",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": "",
}


class ApiServer:
    """Serves *resources* from *store*.

    Make one, :meth:`start` it, have :meth:`run` awaited while it is needed, :meth:`stop` it once.
    """

    def __init__(
        self,
        resources: Sequence[ResourceType],
        store: Store,
        *,
        admission: Admission,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.writes = Writes(
            store,
            Deletions(store, clock=clock),
            admission=admission,
            clock=clock,
            identities=Identities(rng),
        )
        self._store = store
        self._clock = clock
        self._endpoints = Endpoints(Paths(resources), store, self.writes, clock=clock)
        self._pages = _pages(resources)
        self._server: HttpServer | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: an ASGI application."""
        path = scope["path"]
        if is_below_version(path) and path != ACCESS_REVIEWS:
            await self._endpoints.serve(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port, which the system chooses when *port* is 0.

        Raises OSError when the address cannot be had.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
        self._server = HttpServer(self.app)
        self._tasks = [
            asyncio.create_task(self._server.serve([listener]), name="cluster-api-server"),
            asyncio.create_task(
                forever("cluster-watch-tick", self._tick), name="cluster-watch-tick"
            ),
        ]
        return int(listener.getsockname()[1])

    async def run(self) -> None:
        """Wait until the server is stopped; raise what it dies of before.

        Whoever starts the server owns this: nobody else would notice.
        """
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if self._server is not None and self._server.should_exit:
            return
        for task in done:
            await task
        raise RuntimeError("the API server has ended")

    async def stop(self) -> None:
        """End all watches, let requests finish, and close the connections."""
        self._endpoints.close()
        if self._server is None:
            return
        serving, ticking = self._tasks
        self._server.should_exit = True
        ticking.cancel()
        await asyncio.wait([serving, ticking])

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_SECONDS)
            self._store.wake()


def _pages(resources: Sequence[ResourceType]) -> Starlette:
    """Return what serves all that is not a resource: it hardly changes, and is hardly asked."""
    return Starlette(
        routes=[
            Route(ACCESS_REVIEWS, _review_access, methods=["POST"]),
            *discovery.routes(resources),
            *openapi.routes(resources),
            Route("/version", _version),
            *(Route(path, _healthy) for path in ("/healthz", "/livez", "/readyz")),
        ],
        exception_handlers={HTTPException: _refused},
    )


async def _version(_request: Request) -> Response:
    return Response(msgspec.json.encode(VERSION), media_type=JSON)


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("ok")


ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def _review_access(_request: Request) -> Response:
    """Allow everything: who can reach a loopback address owns the cluster."""
    review = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {"allowed": True},
    }
    return Response(msgspec.json.encode(review), 201, media_type=JSON)


async def _refused(_request: Request, exc: Exception) -> Response:
    """Answer what no route does: the router says only 404 and 405."""
    code = exc.status_code if isinstance(exc, HTTPException) else 404
    error = errors.method_not_allowed() if code == 405 else errors.path_not_found()
    return Response(msgspec.json.encode(error.status()), error.code, media_type=JSON)
