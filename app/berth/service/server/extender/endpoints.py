"""``/extender``: what a stock kube-scheduler calls when berth is its extender (spec §9.2)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from berth.runtime.clock import Clock
from berth.scheduler.metrics.recorders import ExtenderServerMetrics
from berth.scheduler.profile.profile import Profile
from berth.service.extender_server import wire
from berth.service.extender_server.verbs import VerbResult
from berth.service.server.bodies import BodyError
from berth.service.server.disconnection import disconnection
from berth.service.server.extender.bodies import json_answer, read_args_body
from berth.service.server.extender.limits import MAX_BODY_BYTES
from berth.service.server.extender.schemas import described
from berth.service.server.refusal import Refusal, cut

PREFIX: Final = "/extender"
MAX_BINDING_BYTES: Final = 64 * 2**10
"""Of a question to bind, which is four names."""
NOT_READY: Final = "the state of the cluster is not known yet"
REFUSALS: Final = {
    400: "The body is invalid",
    404: "The profile does not exist",
    408: "The body took too long to arrive",
    413: "The body is too large",
    415: "The body is not JSON, or its compression is not gzip",
    503: NOT_READY,
}


class Verbs(Protocol):
    """What answers; :class:`berth.service.extender_server.verbs.Verbs` for a running service."""

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By name; a path without a name means the first."""
        ...

    async def filter(self, profile: Profile, body: bytes) -> VerbResult: ...

    async def prioritize(self, profile: Profile, body: bytes) -> VerbResult: ...

    async def preempt(self, profile: Profile, body: bytes) -> VerbResult: ...

    async def bind(
        self, profile: Profile, body: bytes, *, gone: asyncio.Future[None]
    ) -> VerbResult: ...


Verb = Callable[[Request, Profile, bytes], Awaitable[VerbResult]]


class ExtenderEndpoints:
    """The four verbs, each at ``/extender/{verb}`` and ``/extender/{profile}/{verb}``."""

    def __init__(
        self,
        verbs: Verbs,
        *,
        is_ready: Callable[[], bool],
        metrics: ExtenderServerMetrics,
        clock: Clock,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._verbs = verbs
        self._is_ready = is_ready
        self._metrics = metrics
        self._clock = clock
        self._limit = max_body_bytes

    def router(self) -> APIRouter:
        router = APIRouter(tags=["extender"])
        for verb, ask, summary in (
            ("filter", _at_once(self._verbs.filter), "Filter nodes for a pod"),
            (
                "prioritize",
                _at_once(self._verbs.prioritize),
                "Score nodes for a pod",
            ),
            (
                "preempt",
                _at_once(self._verbs.preempt),
                "Choose where evicting these victims makes room",
            ),
            ("bind", self._bind, "Bind a pod to a node if it still fits"),
        ):
            self._add(router, verb, ask, summary)
        return router

    def _add(self, router: APIRouter, verb: str, ask: Verb, summary: str) -> None:
        async def of_first_profile(request: Request) -> Response:
            return await self._call(verb, ask, request, next(iter(self._verbs.profiles)))

        async def of_profile(request: Request, profile: str) -> Response:
            return await self._call(verb, ask, request, profile)

        for path, endpoint, whose in (
            (f"{PREFIX}/{verb}", of_first_profile, ", by the first profile"),
            (f"{PREFIX}/{{profile}}/{verb}", of_profile, ""),
        ):
            router.post(
                path,
                summary=summary + whose,
                operation_id=f"{verb}{'_by_first' if whose else ''}",
                openapi_extra=described(verb),
                responses={
                    status: {"model": Refusal, "description": words}
                    for status, words in REFUSALS.items()
                },
            )(endpoint)

    async def _call(self, verb: str, ask: Verb, request: Request, name: str) -> Response:
        started = self._clock.monotonic()
        profile = self._verbs.profiles.get(name)
        if profile is None:
            known = ", ".join(sorted(self._verbs.profiles))
            return _refusal(404, f"profile {name!r} does not exist; there are: {known}")
        answer = await self._answer(verb, ask, request, profile)
        taken = self._clock.monotonic() - started
        self._metrics.called(verb, name, answer.status_code, seconds=taken)
        return answer

    async def _bind(self, request: Request, profile: Profile, body: bytes) -> VerbResult:
        async with disconnection(request.receive) as gone:
            return await self._verbs.bind(profile, body, gone=gone)

    async def _answer(self, verb: str, ask: Verb, request: Request, profile: Profile) -> Response:
        if not self._is_ready():
            return _refusal(503, NOT_READY)
        try:
            limit = min(self._limit, MAX_BINDING_BYTES) if verb == "bind" else self._limit
            body = await read_args_body(request, limit=limit)
            answer = await ask(request, profile, body)
        except BodyError as exc:
            return _refusal(exc.status, str(exc))
        except wire.ExtenderArgsError as exc:
            return _refusal(400, str(exc))
        self._metrics.evaluated(
            verb,
            profile.name,
            asked=answer.nodes,
            passed=answer.passed,
            failed=bool(answer.error),
        )
        return await json_answer(request, answer.body)


def _at_once(ask: Callable[[Profile, bytes], Awaitable[VerbResult]]) -> Verb:
    """Return *ask* for a verb that needs no request."""
    return lambda _request, profile, body: ask(profile, body)


def _refusal(status: int, reason: str) -> Response:
    return JSONResponse({"detail": cut(reason)}, status)
