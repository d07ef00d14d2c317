"""``/simulate``: what would be, on the cluster as it is or on a snapshot that comes along.

A question may be large, or hostile. Nothing of it is read here: it goes as it came to a process of
its own, which asks for the state of the cluster if the question brings none.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse
from starlette.types import Message

from berth.insight.whatif.admission import Policies, nothing_known
from berth.insight.whatif.answer import Answer
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot
from berth.service.server.bodies import JSON, BodyError, read_body, require_json
from berth.service.server.disconnection import ClientGoneError, while_wanted
from berth.service.server.json_schema import inlined
from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.simulation_process import (
    MEMORY_STATUS,
    SimulationError,
    SimulationFailedError,
    SimulationTooLargeError,
    TooManySimulationsError,
)

MOST_BYTES: Final = 32 * 2**20
"""Of a request. A cluster of 5,000 nodes and 50,000 pods is half of that."""
RETRY_SECONDS: Final = 1
LINES: Final = "application/x-ndjson"


class Simulate(Protocol):
    """Who simulates: ``SimulationProcesses.simulate`` in ``simulation_process``."""

    async def __call__(
        self,
        ask: Callable[[], Awaitable[bytes]],
        live: Callable[[], Awaitable[Iterable[bytes]]],
        tell: Callable[[bytes], None],
    ) -> bytes:
        """Answer what *ask* returns, on *live* unless it brings a snapshot.

        *tell* hears how far it is: lines of JSON. Raises SimulationError.
        """
        ...


class SimulationRequest(Question):
    """A question, and what it is about."""

    snapshot: dict[str, Any] | None = Field(
        default=None,
        description="A response of `GET /snapshot`, or a List of Kubernetes objects. Without"
        " it, the question is about the current cluster",
    )


POD: Final = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {"name": "web", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
        ]
    },
}
DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": POD},
}
NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "large", "labels": {"topology.kubernetes.io/zone": "a"}},
    "status": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
}
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "fit": {
        "summary": "Would 300 replicas fit, and how many nodes must be added if not?",
        "value": {
            "templates": [{"manifest": DEPLOYMENT, "replicas": 300}],
            "findNodes": {"manifest": NODE},
        },
    },
    "drain": {
        "summary": "Could the spot nodes of a zone be done without, if pods may be evicted?",
        "value": {
            "removeNodes": {"selector": "pool=spot,topology.kubernetes.io/zone=a"},
            "preemption": True,
        },
    },
    "removable": {
        "summary": "Which nodes can go, so that all of their pods fit on the others?",
        "value": {"findRemovable": {"names": ["spot-*"]}},
    },
    "repack": {
        "summary": "How many nodes would be needed if all pods were placed anew?",
        "value": {"repack": True},
    },
    "uploaded": {
        "summary": "Where would what waits in a snapshot go?",
        "value": {
            "snapshot": {
                "apiVersion": "berth/v1",
                "kind": "Snapshot",
                "metadata": {"time": "2026-01-01T00:00:00Z"},
                "items": [{"apiVersion": "v1", "kind": "NodeList", "items": [NODE]}],
            }
        },
    },
}


_BODY: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        JSON: {"schema": inlined(SimulationRequest.model_json_schema()), "examples": EXAMPLES}
    },
}


def simulate_endpoints(
    take: Callable[[], Awaitable[Snapshot]],
    simulate: Simulate,
    *,
    is_synced: Callable[[], bool],
    policies: Callable[[], Awaitable[Policies]] = nothing_known,
) -> APIRouter:
    """Return the endpoint that has questions answered by *simulate*.

    They are about what *take* returns, with the *policies* that admission goes by.
    """
    router = APIRouter(tags=["what if"])

    async def live(known: Policies) -> Iterable[bytes]:
        if not is_synced():
            raise HTTPException(503, "the state of the cluster is not known yet")
        return replace(await take(), policies=known).encode()

    @router.post(
        "/simulate",
        summary="Answer a what-if question",
        description="Places pods on a copy of the cluster, with all plugins of the"
        " configuration and in the order of the queue. Nothing changes, and the"
        " same question always gets the same answer, unless its CPU time does not suffice:"
        " then `partial` says how far it came. With `Accept: application/x-ndjson`, lines of"
        ' JSON: `{"progress": {...}}` each second, and at last `{"answer": {...}}` or'
        ' `{"error": {"status": ..., "detail": ...}}`.',
        response_model=Answer,
        openapi_extra={"requestBody": _BODY},
        responses={
            400: {"model": Refusal, "description": "The request is incomplete"},
            408: {"model": Refusal, "description": "The request took too long to arrive"},
            413: {"model": Refusal, "description": "The request is too large"},
            415: {"model": Refusal, "description": "The request is not JSON"},
            422: {"model": Refusal, "description": "The question is invalid"},
            429: {"model": Refusal, "description": "Too many simulations at once"},
            500: {"model": Refusal, "description": "The simulation has failed"},
            503: {"model": Refusal, "description": "The state of the cluster is not known yet"},
            MEMORY_STATUS: {"model": Refusal, "description": "The answer needs too much memory"},
        },
    )
    async def what_if(request: Request) -> Response:
        known = await policies()
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        answering = asyncio.create_task(
            _answer(request, simulate, lambda: live(known), lines.put_nowait), name="simulation"
        )
        try:
            if LINES in request.headers.get("accept", ""):
                listening = asyncio.create_task(lines.get(), name="simulation's progress")
                await asyncio.wait([answering, listening], return_when=asyncio.FIRST_COMPLETED)
                if not listening.done():
                    listening.cancel()
                if not answering.done() or listening.done():
                    told = _told(answering, listening.result(), lines)
                    return StreamingResponse(told, media_type=LINES)
            return Response(await answering, media_type=JSON)
        except asyncio.CancelledError:
            answering.cancel()
            raise

    return router


async def _told(
    answering: asyncio.Task[bytes], first: bytes, lines: asyncio.Queue[bytes]
) -> AsyncIterator[bytes]:
    """Yield lines about the progress, and at last one with the answer, or why there is none."""
    answering.add_done_callback(lambda _: lines.put_nowait(b""))
    try:
        yield first
        while line := await lines.get():
            yield line
        yield b'{"answer":' + await answering + b"}\n"
    except HTTPException as exc:
        error = {"status": exc.status_code, "detail": exc.detail}
        yield json.dumps({"error": error}).encode() + b"\n"
    finally:
        answering.cancel()


async def _answer(
    request: Request,
    simulate: Simulate,
    live: Callable[[], Awaitable[Iterable[bytes]]],
    tell: Callable[[bytes], None],
) -> bytes:
    """Return the answer in JSON. Raises HTTPException."""
    try:
        require_json(request)
        return await _while_wanted(request, simulate, live, tell)
    except BodyError as exc:
        raise HTTPException(exc.status, str(exc)) from exc
    except ClientGoneError as exc:
        raise HTTPException(400, str(exc)) from exc
    except TooManySimulationsError as exc:
        headers = {"Retry-After": str(RETRY_SECONDS)}
        raise HTTPException(429, str(exc), headers=headers) from exc
    except SimulationTooLargeError as exc:
        raise HTTPException(MEMORY_STATUS, str(exc)) from exc
    except SimulationFailedError as exc:
        raise HTTPException(500, str(exc)) from exc
    except SimulationError as exc:
        raise HTTPException(422, str(exc)) from exc


async def _while_wanted(
    request: Request,
    simulate: Simulate,
    live: Callable[[], Awaitable[Iterable[bytes]]],
    tell: Callable[[bytes], None],
) -> bytes:
    """Have the question in *request* answered, but not to the end if its client goes.

    Raises ClientGoneError then, and what *simulate* raises.
    """
    has_body = asyncio.Event()

    async def ask() -> bytes:
        body = await read_body(request, limit=MOST_BYTES)
        has_body.set()
        return body

    async def receive() -> Message:
        await has_body.wait()
        return await request.receive()

    return await while_wanted(receive, simulate(ask, live, tell))
