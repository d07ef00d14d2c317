"""uvicorn, as a guest in a process that has other things to do. Everything that serves uses it.

Connections are let in by :mod:`berth.runtime.connection_limit`, not by uvicorn, which has no limit
of them.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from berth.runtime import open_files
from berth.runtime.connection_limit import MOST, RESERVED, ConnectionCounts, ConnectionLimit, Seat
from berth.runtime.http_transport import HIGH_WATER, GatheringTransport, Lingering
from berth.runtime.upgrades import UPGRADE, Upgraded

log = logging.getLogger(__name__)

ANY_IPV6: Final = "::"
"""All addresses, those of IPv4 too."""

BACKLOG: Final = 2048

KEEP_ALIVE_SECONDS: Final = 120
"""Longer than clients keep idle connections, so that it is they who close them."""

SHUTDOWN_SECONDS: Final = 2
"""How long requests may take to finish when the server stops."""

TICK_SECONDS: Final = 1.0
"""How often the date in answers is set."""

HANDSHAKE_SECONDS: Final = 10.0
"""How long a client may take for the TLS handshake."""

ACCEPT_PAUSE: Final = 1.0
"""Seconds until another try when the system would not let a connection in; as asyncio has it."""

SHARE_OF_FILES: Final = 2
"""A port may have one in so many of the files that the process may have open."""

HEALTH_PATHS: Final = ("/healthz", "/livez", "/readyz")
"""What is answered also when there are too many connections."""

HEAD_SECONDS: Final = 32.0
"""How long a client may take to send the head of a request, as with Kubernetes' servers."""

LARGEST_HEAD: Final = 128 << 10
"""Bytes of such a head, give or take what is read at once. Go's servers take eight times as many;
but they are kept for each connection before anybody knows who is at its other end."""

STALLED_SECONDS: Final = 60.0
"""How long a client may take nothing of an answer that waits for it: as long as a whole request may
take with Kubernetes' servers."""

CLOSE_SECONDS: Final = 10.0
"""How long a client may take to take what is left when its connection is closed."""

SEAT: Final = "seat"
"""The key of ``scope["state"]`` for the :class:`~berth.runtime.connection_limit.Seat`."""

PEER_CERTIFICATE: Final = "peer_certificate"
"""Where ``scope["state"]`` has the verified certificate of a TLS client, as DER; absent if none."""


GoesFirst = Callable[[Scope], bool]
"""Tells whether a request is answered also when there are too many connections."""

Listener = tuple[socket.socket, ssl.SSLContext | None]
"""A listening socket, and the TLS of its connections."""


