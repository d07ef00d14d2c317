"""Finds the scheduler that commands ask, and proves to it who asks."""

import asyncio
import os
import ssl
from pathlib import Path

from berth.kube.client.connect import Endpoint, from_kubeconfig, is_file
from berth.kube.client.service_pods import ServicePort
from berth.kube.kubeconfig import scheduler_in, usual_path
from berth.runtime.addresses import KUBECONFIG, LOOPBACK, UP_PORT
from berth.runtime.clock import RealClock
from berth.runtime.terminal import UsageError
from berth.service.scheduler_client import RunningScheduler


def running_scheduler(
    url: str | None,
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    certificate_authority: str | None = None,
    trusts_all: bool = False,
) -> RunningScheduler:
    """Return the scheduler that :func:`scheduler_endpoint` finds, for a few questions."""

    async def find() -> RunningScheduler:
        found = await scheduler_endpoint(
            url,
            kubeconfig=kubeconfig,
            context=context,
            certificate_authority=certificate_authority,
            trusts_all=trusts_all,
        )
        return RunningScheduler(found.url, authorization=await found.authorization(), tls=found.tls)

    return asyncio.run(find())


async def scheduler_endpoint(
    url: str | None,
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    certificate_authority: str | None = None,
    trusts_all: bool = False,
) -> Endpoint:
    """Return where the scheduler at *url* is, by default that of ``berth up`` on this machine.

    ``berth up`` says in its kubeconfig where that is. Where a kubeconfig says that the API server
    speaks plain HTTP, so does the scheduler. Raises ConnectError and UsageError.
    """
    endpoint = Endpoint("")
    path = kubeconfig or usual_kubeconfig(context)
    if path is not None:
        endpoint = await from_kubeconfig(path, context=context, master=None, clock=RealClock())
        url = url or scheduler_in(path, context=context)
    if not url:
        scheme = "http" if endpoint.url.startswith("http:") else "https"
        url = f"{scheme}://{LOOPBACK}:{UP_PORT}"
    tls = endpoint.tls
    if certificate_authority or trusts_all:
        tls = tls if isinstance(tls, ssl.SSLContext) else ssl.create_default_context()
        _trust(tls, certificate_authority, trusts_all=trusts_all)
    return Endpoint(url, tls=tls, authorization=endpoint.authorization)


async def service_endpoint(
    service: ServicePort,
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    certificate_authority: str | None = None,
    trusts_all: bool = False,
) -> tuple[Endpoint, Endpoint]:
    """Return the API server of a kubeconfig, by default kubectl's, and a scheduler behind it.

    The scheduler proves who it is only to a *certificate_authority*: otherwise the word of the API
    server has to do, which connects us to the pod. Raises ConnectError and UsageError.
    """
    path = kubeconfig or usual_kubeconfig(context) or str(usual_path())
    clock = RealClock()
    api = await from_kubeconfig(path, context=context, master=None, clock=clock)
    # Another context with the same client certificate, because it trusts others.
    own = (await from_kubeconfig(path, context=context, master=None, clock=clock)).tls
    tls = own if isinstance(own, ssl.SSLContext) else ssl.create_default_context()
    tls.verify_mode, tls.check_hostname = ssl.CERT_REQUIRED, True  # also if the API server need not
    _trust(tls, certificate_authority, trusts_all=trusts_all or not certificate_authority)
    url = f"https://{service.name}.{service.namespace}.svc"
    return api, Endpoint(url, tls=tls, authorization=api.authorization)


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


def _trust(tls: ssl.SSLContext, authority: str | None, *, trusts_all: bool) -> None:
    if trusts_all:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if authority is not None:
        try:
            tls.load_verify_locations(Path(authority).expanduser())
        except OSError as exc:  # SSLError is one
            raise UsageError(f"--certificate-authority {authority}: {exc.strerror or exc}") from exc
