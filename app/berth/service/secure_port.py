"""HTTPS on --secure-port, for those who are authenticated and authorized (spec §7.2, §7.3)."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.types import ASGIApp

from berth.runtime.clock import RealClock
from berth.runtime.terminal import naming_port
from berth.scheduler.config.options import (
    DelegatingAuthenticationOptions,
    DelegatingAuthorizationOptions,
    SecureServingOptions,
)
from berth.service.api_connection import ApiConnection
from berth.service.server.access.secure_serving import SecureServer, with_delegated_access

log = logging.getLogger(__name__)


@asynccontextmanager
async def secure_port(
    application: ASGIApp,
    api: ApiConnection,
    *,
    serving: SecureServingOptions,
    authentication: DelegatingAuthenticationOptions,
    authorization: DelegatingAuthorizationOptions,
) -> AsyncIterator[SecureServer]:
    """Serve *application* until the end of the block.

    Without kubeconfigs of their own, reviews go to *api*. The server has to be run in the block,
    so that it is noticed when it dies.
    """
    async with AsyncExitStack() as cleanup:
        tokens = await cleanup.enter_async_context(
            api.for_reviews(authentication.authentication_kubeconfig).client("reviews")
        )
        permissions = await cleanup.enter_async_context(
            api.for_reviews(authorization.authorization_kubeconfig).client("reviews")
        )
        clock = RealClock()
        access = with_delegated_access(
            application,
            authentication,
            authorization,
            tokens=tokens,
            permissions=permissions,
            clock=clock,
        )
        server = SecureServer(
            access,
            serving,
            authentication,
            authenticator=access.authenticator,
            api=tokens,
            clock=clock,
        )
        with naming_port(serving.secure_port, flag="--secure-port"):
            await server.start()
        cleanup.push_async_callback(server.stop)
        log.info("serving securely", extra={"url": server.url})
        yield server
