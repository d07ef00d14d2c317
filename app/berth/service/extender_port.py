"""The extender port: where other schedulers call berth as their extender."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeAlias

from starlette.types import ASGIApp

from berth.kube.client.api import Api
from berth.runtime.clock import Clock
from berth.runtime.errors import UserError
from berth.runtime.http_server import HttpServer
from berth.runtime.same_machine import SameMachine
from berth.runtime.terminal import UsageError, naming_port, say
from berth.scheduler.config.options import DelegatingAuthorizationOptions
from berth.service.api_connection import ApiConnection
from berth.service.applications import extender_port_application
from berth.service.extender_port_settings import ExtenderPortSettings
from berth.service.scheduler_service import SchedulerService
from berth.service.server.access.secure_serving import SecureServer, with_delegated_access
from berth.service.server.extender.access import ExtenderAccess

ExtenderPort: TypeAlias = HttpServer | SecureServer
"""What listens; to be run and stopped."""


@asynccontextmanager
async def extender_port(
    service: SchedulerService, settings: ExtenderPortSettings, api: ApiConnection, *, clock: Clock
) -> AsyncIterator[ExtenderPort]:
    """Answer other schedulers by *service*, as *settings* say, until the end of the block."""
    application = extender_port_application(service, max_body_bytes=settings.max_body_bytes)
    # A client of its own: requests with wrong tokens must not delay the binds.
    async with (
        api.client("reviews") as reviews,
        listening(settings, application, reviews=reviews, clock=clock) as server,
    ):
        service.add_server("extender", server)
        yield server


@asynccontextmanager
async def listening(
    settings: ExtenderPortSettings, application: ASGIApp, *, reviews: Api, clock: Clock
) -> AsyncIterator[ExtenderPort]:
    """Serve *application* until the end of the block; *reviews* is asked about tokens.

    Raises UsageError when that cannot be.
    """
    server: ExtenderPort
    if settings.trusts_this_machine:
        application = SameMachine(application)
    flag = f"--{settings.flag_prefix}port"
    with naming_port(settings.port, flag=flag), _naming_flags(settings.flag_prefix):
        if settings.is_encrypted:
            server = _secure(settings, application, reviews, clock)
            await server.start()
        else:
            server = HttpServer(application)
            await server.start(settings.bind_address, settings.port)
    say(f"extender at {server.url}")
    try:
        yield server
    finally:
        await server.stop()


def _secure(
    settings: ExtenderPortSettings, application: ASGIApp, reviews: Api, clock: Clock
) -> SecureServer:
    delegated = with_delegated_access(
        application,
        settings.authentication,
        DelegatingAuthorizationOptions(),
        tokens=reviews,
        permissions=reviews,
        clock=clock,
    )
    authenticator = delegated.authenticator
    if settings.authenticates:
        application = ExtenderAccess(
            application,
            authenticator=authenticator,
            delegated=delegated if settings.authentication_token_webhook else None,
        )
    return SecureServer(
        application,
        settings.serving,
        settings.authentication,
        authenticator=authenticator,
        api=reviews,
        clock=clock,
    )


@contextmanager
def _naming_flags(prefix: str) -> Iterator[None]:
    """Spell the flag that the message of a UserError begins with as it was given here."""
    try:
        yield
    except UserError as exc:
        raise UsageError(f"--{prefix}{str(exc).removeprefix('--')}") from exc
