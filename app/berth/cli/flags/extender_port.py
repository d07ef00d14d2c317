"""The extender port that flags ask for: of ``berth extender``, and of ``berth run`` beside it."""

import argparse
import ipaddress
from pathlib import Path
from typing import Any, Final

from berth.runtime.addresses import LOOPBACK
from berth.runtime.terminal import UsageError, port, positive
from berth.service.extender_port_settings import ExtenderPortSettings
from berth.service.server.extender.limits import MAX_BODY_BYTES

_DEST: Final = "extender_port_"
"""How the names of the values begin."""
_MEBIBYTE: Final = 2**20


def add_extender_flags(
    parser: argparse.ArgumentParser, *, prefix: str = "", default: int | None
) -> None:
    """Add ``--{prefix}port`` and the other flags; *default* is that of the port."""
    group = parser.add_argument_group(
        "extender port",
        "Where other schedulers ask berth as their extender. With a client CA or a token webhook"
        " all but health needs a client certificate (tlsConfig.certFile of kube-scheduler) or a"
        " bearer token.",
    )

    def flag(name: str, **settings: Any) -> None:
        group.add_argument(f"--{prefix}{name}", dest=_DEST + name.replace("-", "_"), **settings)

    flag(
        "port", type=port, metavar="PORT", default=default,
        help=f"Listen on this port; 0 selects a free port. Default: {default or 'not'}",
    )  # fmt: skip
    flag(
        "bind-address", metavar="ADDRESS", default=LOOPBACK,
        help="Listen on this address. An address other than loopback requires a client CA or a"
        " token webhook. Default: %(default)s",
    )  # fmt: skip
    flag(
        "tls-cert-file", type=Path, metavar="FILE",
        help="Serve HTTPS with this certificate. berth reloads the file when it changes."
        " Default: a self-signed certificate if clients must authenticate, otherwise plain"
             " HTTP.",
    )  # fmt: skip
    flag(
        "tls-private-key-file",
        type=Path,
        metavar="FILE",
        help="The private key of the certificate.",
    )
    flag(
        "client-ca-file", type=Path, metavar="FILE",
        help="Accept clients with a certificate of this authority.",
    )  # fmt: skip
    flag(
        "authentication-token-webhook", action="store_true",
        help="Accept bearer tokens of users who may post to /extender/VERB, checked with"
        " TokenReview and SubjectAccessReview.",
    )  # fmt: skip
    flag(
        "allow-unauthenticated", action="store_true",
        help="Require neither: anyone who can reach the port can have pods bound.",
    )  # fmt: skip
    flag(
        "max-body-mib", type=positive, metavar="MIB", default=MAX_BODY_BYTES // _MEBIBYTE,
        help="Reject larger requests. 5,000 node objects are about 15 MiB. Default: %(default)s",
    )  # fmt: skip


def extender_port(given: argparse.Namespace, *, prefix: str = "") -> ExtenderPortSettings | None:
    """Return what the flags say; None where they name no port.

    Raises UsageError when they do not fit together.
    """
    values = {
        name.removeprefix(_DEST): value
        for name, value in vars(given).items()
        if name.startswith(_DEST)
    }
    number = values.pop("port")
    max_body_bytes = values.pop("max_body_mib") * _MEBIBYTE
    asked = ExtenderPortSettings(
        port=number or 0, max_body_bytes=max_body_bytes, flag_prefix=prefix, **values
    )
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
            f"--{prefix}bind-address {address} exposes the extender port: pass"
            f" --{prefix}client-ca-file or --{prefix}authentication-token-webhook, or"
            f" --{prefix}allow-unauthenticated to accept any client"
        )
    return None if number is None else asked
