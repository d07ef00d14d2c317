"""``/simulate``: what would be, on the cluster as it is or on a snapshot that comes along."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Body, HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field

from app.server.refusal import Refusal
from app.server.simulation_process import (
    SimulationError,
    SimulationFailedError,
    TooManySimulationsError,
)
from app.whatif.answer import Answer
from app.whatif.question import Question
from app.whatif.snapshot import Snapshot

Simulate = Callable[[bytes, Iterable[bytes]], Awaitable[bytes]]
"""Answers a question, one line of JSON, about a snapshot; raises SimulationError."""

MOST_BYTES: Final = 32 * 2**20
"""Of a request. A cluster of 5,000 nodes and 50,000 pods is half of that. To find where the
snapshot ends takes a millisecond for each megabyte."""
MOST_QUESTION_BYTES: Final = 2 * 2**20
"""Of all but the snapshot."""
PIECE: Final = 2**18
RETRY_SECONDS: Final = 1
JSON: Final = "application/json"


class SimulationRequest(Question):
    """A question, and what it is about."""

    snapshot: dict[str, Any] | None = Field(
        default=None,
        description="What `GET /snapshot` answered, or a List of Kubernetes objects; without it,"
        " the question is about the cluster as it is now",
    )


class Unanswerable(BaseModel):
    """What is wrong with a question."""

    detail: str | list[dict[str, Any]]


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


def simulate_endpoints(
    take: Callable[[], Snapshot], simulate: Simulate, *, is_synced: Callable[[], bool]
) -> APIRouter:
    """Return the endpoint that has questions answered by *simulate*."""
    router = APIRouter(route_class=_SnapshotApart, tags=["what if"])

    @router.post(
        "/simulate",
        summary="Where pods would go, and what would be without a node",
        description="Nothing is changed: pods are placed on a copy of the cluster, by all plugins"
        " of the configuration, in the order of the queue. The same question has the same answer.",
        response_model=Answer,
        responses={
            413: {"model": Refusal, "description": "The request is too large"},
            415: {"model": Refusal, "description": "The request is not JSON"},
            422: {"model": Unanswerable, "description": "The question cannot be answered"},
            429: {"model": Refusal, "description": "Too many simulations at once"},
            500: {"model": Refusal, "description": "The simulation has failed"},
            503: {"model": Refusal, "description": "The state of the cluster is not known yet"},
        },
    )
    async def what_if(
        asked: Annotated[SimulationRequest, Body(openapi_examples=EXAMPLES)], request: Request
    ) -> Response:
        snapshot: msgspec.Raw | None = request.state.snapshot
        if snapshot is None and not is_synced():
            raise HTTPException(503, "the state of the cluster is not known yet")
        question = asked.model_dump_json(by_alias=True, exclude={"snapshot"}).encode()
        pieces = take().encode() if snapshot is None else _pieces(snapshot)
        try:
            found = await simulate(question, pieces)
        except TooManySimulationsError as exc:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise HTTPException(429, str(exc), headers=headers) from exc
        except SimulationFailedError as exc:
            raise HTTPException(500, str(exc)) from exc
        except SimulationError as exc:
            raise HTTPException(422, str(exc)) from exc
        return Response(found, media_type=JSON)

    return router


def _pieces(data: msgspec.Raw) -> Iterator[bytes]:
    view = memoryview(data)
    for start in range(0, len(view), PIECE):
        yield bytes(view[start : start + PIECE])


# The snapshot of a request can be large. It is left as it came, for another process to read.


class _SnapshotApart(APIRoute):
    """Reads requests as :class:`_LargeRequest`."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]  # a coroutine is awaitable
        handle = super().get_route_handler()

        async def handle_large(request: Request) -> Response:
            content_type = request.headers.get("Content-Type", JSON)
            if content_type.partition(";")[0].strip() != JSON:
                raise HTTPException(415, f"Content-Type: {content_type!r}: must be {JSON}")
            return await handle(_LargeRequest(request.scope, request.receive))

        return handle_large


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _LargeRequest(Request):
    async def body(self) -> bytes:
        """Return the body; 413 if it is too large, as soon as that is known."""
        if not hasattr(self, "_body"):
            pieces, size = [], 0
            async for piece in self.stream():
                size += len(piece)
                if size > MOST_BYTES:
                    raise HTTPException(413, f"the request has more than {MOST_BYTES} bytes")
                pieces.append(piece)
            self._body = b"".join(pieces)
        return self._body

    async def json(self) -> Any:
        """Return the question; its snapshot goes to ``request.state``, an empty one stands in."""
        self.state.snapshot = None
        try:
            fields = _decode_fields(await self.body())
            snapshot = fields.pop("snapshot", None)
            if sum(len(memoryview(value)) for value in fields.values()) > MOST_QUESTION_BYTES:
                reason = f"all but the snapshot has more than {MOST_QUESTION_BYTES} bytes"
                raise HTTPException(413, reason)
            question = {name: msgspec.json.decode(value) for name, value in fields.items()}
            if snapshot is not None:
                is_object = bytes(memoryview(snapshot)[:1]) == b"{"
                question["snapshot"] = {} if is_object else msgspec.json.decode(snapshot)
                self.state.snapshot = snapshot if is_object else None
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise HTTPException(422, f"not a JSON object: {exc}") from exc
        return question
