"""What the scheduler's decisions look like to the API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from berth.kube.client.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    UnauthorizedError,
    UnavailableError,
)
from berth.kube.client.writes.lanes import WriteLanes
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.api_writer import MAX_BINDS, ApiWriter
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import condition, pod, to_json
from tests.kube.client.fake_api import FakeApi, Request

VICTIM = pod("low", node="n1", conditions=[condition("PodScheduled")])
TOLD = Condition(
    type="DisruptionTarget",
    status="True",
    reason="PreemptionByScheduler",
    message="default-scheduler: preempting to accommodate a higher priority pod",
    observed_generation=1,
)


@asynccontextmanager
async def writer(api: FakeApi, *, known: Pod | None = VICTIM) -> AsyncIterator[ApiWriter]:
    """A writer whose lanes are running, and which knows one pod."""
    clock = FakeClock(1_700_000_000)
    lanes = WriteLanes(clock=clock)
    running = asyncio.create_task(lanes.run())
    try:
        yield ApiWriter(
            api, lanes, recorders={}, pod_lookup=lambda _: known, clock=clock, rng=Random(0)
        )
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
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": "pod-default-low"},
        },
    )


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_victim_that_is_gone_is_no_error(method: str) -> None:
    gone = NotFoundError(404, "NotFound", 'pods "low" not found')
    api = FakeApi(lambda request: gone if request.method == method else b"{}")
    async with writer(api) as writing:
        assert await writing.evict(VICTIM, TOLD) is False


@pytest.mark.parametrize(
    ("found", "evicted"),
    [
        pytest.param(pod("low", uid="successor"), False, id="another pod has its name"),
        pytest.param(None, False, id="nobody has its name any more"),
        pytest.param(VICTIM, None, id="it is there, the conflict is about something else"),
    ],
)
async def test_a_victim_with_another_uid_is_gone(found: Pod | None, evicted: bool | None) -> None:
    """The name passed to a successor after the watch last told."""
    deleted: list[str] = []

    def answer(request: Request) -> bytes | Exception:
        if request.method == "DELETE":
            deleted.append(request.path)
            return ConflictError(409, "Conflict", "Precondition failed: UID in precondition: ...")
        if request.method == "GET":
            gone = NotFoundError(404, "NotFound", 'pods "low" not found')
            return gone if found is None else to_json(found)
        return b"{}"

    async with writer(FakeApi(answer)) as writing:
        if evicted is None:
            with pytest.raises(ConflictError):
                await writing.evict(VICTIM, TOLD)
        else:
            assert await writing.evict(VICTIM, TOLD) is evicted
    assert len(deleted) == 1


PREEMPTOR = pod("high", priority=10)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"{}", id="it is written"),
        pytest.param(ForbiddenError(403, "Forbidden", "no"), id="it cannot be written"),
    ],
)
async def test_what_the_room_is_for_is_written_before_it_is_made(
    answer: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """However busy the lane is in which the status waits."""
    api = FakeApi(lambda request: answer if request.path.endswith("/high/status") else b"{}")
    victims = [pod(name, node="n1") for name in ("low-1", "low-2")]
    known = {each.key: each for each in (PREEMPTOR, *victims)}
    clock = FakeClock(1_700_000_000)
    lanes = WriteLanes(clock=clock)
    writing = ApiWriter(api, lanes, recorders={}, pod_lookup=known.get, clock=clock, rng=Random(0))
    running = asyncio.create_task(lanes.run(), name="lanes")
    await settle()
    writing.status(PREEMPTOR, condition=None, nominated_node_name="n1")
    evicted = [writing.evict(victim, TOLD, nominated=PREEMPTOR) for victim in victims]
    assert await asyncio.gather(*evicted) == [True, True]
    running.cancel()
    await asyncio.wait([running])

    first, *others = api.requests
    assert first.path == "/api/v1/namespaces/default/pods/high/status"
    assert first.body["status"] == {"nominatedNodeName": "n1"}
    assert len(others) == 4
    assert not [other for other in others if other.path == first.path]
    assert len(caplog.records) == (0 if answer == b"{}" else 1)


async def test_other_errors_are_raised() -> None:
    refused = ApiError(403, "Forbidden", "no")
    api = FakeApi(lambda request: refused if request.method == "DELETE" else b"{}")
    async with writer(api) as writing:
        with pytest.raises(ApiError, match=r"^no$"):
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


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ServerError(500, "InternalError", "no etcd"), id="the server has no answer"),
        pytest.param(UnavailableError("refused", sent=False), id="there is no server"),
        pytest.param(UnauthorizedError(401, "Unauthorized", "who?"), id="our token has expired"),
    ],
)
async def test_a_bind_in_doubt_is_looked_up_until_there_is_an_answer(error: ApiError) -> None:
    looks = [error, error]

    def answer(request: Request) -> bytes | Exception:
        if request.method == "POST":
            return UnavailableError("reset", sent=None)
        return looks.pop() if looks else to_json(VICTIM)

    clock = FakeClock()
    lanes = WriteLanes(clock=clock)
    writing = ApiWriter(
        FakeApi(answer),
        lanes,
        recorders={},
        pod_lookup=lambda _: VICTIM,
        clock=clock,
        rng=Random(0),
    )
    running = asyncio.create_task(lanes.run(), name="lanes")
    binding = asyncio.create_task(writing.bind(PodInfo(VICTIM), "n1"), name="bind")
    for _ in range(20):
        await asyncio.sleep(0)
        clock.advance(1.0)
    running.cancel()
    await asyncio.wait([running])

    assert (binding.done(), looks) == (True, [])
    await binding


async def test_a_bind_in_doubt_that_may_not_be_looked_up_has_failed() -> None:
    def answer(request: Request) -> bytes | Exception:
        if request.method == "POST":
            return UnavailableError("reset", sent=None)
        return ForbiddenError(403, "Forbidden", "you may not")

    async with writer(FakeApi(answer)) as writing:
        with pytest.raises(ForbiddenError):
            await writing.bind(PodInfo(VICTIM), "n1")


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(None, id="it is gone"),
        pytest.param(pod("low", node="n1", uid="another"), id="another has its name by now"),
    ],
)
async def test_a_victim_that_was_deleted_meanwhile_is_left_alone(known: Pod | None) -> None:
    api = FakeApi()
    async with writer(api, known=known) as writing:
        assert await writing.evict(VICTIM, TOLD) is False
    assert api.requests == []


# How far ahead of the binds may be decided.


async def test_binds_take_room_until_they_are_made_or_known_to_have_failed() -> None:
    """Also one that is in doubt: while nobody can say, nothing more should be decided."""
    unsure = UnavailableError("reset", sent=None)
    async with writer(FakeApi(lambda _: unsure)) as writing:
        binds = [
            asyncio.create_task(writing.bind(PodInfo(pod("p")), "n1"), name=f"bind {i}")
            for i in range(MAX_BINDS - 1)
        ]
        await settle()
        had_room = writing.has_room
        binds.append(asyncio.create_task(writing.bind(PodInfo(pod("p")), "n1"), name="bind"))
        await settle()
        assert (had_room, writing.has_room) == (True, False)
        waiting = [asyncio.create_task(writing.until_room(), name="until room") for _ in range(2)]
        await settle()
        assert not any(task.done() for task in waiting)

        binds.pop().cancel()
        await settle()
        assert all(task.done() for task in waiting)
        for task in binds:
            task.cancel()
        await asyncio.wait(binds)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
