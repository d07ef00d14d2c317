"""A real HTTP server on loopback, for tests marked ``wall``."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handle: Handle) -> AsyncIterator[ApiClient]:
    """Serve *handle* on a free port and give a client for it."""
    server = web.Server(handle)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    client = await connect(kubeconfig=None, master=f"http://127.0.0.1:{port}/", user_agent="test/1")
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()
