"""Connections to a port of a Service, through the API server, as ``kubectl port-forward`` makes.

What a port is asked for goes through unchanged, TLS included. So whoever listens there learns who
asks as if we were in the cluster: from a client certificate, or from a token. The service proxy of
the API server (``.../proxy/``) is of no use for that: it removes the credentials of a request.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import aiohttp

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import Endpoint, client_of, proxy_from_environment
from berth.kube.client.errors import ApiError
from berth.kube.client.service_pods import PodPort, ServiceError, ServicePort, pod_of
from berth.runtime.clock import RealClock

PROTOCOL: Final = "v4.channel.k8s.io"
"""The first byte of each message says which channel it is for, and the first message in each
channel is the number of the port, as two bytes."""

DATA, ERROR = b"\0", b"\1"
"""The channels of the first port."""

READ_SIZE: Final = 1 << 16
HEARTBEAT_SECONDS: Final = 30.0
"""Load balancers end connections on which nothing happens, as on a stream without events."""


class ServiceTunnel:
    """Leads from a socket of this machine to a Service; made by :func:`service_tunnel`."""

    def __init__(
        self, api: ApiClient, endpoint: Endpoint, service: ServicePort, path: Path
    ) -> None:
        self._api = api
        self._endpoint = endpoint
        self._service = service
        self.path = path
        """Of the socket (``AF_UNIX``)."""
        self.problem = ""
        """Why the last connection failed; empty if it did not."""

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection to a pod, until either side ends it."""
        try:
            pod = await pod_of(self._api, self._service)
            self.problem = ""
            async with aiohttp.ClientSession() as session, await self._open(session, pod) as socket:
                sending = asyncio.create_task(_send(reader, socket), name="port forward")
                try:
                    self.problem = await _receive(socket, writer)
                finally:
                    sending.cancel()
        except aiohttp.WSServerHandshakeError as exc:
            self.problem = f"pod {pod.namespace}/{pod.name}: {exc.status} {exc.message}"
            if exc.status == 403:
                self.problem = (
                    f"forbidden: you may not get and create pods/portforward in namespace"
                    f" {pod.namespace} (403)"
                )
        except (ApiError, ServiceError, aiohttp.ClientError, OSError) as exc:
            self.problem = str(exc) or type(exc).__name__
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _open(
        self, session: aiohttp.ClientSession, pod: PodPort
    ) -> aiohttp.ClientWebSocketResponse:
        namespace, name = quote(pod.namespace, safe=""), quote(pod.name, safe="")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/portforward"
        url = self._endpoint.url.rstrip("/") + path
        authorization = await self._endpoint.authorization()
        return await session.ws_connect(
            url,
            params={"ports": str(pod.port)},
            protocols=[PROTOCOL],
            headers={"Authorization": authorization} if authorization else None,
            heartbeat=HEARTBEAT_SECONDS,
            ssl=self._endpoint.tls,
            server_hostname=self._endpoint.server_hostname,
            proxy=self._endpoint.proxy or proxy_from_environment(url),
        )


@asynccontextmanager
async def service_tunnel(endpoint: Endpoint, service: ServicePort) -> AsyncIterator[ServiceTunnel]:
    """Yield a way to *service* of the cluster at *endpoint*.

    Its socket is in a folder that only this user may enter. Raises ServiceError and ApiError if
    there is no ready pod now; if there is none later, connections end.
    """
    api = client_of(endpoint, qps=0, burst=1, user_agent="berth", clock=RealClock())
    try:
        await pod_of(api, service)
        with tempfile.TemporaryDirectory(prefix="berth-") as folder:
            tunnel = ServiceTunnel(api, endpoint, service, Path(folder, "socket"))
            server = await asyncio.start_unix_server(tunnel.connect, tunnel.path)
            try:
                yield tunnel
            finally:
                server.close()
    finally:
        await api.close()


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    """Send what *reader* has, until its end."""
    with suppress(aiohttp.ClientError, OSError):
        while data := await reader.read(READ_SIZE):
            await socket.send_bytes(DATA + data)
        await socket.close()


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> str:
    """Write what comes, until its end; return what the other side says is wrong, if anything."""
    begun: set[bytes] = set()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY:
            break
        channel, data = message.data[:1], message.data[1:]
        if channel not in begun:  # the number of the port
            begun.add(channel)
        elif channel == DATA:
            writer.write(data)
            await writer.drain()
        elif channel == ERROR and data:
            return f"the port cannot be forwarded: {data.decode(errors='replace')}"
    return ""
