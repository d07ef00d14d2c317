"""The extender port on the command line: of ``berth extender``, and of ``berth run`` beside it."""

import argparse
import ipaddress
from pathlib import Path
from typing import Any, Final

from berth.addresses import LOOPBACK
from berth.assembly.extender_port import ExtenderPortSettings
from berth.server.extender.bodies import MAX_BODY_BYTES
from berth.terminal import UsageError, port, positive

_MEBIBYTE: Final = 2**20
_DEST: Final = "extender_port_"


def add_flags(parser: argparse.ArgumentParser, *, prefix: str = "", default: int | None) -> None:
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
        help="Require neither: anyone who can reach the port can have pods bound.",
    )  # fmt: skip
    flag(
        "max-body-mib", type=positive, metavar="MIB", default=MAX_BODY_BYTES // _MEBIBYTE,
        help="Refuse larger requests; 5,000 whole nodes are about 15. Default: %(default)s",
    )  # fmt: skip


def settings(given: argparse.Namespace, *, prefix: str = "") -> ExtenderPortSettings | None:
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
            f"--{prefix}bind-address {address} lets others reach the extender port: give"
            f" --{prefix}client-ca-file or --{prefix}authentication-token-webhook, or"
            f" --{prefix}allow-unauthenticated to let anybody ask"
        )
    return None if number is None else asked
