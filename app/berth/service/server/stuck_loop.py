"""Answers probes from a thread while the event loop is stuck and cannot.

It takes connections from the same listening sockets. Probes fail, and ``/metrics`` has the
one family that says so; it needs no authorization, because no review could be made, and it says no
more than the probes, which are public.
"""

import logging
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry

from berth.runtime.metrics import metrics_text

if TYPE_CHECKING:
    from berth.runtime.http_server import Listener

log = logging.getLogger(__name__)

CLIENT_SECONDS: Final = 2.0
"""How long a client may take for its handshake and its request."""

MAX_CLIENTS: Final = 16
"""Connections that are answered at a time; more wait, as they would for the loop."""

PROBES: Final = ("/healthz", "/livez", "/readyz")
FAILED: Final = "[-]event-loop failed: reason withheld\n{probe} check failed\n"
STUCK: Final = "the event loop is stuck: see the log\n"


class StuckLoopResponder:
    """Serves the sockets of :attr:`listeners` when asked to."""

    def __init__(self) -> None:
        self.metrics = CollectorRegistry()
        """What ``/metrics`` serves; its collectors run in a thread."""
        self._clients = threading.Semaphore(MAX_CLIENTS)
        self.listeners: list[Listener] = []

    def answer(self, seconds: float) -> None:
        """Take connections for *seconds*. Must not run on the event loop."""
        listeners = {listener.fileno(): (listener, tls) for listener, tls in self.listeners}
        if not listeners:
            time.sleep(seconds)
            return
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select(list(listeners), [], [], left)
            for number in ready:
                self._accept(*listeners[number])

    def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        if not self._clients.acquire(timeout=CLIENT_SECONDS):
            return
        try:
            connection, address = listener.accept()
        except OSError:  # the loop turns again and was faster, or the client has gone
            self._clients.release()
            return
        threading.Thread(
            target=self._serve,
            args=(connection, address, tls),
            name="stuck loop responder",
            daemon=True,
        ).start()

    def _serve(
        self, connection: socket.socket, address: tuple[Any, ...], tls: ssl.SSLContext | None
    ) -> None:
        try:
            connection.settimeout(CLIENT_SECONDS)
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            _Request(connection, address, self._metrics)
        except OSError as exc:
            log.debug("client of a stuck loop not answered", extra={"error": str(exc)})
        finally:
            connection.close()
            self._clients.release()

    def _metrics(self, accept: str) -> tuple[bytes, str]:
        return metrics_text(self.metrics, accept)


class _Request(BaseHTTPRequestHandler):
    """One request on one connection."""

    timeout = CLIENT_SECONDS

    def __init__(
        self,
        connection: socket.socket,
        address: tuple[Any, ...],
        metrics: Callable[[str], tuple[bytes, str]],
    ) -> None:
        self._metrics = metrics
        super().__init__(connection, address, None)  # type: ignore[arg-type]  # the server is not used

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        probe = next((probe for probe in PROBES if path == probe), None)
        if probe is not None:
            text = FAILED.format(probe=probe.removeprefix("/"))
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, text.encode())
        elif path == "/metrics":
            content, kind = self._metrics(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content, kind)
        else:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, STUCK.encode())

    do_POST = do_GET  # noqa: N815 - http.server's own name

    def _answer(
        self, status: HTTPStatus, content: bytes, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: http.server would write to stderr."""
