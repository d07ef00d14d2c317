"""Requests to resources: routed, timed, and answered also when something goes wrong."""

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.cluster import errors, options
from berth.cluster.errors import StatusError
from berth.cluster.http.call import Call, Services
from berth.cluster.http.handlers import handler_of
from berth.cluster.http.paths import Paths, Target
from berth.cluster.http.requests import Request, refusal
from berth.cluster.shares import Shares
from berth.cluster.storage.journal import JournalError
from berth.cluster.storage.store import FullError, TooLargeError

log = logging.getLogger(__name__)

WITH_BODY = frozenset({"DELETE", "PATCH", "POST", "PUT"})


class Endpoints:
    """Everything below the URL of a group and version."""

    def __init__(self, paths: Paths, services: Services) -> None:
        self._paths = paths
        self._services = services
        self._clock = services.clock
        self._shares = Shares(services.clock)

    def close(self) -> None:
        """End all watches."""
        self._services.is_open = False
        self._services.store.wake()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer any request: an ASGI application."""
        answer = await self._answer(scope, receive)
        if answer is None:
            return
        store = self._services.store
        # Also what was only read: nobody may learn of a write that a crash takes back.
        if store.durable_version != store.version:
            try:
                await store.durable()
            except JournalError as exc:
                answer = refusal(errors.internal(str(exc)))
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp | None:
        """Return the answer: a refusal is a Status, and so is a bug. None: nobody waits for it."""
        accept = ""
        try:
            request = Request(scope, receive)
            accept = request.accept
            target = self._paths.target(request.path)
            self._check_refused(target)
            handler = handler_of(request.method, target)
            options.check_timeout(request.query)
            if request.method in WITH_BODY:
                await request.body()  # so that all that follows is one step
            await self._shares.turn(request.user)
            started = self._clock.monotonic()
            try:
                return await handler(Call(request, target, self._services))
            finally:
                self._shares.took(request.user, self._clock.monotonic() - started)
        except StatusError as exc:
            return refusal(exc, accept)
        except TooLargeError as exc:
            return refusal(errors.too_large(str(exc)), accept)
        except FullError as exc:
            return refusal(errors.no_room(str(exc)), accept)
        except ClientDisconnect:
            return None
        except Exception as exc:
            log.exception(
                "request failed", extra={"method": scope["method"], "path": scope["path"]}
            )
            return refusal(errors.internal(f"{type(exc).__name__}: {exc}"), accept)

    def _check_refused(self, target: Target) -> None:
        """Raise a 405 with a reason for a subresource that a real server has and this one has not.

        Those who evict take a 404 for a pod that is gone; so that is what it must mean.
        """
        why = target.resource.refused_subresources.get(target.subresource)
        if why is not None:
            self._services.writes.get(target.resource, target.namespace, target.name)
            raise errors.method_not_allowed(why)
