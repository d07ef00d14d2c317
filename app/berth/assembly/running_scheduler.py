"""Finds the scheduler that commands ask, and proves to it who asks."""

import asyncio
import os
import ssl
from pathlib import Path

from berth.addresses import KUBECONFIG, LOOPBACK, UP_PORT
from berth.client.connect import Endpoint, from_kubeconfig, is_file
from berth.clock import RealClock
from berth.kubeconfig import scheduler_in, usual_path
from berth.scheduler_client import RunningScheduler
from berth.terminal import UsageError


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
    environment, here, home = os.environ.get("KUBECONFIG", ""), str(KUBECONFIG), str(usual_path())
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
