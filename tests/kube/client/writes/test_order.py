"""Which of several writes the API server sees first, and which are out of date before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from berth.kube.client.writes.lanes import Lane, LaneStats, Limits, WriteLanes
from berth.kube.objects.meta import Condition
from berth.runtime.clock import FakeClock
from berth.scheduler.api_writer import ApiWriter
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import pod
from tests.kube.client.fake_api import FakeApi
from tests.kube.client.slow_server import Server, running_lanes, settle, submit_event

REFUSED = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="full")


async def test_while_there_are_binds_the_other_lanes_share_a_trickle() -> None:
    server = Server()
    async with running_lanes(Limits(workers=9, status=4, event=3, trickle=2)) as lanes:
        bind = asyncio.create_task(lanes.bind(server.held("bind")))
        await settle()
        for n in range(4):
            lanes.submit_status(n, server.held(f"status-{n}"))
        for n in range(4):
            submit_event(lanes, server.held(f"event-{n}"))
        await settle()
        assert server.began == ["bind", "status-0", "status-1"]
        server.release("status-0")
        await settle()
        assert server.began[3:] == ["status-2"]

        server.release("bind")
        await settle()
        assert server.began[4:] == ["status-3", "event-0", "event-1", "event-2"]
        await bind


async def test_a_lane_that_is_half_full_gives_way_no_more() -> None:
    server = Server()
    limits = Limits(workers=9, status=4, event=3, trickle=0, pending_events=4)
    async with running_lanes(limits) as lanes:
        bind = asyncio.create_task(lanes.bind(server.held("bind")))
        await settle()
        accepted = [submit_event(lanes, server.quick(f"event-{n}")) for n in range(4)]
        lanes.submit_status("pod", server.quick("status"))
        await settle()

        assert accepted == [True] * 4
        assert server.began == ["bind", "event-0", "event-1"]
        server.release("bind")
        await bind


async def test_a_bind_is_made_after_the_pods_status_write_that_has_begun() -> None:
    server = Server()
    async with running_lanes(Limits(workers=9, status=4, event=3)) as lanes:
        lanes.submit_status("pod", server.held("status"))
        await settle()
        bind = asyncio.create_task(lanes.bind(server.quick("bind"), pod_key="pod"))
        other = asyncio.create_task(lanes.bind(server.quick("other"), pod_key="another pod"))
        await settle()
        assert server.began == ["status", "other"]

        server.release("status")
        assert (await bind, await other) == ("bind done", "other done")
        assert lanes.idle


async def test_a_bind_takes_the_place_of_the_pods_status_write_that_waits() -> None:
    server = Server()
    async with running_lanes(Limits(workers=2, status=1, event=0)) as lanes:
        lanes.submit_status("busy", server.held("busy"))
        await settle()
        lanes.submit_status("pod", server.quick("out of date"))
        assert await lanes.bind(server.quick("bind"), pod_key="pod") == "bind done"
        server.release("busy")
        await settle()

        assert server.began == ["busy", "bind"]
        assert lanes.stats[Lane.STATUS] == LaneStats(done=1, superseded=1)
        assert lanes.idle


async def test_a_status_write_is_made_after_the_pods_bind_that_has_begun() -> None:
    server = Server()
    async with running_lanes(Limits(workers=9, status=4, event=3)) as lanes:
        bind = asyncio.create_task(lanes.bind(server.held("bind"), pod_key="pod"))
        await settle()
        lanes.submit_status("pod", server.quick("status"))
        await settle()
        assert server.began == ["bind"]

        server.release("bind")
        await settle()
        assert server.began == ["bind", "status"]
        assert await bind == "bind done"
        assert lanes.idle


async def test_a_bind_that_is_held_ends_with_the_lanes() -> None:
    server = Server()
    async with running_lanes(Limits(workers=9, status=4, event=3)) as lanes:
        lanes.submit_status("pod", server.held("status"))
        await settle()
        bind = asyncio.create_task(lanes.bind(server.quick("bind"), pod_key="pod"))
        await settle()

    with pytest.raises(asyncio.CancelledError):
        await bind
    assert server.began == ["status"]


@pytest.mark.parametrize(
    ("binding", "behind"),
    [pytest.param(0, False, id="little waits"), pytest.param(251, True, id="much waits")],
)
def test_lanes_tell_when_they_are_behind(binding: int, *, behind: bool) -> None:
    lanes = WriteLanes(clock=FakeClock())
    for _ in range(binding):
        submit_event(lanes, Server().quick("event"))

    assert (lanes.is_behind, lanes.is_binding) == (behind, False)


@asynccontextmanager
async def writer(api: FakeApi) -> AsyncIterator[ApiWriter]:
    async with running_lanes(Limits()) as lanes:
        yield ApiWriter(
            api,
            lanes,
            recorders={},
            pod_lookup={"default/p": pod("p")}.get,
            clock=FakeClock(),
            rng=Random(0),
        )


async def test_what_an_earlier_attempt_had_to_say_is_not_said_after_the_bind() -> None:
    api = FakeApi()
    async with writer(api) as writing:
        writing.status(pod("p"), condition=REFUSED, nominated_node_name="")
        await writing.bind(PodInfo(pod("p")), "n1")
        await settle()

    assert [request.path for request in api.requests] == [
        "/api/v1/namespaces/default/pods/p/binding"
    ]


async def test_a_nomination_for_a_binding_takes_the_place_of_an_earlier_one() -> None:
    api = FakeApi()
    async with writer(api) as writing:
        writing.status(pod("p"), condition=REFUSED, nominated_node_name="n1")
        await writing.patch_pod_status(pod("p"), {"nominatedNodeName": "n2"})
        await settle()

    assert [request.body for request in api.requests] == [{"status": {"nominatedNodeName": "n2"}}]


async def test_what_is_to_be_said_after_a_failed_bind_is_said() -> None:
    api = FakeApi()
    async with writer(api) as writing:
        await writing.bind(PodInfo(pod("p")), "n1")
        writing.status(pod("p"), condition=REFUSED, nominated_node_name=None)
        await settle()

    assert [request.method for request in api.requests] == ["POST", "PATCH"]
