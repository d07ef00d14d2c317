"""The extender port on the command line: of ``berth extender``, and of ``berth run`` beside it."""

import argparse
import ipaddress
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from fastapi import FastAPI
from starlette.types import ASGIApp

from berth.addresses import LOOPBACK
from berth.client.api import Api
from berth.clock import Clock
from berth.commands.terminal import UsageError, naming_port, port, positive, say
from berth.config.options import Options
from berth.errors import UserError
from berth.http_server import HttpServer
from berth.same_machine import SameMachine
from berth.server.access.secure_serving import SecureServer, with_delegated_access
from berth.server.extender.access import ExtenderAccess
from berth.server.extender.bodies import MAX_BODY_BYTES

DEFAULT_PORT: Final = 10262
_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Serving:
    """Where and how to serve the extender port, as the flags say; see :func:`add_flags`."""

    port: int | None
    """None: not at all."""
    bind_address: str
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    client_ca_file: Path | None
    authentication_token_webhook: bool
    allow_unauthenticated: bool
    max_body_mib: int

    @property
    def max_body_bytes(self) -> int:
        return self.max_body_mib * _MEBIBYTE

    @property
    def authenticates(self) -> bool:
        return self.client_ca_file is not None or self.authentication_token_webhook

    @property
    def is_encrypted(self) -> bool:
        return self.tls_cert_file is not None or self.authenticates

    @property
    def trusts_this_machine(self) -> bool:
        """Whether who may ask is a matter of being on this machine."""
        asks_nobody = not (self.authenticates or self.allow_unauthenticated)
        return asks_nobody and ipaddress.ip_address(self.bind_address).is_loopback

    def as_options(self) -> Options:
        """Return this as the flags of the main port. Of the cluster's authorities none counts."""
        return Options(
            bind_address=self.bind_address,
            secure_port=self.port or 0,
            tls_cert_file=_text(self.tls_cert_file),
            tls_private_key_file=_text(self.tls_private_key_file),
            client_ca_file=_text(self.client_ca_file),
            authentication_skip_lookup=True,
        )


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def add_flags(parser: argparse.ArgumentParser, *, prefix: str = "", default: int | None) -> None:
    """Add ``--{prefix}port`` and the other flags; *default* is that of the port."""
    group = parser.add_argument_group(
        "extender port",
        "Where other schedulers ask berth as their extender. With a client CA or a token webhook"
        " all but health needs a client certificate, which kube-scheduler shows by"
        " tlsConfig.certFile, or a bearer token.",
    )

    def flag(name: str, **settings: Any) -> None:
        group.add_argument(
            f"--{prefix}{name}", dest=f"serving_{name.replace('-', '_')}", **settings
        )

    flag(
        "port", type=port, metavar="PORT", default=default,
        help=f"Listen on this port; 0 for any free one. Default: {default or 'not'}",
    )  # fmt: skip
    flag(
        "bind-address", metavar="ADDRESS", default=LOOPBACK,
        help="Listen on this address; one that is not loopback needs a client CA or a token"
        " webhook. Default: %(default)s",
    )  # fmt: skip
    flag(
        "tls-cert-file", type=Path, metavar="FILE",
        help="Serve HTTPS with this certificate; a new one in the file is shown from then on."
        " Default: a self-signed one if clients have to show something, else plain HTTP.",
    )  # fmt: skip
    flag("tls-private-key-file", type=Path, metavar="FILE", help="The key of that certificate.")
    flag(
        "client-ca-file", type=Path, metavar="FILE",
        help="Answer clients that have a certificate of this authority, without asking further.",
    )  # fmt: skip
    flag(
        "authentication-token-webhook", action="store_true",
        help="Answer bearer tokens whose user may post to /extender/VERB: the API server is asked"
        " by TokenReview and SubjectAccessReview.",
    )  # fmt: skip
    flag(
        "allow-unauthenticated", action="store_true",
        help="Do without both: whoever reaches the port, by whatever name, can have pods bound.",
    )  # fmt: skip
    flag(
        "max-body-mib", type=positive, metavar="MIB", default=MAX_BODY_BYTES // _MEBIBYTE,
        help="Refuse larger requests; 5,000 whole nodes are about 15. Default: %(default)s",
    )  # fmt: skip


def serving(given: argparse.Namespace, *, prefix: str = "") -> Serving:
    """Return what the flags say. Raises UsageError when they do not fit together."""
    settings = {
        name.removeprefix("serving_"): value
        for name, value in vars(given).items()
        if name.startswith("serving_")
    }
    asked = Serving(**settings)
    if (asked.tls_cert_file is None) != (asked.tls_private_key_file is None):
        raise UsageError(
            f"--{prefix}tls-cert-file and --{prefix}tls-private-key-file need each other"
        )
    try:
        address = ipaddress.ip_address(asked.bind_address)
    except ValueError as exc:
        raise UsageError(f"--{prefix}bind-address: {exc}") from exc
    if not (address.is_loopback or asked.authenticates or asked.allow_unauthenticated):
        raise UsageError(
            f"--{prefix}bind-address {address} lets others reach the extender port: give"
            f" --{prefix}client-ca-file or --{prefix}authentication-token-webhook, or"
            f" --{prefix}allow-unauthenticated to let anybody ask"
        )
    return asked


ExtenderPort: TypeAlias = HttpServer | SecureServer
"""What listens; to be run and stopped."""


@asynccontextmanager
async def listening(
    asked: Serving, app: FastAPI, *, prefix: str = "", reviews: Api, clock: Clock
) -> AsyncIterator[ExtenderPort]:
    """Serve *app* as *asked*, which must name a port, until the end of the block.

    *reviews* is asked about tokens, if they count. Raises UsageError when that cannot be.
    """
    assert asked.port is not None, "a port is asked for"
    server: ExtenderPort
    application = SameMachine(app) if asked.trusts_this_machine else app
    with naming_port(asked.port, flag=f"--{prefix}port"), _naming_flags(prefix):
        if asked.is_encrypted:
            server = _secure(asked, application, reviews, clock)
            await server.start()
        else:
            server = HttpServer(application)
            await server.start(asked.bind_address, asked.port)
    say(f"extender at {server.url}")
    try:
        yield server
    finally:
        await server.stop()


def _secure(asked: Serving, app: ASGIApp, reviews: Api, clock: Clock) -> SecureServer:
    options = asked.as_options()
    delegated = with_delegated_access(
        app, options, tokens=reviews, permissions=reviews, clock=clock
    )
    authenticator = delegated.authenticator
    access = app
    if asked.authenticates:
        access = ExtenderAccess(
            app,
            authenticator=authenticator,
            delegated=delegated if asked.authentication_token_webhook else None,
        )
    return SecureServer(access, options, authenticator=authenticator, api=reviews, clock=clock)


@contextmanager
def _naming_flags(prefix: str) -> Iterator[None]:
    """Spell the flag that the message of a UserError begins with as it was given here."""
    try:
        yield
    except UserError as exc:
        raise UsageError(f"--{prefix}{str(exc).removeprefix('--')}") from exc
