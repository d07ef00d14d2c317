"""The extender port on the command line: of ``berth extender``, and of ``berth run`` beside it."""

import argparse
from pathlib import Path
from typing import Any, Final

from berth.runtime.addresses import LOOPBACK
from berth.runtime.terminal import port, positive
from berth.service.server.extender.limits import MAX_BODY_BYTES

DEST: Final = "extender_port_"
"""How the names of the values begin."""
MEBIBYTE: Final = 2**20


def add_flags(parser: argparse.ArgumentParser, *, prefix: str = "", default: int | None) -> None:
    """Add ``--{prefix}port`` and the other flags; *default* is that of the port."""
    group = parser.add_argument_group(
        "extender port",
        "Where other schedulers ask berth as their extender. With a client CA or a token webhook"
        " all but health needs a client certificate (tlsConfig.certFile of kube-scheduler) or a"
        " bearer token.",
    )

    def flag(name: str, **settings: Any) -> None:
        group.add_argument(f"--{prefix}{name}", dest=DEST + name.replace("-", "_"), **settings)

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
        "max-body-mib", type=positive, metavar="MIB", default=MAX_BODY_BYTES // MEBIBYTE,
        help="Reject larger requests. 5,000 node objects are about 15 MiB. Default: %(default)s",
    )  # fmt: skip
