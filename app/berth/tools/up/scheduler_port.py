"""The port of the scheduler of ``berth up``, for ``berth explain`` and others on this machine."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from berth.cluster.access.users import SCHEDULER
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import server_context
from berth.runtime.clock import Clock
from berth.runtime.http_server import HttpServer
from berth.runtime.same_machine import SameMachine
from berth.scheduler.config.options import (
    DelegatingAuthenticationOptions,
    DelegatingAuthorizationOptions,
)
from berth.service.server.access.secure_serving import with_delegated_access


@asynccontextmanager
async def scheduler_port(
    application: ASGIApp,
    cluster: EmbeddedCluster,
    *,
    port: int,
    clock: Clock,
    say: Callable[[str], None],
) -> AsyncIterator[HttpServer]:
    """Serve *application* on loopback until the end of the block, on any port if *port* is taken.

    It has the certificate of *cluster*, whose RBAC decides who may use it: one kubeconfig works
    for both. The server has to be run in the block.
    """
    reviews = await cluster.connect("berth-reviews", user=SCHEDULER)
    try:
        pair = cluster.certificate
        if pair is None:
            server = HttpServer(SameMachine(application))
        else:
            access = with_delegated_access(
                application,
                DelegatingAuthenticationOptions(),
                DelegatingAuthorizationOptions(),
                tokens=reviews,
                permissions=reviews,
                clock=clock,
            )
            server = HttpServer(access, tls=server_context(pair))
        try:
            await server.start(LOOPBACK, port)
        except OSError:
            say(f"--debug-port {port} is not available; the kubeconfig has another one")
            await server.start(LOOPBACK, 0)
        try:
            yield server
        finally:
            await server.stop()
    finally:
        await reviews.close()
