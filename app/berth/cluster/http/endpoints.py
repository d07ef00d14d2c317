"""Requests to resources: routed, timed, and answered also when something goes wrong."""

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from berth.cluster import errors, options
from berth.cluster.errors import StatusError
from berth.cluster.http.call import Call, Services
from berth.cluster.http.handlers import handler_of
from berth.cluster.http.in_flight import InFlight
from berth.cluster.http.metrics import Series
from berth.cluster.http.paths import Paths
from berth.cluster.http.requests import Answer, Request, refusal, too_many_requests
from berth.cluster.shares import Shares, Step
from berth.cluster.storage.journal import JournalError
from berth.cluster.storage.store import FullError, TooLargeError

log = logging.getLogger(__name__)

WITH_BODY = frozenset({"DELETE", "PATCH", "POST", "PUT"})


class Endpoints:
    """Everything below the URL of a group and version."""

    def __init__(self, paths: Paths, services: Services, in_flight: InFlight) -> None:
        self._paths = paths
        self._services = services
        self._clock = services.clock
        self._shares = Shares(services.clock)
        self._in_flight = in_flight

    def close(self) -> None:
        """End all watches."""
        self._services.is_open = False
        self._services.store.wake()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any request: an ASGI application."""
        started = self._clock.monotonic()
        exchange = _Exchange()
        try:
            answer = await self._answer(scope, receive, exchange)
            if answer is None:
                return
            store = self._services.store
            # Also what was only read: nobody may learn of a write that a crash takes back.
            if store.durable_version != store.version:
                try:
                    await store.durable()
                except JournalError as exc:
                    answer = refusal(errors.internal(str(exc)))
            series = exchange.series
            if series is None:
                await answer(scope, receive, send)
            elif isinstance(answer, Answer):
                await answer(scope, receive, send)
                seconds = self._clock.monotonic() - started
                series.answered(answer.code, seconds, len(answer.body))
            else:
                sent = _Sent(send)
                await answer(scope, receive, sent)
                series.answered(sent.code, self._clock.monotonic() - started, sent.size)
        finally:
            if exchange.kind:
                self._in_flight.leave(exchange.kind)
            elif exchange.series is not None and exchange.series.is_long_running:
                exchange.series.running -= 1

    async def _answer(
        self, scope: Scope, receive: Receive, exchange: "_Exchange"
    ) -> ASGIApp | None:
        """Return the answer: a refusal is a Status, and so is a bug. None: nobody waits for it."""
        accept, warned = "", list[str]()
        try:
            request = Request(scope, receive)
            accept = request.accept
            target = self._paths.target(request.path)
            handler = handler_of(request.method, target)
            series = exchange.series = self._services.metrics.series(request, target)
            if series.is_long_running:
                series.running += 1
            else:
                exchange.kind = self._in_flight.enter(request.method, request.user)
                if not exchange.kind:
                    return too_many_requests()
            if request.query:
                options.check_timeout(request.query)
            if request.method in WITH_BODY:
                await request.body()  # so that all that follows is one step
            await self._shares.turn(request.user)
            call = Call(request, target, self._services)
            warned = call.warnings
            step = Step(handler(call), self._clock)
            try:
                return await step
            finally:
                self._shares.took(request.user, step.seconds)
        except StatusError as exc:
            return refusal(exc, accept, warned)
        except TooLargeError as exc:
            return refusal(errors.too_large(str(exc)), accept, warned)
        except FullError as exc:
            return refusal(errors.no_room(str(exc)), accept, warned)
        except ClientDisconnect:
            return None
        except Exception as exc:
            log.exception(
                "request failed", extra={"method": scope["method"], "path": scope["path"]}
            )
            return refusal(errors.internal(f"{type(exc).__name__}: {exc}"), accept)


class _Exchange:
    """What is to be noted at the end of a request; empty while nobody knows what it is about."""

    __slots__ = ("kind", "series")

    def __init__(self) -> None:
        self.series: Series | None = None
        self.kind = ""
        """As what it is in flight."""


class _Sent:
    """Sends an answer, and notes how long it was."""

    __slots__ = ("_send", "code", "size")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.code = 200
        self.size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)
