"""``/snapshot``: the state of the cluster as a file."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from fastapi import APIRouter, HTTPException
from fastapi.responses import StreamingResponse

from berth.insight.whatif.admission import Policies, nothing_known
from berth.insight.whatif.snapshot import Snapshot
from berth.runtime.redaction import redacted_object
from berth.service.server.refusal import Refusal


def snapshot_endpoints(
    take: Callable[[], Awaitable[Snapshot]],
    *,
    is_synced: Callable[[], bool],
    policies: Callable[[], Awaitable[Policies]] = nothing_known,
) -> APIRouter:
    """Return the endpoint that serves the snapshot of *take*, with what admission goes by."""
    router = APIRouter(tags=["what if"])

    @router.get(
        "/snapshot",
        summary="Snapshot of the cluster for `berth simulate` and `berth explain`",
        description="A `berth/v1` Snapshot: the configuration, with REDACTED in place of"
        " secrets, and lists of Kubernetes objects with the fields that berth"
        " reads, of annotations those that decide.",
        response_class=StreamingResponse,
        responses={
            200: {"content": {"application/json": {"schema": {"type": "object"}}}},
            503: {"model": Refusal},
        },
    )
    async def snapshot() -> StreamingResponse:
        if not is_synced():
            raise HTTPException(503, "the state of the cluster is not known yet")
        known = await policies()
        taken = await take()
        shown = replace(taken, config=redacted_object(taken.config), policies=known)
        return StreamingResponse(_in_turns(shown), media_type="application/json")

    return router


async def _in_turns(snapshot: Snapshot) -> AsyncIterator[bytes]:
    for piece in snapshot.encode():
        yield piece
        await asyncio.sleep(0)