class HttpServer:
    """Serves one ASGI application. Make one, :meth:`start` it, and :meth:`stop` it once."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tls: ssl.SSLContext | None = None,
        most_connections: int = MOST,
        reserved_connections: int = RESERVED,
        goes_first: GoesFirst | None = None,
    ) -> None:
        """*tls* makes it HTTPS, with this context's certificate and demands on clients.

        When *most_connections* are open, those make room that wait for their clients. When none
        does, *reserved_connections* more are let in, for HEALTH_PATHS and requests of which
        *goes_first* says so. There may be fewer where the process may open few files.
        """
        self._tls = tls
        most = max(1, min(most_connections, open_files.limit() // SHARE_OF_FILES))
        self._limit = ConnectionLimit(most, reserved=reserved_connections)
        self._server = _Server(
            self._limit,
            goes_first,
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
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            ),
        )
        self._serving: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None
        self.port = 0
        self.url = ""
        """Where it listens, once :meth:`start` has returned."""

    @property
    def connections(self) -> ConnectionCounts:
        """What becomes of connections; for metrics, not to be changed."""
        return self._limit.counts

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
        listener.settimeout(0)
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
            self._server.exit()
            await asyncio.wait([self._serving])


class _Server(uvicorn.Server):
    """Lets connections in by *limit*. Signals are not its business."""

    def __init__(
        self, limit: ConnectionLimit, goes_first: GoesFirst | None, config: uvicorn.Config
    ) -> None:
        super().__init__(config)
        self._limit = limit
        self._goes_first = goes_first
        self._accepting: list[asyncio.Task[None]] = []
        self._greeting: set[asyncio.Task[None]] = set()
        self._not_greeted: set[socket.socket] = set()
        """What was accepted, until the task that greets it has taken its first step."""
        self._needs_look = asyncio.Event()

    def exit(self) -> None:
        """Begin to stop."""
        self.should_exit = True
        self._needs_look.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = []
        self._accepting = [
            asyncio.create_task(self._accept(listener), name="http accept")
            for listener in sockets or ()
        ]
        for accepting in self._accepting:
            accepting.add_done_callback(lambda _: self._needs_look.set())
        self.started = True

    async def main_loop(self) -> None:
        """Tick once per second, and at once when there is something to be seen.

        uvicorn wakes up ten times per second to see it.
        """
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._needs_look.wait()

    async def on_tick(self, counter: int) -> bool:
        for accepting in self._accepting:
            if accepting.done():
                accepting.result()  # raises what it died of
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Do as uvicorn does, but wait no longer than there is something to wait for."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        greeting = tuple(self._greeting)
        for task in greeting:
            task.cancel()
        await asyncio.gather(*greeting, return_exceptions=True)
        for closed in (*self._not_greeted, *(sockets or ())):
            closed.close()
        tasks: list[asyncio.Task[Any]] = [*self.server_state.tasks]
        for connection in tuple(self.server_state.connections):
            assert isinstance(connection, Protocol)
            connection.shutdown()
            tasks.append(asyncio.create_task(connection.lost.wait(), name="http connection lost"))
        _, going_on = await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS) if tasks else ((), ())
        if going_on:
            log.error("requests are given up as the server stops")
        for task in (*going_on, *self.server_state.tasks):
            task.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        """Let connections in, for ever."""
        while True:
            try:
                accepted, _ = listener.accept()
            except BlockingIOError:
                await _readable(listener)
                continue
            except ConnectionAbortedError:  # it has gone already
                continue
            except OSError as exc:
                if listener.fileno() < 0:
                    raise
                self._limit.not_accepted(exc)
                # One of those that do nothing may hold what is missing.
                await asyncio.sleep(0 if self._limit.displace() else ACCEPT_PAUSE)
                continue
            seat = self._limit.enter()
            if seat is None:
                accepted.close()
                continue
            self._not_greeted.add(accepted)
            task = asyncio.create_task(self._greet(accepted, seat), name="http handshake")
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)
            # Of many that come at once each takes milliseconds for TLS: others come in between.
            await asyncio.sleep(0)

    async def _greet(self, accepted: socket.socket, seat: Seat) -> None:
        """Make a connection of what was accepted, over TLS if that is wanted."""
        self._not_greeted.discard(accepted)
        task = asyncio.current_task()
        assert task is not None
        seat.hang_up = task.cancel
        seat.waits()
        try:
            with suppress(OSError):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: Protocol(
                    self.config, self.server_state, {}, seat=seat, goes_first=self._goes_first
                ),
                accepted,
                ssl=self.config.ssl,
                ssl_handshake_timeout=None if self.config.ssl is None else HANDSHAKE_SECONDS,
            )
        except OSError as exc:  # also of TLS, also too late
            self._limit.counts.failed_handshakes += 1
            log.debug("a client was not connected", extra={"error": str(exc) or repr(exc)})
            seat.leave()
        except BaseException:
            seat.leave()
            raise


async def _readable(listener: socket.socket) -> None:
    """Wait until a connection can be accepted.

    Unlike ``loop.sock_accept``, which loses what it has accepted if it is cancelled at that moment.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(listener, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listener)


