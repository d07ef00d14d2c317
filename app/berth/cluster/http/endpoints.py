"""Requests to resources: routed, timed, and answered also when something goes wrong."""

import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from berth.cluster import errors, options
from berth.cluster.access.flows import flow_of, is_exempt
from berth.cluster.access.users import User
from berth.cluster.errors import StatusError
from berth.cluster.fair_queue import QueueFullError
from berth.cluster.http.call import Call, Services
from berth.cluster.http.chunks import SlowClientError
from berth.cluster.http.flow_schemas import FLOW, FlowControl
from berth.cluster.http.handlers import handler_of
from berth.cluster.http.in_flight import InFlight
from berth.cluster.http.intake import (
    BODY_SECONDS,
    BodiesFullError,
    BodyTimeoutError,
    Intake,
    Reading,
)
from berth.cluster.http.long_work import LongWork
from berth.cluster.http.metrics import Series
from berth.cluster.http.outgoing import PIECE, Outgoing
from berth.cluster.http.paths import Paths
from berth.cluster.http.requests import (
    WITH_BODY,
    Answer,
    Request,
    refusal,
    too_many_requests,
)
from berth.cluster.shares import Step
from berth.cluster.storage.journal import JournalError
from berth.cluster.storage.store import FullError, TooLargeError
from berth.cluster.strategies.selectors_to_check import UncheckedError, compiled_elsewhere
from berth.runtime.http_server import SEAT

log = logging.getLogger(__name__)

COMPILED_ANEW = 3
"""How often a request is begun again because its selectors are to be compiled first: others may be
patched meanwhile."""


class Endpoints:
    """Everything below the URL of a group and version."""

    def __init__(
        self, paths: Paths, services: Services, in_flight: InFlight, flow_control: FlowControl
    ) -> None:
        self._paths = paths
        self._services = services
        self._clock = services.clock
        self._shares = services.shares
        self._in_flight = in_flight
        self._flow_control = flow_control
        self._intake = Intake(services.clock)
        self._long_work = LongWork()

    async def close(self) -> None:
        """End all watches, and work that takes long."""
        self._services.is_open = False
        self._services.store.wake()
        await self._long_work.close()

    def tick(self) -> None:
        """A second has passed."""
        self._in_flight.tick()
        self._intake.tick()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any request: an ASGI application."""
        started = self._clock.monotonic()
        exchange = _Exchange(self._intake.begin(scope["user"]))
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
            sent = _Sent(send, self._services.outgoing, exchange.body.user)
            if series is None:
                await answer(scope, receive, send)
            elif isinstance(answer, Answer):
                is_large = len(answer.body) > PIECE
                await answer(scope, receive, sent if is_large else send)
                seconds = self._clock.monotonic() - started
                series.answered(answer.code, seconds, len(answer.body))
            else:
                try:
                    await answer(scope, receive, sent)
                except SlowClientError:
                    await _hang_up(scope, receive)
                series.answered(sent.code, self._clock.monotonic() - started, sent.size)
        finally:
            self._intake.end(exchange.body)
            if exchange.kind:
                self._in_flight.leave(exchange.kind, exchange.body.user)
                self._flow_control.leave(scope[FLOW])
            if exchange.is_lasting and exchange.series is not None:
                self._in_flight.leave_lasting(exchange.body.user)
                exchange.series.running -= 1

    async def _answer(
        self, scope: Scope, receive: Receive, exchange: "_Exchange"
    ) -> ASGIApp | None:
        """Return the answer; None: nobody waits for it."""
        user = exchange.body.user
        try:
            request = Request(
                scope,
                partial(self._intake.receive, exchange.body, receive),
                partial(self._long_work.yaml_as_json, user=user),
                partial(self._long_work.repeated_keys, user=user),
            )
        except StatusError as exc:
            return refusal(exc)
        try:
            answer = await self._refused_or_done(request, exchange)
        except ClientDisconnect:
            return None
        if not request.has_ended and isinstance(answer, Answer):
            answer.headers.append((b"connection", b"close"))  # what follows is not read
        return answer

    async def _refused_or_done(self, request: Request, exchange: "_Exchange") -> ASGIApp:
        """Return the answer: a refusal is a Status, and so is a bug."""
        warned = list[str]()
        try:
            target = self._paths.target(request.path)
            handler = handler_of(request.method, target)
            series = exchange.series = self._services.metrics.series(request, target)
            if series.is_long_running:
                if not self._in_flight.enter_lasting(request.user):
                    return too_many_requests()
                exchange.is_lasting = True
                series.running += 1
                if request.seat is not None and not is_exempt(request.user):
                    request.seat.lasts(flow_of(request.user))
            if request.query:
                options.check_timeout(request.query)
            if request.method in WITH_BODY:
                await request.body()  # so that all that follows is one step
            if not await self._services.outgoing.has_room(request.user):
                return too_many_requests()
            for attempt in range(COMPILED_ANEW + 1):
                await self._shares.turn(request.user)
                if self._services.outgoing.is_full(request.user):
                    return too_many_requests()
                if not series.is_long_running and not exchange.kind:
                    exchange.kind = self._in_flight.enter(request.method, request.user)
                    if not exchange.kind:
                        self._flow_control.reject(request.flow)
                        return too_many_requests()
                    self._flow_control.enter(request.flow)
                call = Call(request, target, self._services)
                warned = call.warnings
                try:
                    with compiled_elsewhere(attempt < COMPILED_ANEW):
                        return await self._step(handler(call), request.user)
                except UncheckedError as exc:
                    await self._long_work.compile(exc.selectors, request.user)
            raise AssertionError("the last attempt compiles what it needs")
        except StatusError as exc:
            return refusal(exc, request.accept, warned)
        except (BodiesFullError, QueueFullError):
            return too_many_requests()
        except BodyTimeoutError:
            return refusal(errors.body_timeout(BODY_SECONDS), request.accept)
        except TooLargeError as exc:
            return refusal(errors.too_large(str(exc)), request.accept, warned)
        except FullError as exc:
            return refusal(errors.no_room(str(exc)), request.accept, warned)
        except ClientDisconnect:
            raise
        except Exception as exc:
            log.exception("request failed", extra={"method": request.method, "path": request.path})
            return refusal(errors.internal(f"{type(exc).__name__}: {exc}"), request.accept)

    async def _step(self, coroutine: Coroutine[Any, Any, ASGIApp], user: User) -> ASGIApp:
        return await Step(coroutine, self._clock, partial(self._shares.took, user))


async def _hang_up(scope: Scope, receive: Receive) -> None:
    """End a connection, so that its client knows that what it has is not all."""
    scope["state"][SEAT].hang_up()
    while (await receive())["type"] != "http.disconnect":
        pass


class _Exchange:
    """What is to be noted at the end of a request; empty while nobody knows what it is about."""

    __slots__ = ("body", "is_lasting", "kind", "series")

    def __init__(self, body: Reading) -> None:
        self.body = body
        self.series: Series | None = None
        self.kind = ""
        """As what it is in flight."""
        self.is_lasting = False
        """Whether it is counted as a long-running request."""


class _Sent:
    """Sends an answer, in pieces, and notes how long it was."""

    __slots__ = ("_outgoing", "_send", "_user", "code", "size")

    def __init__(self, send: Send, outgoing: Outgoing, user: User) -> None:
        self._send = send
        self._outgoing = outgoing
        self._user = user
        self.code = 200
        self.size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
        else:
            size = len(message.get("body", b""))
            self.size += size
            if size > PIECE:
                await self._outgoing.send(message, self._user, self._send)
                return
        await self._send(message)
