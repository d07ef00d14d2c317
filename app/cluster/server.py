"""The API server: one application on one store, and the HTTP server in front of it."""

import asyncio
import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.clock import Clock
from app.cluster import discovery, errors, openapi
from app.cluster.deletion import Deletions
from app.cluster.endpoints import Endpoints, json_response, status_response
from app.cluster.identities import Identities
from app.cluster.paths import Paths
from app.cluster.resources import Object, ResourceType
from app.cluster.store import Store
from app.cluster.writes import Admission, Writes
from app.tasks import forever

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

TICK_SECONDS = 1.0
"""How often watches look at the clock: they end and send bookmarks to the second."""

KEEP_ALIVE_SECONDS = 120
"""Longer than clients keep idle connections, so that it is they who close them."""

SHUTDOWN_SECONDS = 2
"""How long requests may take to finish when the server stops."""

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
    """Serves *resources* from *store*. Make one, :meth:`start` it, and :meth:`stop` it once."""

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
        self.app = self._application(resources)
        self._server: _Server | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port, which the system chooses when *port* is 0.

        Raises OSError when the address cannot be had.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
        config = uvicorn.Config(
            self.app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        self._server = _Server(config)
        self._tasks = [
            asyncio.create_task(self._server.serve([listener]), name="cluster-api-server"),
            asyncio.create_task(
                forever("cluster-watch-tick", self._tick), name="cluster-watch-tick"
            ),
        ]
        return int(listener.getsockname()[1])

    async def stop(self) -> None:
        """End all watches, let requests finish, and close the connections."""
        self._endpoints.close()
        if self._server is None:
            return
        serving, ticking = self._tasks
        self._server.should_exit = True
        ticking.cancel()
        await asyncio.wait([ticking])
        await serving

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_SECONDS)
            self._store.wake()

    def _application(self, resources: Sequence[ResourceType]) -> Starlette:
        answer = self._endpoints.answer
        return Starlette(
            routes=[
                Route(ACCESS_REVIEWS, _review_access, methods=["POST"]),
                Route("/api/v1/{path:path}", answer, methods=METHODS),
                Route("/apis/{group}/{version}/{path:path}", answer, methods=METHODS),
                *discovery.routes(resources),
                *openapi.routes(resources),
                Route("/version", _version),
                *(Route(path, _healthy) for path in ("/healthz", "/livez", "/readyz")),
            ],
            exception_handlers={HTTPException: _refused},
        )


class _Server(uvicorn.Server):
    """An HTTP server that is a guest in its process: signals are not its business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _version(_request: Request) -> Response:
    return json_response(msgspec.json.encode(VERSION))


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
    return json_response(msgspec.json.encode(review), 201)


async def _refused(_request: Request, exc: Exception) -> Response:
    """Answer what no route does: the router says only 404 and 405."""
    code = exc.status_code if isinstance(exc, HTTPException) else 404
    return status_response(errors.method_not_allowed() if code == 405 else errors.path_not_found())
