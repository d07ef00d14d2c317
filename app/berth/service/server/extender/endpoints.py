"""``/extender``: what a stock kube-scheduler calls when berth is its extender (spec §9.2)."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from berth.runtime.clock import Clock
from berth.scheduler.metrics.recorders import ExtenderServerMetrics
from berth.scheduler.profile.profile import Profile
from berth.service.extender_server import wire
from berth.service.extender_server.verbs import VerbResult
from berth.service.server.bodies import LONGEST_SHOWN, BodyError, read_body, require_json, too_large
from berth.service.server.disconnection import disconnection
from berth.service.server.extender.limits import MAX_BODY_BYTES
from berth.service.server.json_schema import Schema, inlined
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


# Bodies of extender calls: up to a limit, compressed or not, without holding up the event loop.


COMPRESS_FROM: Final = 256 * 2**10
"""Smaller answers are sent faster than they are compressed."""
LONGEST_ACCEPTED: Final = 1_000
"""Characters of Accept-Encoding that are looked at."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_FASTEST: Final = 1


async def read_args_body(request: Request, *, limit: int) -> bytes:
    """Return the JSON as it was before compression. Raises BodyError."""
    require_json(request)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise BodyError(
            415, f"Content-Encoding {encoding[:LONGEST_SHOWN]!r} is not supported, only gzip is"
        )
    body = await read_body(request, limit=limit)
    if encoding == "identity":
        return body
    return await asyncio.to_thread(_decompress, body, limit)  # zlib lets go of the interpreter


def _decompress(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        plain = stream.decompress(body, limit + 1)
    except zlib.error as exc:
        raise BodyError(400, f"body is not valid gzip: {exc}") from exc
    if len(plain) > limit:
        raise too_large(limit)
    if not stream.eof:
        raise BodyError(400, "body is not valid gzip: it ends too early")
    return plain


async def json_answer(request: Request, body: bytes) -> Response:
    """Return *body*, compressed if that is worth while and the client takes it."""
    headers = {"vary": "Accept-Encoding"}
    if len(body) >= COMPRESS_FROM and _takes_gzip(
        request.headers.get("accept-encoding", "")[:LONGEST_ACCEPTED]
    ):
        body = await asyncio.to_thread(_compress, body)
        headers["content-encoding"] = "gzip"
    return Response(body, media_type="application/json", headers=headers)


def _takes_gzip(accepted: str) -> bool:
    for element in accepted[:LONGEST_ACCEPTED].lower().split(","):
        coding, _, parameters = element.strip().partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _compress(body: bytes) -> bytes:
    stream = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP)
    return stream.compress(body) + stream.flush()


# The extender API v1 for ``/openapi.json``. What we answer is described by its own types.


_STRING: Final[Schema] = {"type": "string", "minLength": 1}
_OBJECT: Final[Schema] = {"type": "object"}
_POD: Final[Schema] = {
    "description": "a Pod, as the API server has it",
    "type": "object",
    "properties": {"metadata": {"type": "object", "properties": {"name": _STRING}}},
    "required": ["metadata"],
}
_ARGS: Final[Schema] = {
    "description": "ExtenderArgs: Nodes, or NodeNames when nodeCacheCapable",
    "type": "object",
    "properties": {
        "Pod": _POD,
        "Nodes": {"anyOf": [_OBJECT, {"type": "null"}]},
        "NodeNames": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    },
    "required": ["Pod"],
}
_QUESTIONS: Final[dict[str, Schema]] = {
    "filter": _ARGS,
    "prioritize": _ARGS,
    "preempt": {
        "description": "ExtenderPreemptionArgs: NodeNameToMetaVictims when nodeCacheCapable",
        "type": "object",
        "properties": {
            "Pod": _POD,
            "NodeNameToVictims": {"anyOf": [_OBJECT, {"type": "null"}]},
            "NodeNameToMetaVictims": {"anyOf": [_OBJECT, {"type": "null"}]},
        },
        "required": ["Pod"],
    },
    "bind": {
        "description": "ExtenderBindingArgs",
        "type": "object",
        "properties": dict.fromkeys(("PodNamespace", "PodName", "PodUID", "Node"), _STRING),
        "required": ["PodNamespace", "PodName", "PodUID", "Node"],
    },
}
_ANSWERS: Final[dict[str, Any]] = {
    "filter": wire.ExtenderFilterResult,
    "prioritize": list[wire.HostPriority],
    "preempt": wire.ExtenderPreemptionResult,
    "bind": wire.ExtenderBindingResult,
}


def described(verb: str) -> Schema:
    """Return what the OpenAPI operation of *verb* says of its body and its answer."""
    return {
        "requestBody": {"required": True, "content": _json(_QUESTIONS[verb])},
        "responses": {
            "200": {
                "description": "Success; `Error` contains problems with the pod",
                "content": _json(inlined(msgspec.json.schema(_ANSWERS[verb]))),
            }
        },
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
