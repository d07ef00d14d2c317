"""``/metrics`` and ``/metrics/resources``, as kube-scheduler has them (spec §7.3, §8)."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Header
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from prometheus_client import CollectorRegistry

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.runtime.metrics import metrics_pieces
from berth.runtime.tasks import Turn
from berth.scheduler.metrics.pod_resources import CONTENT_TYPE, pod_resource_lines

FAMILIES: Final = 50
"""Of metrics, that are written before other tasks on the event loop get a turn, if in time."""
BATCH: Final = 50
"""Pods that are written before other tasks on the event loop get a turn, if in time."""


def metrics_endpoints(
    registry: CollectorRegistry,
    *,
    pods: Callable[[], Iterable[Pod]],
    is_leading: Callable[[], bool],
    reset: Callable[[], None],
    clock: Clock,
) -> APIRouter:
    """Return what Prometheus reads; about *pods* only while this process leads.

    *reset* forgets what was measured so far.
    """
    router = APIRouter()

    @router.get("/metrics", summary="Metrics of the scheduler", response_class=Response)
    async def metrics(accept: Annotated[str, Header()] = "") -> Response:
        pieces, content_type = metrics_pieces(registry, accept)
        turn, content = Turn(clock, items=FAMILIES), []
        for piece in pieces:
            content.append(piece)
            if turn.is_over():
                await turn.next()
        # As a header, for Starlette would add a second charset to a media type.
        return Response(b"".join(content), headers={"Content-Type": content_type})

    @router.delete("/metrics", summary="Reset the metrics", response_class=PlainTextResponse)
    async def forget() -> str:
        reset()
        return "metrics reset\n"

    @router.get(
        "/metrics/resources",
        summary="Requests and limits of all pods; empty on a standby",
        response_class=Response,
    )
    async def resources() -> Response:
        if not is_leading():
            return Response(headers={"Content-Type": CONTENT_TYPE})
        lines = _in_turns(pod_resource_lines(tuple(pods())), Turn(clock, items=BATCH))
        return StreamingResponse(lines, headers={"Content-Type": CONTENT_TYPE})

    return router


async def _in_turns(lines: Iterable[str], turn: Turn) -> AsyncIterator[str]:
    batch = []
    for line in lines:
        batch.append(line)
        if turn.is_over():
            yield "".join(batch)
            batch.clear()
            await turn.next()
    if batch:
        yield "".join(batch)
