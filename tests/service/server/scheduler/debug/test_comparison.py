"""``/debug/compare``: differences that stay, and those that pass."""

import asyncio
from typing import Any

import httpx
import pytest

from berth.kube.client.errors import UnavailableError
from berth.scheduler.framework import kind
from berth.service.server.scheduler.debug.comparison import PAGE_SIZE
from tests.builders import node, pod
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import NODES, PODS, Lists, application, client

UNFINISHED = kind.PODS.params
DONE = pod("done", node="n1", phase="Succeeded")


@pytest.fixture
def harness() -> Harness:
    """Nodes n1 and n2; pod p on n1."""
    made = Harness()
    made.put(node("n1"), node("n2"), pod("p", node="n1"))
    return made


@pytest.fixture
def lists() -> Lists:
    """What the harness has been told, and what does not matter."""
    unreadable = {"metadata": {"name": "x"}, "spec": 1}
    return Lists(
        {NODES: [node("n1"), node("n2")], PODS: [pod("p", node="n1"), pod("w"), DONE, unreadable]}
    )


async def ask(harness: Harness, lists: Lists, path: str = "/debug/compare") -> httpx.Response:
    """Ask, and let time pass for a second look."""
    async with client(application(harness, lists=lists)) as asking:
        answer = asyncio.create_task(asking.get(path), name="compare")
        while not answer.done():
            await asyncio.sleep(0)
            harness.clock.advance(0.1)
        return await answer


async def test_what_is_read_in_part_is_compared_too(harness: Harness, lists: Lists) -> None:
    half = {"name": "half", "namespace": "default", "uid": "half"}
    lists.objects[PODS] += [{"metadata": half, "spec": {"nodeName": "n1", "containers": 7}}]

    told = (await ask(harness, lists)).json()

    assert [difference["words"] for difference in told["differences"]] == [
        "pod default/half is missing in the cache"
    ]


async def test_all_pages_are_compared_once_if_nothing_differs(
    harness: Harness, lists: Lists
) -> None:
    told: dict[str, Any] = (await ask(harness, lists)).json()

    told.pop("at")
    assert told == {
        "clean": True,
        "looks": 1,
        "nodes": 2,
        "pods": 3,
        "total": 0,
        "differences": [],
    }
    assert lists.asked == [
        (NODES, {"limit": str(PAGE_SIZE)}),
        (PODS, {**UNFINISHED, "limit": str(PAGE_SIZE)}),
        (PODS, {**UNFINISHED, "limit": str(PAGE_SIZE), "continue": "2"}),
    ]


async def test_every_kind_of_difference(harness: Harness, lists: Lists) -> None:
    harness.put(pod("redundant", node="n2"))
    lists.objects = {
        NODES: [node("n1"), node("n3")],
        PODS: [pod("p", node="n2"), pod("new", node="n1")],
    }

    told = (await ask(harness, lists)).json()
    assert (told["clean"], told["looks"], told["total"]) == (False, 2, 5)
    assert [tuple(difference.values()) for difference in told["differences"]] == [
        ("missingNode", "n3", "node n3 is missing in the cache"),
        ("redundantNode", "n2", "node n2 is only in the cache"),
        ("missingPod", "default/new", "pod default/new is missing in the cache"),
        ("redundantPod", "default/redundant", "pod default/redundant is only in the cache"),
        ("misplacedPod", "default/p", "pod default/p is on n2, not on n1"),
    ]
    short = (await ask(harness, lists, "/debug/compare?limit=1")).json()
    assert (short["total"], len(short["differences"])) == (5, 1)


async def test_what_the_watch_tells_meanwhile_is_no_difference(
    harness: Harness, lists: Lists
) -> None:
    lists.objects[PODS].append(pod("new", node="n2"))
    async with client(application(harness, lists=lists)) as asking:
        answer = asyncio.create_task(asking.get("/debug/compare"), name="compare")
        while not answer.done():
            await asyncio.sleep(0)
            if len(lists.asked) == 4 and "default/new" not in harness.cluster.pods:
                harness.put(pod("new", node="n2"))
            harness.clock.advance(0.1)
        told = (await answer).json()

    assert (told["clean"], told["looks"]) == (True, 2)


async def test_an_api_server_that_does_not_answer(harness: Harness, lists: Lists) -> None:
    lists.error = UnavailableError("connection refused", sent=False)

    answer = await ask(harness, lists)
    assert answer.status_code == 503
    assert "connection refused" in answer.json()["detail"]


async def test_nothing_is_compared_before_the_state_is_known(harness: Harness) -> None:
    async with client(application(harness, is_ready=False)) as asking:
        answer = await asking.get("/debug/compare")

    assert answer.status_code == 503
    assert answer.json() == {"detail": "the state of the cluster is not known yet"}
