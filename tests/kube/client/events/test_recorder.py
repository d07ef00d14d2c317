"""Events, compared with what kube-scheduler 1.36 sends, and how they survive failures."""

import asyncio
import logging
import random
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from berth.kube.client.errors import (
    AlreadyExistsError,
    ApiError,
    FencedError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnavailableError,
)
from berth.kube.client.events.api import EventApi
from berth.kube.client.events.recorder import EventRecorder, shortened
from berth.kube.client.writes.lanes import Limits, WriteLanes
from berth.runtime.clock import FakeClock
from tests.builders import pod
from tests.kube.client.fake_api import FakeApi, Request

NOW = 1795179979.25  # 2026-11-20T13:06:19.25Z
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
SERVED = Request("GET", "/apis/events.k8s.io/v1")
EVENT_KIND = b'{"resources": [{"name": "events", "kind": "Event", "namespaced": true}]}'


@dataclass
class Rig:
    """A recorder that runs, with the failures its API answers before it works."""

    failures: list[Exception] = field(default_factory=list)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))

    def __post_init__(self) -> None:
        self.api = FakeApi(self._answer)
        self.lanes = WriteLanes(clock=self.clock, limits=Limits(workers=2, status=0, event=1))
        self.recorder = EventRecorder(
            EventApi(self.api),
            self.lanes,
            clock=self.clock,
            rng=random.Random(1),
            component="default-scheduler",
            hostname="host-1",
        )

    def _answer(self, request: Request) -> bytes | Exception:
        if request.path == SERVED.path:
            return EVENT_KIND
        return self.failures.pop(0) if self.failures else b"{}"

    def failed(self, version: str = "240") -> None:
        self.recorder.event(
            pod("toolarge", uid="u1", version=version),
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note="0/2 nodes are available: 2 Insufficient cpu.",
        )

    async def pass_time(self, seconds: float) -> None:
        """Move time in steps shorter than any interval of the recorder, and let it work."""
        while seconds > 0:
            self.clock.advance(min(seconds, 5.0))
            seconds -= 5.0
            await settle()

    def sent(self) -> list[Request]:
        """Return the requests since the last time, but for the one that asks for the version."""
        sent, self.api.requests = self.api.requests, []
        return [request for request in sent if request != SERVED]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    tasks = [
        asyncio.create_task(rig.lanes.run(), name="lanes"),
        asyncio.create_task(rig.recorder.run(), name="events"),
    ]
    await settle()
    yield rig
    for task in tasks:
        assert not task.done(), f"{task.get_name()} never ends by itself"
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_first_event_is_created(rig: Rig) -> None:
    rig.recorder.event(
        pod("plain", uid="0586ba73", version="235"),
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note="Successfully assigned default/plain to node-a",
    )
    await settle()

    assert rig.sent() == [
        Request(
            "POST",
            EVENTS,
            {
                "kind": "Event",
                "apiVersion": "events.k8s.io/v1",
                "metadata": {
                    "name": f"plain.{int(NOW * 1e9):x}",
                    "namespace": "default",
                },
                "eventTime": "2026-11-20T13:06:19.250000Z",
                "reportingController": "default-scheduler",
                "reportingInstance": "default-scheduler-host-1",
                "action": "Binding",
                "reason": "Scheduled",
                "regarding": {
                    "kind": "Pod",
                    "namespace": "default",
                    "name": "plain",
                    "uid": "0586ba73",
                    "apiVersion": "v1",
                    "resourceVersion": "235",
                },
                "note": "Successfully assigned default/plain to node-a",
                "type": "Normal",
            },
        )
    ]


async def test_the_related_pod_is_named(rig: Rig) -> None:
    rig.recorder.event(
        pod("low-b"),
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note="Preempted by pod u2 on node node-a",
        related=pod("high", uid="u2", version="252"),
    )
    await settle()

    assert rig.sent()[0].body["related"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "high",
        "uid": "u2",
        "apiVersion": "v1",
        "resourceVersion": "252",
    }


async def test_events_of_one_moment_have_different_names(rig: Rig) -> None:
    rig.failed(version="1")
    rig.failed(version="2")
    await settle()

    assert len({request.body["metadata"]["name"] for request in rig.sent()}) == 2


