"""An API server that forwards ports as kube-apiserver and kubelets do; ours does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web

from berth.kube.client.port_forward import PROTOCOL
from berth.runtime.addresses import LOOPBACK

POD = {"metadata": {"name": "pod"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@dataclass
class ApiServer:
    """Has one Service with one pod, whose port is *port* of this machine."""

    port: int
    status: int = 101
    problem: str = ""
    """What the kubelet says in place of forwarding."""
    tokens: list[str | None] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve until the end of the block; yield the URL."""
        application = web.Application()
        application.add_routes(self._routes())
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, 0).start()
            yield f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/v1/namespaces/berth/services/berth", self._service),
            web.get("/api/v1/namespaces/berth/pods", self._pods),
            web.get("/api/v1/namespaces/berth/pods/pod/portforward", self._forward),
        ]

    async def _service(self, _request: web.Request) -> web.Response:
        spec = {"ports": [{"port": 10259, "targetPort": self.port}], "selector": {"a": "b"}}
        return web.json_response({"spec": spec})

    async def _pods(self, _request: web.Request) -> web.Response:
        return web.json_response({"items": [POD]})

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization"))
        if self.status != 101:
            return web.json_response({"kind": "Status"}, status=self.status)
        socket = web.WebSocketResponse(protocols=[PROTOCOL])
        await socket.prepare(request)
        port = int(request.query["ports"])
        for channel in (b"\0", b"\1"):
            await socket.send_bytes(channel + port.to_bytes(2, "little"))
        if self.problem:
            await socket.send_bytes(b"\1" + self.problem.encode())
        else:
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            back = asyncio.create_task(self._back(reader, socket))
            async for message in socket:
                assert message.data[:1] == b"\0"
                writer.write(message.data[1:])
            writer.close()
            back.cancel()
        return socket

    async def _back(self, reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1000):
                await socket.send_bytes(b"\0" + data)
            await socket.close()
