"""How commands that ask a running scheduler find it, and prove who they are."""

import argparse
import asyncio
import os
import ssl
from pathlib import Path

from berth.addresses import LOOPBACK, UP_PORT
from berth.client.connect import Endpoint, from_kubeconfig, is_file
from berth.clock import RealClock
from berth.kubeconfig import DEFAULT_PATH, scheduler_in, usual_path
from berth.scheduler_client import RunningScheduler
from berth.terminal import UsageError


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


def scheduler(given: argparse.Namespace) -> RunningScheduler:
    """Return the scheduler that the flags of :func:`add_flags` mean; nothing is sent to it yet.

    Raises ConnectError or UsageError.
    """
    return running_scheduler(
        given.server,
        kubeconfig=given.kubeconfig,
        context=given.context,
        certificate_authority=given.certificate_authority,
        trusts_all=given.insecure_skip_tls_verify,
    )


def running_scheduler(
    url: str | None,
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    certificate_authority: str | None = None,
    trusts_all: bool = False,
) -> RunningScheduler:
    """Return the scheduler at *url*, by default that of ``berth up`` on this machine.

    ``berth up`` says in its kubeconfig where that is. Where a kubeconfig says that the API server
    speaks plain HTTP, so does the scheduler.
    """
    endpoint, authorization = Endpoint(""), ""
    path = kubeconfig or usual_kubeconfig(context)
    if path is not None:
        endpoint, authorization = asyncio.run(_credentials(path, context))
        url = url or scheduler_in(path, context=context)
    if not url:
        scheme = "http" if endpoint.url.startswith("http:") else "https"
        url = f"{scheme}://{LOOPBACK}:{UP_PORT}"
    tls = endpoint.tls
    if certificate_authority or trusts_all:
        tls = tls if isinstance(tls, ssl.SSLContext) else ssl.create_default_context()
        _trust(tls, certificate_authority, trusts_all=trusts_all)
    return RunningScheduler(url, authorization=authorization, tls=tls)


def usual_kubeconfig(context: str | None) -> str | None:
    """Return $KUBECONFIG, what ``berth up`` wrote here, or what it merged into the user's own.

    Who names a context means one of kubectl's.
    """
    environment, here, home = os.environ.get("KUBECONFIG", ""), str(DEFAULT_PATH), str(usual_path())
    if any(map(is_file, environment.split(os.pathsep))):
        return environment
    is_of_ours = bool(scheduler_in(home, context=context))
    if is_file(here) and not (context and is_of_ours):
        return here
    return home if is_of_ours else None


async def _credentials(kubeconfig: str, context: str | None) -> tuple[Endpoint, str]:
    endpoint = await from_kubeconfig(kubeconfig, context=context, master=None, clock=RealClock())
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
