"""Events of a server that has events.k8s.io/v1, and of one that has not."""

import msgspec
import pytest

from berth.kube.client.errors import NotFoundError, ServerError, UnavailableError
from berth.kube.client.events.api import EventApi
from berth.kube.objects.event import Event, EventMeta, EventSeries, ObjectReference
from tests.kube.client.fake_api import FakeApi, Request

ASKED = Request("GET", "/apis/events.k8s.io/v1")
GONE = NotFoundError(404, "NotFound", "")
MERGE = "application/strategic-merge-patch+json"

POD = {
    "kind": "Pod",
    "namespace": "ns",
    "name": "p",
    "uid": "u",
    "apiVersion": "v1",
    "resourceVersion": "7",
}
EVENT = Event(
    api_version="events.k8s.io/v1",
    kind="Event",
    metadata=EventMeta(name="p.1", namespace="ns"),
    event_time="2026-11-20T13:06:19.250000Z",
    reporting_controller="default-scheduler",
    reporting_instance="default-scheduler-host",
    action="Scheduling",
    reason="FailedScheduling",
    regarding=ObjectReference("Pod", "ns", "p", "u", "v1", "7"),
    note="no room",
    type="Warning",
)
SERIES = msgspec.structs.replace(
    EVENT, series=EventSeries(count=3, last_observed_time="2026-11-20T13:08:01.500000Z")
)
CORE = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "p.1", "namespace": "ns"},
    "involvedObject": POD,
    "reason": "FailedScheduling",
    "message": "no room",
    "type": "Warning",
    "action": "Scheduling",
    "source": {"component": "default-scheduler"},
    "firstTimestamp": "2026-11-20T13:06:19Z",
    "reportingComponent": "default-scheduler",
    "reportingInstance": "default-scheduler-host",
    "count": 1,
    "lastTimestamp": "2026-11-20T13:06:19Z",
}
COURSE = {"count": 3, "lastTimestamp": "2026-11-20T13:08:01Z"}
CORE_EVENTS = "/api/v1/namespaces/ns/events"


def a_server(*, forgets: bool = False) -> FakeApi:
    """A server without events.k8s.io/v1, which may have lost what it was told."""

    def answer(request: Request) -> bytes | Exception:
        is_lost = forgets and request.method == "PATCH"
        return GONE if request == ASKED or is_lost else b"{}"

    return FakeApi(answer)


@pytest.mark.parametrize(
    ("event", "forgets", "want"),
    [
        pytest.param(EVENT, False, [Request("POST", CORE_EVENTS, CORE)], id="a first event"),
        pytest.param(
            msgspec.structs.replace(EVENT, related=EVENT.regarding),
            False,
            [Request("POST", CORE_EVENTS, {**CORE, "related": POD})],
            id="another pod is named",
        ),
        pytest.param(
            SERIES,
            False,
            [Request("PATCH", f"{CORE_EVENTS}/p.1", COURSE, MERGE)],
            id="a series goes on",
        ),
        pytest.param(
            SERIES,
            True,
            [
                Request("PATCH", f"{CORE_EVENTS}/p.1", COURSE, MERGE),
                Request("POST", CORE_EVENTS, {**CORE, **COURSE}),
            ],
            id="a series whose event is gone",
        ),
    ],
)
async def test_v1_where_there_is_nothing_newer(
    event: Event, *, forgets: bool, want: list[Request]
) -> None:
    server = a_server(forgets=forgets)
    assert await EventApi(server).write([event]) == [None]
    assert server.requests == [ASKED, *want]


async def test_the_version_is_asked_for_once() -> None:
    server = a_server()
    events = EventApi(server)
    assert await events.write([EVENT]) == [None]
    assert await events.write([EVENT]) == [None]
    assert [request.method for request in server.requests] == ["GET", "POST", "POST"]


async def test_nothing_is_assumed_while_the_server_cannot_say() -> None:
    answers: list[bytes | Exception] = [UnavailableError("refused", sent=False), GONE, b"{}"]
    server = FakeApi(lambda request: answers.pop(0))
    events = EventApi(server)
    (refused,) = await events.write([EVENT])
    assert isinstance(refused, UnavailableError)
    assert await events.write([EVENT]) == [None]
    assert server.requests == [ASKED, ASKED, Request("POST", CORE_EVENTS, CORE)]


async def test_several_at_a_time() -> None:
    """What is created goes first, so that a series may be of it; each has its own error."""
    full = ServerError(500, "InternalError", "full")

    def answer(request: Request) -> bytes | Exception:
        if request == ASKED:
            return GONE
        return full if request.body.get("message") == "refused" else b"{}"

    server = FakeApi(answer)
    other = msgspec.structs.replace(EVENT, note="refused")

    assert await EventApi(server).write([SERIES, other, EVENT]) == [None, full, None]
    assert [request.method for request in server.requests] == ["GET", "POST", "POST", "PATCH"]
