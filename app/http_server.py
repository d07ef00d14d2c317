"""uvicorn, as a guest in a process that has other things to do. Everything that serves uses it."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ANY_IPV6: Final = "::"
"""All addresses, those of IPv4 too."""

BACKLOG: Final = 2048

KEEP_ALIVE_SECONDS: Final = 120
"""Longer than clients keep idle connections, so that it is they who close them."""

SHUTDOWN_SECONDS: Final = 2
"""How long requests may take to finish when the server stops."""

HEAD_SECONDS: Final = 32.0
"""How long a client may take to send the head of a request, as with Kubernetes' servers."""

LARGEST_HEAD: Final = 1 << 20
"""Bytes of such a head, give or take what is read at once; as with Go's servers."""

PEER_CERTIFICATE: Final = "peer_certificate"
"""Where ``scope["state"]`` has the verified certificate of a TLS client, as DER; absent if none."""


Listener = tuple[socket.socket, ssl.SSLContext | None]
"""A listening socket, and the TLS of its connections."""


class HttpServer:
    """Serves one ASGI application. Make one, :meth:`start` it, and :meth:`stop` it once."""

    def __init__(self, app: ASGIApp, *, tls: ssl.SSLContext | None = None) -> None:
        """*tls* makes it HTTPS, with this context's certificate and demands on clients."""
        self._tls = tls
        self._server = _Server(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        self._serving: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None
        self.port = 0
        self.url = ""
        """Where it listens, once :meth:`start` has returned."""

    async def start(self, host: str, port: int, *, share_port: bool = False) -> None:
        """Listen on *port* of *host*, 0: any free one; OSError when it cannot be had.

        With *share_port* other processes that want to may listen there, too.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server(
            (host, port),
            family=family,
            backlog=BACKLOG,
            reuse_port=share_port,
            dualstack_ipv6=host == ANY_IPV6 and socket.has_dualstack_ipv6(),
        )
        self._listener = listener
        self.port = int(listener.getsockname()[1])
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._serving = asyncio.create_task(self._server.serve([listener]), name="http server")

    @property
    def listener(self) -> Listener:
        """What it listens on, once :meth:`start` has returned."""
        if self._listener is None:
            raise RuntimeError("the HTTP server has not been started")
        return self._listener, self._tls

    async def run(self) -> None:
        """Wait until the server is stopped; raise what it dies of before.

        Whoever starts the server should await this somewhere: nobody else would notice.
        """
        if self._serving is None:
            raise RuntimeError("the HTTP server has not been started")
        await asyncio.wait([self._serving])
        if not self._server.should_exit:
            await self._serving
            raise RuntimeError("the HTTP server has ended")

    async def stop(self) -> None:
        """Let requests finish and close the connections."""
        if self._serving is not None:
            self._server.should_exit = True
            await asyncio.wait([self._serving])


class _Server(uvicorn.Server):
    """Signals are not its business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Protocol(HttpToolsProtocol):
    """Hangs up on clients that never come to the end of a request's head.

    uvicorn waits for ever, and keeps what has come: anybody could have us hold sockets and memory.
    """

    _peer_certificate: bytes | None = None
    _is_in_head = True
    _head_size = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(GatheringTransport(transport))
        encrypted = transport.get_extra_info("ssl_object")
        if encrypted is not None:
            self._peer_certificate = encrypted.getpeercert(binary_form=True)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head:
            self._head_size += len(data)
            if self._head_size > LARGEST_HEAD:
                self.transport.close()
            elif self._head_timer is None:
                self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        if self._peer_certificate is not None:
            self.scope["state"][PEER_CERTIFICATE] = self._peer_certificate

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end_head(self) -> None:
        self._is_in_head, self._head_size = False, 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class GatheringTransport(asyncio.Transport):
    """Writes once per turn of the event loop.

    An answer is two writes, its head and its body, and uvloop makes each a system call at once:
    10 µs, a quarter of what it takes to answer a GET.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._gathered: list[bytes] = []
        self.is_closing = transport.is_closing  # type: ignore[method-assign]  # asked for every answer

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def write(self, data: Any) -> None:
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered and not self.is_closing():  # else the client has gone
            self._transport.write(b"".join(gathered))
