"""``/debug/queue``: where every waiting pod is, and which are asked for."""

import asyncio

import pytest

from berth.kube.objects.meta import Condition
from berth.runtime.tasks import PIECE
from berth.service.server.scheduler.debug.models import QueueName
from berth.service.server.scheduler.debug.pagination import decode_names
from berth.service.server.scheduler.debug.queue import QueueFilter, waiting_pods
from tests.builders import node, pod, taint
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import START, Object, all_pages, get, permitted

FIELDS = {
    "schedulerName": "default-scheduler",
    "priority": 0,
    "since": START,
    "waitingSince": START,
    "ageSeconds": 0.0,
    "attempts": 0,
    "podsAhead": None,
    "nextTryAt": None,
    "nextTryInSeconds": None,
    "gatingPlugin": "",
    "rejectingPlugins": [],
    "pendingPlugins": [],
    "nominatedNode": "",
    "message": "",
}


MESSAGE = (
    "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims"
    " to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for"
    " scheduling."
)


def item(name: str, **fields: object) -> Object:
    return {"pod": f"default/{name}", "uid": f"pod-default-{name}", **FIELDS, **fields}


@pytest.fixture
async def harness() -> Harness:
    """One pod in each part of the queue, two in the active one."""
    made = Harness()
    made.put(node("n1", taints=[taint("a")]), node("n2", cpu=1))
    made.put(pod("big", cpu=2), pod("gated", gates=["x"]))
    await made.until_idle()
    made.cluster.bind_error = OSError("refused")
    made.put(pod("broken", conditions=[Condition("PodScheduled", message="refused")]))
    await made.until_idle()
    made.put(pod("low"), pod("high", ns="other", priority=4))
    return made


async def test_every_part_of_the_queue(harness: Harness) -> None:
    told = await get(harness, "/debug/queue")

    assert told["items"] == [
        item(
            "big",
            queue="unschedulable",
            attempts=2,  # the room that the broken bind gave back was worth one
            nextTryAt="2001-09-09T01:51:40Z",
            nextTryInSeconds=300.0,
            rejectingPlugins=["NodeResourcesFit", "TaintToleration"],
            message=MESSAGE,
        ),
        item(
            "broken",
            queue="errorBackoff",
            attempts=1,
            nextTryAt="2001-09-09T01:46:42Z",
            nextTryInSeconds=2.0,
            message="refused",
        ),
        item(
            "gated",
            queue="gated",
            gatingPlugin="SchedulingGates",
            rejectingPlugins=["SchedulingGates"],
        ),
        item("low", queue="active", podsAhead=1),
        item("high", queue="active", podsAhead=0, priority=4)
        | {"pod": "other/high", "uid": "pod-other-high"},
    ]
    assert (told["continue"], told["counts"]) == (
        "",
        {
            "active": 2,
            "backoff": 0,
            "errorBackoff": 1,
            "unschedulable": 1,
            "gated": 1,
            "inFlight": 0,
        },
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", ["big", "broken", "gated", "low", "high"], id="all"),
        pytest.param("name=er/h", ["high"], id="by a part of namespace and name"),
        pytest.param("queue=active", ["low", "high"], id="the active ones"),
        pytest.param("queue=backoff", [], id="rejected ones in backoff"),
        pytest.param("queue=errorBackoff", ["broken"], id="broken ones in backoff"),
        pytest.param("queue=unschedulable", ["big"], id="the unschedulable ones"),
        pytest.param("queue=gated", ["gated"], id="the gated ones"),
        pytest.param("queue=inFlight", [], id="nothing is in flight"),
        pytest.param("namespace=other", ["high"], id="of a namespace"),
        pytest.param("pod=default/low", ["low"], id="one pod"),
        pytest.param("plugin=TaintToleration", ["big"], id="whom a plugin rejected"),
        pytest.param("plugin=SchedulingGates", ["gated"], id="whom a plugin gates"),
        pytest.param("schedulerName=other", [], id="of no such profile"),
        pytest.param("minAge=61", [], id="nothing waits so long"),
        pytest.param("minAge=60&queue=active", ["low", "high"], id="by age and part"),
    ],
)
async def test_filters(harness: Harness, query: str, names: list[str]) -> None:
    harness.clock.advance(60)

    found = await all_pages(harness, f"/debug/queue?{query}", limit=1)
    assert [each["pod"].partition("/")[2] for each in found] == names


async def test_a_pod_that_waits_for_permit_is_in_flight() -> None:
    harness, _ = permitted("p")

    told = await get(harness, "/debug/queue?queue=inFlight")
    assert told["items"] == [item("p", queue="inFlight", attempts=1)]
    assert told["counts"]["inFlight"] == 1


async def test_a_pod_that_is_tried_or_goes_while_others_are_looked_at() -> None:
    harness = Harness()
    pods = [pod(f"p{i:04}") for i in range(PIECE + 1)]
    harness.put(*pods)
    view = harness.view
    page = asyncio.create_task(waiting_pods(view, QueueFilter(), after=None, limit=3), name="page")
    await asyncio.sleep(0)
    tried = harness.queue.pop()
    harness.queue.delete(pods[1])
    told = await page

    assert tried is not None
    assert [(each.pod, each.queue, each.pods_ahead) for each in told.items] == [
        ("default/p0000", QueueName.IN_FLIGHT, None),
        ("default/p0002", QueueName.ACTIVE, 0),
    ]
    rest = await waiting_pods(view, QueueFilter(), after=decode_names(told.continue_), limit=1)
    assert [each.pod for each in rest.items] == ["default/p0003"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", ["a/x", "b/b", "b/bb", "b/c"], id="by name"),
        pytest.param("descending=true", ["b/c", "b/bb", "b/b", "a/x"], id="the other way round"),
        pytest.param("sort=age&descending=true", ["b/c", "b/bb", "b/b", "a/x"], id="oldest first"),
        pytest.param("sort=age", ["a/x", "b/b", "b/bb", "b/c"], id="newest first"),
        pytest.param("sort=priority", ["b/b", "a/x", "b/c", "b/bb"], id="least important first"),
        pytest.param("sort=priority&descending=true", ["b/bb", "b/c", "a/x", "b/b"], id="most"),
    ],
)
async def test_sorted(query: str, names: list[str]) -> None:
    harness = Harness()
    priorities = {"b/c": 7, "b/bb": 2_000_001_000, "b/b": -(2**31), "a/x": 0}
    for key, priority in priorities.items():
        namespace, name = key.split("/")
        harness.put(pod(name, ns=namespace, priority=priority))
        harness.clock.advance(1.0)
    for limit in (1, 3, 100):
        found = await all_pages(harness, f"/debug/queue?{query}", limit=limit)
        assert [each["pod"] for each in found] == names
