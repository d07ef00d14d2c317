"""Looking changes nothing, not a byte of what the scheduler holds."""

import pytest

from tests.builders import node, pod
from tests.fingerprint import fingerprint
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import application, client

PATHS = (
    "queue",
    "queue?plugin=NodeResourcesFit&minAge=1&limit=1",
    "cache?pods=true&labelSelector=!x",
    "nominated",
    "waiting",
    "inflight",
    "podgroups",
    "devices?allocated=true",
    "decisions?result=unschedulable",
    "tasks",
    "config",
)


async def busy() -> Harness:
    """A scheduler with pods in every state, and a node that is new to the order of nodes."""
    harness = Harness()
    harness.put(node("n1", cpu=2), node("n2"), pod("big", cpu=9), *(pod(f"p{i}") for i in range(5)))
    await harness.until_idle()
    harness.put(pod("gated", gates=["x"]), pod("low", nominated="n1"), pod("high", priority=9))
    queued = harness.queue.pop()
    assert queued is not None
    assert harness.scheduler.scheduling_cycle(queued)
    harness.put(node("n3"))
    harness.queue.delete(harness.cluster.pods["default/low"])  # leaves a stale entry in its heap
    return harness


@pytest.mark.parametrize("path", PATHS)
async def test_a_look_changes_nothing(path: str) -> None:
    harness = await busy()
    async with client(application(harness)) as asking:
        before = fingerprint(harness.scheduler)
        answer = await asking.get(f"/debug/{path}")

    assert answer.status_code == 200, answer.text
    assert fingerprint(harness.scheduler) == before


async def test_what_changes_is_seen_to_change() -> None:
    harness = await busy()
    before = fingerprint(harness.scheduler)
    harness.cache.refresh_order()

    assert fingerprint(harness.scheduler) != before


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(method: str) -> None:
    async with client(application(Harness())) as asking:
        answers = [await asking.request(method, f"/debug/{path}") for path in PATHS]

    assert {answer.status_code for answer in answers} == {405}
