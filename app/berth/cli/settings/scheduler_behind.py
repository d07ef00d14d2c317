"""The scheduler behind the Service that ``--service`` names, through the API server."""

import argparse
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from berth.cli.settings.running_scheduler import api_server_and_service
from berth.kube.client.port_forward import ServiceTunnel, service_tunnel
from berth.kube.client.service_pods import ServicePort
from berth.service.scheduler_client import RunningScheduler


@asynccontextmanager
async def scheduler_behind(given: argparse.Namespace) -> AsyncIterator[RunningScheduler]:
    """Yield the scheduler that the flags mean, to be asked in other threads than this one.

    Raises ApiError, ConnectError, ServiceError and UsageError.
    """
    service = ServicePort(*given.service)
    api, endpoint = await api_server_and_service(given, service)
    async with service_tunnel(api, service) as tunnel:
        yield RunningScheduler(
            endpoint.url,
            authorization=await endpoint.authorization(),
            tls=endpoint.tls,
            transport=_TunnelTransport(tunnel, endpoint.tls),
        )


class _TunnelTransport(httpx.BaseTransport):
    """Connections through *tunnel*, which knows better than they do why they end."""

    def __init__(self, tunnel: ServiceTunnel, tls: ssl.SSLContext | bool) -> None:
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
