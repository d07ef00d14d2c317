"""The API server: one application on one store, and the HTTP server in front of it."""

import asyncio
import random
import ssl
from collections.abc import Collection
from functools import partial

from starlette.types import Message, Receive, Scope, Send

from berth.cluster.access.authentication import TokenAuthenticator
from berth.cluster.access.gate import USER, Gate
from berth.cluster.access.rbac import Authorizer, Observer
from berth.cluster.access.reviews import Reviews
from berth.cluster.access.service_account_tokens import ServiceAccountTokens
from berth.cluster.access.signing_key import SigningKey, new_signing_key
from berth.cluster.access.token_requests import TokenRequests
from berth.cluster.access.tokens import Tokens
from berth.cluster.dynamic_admission.client import WebhookClient
from berth.cluster.dynamic_admission.mutating_policies import MutatingPolicies
from berth.cluster.dynamic_admission.validating_policies import ValidatingPolicies
from berth.cluster.dynamic_admission.webhook_admission import WebhookAdmission
from berth.cluster.errors import StatusError
from berth.cluster.features import DEFAULT_FEATURES
from berth.cluster.http import health, openid
from berth.cluster.http.call import Services
from berth.cluster.http.endpoints import Endpoints
from berth.cluster.http.flow_schemas import FLOW, NO_FLOW, Flow, FlowControl
from berth.cluster.http.in_flight import DEFAULT, InFlight, InFlightLimits
from berth.cluster.http.metrics import ApiMetrics
from berth.cluster.http.pages import Pages, metrics_route
from berth.cluster.http.paths import Paths, is_below_version
from berth.cluster.http.requests import refusal
from berth.cluster.kinds.registry import Registry
from berth.cluster.storage.expiry import Expiry
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.steps import MakeAdmission, standard_admission
from berth.cluster.writes.definitions import Definitions
from berth.cluster.writes.deletion import Deletions
from berth.cluster.writes.field_manager import FieldManager
from berth.cluster.writes.identities import Identities
from berth.cluster.writes.local_api_services import LocalApiServices
from berth.cluster.writes.pipeline import Writes
from berth.cluster.writes.subresources.action import Action
from berth.cluster.writes.subresources.binding import Binding
from berth.cluster.writes.subresources.eviction import Eviction
from berth.cluster.writes.subresources.token import Token
from berth.runtime.clock import Clock
from berth.runtime.http_server import HttpServer
from berth.runtime.same_machine import SameMachine
from berth.runtime.tasks import forever

EVENT_SECONDS = 3600.0
"""How long an event lives after it was written last: the default of ``--event-ttl``."""

TICK_SECONDS = 1.0
"""How often watches look at the clock: they end and send bookmarks to the second."""


