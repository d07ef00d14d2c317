"""What ``berth run`` serves: HTTPS on --secure-port, for those who may (spec §7.2, §7.3)."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from starlette.types import ASGIApp

from berth.client.api_client import ApiClient
from berth.client.connect import connect
from berth.clock import RealClock
from berth.commands.terminal import naming_port
from berth.config.options import Options
from berth.config.types import KubeSchedulerConfiguration
from berth.release import version
from berth.server.access.secure_serving import SecureServer, with_delegated_access

log = logging.getLogger(__name__)

REVIEW_QPS: Final = 200.0
REVIEW_BURST: Final = 400
"""Reviews per second, and at once: as kube-scheduler's clients for them."""


@asynccontextmanager
async def securely_serving(
    application: ASGIApp, options: Options, config: KubeSchedulerConfiguration
) -> AsyncIterator[SecureServer | None]:
    """Serve *application* until the end of the block, unless --secure-port is 0.

    The server has to be run in the block, so that it is noticed when it dies.
    """
    if not options.secure_port:
        yield None
        return
    async with AsyncExitStack() as cleanup:
        tokens = await _reviewer(options.authentication_kubeconfig, options, config)
        cleanup.push_async_callback(tokens.close)
        permissions = await _reviewer(options.authorization_kubeconfig, options, config)
        cleanup.push_async_callback(permissions.close)
        clock = RealClock()
        access = with_delegated_access(
            application, options, tokens=tokens, permissions=permissions, clock=clock
        )
        server = SecureServer(
            access, options, authenticator=access.authenticator, api=tokens, clock=clock
        )
        with naming_port(options.secure_port, flag="--secure-port"):
            await server.start()
        cleanup.push_async_callback(server.stop)
        log.info("serving securely", extra={"url": server.url})
        yield server


async def _reviewer(
    kubeconfig: str, options: Options, config: KubeSchedulerConfiguration
) -> ApiClient:
    """Return a client for reviews: of *kubeconfig*, or as the scheduler itself if there is none.

    kube-scheduler would only look whether it runs in a pod then, and know nobody elsewhere.
    """
    own = config.client_connection.kubeconfig
    return await connect(
        kubeconfig=kubeconfig or own or None,
        master=None if kubeconfig else options.master or None,
        qps=REVIEW_QPS,
        burst=REVIEW_BURST,
        user_agent=f"berth/{version()} reviews",
    )
