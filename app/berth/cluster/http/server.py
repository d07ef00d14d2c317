"""The API server: one application on one store, and the HTTP server in front of it."""

import asyncio
import random
import ssl

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.clock import Clock
from berth.cluster import errors
from berth.cluster.access.authentication import TokenAuthenticator
from berth.cluster.access.gate import Gate
from berth.cluster.access.rbac import Authorizer, Observer
from berth.cluster.access.reviews import Reviews
from berth.cluster.access.service_account_tokens import ServiceAccountTokens
from berth.cluster.access.signing_key import SigningKey, new_signing_key
from berth.cluster.access.token_requests import TokenRequests
from berth.cluster.access.tokens import Tokens
from berth.cluster.dynamic_admission.client import WebhookClient
from berth.cluster.dynamic_admission.policy_admission import PolicyAdmission
from berth.cluster.dynamic_admission.webhook_admission import WebhookAdmission
from berth.cluster.errors import StatusError
from berth.cluster.http import discovery, openapi, openid
from berth.cluster.http.call import Services
from berth.cluster.http.endpoints import Endpoints
from berth.cluster.http.negotiation import JSON
from berth.cluster.http.paths import Paths, is_below_version
from berth.cluster.http.requests import refusal
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.cluster.storage.expiry import Expiry
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.steps import MakeAdmission, standard_admission
from berth.cluster.writes.definitions import Definitions
from berth.cluster.writes.deletion import Deletions
from berth.cluster.writes.field_manager import FieldManager
from berth.cluster.writes.identities import Identities
from berth.cluster.writes.pipeline import Writes
from berth.cluster.writes.subresources.action import Action
from berth.cluster.writes.subresources.binding import Binding
from berth.cluster.writes.subresources.token import Token
from berth.http_server import HttpServer
from berth.same_machine import SameMachine
from berth.tasks import forever

EVENT_SECONDS = 3600.0
"""How long an event lives after it was written last: the default of ``--event-ttl``."""

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
    """Serves the kinds in *registry* from *store*; the kinds may come and go.

    Make one, :meth:`start` it, have :meth:`run` awaited while it is needed, :meth:`stop` it once.
    """

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        clock: Clock,
        rng: random.Random,
        admission: MakeAdmission = standard_admission,
        tokens: Tokens | None = None,
        signing_key: SigningKey | None = None,
        observer: Observer | None = None,
    ) -> None:
        """*tokens* say who is who; None: nobody is asked, and everybody may do everything.

        *signing_key* signs the tokens of service accounts; None: a new one. *observer* is told of
        every decision about a request.
        """
        identities = Identities(rng)
        authorizer = Authorizer(store, observer=observer)
        self._webhooks = WebhookClient(store)
        webhooks = WebhookAdmission(store, registry, self._webhooks, identities=identities)
        deletions = Deletions(store, clock=clock)
        self.writes = Writes(
            store,
            deletions,
            admission=admission(
                store,
                authorizer=authorizer,
                clock=clock,
                identities=identities,
                async_steps=(PolicyAdmission(store, registry), webhooks),
            ),
            clock=clock,
            identities=identities,
            field_manager=FieldManager(registry.find),
        )
        Definitions(registry, store, deletions, clock=clock)
        self._store = store
        self._clock = clock
        self._expiry = Expiry(store, "events", seconds=EVENT_SECONDS, clock=clock)
        key = signing_key or SigningKey(new_signing_key())
        accounts = ServiceAccountTokens(key, store, clock=clock)
        authenticator = TokenAuthenticator(tokens or Tokens(), accounts)
        self._gate = Gate(authenticator, authorizer, is_open=tokens is None)
        requests = TokenRequests(accounts, store, clock=clock, uid=identities.uid)
        actions: tuple[Action, ...] = (Binding(store, clock=clock), Token(store, requests))
        services = Services(
            store,
            self.writes,
            actions={each.name: each for each in actions},
            reviews=Reviews(authenticator, authorizer),
            clock=clock,
        )
        self._endpoints = Endpoints(Paths(registry), services)
        self._pages = _Pages(registry, key)
        self._server: HttpServer | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: an ASGI application."""
        try:
            self._gate.admit(scope)
        except StatusError as exc:
            accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
            await refusal(exc, accept.decode("latin-1"))(scope, receive, send)
            return
        if is_below_version(scope["path"]):
            await self._endpoints.serve(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listen; return the port, which the system chooses when *port* is 0.

        *tls* makes it HTTPS. Raises OSError when the address cannot be had.
        """
        # Plain HTTP is for this machine, all of which may do everything.
        server = HttpServer(SameMachine(self.app) if tls is None else self.app, tls=tls)
        await server.start(host, port)
        self._server = server
        self._ticking = asyncio.create_task(
            forever("cluster-watch-tick", self._tick), name="cluster-watch-tick"
        )
        return server.port

    async def run(self) -> None:
        """Wait until the server is stopped; raise what it dies of before.

        Whoever starts the server owns this: nobody else would notice.
        """
        if self._server is None or self._ticking is None:
            raise RuntimeError("the API server has not been started")
        serving = asyncio.create_task(self._server.run(), name="cluster-api-server")
        try:
            await asyncio.wait([serving, self._ticking], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            elif self._ticking.done() and not self._ticking.cancelled():
                await self._ticking
        finally:
            serving.cancel()

    async def stop(self) -> None:
        """End all watches, let requests finish, and close the connections."""
        self._endpoints.close()
        await self._webhooks.close()
        if self._server is None or self._ticking is None:
            return
        await self._server.stop()
        self._ticking.cancel()
        await asyncio.wait([self._ticking])

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_SECONDS)
            self._store.wake()
            self._expiry.sweep()


class _Pages:
    """Serves all that is not a resource: it hardly changes, and is hardly asked."""

    def __init__(self, registry: Registry, key: SigningKey) -> None:
        self._registry = registry
        self._key = key
        self._revision = 0
        self._documents = openapi.Documents()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None or self._revision != self._registry.revision:
            self._app = _pages(self._registry, self._documents, self._key)
            self._revision = self._registry.revision
        # What ends in a slash is the same page.
        path = scope["path"].rstrip("/") or "/"
        await self._app({**scope, "path": path}, receive, send)


def _pages(registry: Registry, documents: openapi.Documents, key: SigningKey) -> ASGIApp:
    routes = [
        *discovery.routes(tuple(registry)),
        *openapi.routes(tuple(registry), documents),
        *openid.routes(key),
        Route("/version", _version),
        *(Route(path, _healthy) for path in ("/healthz", "/livez", "/readyz")),
    ]
    index = msgspec.json.encode({"paths": sorted(route.path for route in routes)})

    async def root(_request: Request) -> Response:
        return Response(index, media_type=JSON)

    routes.append(Route("/", root))
    return Starlette(routes=routes, exception_handlers={HTTPException: _refused})


async def _version(_request: Request) -> Response:
    return Response(msgspec.json.encode(VERSION), media_type=JSON)


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("ok")


async def _refused(_request: Request, exc: Exception) -> Response:
    """Answer what no route does: the router says only 404 and 405."""
    code = exc.status_code if isinstance(exc, HTTPException) else 404
    error = errors.method_not_allowed() if code == 405 else errors.path_not_found()
    return Response(msgspec.json.encode(error.status()), error.code, media_type=JSON)
