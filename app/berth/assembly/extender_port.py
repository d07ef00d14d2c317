"""The extender port: where other schedulers call berth as their extender."""

import ipaddress
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from starlette.types import ASGIApp

from berth.assembly.api_connection import ApiConnection
from berth.assembly.applications import extender_port_application
from berth.assembly.scheduler_service import SchedulerService
from berth.client.api import Api
from berth.clock import Clock
from berth.config.options import (
    DelegatingAuthenticationOptions,
    DelegatingAuthorizationOptions,
    SecureServingOptions,
)
from berth.errors import UserError
from berth.http_server import HttpServer
from berth.same_machine import SameMachine
from berth.server.access.secure_serving import SecureServer, with_delegated_access
from berth.server.extender.access import ExtenderAccess
from berth.terminal import UsageError, naming_port, say

ExtenderPort: TypeAlias = HttpServer | SecureServer
"""What listens; to be run and stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderPortSettings:
    """Where to serve the extender port, and who may call it."""

    port: int
    """0: any free one."""
    bind_address: str
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    client_ca_file: Path | None
    authentication_token_webhook: bool
    allow_unauthenticated: bool
    max_body_bytes: int
    flag_prefix: str = ""
    """What the flags of these settings begin with; for messages."""

    @property
    def authenticates(self) -> bool:
        return self.client_ca_file is not None or self.authentication_token_webhook

    @property
    def is_encrypted(self) -> bool:
        return self.tls_cert_file is not None or self.authenticates

    @property
    def trusts_this_machine(self) -> bool:
        """Whether any client on this machine may ask, and no other."""
        asks_nobody = not (self.authenticates or self.allow_unauthenticated)
        return asks_nobody and ipaddress.ip_address(self.bind_address).is_loopback

    @property
    def serving(self) -> SecureServingOptions:
        return SecureServingOptions(
            bind_address=self.bind_address,
            secure_port=self.port,
            tls_cert_file=_text(self.tls_cert_file),
            tls_private_key_file=_text(self.tls_private_key_file),
        )

    @property
    def authentication(self) -> DelegatingAuthenticationOptions:
        """Of the cluster's own authorities none counts."""
        return DelegatingAuthenticationOptions(
            client_ca_file=_text(self.client_ca_file), authentication_skip_lookup=True
        )


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


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
