"""What the scheduler's decisions look like to the API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from app.client.errors import ApiError, ConflictError, NotFoundError
from app.client.lanes import WriteLanes
from app.clock import FakeClock
from app.framework.pod_info import PodInfo
from app.objects.meta import Condition
from app.scheduler.api_writer import ApiWriter
from tests.builders import condition, pod, to_json
from tests.client.fake_api import FakeApi, Request

VICTIM = pod("low", node="n1", conditions=[condition("PodScheduled")])
TOLD = Condition(
    type="DisruptionTarget",
    status="True",
    reason="PreemptionByScheduler",
    message="default-scheduler: preempting to accommodate a higher priority pod",
    observed_generation=1,
)


@asynccontextmanager
async def writer(api: FakeApi) -> AsyncIterator[ApiWriter]:
    """A writer whose lanes are running."""
    clock = FakeClock(1_700_000_000)
    lanes = WriteLanes(clock=clock)
    running = asyncio.create_task(lanes.run())
    try:
        yield ApiWriter(api, lanes, recorders={}, clock=clock, rng=Random(0))
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_victim_is_told_and_then_deleted() -> None:
    api = FakeApi()
    async with writer(api) as writing:
        assert await writing.evict(VICTIM, TOLD) is True

    patch, delete = api.requests
    assert (patch.method, patch.path, patch.content_type) == (
        "PATCH",
        "/api/v1/namespaces/default/pods/low/status",
        "application/strategic-merge-patch+json",
    )
    assert patch.body == {
        "status": {
            "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}],
            "conditions": [
                {
                    "lastProbeTime": None,
                    "lastTransitionTime": "2023-11-14T22:13:20Z",
                    "message": "default-scheduler: preempting to accommodate a higher priority pod",
                    "observedGeneration": 1,
                    "reason": "PreemptionByScheduler",
                    "status": "True",
                    "type": "DisruptionTarget",
                }
            ],
        }
    }
    assert (delete.method, delete.path, delete.body) == (
        "DELETE",
        "/api/v1/namespaces/default/pods/low",
        {"kind": "DeleteOptions", "apiVersion": "v1"},
    )


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_victim_that_is_gone_is_no_error(method: str) -> None:
    gone = NotFoundError(404, "NotFound", 'pods "low" not found')
    api = FakeApi(lambda request: gone if request.method == method else b"{}")
    async with writer(api) as writing:
        assert await writing.evict(VICTIM, TOLD) is False


async def test_other_errors_are_raised() -> None:
    refused = ApiError(403, "Forbidden", "no")
    api = FakeApi(lambda request: refused if request.method == "DELETE" else b"{}")
    async with writer(api) as writing:
        with pytest.raises(ApiError, match="Forbidden"):
            await writing.evict(VICTIM, TOLD)


async def test_a_lost_answer_to_a_bind_is_looked_up() -> None:
    def answer(request: Request) -> bytes | Exception:
        if request.method == "POST":
            return ConflictError(409, "Conflict", "pod low is already assigned to node n1")
        return to_json(VICTIM)

    async with writer(FakeApi(answer)) as writing:
        await writing.bind(PodInfo(VICTIM), "n1")
        with pytest.raises(ConflictError):
            await writing.bind(PodInfo(VICTIM), "n2")