class ApiServer:
    """Serves the kinds in *registry* from *store*; the kinds may come and go.

    Make one, :meth:`open` and :meth:`start` it, have :meth:`run` awaited while it is needed,
    :meth:`stop` it once.
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
        limits: InFlightLimits = DEFAULT,
        features: Collection[str] = DEFAULT_FEATURES,
    ) -> None:
        """*tokens* say who is who; None: nobody is asked, and everybody may do everything.

        *signing_key* signs the tokens of service accounts; None: a new one. *observer* is told of
        every decision about a request. *limits* are for requests in progress. *features* are the
        feature gates that are on.
        """
        identities = Identities(rng)
        authorizer = Authorizer(store, observer=observer)
        self._webhooks = WebhookClient(store)
        policies = (
            MutatingPolicies(store, registry, authorizer),
            ValidatingPolicies(store, registry, authorizer),
        )
        webhooks = WebhookAdmission(
            store, registry, self._webhooks, authorizer, identities=identities
        )
        deletions = Deletions(store, clock=clock)
        field_manager = FieldManager(registry.find)
        self.writes = Writes(
            store,
            deletions,
            admission=admission(
                store,
                authorizer=authorizer,
                clock=clock,
                identities=identities,
                async_steps=(*policies, webhooks),
                features=features,
                release=registry.release,
            ),
            clock=clock,
            identities=identities,
            field_manager=field_manager,
        )
        self._definitions = Definitions(registry, store, deletions, clock=clock)
        self._api_services = LocalApiServices(registry, store, clock=clock)
        self._store = store
        self._clock = clock
        self._expiry = Expiry(store, "events", seconds=EVENT_SECONDS, clock=clock)
        key = signing_key or SigningKey(new_signing_key())
        accounts = ServiceAccountTokens(key, store, clock=clock)
        authenticator = TokenAuthenticator(tokens or Tokens(), accounts)
        self._gate = Gate(authenticator, authorizer, is_open=tokens is None)
        requests = TokenRequests(accounts, store, clock=clock, uid=identities.uid)
        actions: tuple[Action, ...] = (
            Binding(store, clock=clock, features=features, release=registry.release),
            Eviction(store, deletions, self.writes, clock=clock),
            Token(store, requests, field_manager, clock=clock),
        )
        in_flight = InFlight(limits)
        self._flow_control = FlowControl(store, seats=limits.read_only + limits.mutating)
        metrics = ApiMetrics(
            in_flight, self._flow_control, partial(_count_objects, registry, store)
        )
        registry.listen(partial(metrics.keep, registry))
        services = Services(
            store,
            self.writes,
            actions={action.name: action for action in actions},
            reviews=Reviews(authenticator, authorizer, clock=clock),
            gate=self._gate,
            clock=clock,
            metrics=metrics,
            rng=_same(rng),
        )
        self.containers = services.containers
        """Those of kubelets in this process, which add them."""
        self._endpoints = Endpoints(Paths(registry), services, in_flight, self._flow_control)
        probes = health.api_server_probes(
            etcd=lambda: store.problem,
            is_open=lambda: services.is_open,
            is_starting=lambda: self.is_starting,
        )
        self._pages = Pages(
            registry, [*openid.routes(key), *health.routes(probes), metrics_route(metrics)]
        )
        self.is_starting = False
        """Whether what a cluster has from the start is being created; probes say so."""
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
        flow = scope[FLOW] = self._flow_control.flow_of(
            scope[USER], scope["method"], scope["path"], scope["query_string"]
        )
        told = partial(_tell, flow, send)
        if is_below_version(scope["path"]):
            await self._endpoints.serve(scope, receive, told)
        else:
            await self._pages(scope, receive, told)

    def open(self) -> None:
        """Serve the kinds that are defined in the store, and follow what becomes of them.

        Before the first write. It may write itself, so where the store keeps a journal, there must
        be an event loop.
        """
        self._definitions.start()
        self._api_services.start()

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listen; return the port, which the system chooses when *port* is 0.

        *tls* makes it HTTPS. Raises OSError when the address cannot be had.
        """
        # Plain HTTP is for this machine, all of which may do everything.
        application = SameMachine(self.app) if tls is None else self.app
        server = HttpServer(application, tls=tls, goes_first=self._gate.goes_first)
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
            if self._ticking.done() and not self._ticking.cancelled():
                await self._ticking
            await serving
        finally:
            serving.cancel()

    async def stop(self) -> None:
        """End all watches, let requests finish, and close the connections."""
        await self._endpoints.close()
        await self._webhooks.close()
        if self._server is None or self._ticking is None:
            return
        # First: on a clock that jumps ahead it would tick as fast as it can meanwhile.
        self._ticking.cancel()
        await asyncio.wait([self._ticking])
        await self._server.stop()

    async def _tick(self) -> None:
        while True:
            now = self._clock.monotonic()
            # With whole seconds, when others wake up, too.
            await self._clock.sleep(TICK_SECONDS - now % TICK_SECONDS)
            self._endpoints.tick()
            self._store.wake_due(self._clock.monotonic())
            self._expiry.sweep()


async def _tell(flow: Flow, send: Send, message: Message) -> None:
    """Send a message of an answer, which says what its request belonged to."""
    if message["type"] == "http.response.start" and flow is not NO_FLOW:
        message = {**message, "headers": [*message["headers"], *flow.headers]}
    await send(message)


def _same(rng: random.Random) -> random.Random:
    """Return what gives the same numbers, and takes none of them from the other."""
    same = random.Random()
    same.setstate(rng.getstate())
    return same


def _count_objects(registry: Registry, store: Store) -> dict[tuple[str, str], int]:
    """Return how many objects there are, by group and plural; of several views the first."""
    counts: dict[str, tuple[tuple[str, str], int]] = {}
    for each in registry:
        if each.is_stored and each.storage_key not in counts:
            key = each.storage_key
            counts[key] = (each.group, each.plural), store.count(key)
    return dict(counts.values())
