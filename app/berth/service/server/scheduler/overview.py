"""``/debug/overview``: whether a scheduler is healthy: now, in the last hour, as it changes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Protocol

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import TypeAdapter

from berth.insight.explain.explanation import ResponseModel
from berth.scheduler.metrics.overview import KEPT_SECONDS, Sample, Series
from berth.service.server.refusal import Refusal
from berth.service.server.scheduler.parameters import ONLY_KNOWN

MOST_STREAMS: Final = 100
"""Open at once; each holds a connection."""
EVENT_STREAM: Final = "text/event-stream"
HEARTBEAT_SECONDS: Final = 15.0
"""After so long without a sample a comment shows that the connection lives."""
HEARTBEAT: Final = b": no sample yet\n\n"
RETRY: Final = b"retry: 2000\n\n"
"""After how many milliseconds a client should connect again."""

_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}},
    503: {"model": Refusal, "description": "Too many streams are open"},
}


class Samples(Protocol):
    """Who takes samples; :class:`berth.service.overview.sampler.Sampler` of a running scheduler."""

    def latest(self) -> Sample: ...

    async def after(self, number: int) -> Sample | None: ...

    def series(self, seconds: int) -> Series: ...


class Overview(ResponseModel):
    """How a scheduler does."""

    now: Sample
    series: Series


def overview_endpoints(samples: Samples, *, most_streams: int = MOST_STREAMS) -> APIRouter:
    """Return the endpoints that show *samples*, to at most so many streams at once."""
    router = APIRouter(prefix="/debug", tags=["debug"], dependencies=[ONLY_KNOWN])
    streams = _Streams(samples)

    @router.get(
        "/overview",
        summary="The scheduler at a glance: pods, attempts, writes, leader, problems",
        response_model=Overview,
    )
    async def overview(
        seconds: Annotated[
            int,
            Query(ge=1, le=KEPT_SECONDS, description="How many seconds the series go back."),
        ] = KEPT_SECONDS,
    ) -> Response:
        shown = Overview(now=samples.latest(), series=samples.series(seconds))
        return Response(shown.model_dump_json(by_alias=True), media_type="application/json")

    @router.get(
        "/overview/stream",
        summary="The `now` of `/debug/overview` every second, as server-sent events",
        description="The data of each event is JSON, its ID the number of the sample. A client that"
        " reads slowly gets the newest sample when it reads on, without those between.",
        response_class=StreamingResponse,
        responses=_STREAMED,
    )
    async def stream() -> StreamingResponse:
        if streams.open >= most_streams:
            headers = {"Retry-After": "10"}
            raise HTTPException(503, f"{streams.open} streams are open already", headers=headers)
        return StreamingResponse(
            streams.events(), media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"}
        )

    return router


class _Streams:
    """Streams of the same events, each of which is encoded once."""

    def __init__(self, samples: Samples) -> None:
        self.open = 0
        self._samples = samples
        self._number = 0
        self._event = b""

    async def events(self) -> AsyncIterator[bytes]:
        """Yield an event for each sample, until there will be no more.

        A sample that comes while the reader is not ready is not kept for it.
        """
        self.open += 1
        try:
            yield RETRY
            number = 0
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        sample = await self._samples.after(number)
                except TimeoutError:
                    yield HEARTBEAT
                    continue
                if sample is None:
                    return
                number = sample.number
                yield self._encoded(sample)
        finally:
            self.open -= 1

    def _encoded(self, sample: Sample) -> bytes:
        if sample.number != self._number:
            data = _as_json(sample, by_alias=True)
            self._number = sample.number
            self._event = b"id: %d\ndata: %b\n\n" % (sample.number, data)
        return self._event


_as_json = TypeAdapter(Sample).dump_json
