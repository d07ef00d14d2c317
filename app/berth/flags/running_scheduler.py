"""Flags of commands that ask a running scheduler: how to find it, and to prove who asks."""

import argparse
from typing import TYPE_CHECKING

from berth.addresses import UP_PORT
from berth.kubeconfig import DEFAULT_PATH

if TYPE_CHECKING:
    from berth.scheduler_client import RunningScheduler


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Let *parser* know how to reach a scheduler; :func:`scheduler` reads it."""
    where = parser.add_argument_group("a running scheduler")
    where.add_argument(
        "--server", metavar="URL",
        help="URL of the scheduler; default: the one that berth up wrote to the kubeconfig,"
        f" otherwise port {UP_PORT} on this machine",
    )  # fmt: skip
    where.add_argument(
        "--kubeconfig", metavar="FILE",
        help="credentials and certificate authority to use; default: $KUBECONFIG, otherwise"
        f" ./{DEFAULT_PATH} if it exists, otherwise ~/.kube/config if it is of berth up",
    )  # fmt: skip
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


def scheduler(given: argparse.Namespace) -> "RunningScheduler":
    """Return the scheduler that the flags of :func:`add_flags` mean; nothing is sent to it yet.

    Raises ConnectError or UsageError.
    """
    from berth.assembly.running_scheduler import running_scheduler

    return running_scheduler(
        given.server,
        kubeconfig=given.kubeconfig,
        context=given.context,
        certificate_authority=given.certificate_authority,
        trusts_all=given.insecure_skip_tls_verify,
    )
