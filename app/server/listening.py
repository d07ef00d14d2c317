"""The HTTP server: carries an application on a loopback port."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 10261
"""Beside kube-scheduler's 10259, so that both can run on one machine."""

SHUTDOWN_SECONDS = 2
"""How long requests may take to finish when the server stops."""


class LoopbackServer:
    """Serves one application. Make one, :meth:`start` it, and :meth:`stop` it once."""

    def __init__(self, app: FastAPI) -> None:
        self._server = _Server(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self._serving: asyncio.Task[None] | None = None
        self.url = ""
        """Where it listens, once :meth:`start` has returned."""

    async def start(self, port: int) -> None:
        """Listen on *port* of loopback, 0: any free one; OSError when it cannot be had."""
        listener = socket.create_server((LOOPBACK, port))
        self.url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        self._serving = asyncio.create_task(self._server.serve([listener]), name="http server")

    async def stop(self) -> None:
        """Let requests finish and close the connections."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving


class _Server(uvicorn.Server):
    """An HTTP server that is a guest in its process: signals are not its business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