class Protocol(HttpToolsProtocol):
    """Tells its *seat* whose turn it is, and hangs up on clients that do not go on.

    They may send the head of a request without an end, or not take an answer. uvicorn waits for
    ever, and keeps what has come: anybody could have us hold sockets and memory.

    A connection whose last answer leaves before its request has ended lingers, so that the client
    gets to read the answer.
    """

    _peer_certificate: bytes | None = None
    _has_work = False
    _is_in_head = True
    _head_size = 0
    _head_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _abort_timer: asyncio.TimerHandle | None = None
    _is_stalled = False
    """Whether the transport has as much as it takes."""
    _is_in_body = False
    """Whether the client has more to send of its request."""
    _lingering: Lingering | None = None
    _upgraded: Upgraded | None = None
    """Who has the connection, when it has left HTTP."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        seat: Seat,
        goes_first: GoesFirst | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.lost = asyncio.Event()
        """Set when there is no connection any more."""
        self._seat = seat
        if seat.is_reserved:
            self.app = _only_first(self.app, seat, goes_first)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        transport.set_write_buffer_limits(high=HIGH_WATER)
        self._wire = transport
        self._gathering = GatheringTransport(transport, self._gathered, self._lingers)
        super().connection_made(self._gathering)
        self._seat.hang_up = transport.abort
        encrypted = transport.get_extra_info("ssl_object")
        if encrypted is not None:
            self._peer_certificate = encrypted.getpeercert(binary_form=True)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_stall()
        self._end_lingering()
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        if self._upgraded is not None:
            self._upgraded.end()
        self._seat.leave()
        super().connection_lost(exc)
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        if self._upgraded is not None:
            self._upgraded.feed(data)
            return
        if self._lingering is not None:
            self._lingering.discard(data)
            return
        super().data_received(data)
        if self._is_in_head:
            self._head_size += len(data)
            if self._head_size > LARGEST_HEAD:
                self.transport.close()
            elif self._head_timer is None:
                self._await_head()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the application upgrades the connection, or says why it does not.

        uvicorn tells the operator to install a WebSocket library, which would not help.
        """

    def _upgrade(self, head: bytes) -> Upgraded:
        """Answer the request with *head*, and hand the connection over."""
        cycle = self.cycle
        cycle.response_started = cycle.response_complete = True
        self._upgraded = Upgraded(self._wire)
        self._upgraded.write(head)
        return self._upgraded

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        self.scope["state"][SEAT] = self._seat
        self.scope["state"][UPGRADE] = self._upgrade
        if self._peer_certificate is not None:
            self.scope["state"][PEER_CERTIFICATE] = self._peer_certificate

    def on_headers_complete(self) -> None:
        self._end_head()
        self._is_in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()
        if not self.cycle.response_complete:  # it may be answered before it has come to its end
            self._has_work = True
            self._seat.works()

    def on_response_complete(self) -> None:
        pipelined = bool(self.pipeline) and not self.transport.is_closing()
        super().on_response_complete()
        self._has_work = pipelined
        self._seat.answered(has_more=pipelined)

    def send_400_response(self, msg: str) -> None:
        self._is_in_body = True  # nobody knows where it ends
        super().send_400_response(msg)

    def shutdown(self) -> None:
        """End the connection as the server stops, without delay if nothing is under way."""
        if self._lingering is None:
            super().shutdown()
        if self._lingering is not None:
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _lingers(self) -> bool:
        """Begin to discard what the client still sends; return False if it has sent all."""
        if self._lingering is not None or not (self._is_in_body or self.pipeline):
            return False
        self.flow.resume_reading()
        self._end_head()
        self._has_work = False
        self._seat.waits()
        self._lingering = Lingering(self._wire, self.loop, self._close)
        return True

    def _end_lingering(self) -> None:
        if self._lingering is not None:
            self._lingering.end()

    def _close(self) -> None:
        """Close the connection, soon also if the client does not take what is left for it."""
        self._end_lingering()
        if not self._wire.is_closing():
            self._gathering.close_now()
            self._abort_timer = self.loop.call_later(CLOSE_SECONDS, self._wire.abort)

    def _gathered(self, *, is_much: bool) -> None:
        """Let who sends wait for the end of the turn, when it is much that was written in it."""
        if is_much:
            self.flow.pause_writing()
        elif not self._is_stalled:
            self.flow.resume_writing()

    def pause_writing(self) -> None:
        self._is_stalled = True
        super().pause_writing()
        self._seat.waits()
        self._end_stall()
        self._stall_timer = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_stalled = False
        super().resume_writing()
        self._end_stall()
        if self._has_work:
            self._seat.works()

    def _end_stall(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def _end_head(self) -> None:
        self._is_in_head, self._head_size = False, 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _only_first(app: ASGIApp, seat: Seat, goes_first: GoesFirst | None) -> Any:
    """Return an application that leaves HEALTH_PATHS, and what *goes_first*, to *app*.

    It refuses everything else.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if any(
            path == health_path or path.startswith(f"{health_path}/")
            for health_path in HEALTH_PATHS
        ) or (goes_first is not None and goes_first(scope)):
            await app(scope, receive, send)
            return
        seat.refuse()
        refusal = PlainTextResponse(
            "too many connections\n", 503, headers={"Retry-After": "1", "Connection": "close"}
        )
        await refusal(scope, receive, send)

    return answer
