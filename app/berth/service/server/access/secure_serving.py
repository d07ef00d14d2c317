"""HTTPS for one application, with delegated authentication and authorization (spec §7.2, §7.3)."""

import asyncio
import logging
from typing import Final

from starlette.types import ASGIApp

from berth.kube.client.api import Api
from berth.runtime.clock import Clock
from berth.runtime.connection_limit import ConnectionCounts
from berth.runtime.errors import UserError
from berth.runtime.http_server import HttpServer, Listener
from berth.runtime.tasks import forever
from berth.scheduler.config.options import (
    DelegatingAuthenticationOptions,
    DelegatingAuthorizationOptions,
    SecureServingOptions,
)
from berth.service.server.access.authentication import Authenticator
from berth.service.server.access.authorization import Authorizer, PublicPaths
from berth.service.server.access.client_authorities import (
    ClientAuthorities,
    client_authorities,
)
from berth.service.server.access.delegated_access import DelegatedAccess
from berth.service.server.access.serving_tls import ServingTls

log = logging.getLogger(__name__)

LOOK_INTERVAL: Final = 10.0
"""Seconds between looks at the files of certificates."""

LOOKUP_INTERVAL: Final = 60.0
"""Seconds between questions to the cluster about its authorities."""


def with_delegated_access(
    application: ASGIApp,
    authentication: DelegatingAuthenticationOptions,
    authorization: DelegatingAuthorizationOptions,
    *,
    tokens: Api,
    permissions: Api,
    clock: Clock,
) -> DelegatedAccess:
    """Return *application* with TokenReviews by *tokens* and SubjectAccessReviews by *permissions*.

    No client certificate is accepted until the authenticator is given its settings.
    """
    authenticator = Authenticator(
        tokens,
        settings=ClientAuthorities(),
        token_ttl=authentication.authentication_token_webhook_cache_ttl.seconds,
        clock=clock,
    )
    authorizer = Authorizer(
        permissions,
        public=PublicPaths(authorization.authorization_always_allow_paths),
        allowed_ttl=authorization.authorization_webhook_cache_authorized_ttl.seconds,
        denied_ttl=authorization.authorization_webhook_cache_unauthorized_ttl.seconds,
        clock=clock,
    )
    return DelegatedAccess(application, authenticator=authenticator, authorizer=authorizer)


class SecureServer:
    """Serves an application, which guards itself, by HTTPS.

    Make one, :meth:`start` it, :meth:`run` it, stop it.
    """

    def __init__(
        self,
        application: ASGIApp,
        serving: SecureServingOptions,
        authentication: DelegatingAuthenticationOptions,
        *,
        authenticator: Authenticator,
        api: Api,
        clock: Clock,
    ) -> None:
        """*authenticator*, which *application* uses, is set up by *authentication* and *api*.

        Raises UserError for flags that cannot be obeyed.
        """
        self._serving = serving
        self._authentication = authentication
        self._authenticator = authenticator
        self._api = api
        self._clock = clock
        self._tls = ServingTls(serving, now=clock.now())
        self._server = HttpServer(application, tls=self._tls.context)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def listener(self) -> Listener:
        return self._server.listener

    @property
    def connections(self) -> ConnectionCounts:
        """What becomes of connections; for metrics, not to be changed."""
        return self._server.connections

    async def start(self) -> None:
        """Load the client CAs, then listen. Raises OSError, and UserError about flags."""
        self._trust(await client_authorities(self._authentication, self._api))
        serving = self._serving
        await self._server.start(
            serving.bind_address, serving.secure_port, share_port=serving.permit_port_sharing
        )

    async def run(self) -> None:
        """Serve, with what files and the cluster say by then; never return."""
        async with asyncio.TaskGroup() as tasks:
            for name, run in (
                ("secure serving", self._server.run),
                ("serving certificates", self._keep_certificates),
                ("client authorities", self._keep_authorities),
            ):
                tasks.create_task(forever(name, run), name=name)

    async def stop(self) -> None:
        """Let requests finish, for seconds at most, and close the connections."""
        await self._server.stop()

    async def _keep_certificates(self) -> None:
        while True:
            await self._clock.sleep(LOOK_INTERVAL)
            self._tls.refresh()

    async def _keep_authorities(self) -> None:
        while True:
            await self._clock.sleep(LOOKUP_INTERVAL)
            try:
                self._trust(
                    await client_authorities(
                        self._authentication, self._api, known=self._authenticator.settings
                    )
                )
            except (UserError, OSError) as exc:  # the CAs so far stay trusted
                log.warning("client authorities were not reloaded", extra={"error": str(exc)})

    def _trust(self, settings: ClientAuthorities) -> None:
        self._tls.trust([authority.pem for authority in settings.authorities])
        self._authenticator.settings = settings
