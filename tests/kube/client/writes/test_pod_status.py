"""Status patches that wait are merged: what is newer wins, what is not said stays."""

import asyncio
import random
from typing import Any

import pytest

from berth.kube.client.writes.lanes import Limits, WriteLanes
from berth.kube.client.writes.pod_status import PodStatusWriter
from berth.kube.objects.meta import Condition
from berth.runtime.clock import FakeClock
from tests.builders import pod, to_json
from tests.kube.client.fake_api import FakeApi

OLD = Condition(type="PodScheduled", status="False", message="old")
NEW = Condition(type="PodScheduled", status="False", message="new")


async def make_all(lanes: WriteLanes) -> None:
    """Run *lanes* until they have made what waits."""
    running = asyncio.create_task(lanes.run(), name="lanes")
    for _ in range(20):
        await asyncio.sleep(0)
    assert lanes.idle
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param((OLD, "n1"), (NEW, None), ("new", "n1"), id="a waiting nomination stays"),
        pytest.param((OLD, "n1"), (NEW, "n2"), ("new", "n2"), id="a newer nomination wins"),
        pytest.param((OLD, None), (None, "n1"), ("old", "n1"), id="a waiting condition stays"),
        pytest.param((OLD, "n1"), (NEW, ""), ("new", None), id="clearing undoes what waited"),
    ],
)
async def test_what_waits_is_merged(
    first: tuple[Condition | None, str | None],
    second: tuple[Condition | None, str | None],
    want: tuple[str, str | None],
) -> None:
    api, clock = FakeApi(), FakeClock()
    lanes = WriteLanes(clock=clock, limits=Limits(workers=2, status=1, event=0))
    writer = PodStatusWriter(api, lanes, exists=lambda _: True, clock=clock, rng=random.Random(1))
    for condition, nominated in (first, second):
        writer.submit(pod("p"), condition=condition, nominated_node_name=nominated)

    await make_all(lanes)

    bodies: list[dict[str, Any]] = [request.body["status"] for request in api.requests]
    assert [
        (body["conditions"][0]["message"], body.get("nominatedNodeName")) for body in bodies
    ] == [want]


async def test_pods_do_not_mix() -> None:
    api, clock = FakeApi(), FakeClock()
    lanes = WriteLanes(clock=clock)
    writer = PodStatusWriter(api, lanes, exists=lambda _: True, clock=clock, rng=random.Random(1))
    writer.submit(pod("a"), nominated_node_name="n1")
    writer.submit(pod("b"), nominated_node_name="n2")
    writer.submit(pod("a", nominated="n1"), nominated_node_name="n1")

    await make_all(lanes)

    # the informer has shown that a's nomination is there, so that nothing is left to write
    assert [(r.path, r.body) for r in api.requests] == [
        (
            "/api/v1/namespaces/default/pods/b/status",
            {
                "metadata": {"resourceVersion": "1"},
                "status": {"nominatedNodeName": "n2"},
            },
        )
    ]


async def test_what_is_wanted_for_a_pod_that_went_away_is_not_said_of_its_successor() -> None:
    api, clock = FakeApi(), FakeClock()
    lanes = WriteLanes(clock=clock)
    there = {"a": pod("a"), "b": pod("b")}
    writer = PodStatusWriter(
        api,
        lanes,
        exists=lambda each: there[each.metadata.name] is each,
        clock=clock,
        rng=random.Random(1),
    )
    for each in there.values():
        writer.submit(each, nominated_node_name="n1")
    there["a"] = pod("a")

    await make_all(lanes)

    assert [request.path for request in api.requests] == [
        "/api/v1/namespaces/default/pods/b/status"
    ]


async def test_a_second_patch_builds_on_the_answer_that_the_watch_has_yet_to_tell() -> None:
    answer = to_json(pod("p", version="2", nominated="n1"))
    api, clock = FakeApi(lambda _request: answer), FakeClock()
    lanes = WriteLanes(clock=clock)
    writer = PodStatusWriter(api, lanes, exists=lambda _: True, clock=clock, rng=random.Random(1))
    for nominated in ("n1", "n1", "n2"):
        writer.submit(pod("p"), nominated_node_name=nominated)
        await make_all(lanes)

    assert [request.body for request in api.requests] == [
        {"metadata": {"resourceVersion": "1"}, "status": {"nominatedNodeName": "n1"}},
        {"metadata": {"resourceVersion": "2"}, "status": {"nominatedNodeName": "n2"}},
    ]
