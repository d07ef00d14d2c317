"""Flags of commands that ask a running scheduler: how to find it, and to prove who asks."""

import argparse
from typing import Final

from berth.addresses import KUBECONFIG, UP_PORT
from berth.terminal import http_url

CREDENTIALS: Final = (
    f"credentials and certificate authority to use; default: $KUBECONFIG, otherwise ./{KUBECONFIG}"
    " if it exists, otherwise ~/.kube/config if it is of berth up"
)


def add_flags(
    where: argparse._ArgumentGroup, *, kubeconfig: str = CREDENTIALS, server: str | None = None
) -> None:
    """Add how to reach a scheduler; *kubeconfig* is what that flag does.

    *server* is its URL by default, in place of that of ``berth up``.
    """
    usual = (
        f"the one that berth up wrote to the kubeconfig, otherwise port {UP_PORT} on this machine"
    )
    where.add_argument(
        "--server",
        type=http_url,
        metavar="URL",
        default=server,
        help=f"URL of the scheduler; default: {server or usual}",
    )
    where.add_argument("--kubeconfig", metavar="FILE", help=kubeconfig)
    where.add_argument(
        "--context", metavar="NAME",
        help="context of the kubeconfig to use; default: the current one",
    )  # fmt: skip
    where.add_argument(
        "--certificate-authority", metavar="FILE", help="also trust certificates of this authority"
    )
    where.add_argument(
        "--insecure-skip-tls-verify",
        action="store_true",
        help="do not verify the server's certificate",
    )
