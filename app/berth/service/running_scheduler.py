"""The running scheduler that commands ask: where it is, and how it is proved to it who asks."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import msgspec

from berth.kube.client.connect import Endpoint, from_kubeconfig, is_file
from berth.kube.client.service_pods import ServicePort
from berth.kube.kubeconfig import scheduler_in, usual_path
from berth.runtime.addresses import KUBECONFIG, LOOPBACK, UP_PORT
from berth.runtime.clock import RealClock
from berth.runtime.terminal import UsageError
from berth.service.scheduler_client import RunningScheduler

if TYPE_CHECKING:
    from berth.kube.client.port_forward import ServiceTunnel


class ConfigFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How clients reach a server and trust it: kubectl's flags of these names."""

    kubeconfig: str | None = None
    context: str | None = None
    certificate_authority: str | None = None
    insecure_skip_tls_verify: bool = False


def running_scheduler(url: str | None, flags: ConfigFlags) -> RunningScheduler:
    """Return the scheduler that :func:`scheduler_endpoint` finds, for a few questions."""

    async def find() -> RunningScheduler:
        endpoint = await scheduler_endpoint(url, flags)
        return RunningScheduler(
            endpoint.url, authorization=await endpoint.authorization(), tls=endpoint.tls
        )

    return asyncio.run(find())


async def scheduler_endpoint(url: str | None, flags: ConfigFlags) -> Endpoint:
    """Return where the scheduler at *url* is, by default that of ``berth up`` on this machine.

    ``berth up`` says in its kubeconfig where that is. Where a kubeconfig says that the API server
    speaks plain HTTP, so does the scheduler. Raises ConnectError and UsageError.
    """
    endpoint = Endpoint("")
    path, context = flags.kubeconfig or usual_kubeconfig(flags.context), flags.context
    if path is not None:
        endpoint = await from_kubeconfig(path, context=context, master=None, clock=RealClock())
        url = url or scheduler_in(path, context=context)
    if not url:
        scheme = "http" if endpoint.url.startswith("http:") else "https"
        url = f"{scheme}://{LOOPBACK}:{UP_PORT}"
    tls = endpoint.tls
    if flags.certificate_authority or flags.insecure_skip_tls_verify:
        tls = tls if isinstance(tls, ssl.SSLContext) else ssl.create_default_context()
        _trust(tls, flags.certificate_authority, trusts_all=flags.insecure_skip_tls_verify)
    return Endpoint(url, tls=tls, authorization=endpoint.authorization)


async def service_endpoint(service: ServicePort, flags: ConfigFlags) -> tuple[Endpoint, Endpoint]:
    """Return the API server of a kubeconfig, by default kubectl's, and a scheduler behind it.

    The scheduler proves who it is only to the certificate authority of *flags*: without one, the
    word of the API server has to do, which connects us to the pod. Raises ConnectError and
    UsageError.
    """
    context, authority = flags.context, flags.certificate_authority
    path = flags.kubeconfig or usual_kubeconfig(context) or str(usual_path())
    clock = RealClock()
    api = await from_kubeconfig(path, context=context, master=None, clock=clock)
    # Another context with the same client certificate, because it trusts others.
    own = (await from_kubeconfig(path, context=context, master=None, clock=clock)).tls
    tls = own if isinstance(own, ssl.SSLContext) else ssl.create_default_context()
    tls.verify_mode, tls.check_hostname = ssl.CERT_REQUIRED, True  # also if the API server need not
    _trust(tls, authority, trusts_all=flags.insecure_skip_tls_verify or not authority)
    url = f"https://{service.name}.{service.namespace}.svc"
    return api, Endpoint(url, tls=tls, authorization=api.authorization)


@asynccontextmanager
async def scheduler_behind(
    service: ServicePort, flags: ConfigFlags
) -> AsyncIterator[RunningScheduler]:
    """Yield the scheduler behind *service*, to be asked in other threads than this one.

    Raises ApiError, ConnectError, ServiceError and UsageError.
    """
    from berth.kube.client.port_forward import service_tunnel  # it takes 0.1 s to load

    api, endpoint = await service_endpoint(service, flags)
    async with service_tunnel(api, service) as tunnel:
        yield RunningScheduler(
            endpoint.url,
            authorization=await endpoint.authorization(),
            tls=endpoint.tls,
            transport=_TunnelTransport(tunnel, endpoint.tls),
        )


class _TunnelTransport(httpx.BaseTransport):
    """Connections through *tunnel*, which knows better than they do why they end."""

    def __init__(self, tunnel: "ServiceTunnel", tls: ssl.SSLContext | bool) -> None:
        self._tunnel = tunnel
        self._transport = httpx.HTTPTransport(verify=tls, uds=str(tunnel.path))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._transport.handle_request(request)
        except httpx.TransportError as exc:
            if not self._tunnel.problem:
                raise
            raise httpx.ConnectError(self._tunnel.problem) from exc

    def close(self) -> None:
        self._transport.close()


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
