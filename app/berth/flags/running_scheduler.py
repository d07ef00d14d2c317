"""How commands that ask a running scheduler find it, and prove who they are."""

import argparse
import asyncio
import os
import ssl
from pathlib import Path
from typing import Final

from berth.addresses import LOOPBACK, UP_PORT
from berth.client.connect import Endpoint, from_kubeconfig, is_file
from berth.clock import RealClock
from berth.scheduler_client import RunningScheduler
from berth.terminal import UsageError

WRITTEN_BY_UP: Final = "berth.kubeconfig"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Let *parser* know how to reach a scheduler; :func:`scheduler` reads it."""
    where = parser.add_argument_group("a running scheduler")
    where.add_argument(
        "--server", metavar="URL",
        help=f"URL of the scheduler; default: port {UP_PORT} on this machine, as of berth up",
    )  # fmt: skip
    where.add_argument(
        "--kubeconfig", metavar="FILE",
        help="credentials and certificate authority to use; default: $KUBECONFIG, otherwise"
        f" ./{WRITTEN_BY_UP} if it exists",
    )  # fmt: skip
    where.add_argument(
        "--certificate-authority", metavar="FILE", help="also trust certificates of this authority"
    )
    where.add_argument(
        "--insecure-skip-tls-verify",
        action="store_true",
        help="do not verify the server's certificate",
    )


def scheduler(given: argparse.Namespace) -> RunningScheduler:
    """Return the scheduler that the flags of :func:`add_flags` mean; nothing is sent to it yet.

    Raises ConnectError or UsageError.
    """
    return running_scheduler(
        given.server,
        kubeconfig=given.kubeconfig,
        certificate_authority=given.certificate_authority,
        trusts_all=given.insecure_skip_tls_verify,
    )


def running_scheduler(
    url: str | None,
    *,
    kubeconfig: str | None = None,
    certificate_authority: str | None = None,
    trusts_all: bool = False,
) -> RunningScheduler:
    """Return the scheduler at *url*, by default that of ``berth up`` on this machine.

    Where a kubeconfig says that the API server speaks plain HTTP, so does that scheduler.
    """
    endpoint, authorization = Endpoint(""), ""
    path = kubeconfig or _usual_kubeconfig()
    if path is not None:
        endpoint, authorization = asyncio.run(_credentials(path))
    if url is None:
        scheme = "http" if endpoint.url.startswith("http:") else "https"
        url = f"{scheme}://{LOOPBACK}:{UP_PORT}"
    tls = endpoint.tls
    if certificate_authority or trusts_all:
        tls = tls if isinstance(tls, ssl.SSLContext) else ssl.create_default_context()
        _trust(tls, certificate_authority, trusts_all=trusts_all)
    return RunningScheduler(url, authorization=authorization, tls=tls)


def _usual_kubeconfig() -> str | None:
    for path in (os.environ.get("KUBECONFIG", ""), WRITTEN_BY_UP):
        if any(map(is_file, path.split(os.pathsep))):
            return path
    return None


async def _credentials(kubeconfig: str) -> tuple[Endpoint, str]:
    endpoint = await from_kubeconfig(kubeconfig, context=None, master=None, clock=RealClock())
    return endpoint, await endpoint.authorization()


def _trust(tls: ssl.SSLContext, authority: str | None, *, trusts_all: bool) -> None:
    if trusts_all:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if authority is not None:
        try:
            tls.load_verify_locations(Path(authority).expanduser())
        except OSError as exc:  # SSLError is one
            raise UsageError(f"--certificate-authority {authority}: {exc.strerror or exc}") from exc
