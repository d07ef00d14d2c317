"""``exec`` and ``attach``: commands in containers, whose streams are channels of a WebSocket.

The first byte of a message is its channel (``k8s.io/apimachinery/pkg/util/remotecommand``).
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import msgspec
from starlette.types import Receive, Scope, Send

from berth.cluster import options
from berth.cluster.errors import StatusError
from berth.cluster.http.requests import refusal
from berth.cluster.http.subresources.websocket import open_websocket
from berth.cluster.kubelet.processes.process import Process
from berth.cluster.kubelet.processes.sandbox import Sandbox
from berth.cluster.kubelet.processes.shell import Input
from berth.cluster.resources import Object
from berth.runtime.clock import Clock

if TYPE_CHECKING:
    from berth.cluster.http.subresources.websocket_messages import WebSocket

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255


class RemoteCommand:
    """An ASGI application: a command in a container, or what the container runs itself."""

    def __init__(
        self, sandbox: Sandbox, *, attaches: bool, changed: Callable[[], None], clock: Clock
    ) -> None:
        """*attaches*: no command is started. *changed* is called when something has happened."""
        self._sandbox = sandbox
        self._attaches = attaches
        self._changed = changed
        self._clock = clock
        self._news = asyncio.Event()
        self._is_connected = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        flags = {name: values[-1] for name, values in query.items()}
        try:
            socket = open_websocket(scope, PROTOCOLS)
        except StatusError as exc:
            await refusal(exc)(scope, receive, send)
            return
        for channel in (STDOUT, STDERR, ERROR):  # says that it is open
            socket.send(bytes([channel]))
        wants_out, wants_err = options.flag(flags, "stdout"), options.flag(flags, "stderr")

        def out(text: str) -> None:
            if wants_out:
                socket.send(bytes([STDOUT]) + text.encode("utf-8", "replace"))

        def err(text: str) -> None:
            if wants_err:
                socket.send(bytes([STDERR]) + text.encode("utf-8", "replace"))

        try:
            if self._attaches:
                await self._attach(socket, out)
                status = _status(0)
            else:
                stdin = Input(is_open=options.flag(flags, "stdin"))
                process = self._sandbox.execute(
                    query.get("command", []), self._clock.now(), out=out, err=err, stdin=stdin
                )
                await self._run(socket, process)
                status = _status(process.exit_code or 0)
            socket.send(bytes([ERROR]) + msgspec.json.encode(status))
        finally:
            socket.close()

    async def _run(self, socket: "WebSocket", process: Process) -> None:
        """Run a command to its end, or to that of the connection."""
        receiving = asyncio.create_task(self._receive(socket, process), name="exec input")
        try:
            while self._is_connected:
                self._news.clear()
                process.advance(self._clock.now())
                self._changed()
                if process.exit_code is not None:
                    return
                await self._until(process.due)
        finally:
            receiving.cancel()

    async def _attach(self, socket: "WebSocket", out: Callable[[str], None]) -> None:
        """Show what the container writes to its end."""
        log = self._sandbox.log

        def listen(text: str) -> None:
            out(text)
            self._news.set()

        log.listeners.append(listen)
        receiving = asyncio.create_task(
            self._receive(socket, self._sandbox.process), name="attach input"
        )
        try:
            while self._is_connected and not log.is_ended:
                self._news.clear()
                await self._news.wait()
        finally:
            log.listeners.remove(listen)
            receiving.cancel()

    async def _receive(self, socket: "WebSocket", process: Process | None) -> None:
        """Give a process what comes for it."""
        while (message := await socket.receive()) is not None:
            is_end = message[:1] == bytes([CLOSE]) and message[1:2] == bytes([STDIN])
            if process is not None and (is_end or message[:1] == bytes([STDIN])):
                text = "" if is_end else message[1:].decode("utf-8", "replace")
                process.feed(text, self._clock.now(), is_end=is_end)
                self._news.set()
                self._changed()
        self._is_connected = False
        self._news.set()

    async def _until(self, due: float) -> None:
        """Wait until *due* or for news."""
        waiting: set[asyncio.Task[object]] = {asyncio.create_task(self._news.wait(), name="news")}
        if due < inf:
            pause = self._clock.sleep(max(due - self._clock.now(), 0.0))
            waiting.add(asyncio.create_task(pause, name="exec sleeps"))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()


def _status(exit_code: int) -> Object:
    """Return how a command ended, as a Status."""
    if not exit_code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {exit_code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(exit_code)}]},
    }
