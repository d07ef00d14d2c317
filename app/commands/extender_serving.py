"""The extender port on the command line: of ``berth extender``, and of ``berth run`` beside it."""

import argparse
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI

from app.addresses import LOOPBACK
from app.certificates import KeyPair, self_signed
from app.clock import Clock
from app.commands.terminal import UsageError, naming_port, port, positive, say
from app.http_server import HttpServer
from app.server.extender_access import CertificateRequired, tls_context
from app.server.extender_bodies import MAX_BODY_BYTES

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
    allow_unauthenticated: bool
    max_body_mib: int

    @property
    def max_body_bytes(self) -> int:
        return self.max_body_mib * _MEBIBYTE

    @property
    def is_encrypted(self) -> bool:
        return self.tls_cert_file is not None or self.client_ca_file is not None


def add_flags(parser: argparse.ArgumentParser, *, prefix: str = "", default: int | None) -> None:
    """Add ``--{prefix}port`` and the other flags; *default* is that of the port."""
    group = parser.add_argument_group(
        "extender port",
        "Where other schedulers ask berth as their extender. With a client CA everything but health"
        " needs a client certificate, which kube-scheduler shows by tlsConfig.certFile.",
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
        help="Listen on this address; one that is not loopback needs a client CA."
        " Default: %(default)s",
    )  # fmt: skip
    flag(
        "tls-cert-file", type=Path, metavar="FILE",
        help="Serve HTTPS with this certificate. Default: a self-signed one if there is a client"
        " CA, else plain HTTP.",
    )  # fmt: skip
    flag("tls-private-key-file", type=Path, metavar="FILE", help="The key of that certificate.")
    flag(
        "client-ca-file", type=Path, metavar="FILE",
        help="Answer only clients that have a certificate of this authority.",
    )  # fmt: skip
    flag(
        "allow-unauthenticated", action="store_true",
        help="Do without a client CA: whoever reaches the port can have pods bound.",
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
    if not (address.is_loopback or asked.client_ca_file or asked.allow_unauthenticated):
        raise UsageError(
            f"--{prefix}bind-address {address} lets others reach the extender port: give"
            f" --{prefix}client-ca-file, or --{prefix}allow-unauthenticated to let anybody ask"
        )
    return asked


@asynccontextmanager
async def listening(
    asked: Serving, app: FastAPI, *, prefix: str = "", clock: Clock
) -> AsyncIterator[HttpServer]:
    """Serve *app* as *asked*, which must name a port. Raises UsageError when that cannot be."""
    assert asked.port is not None, "a port is asked for"
    tls = _tls(asked, prefix, clock) if asked.is_encrypted else None
    server = HttpServer(CertificateRequired(app) if asked.client_ca_file else app, tls=tls)
    with naming_port(asked.port, flag=f"--{prefix}port"):
        await server.start(asked.bind_address, asked.port)
    say(f"extender at {server.url}")
    try:
        yield server
    finally:
        await server.stop()


def _tls(asked: Serving, prefix: str, clock: Clock) -> ssl.SSLContext:
    if asked.tls_cert_file is None or asked.tls_private_key_file is None:
        now = datetime.fromtimestamp(clock.now(), UTC)
        pair = self_signed([asked.bind_address, "localhost"], now=now, name="berth extender")
    else:
        pair = KeyPair(
            _read(asked.tls_cert_file, f"--{prefix}tls-cert-file"),
            _read(asked.tls_private_key_file, f"--{prefix}tls-private-key-file"),
        )
    authority = asked.client_ca_file
    if authority is not None:
        _read(authority, f"--{prefix}client-ca-file")
    try:
        return tls_context(pair, client_ca=authority)
    except ssl.SSLError as exc:
        files = f"{asked.tls_cert_file}, {asked.tls_private_key_file}, {authority}"
        raise UsageError(f"certificates of the extender port ({files}): {exc}") from exc


def _read(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UsageError(f"{flag} {path}: {exc.strerror}") from exc