@pytest.mark.parametrize(("length", "is_readable"), [(236, True), (237, False), (253, False)])
async def test_an_event_of_a_pod_with_a_long_name_is_named_by_a_uuid(
    rig: Rig, length: int, is_readable: bool
) -> None:
    name = "n" * length
    rig.recorder.event(pod(name), type="Normal", reason="R", action="A", note="n")
    await settle()

    given = rig.sent()[0].body["metadata"]["name"]
    if is_readable:
        assert given.startswith(f"{name}.")
    else:
        assert uuid.UUID(given).version == 4
    assert len(given) <= 253


async def test_a_second_occurrence_patches_a_series_and_later_ones_are_counted(rig: Rig) -> None:
    rig.failed()
    await rig.pass_time(10)
    rig.failed()
    await rig.pass_time(10)
    rig.failed()
    rig.failed()
    await rig.pass_time(10)

    created, patched = rig.sent()
    assert created.body.get("series") is None
    assert patched == Request(
        "PATCH",
        f"{EVENTS}/{created.body['metadata']['name']}",
        {"series": {"count": 2, "lastObservedTime": "2026-11-20T13:06:29.250000Z"}},
        "application/strategic-merge-patch+json",
    )


async def test_an_event_about_a_changed_pod_is_another_event(rig: Rig) -> None:
    rig.failed(version="240")
    rig.failed(version="242")
    await settle()

    assert [request.method for request in rig.sent()] == ["POST", "POST"]


async def test_a_series_that_goes_on_is_written_every_half_hour(rig: Rig) -> None:
    for _ in range(20):
        rig.failed()
        await rig.pass_time(100)

    assert [request.body.get("series", {}).get("count") for request in rig.sent()] == [None, 2, 18]


async def test_a_series_that_ended_is_written_once_more_and_forgotten(rig: Rig) -> None:
    for _ in range(3):
        rig.failed()
    await rig.pass_time(800)
    assert [request.body.get("series", {}).get("count") for request in rig.sent()] == [None, 2, 3]

    rig.failed()
    await rig.pass_time(5)

    assert [request.method for request in rig.sent()] == ["POST"]


async def test_a_series_whose_event_is_gone_is_created_with_its_count(rig: Rig) -> None:
    rig.failed()
    await settle()
    rig.failures.append(NotFoundError(404, "NotFound", ""))
    rig.failed()
    await settle()

    assert [(r.method, r.body.get("series", {}).get("count")) for r in rig.sent()] == [
        ("POST", None),
        ("PATCH", 2),
        ("POST", 2),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(UnavailableError("refused", sent=False), id="no connection"),
        pytest.param(ServerError(500, "InternalError", ""), id="server failure"),
        pytest.param(TooManyRequestsError(429, "TooManyRequests", ""), id="server busy"),
    ],
)
async def test_a_write_that_failed_is_tried_twelve_times_ten_seconds_apart(
    rig: Rig, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    rig.failures.extend([failure] * 20)
    rig.failed()
    await rig.pass_time(300)

    assert len(rig.sent()) == 12
    assert [record.message for record in caplog.records] == ["event given up"]


async def test_a_write_that_failed_succeeds_later(rig: Rig) -> None:
    rig.failures.append(UnavailableError("refused", sent=False))
    rig.failed()
    await rig.pass_time(300)

    first, second = rig.sent()
    assert first == second


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        pytest.param(
            ForbiddenError(403, "Forbidden", "namespace is being terminated"),
            ["event refused"],
            id="told",
        ),
        pytest.param(
            FencedError("another replica may lead by now"),
            [],
            id="quiet, of one that leads no more",
        ),
        pytest.param(
            AlreadyExistsError(409, "AlreadyExists", 'events "p.1" already exists'),
            [],
            id="quiet, it was written and the answer lost",
        ),
    ],
)
async def test_a_refused_event_is_not_tried_again(
    rig: Rig, caplog: pytest.LogCaptureFixture, refusal: ApiError, said: list[str]
) -> None:
    rig.failures.append(refusal)
    with caplog.at_level(logging.INFO):
        rig.failed()
        await rig.pass_time(60)

    assert len(rig.sent()) == 1
    assert [record.message for record in caplog.records] == said


@pytest.mark.parametrize(
    ("note", "want"),
    [
        pytest.param("short", "short", id="short"),
        pytest.param("x" * 1024, "x" * 1024, id="as long as may be"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="one byte too long"),
        pytest.param("é" * 512 + "x", "é" * 510 + " ...", id="bytes count, not characters"),
        pytest.param("x" + "é" * 512, "x" + "é" * 509 + " ...", id="no half characters"),
    ],
)
def test_shortened(note: str, want: str) -> None:
    assert shortened(note) == want
