"""Binding for another scheduler: the room is taken first, and given back if nothing comes of it."""

import asyncio

import pytest

from app.client.errors import ApiError, ConflictError, UnavailableError
from app.extender_server.bindings import CONFIRMED_WITHIN
from app.queue.sub_queues import SubQueue
from tests.builders import node, pod
from tests.extender_server.world import World

A, B = pod("a", uid="a", cpu=1), pod("b", uid="b", cpu=1)


@pytest.fixture
def world() -> World:
    """A node with room for one of two pods."""
    made = World()
    made.harness.put(node("n1", cpu="1500m"), node("n2", cpu=4), A, B)
    return made


async def test_a_pod_is_bound(world: World) -> None:
    assert await world.bind(A, "n1") == ""
    assert world.harness.placements() == {"a": "n1"}
    assert not world.harness.cache.is_assumed("a")


async def test_room_is_taken_before_anything_is_written(world: World) -> None:
    world.api.may_answer.clear()
    first = asyncio.create_task(world.bind(A, "n1"), name="first")
    await asyncio.sleep(0)

    assert await world.bind(B, "n1") == "node n1 no longer fits: Insufficient cpu"
    assert (await world.filter(B, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"}
    assert await world.bind(A, "n2") == "pod default/a is being bound to node n1 already"

    world.api.may_answer.set()
    assert await first == ""
    assert world.api.bound == [("a", "n1")]


@pytest.mark.parametrize(
    ("uid", "where", "why"),
    [
        pytest.param(
            "a", "new", "node new no longer fits: node(s) not known to the extender", id="no node"
        ),
        pytest.param("other", "n1", "pod default/a with uid other does not exist", id="recreated"),
    ],
)
async def test_what_cannot_be_bound(world: World, uid: str, where: str, why: str) -> None:
    assert await world.bind(pod("a", uid=uid, cpu=1), where) == why
    assert world.api.bound == []


async def test_a_pod_that_does_not_exist(world: World) -> None:
    why = "pod default/none with uid none does not exist"
    assert await world.bind(pod("none", uid="none"), "n1") == why


async def test_a_pod_that_no_watch_has_told_of_is_read(world: World) -> None:
    world.seen = {}

    assert await world.bind(A, "n1") == ""


async def test_a_pod_that_cannot_be_read(world: World) -> None:
    world.seen = {}
    world.api.read_error = UnavailableError("no route", sent=False)

    why = "pod default/a cannot be read: no route"
    assert await world.bind(A, "n1") == why


async def test_to_be_asked_twice_does_no_harm(world: World) -> None:
    assert await world.bind(A, "n1") == ""
    assert await world.bind(A, "n1") == ""
    assert await world.bind(A, "n2") == "pod default/a is on node n1 already"
    assert world.api.bound == [("a", "n1")]


async def test_room_is_given_back_when_the_api_server_refuses(world: World) -> None:
    world.api.bind_error = ConflictError(409, "Conflict", "pod a is being deleted")

    assert await world.bind(A, "n1") == (
        "pod default/a cannot be bound to node n1: pod a is being deleted"
    )
    world.api.bind_error = None
    assert await world.bind(B, "n1") == ""


async def unconfirmed(world: World) -> None:
    """Bind a pod of which no watch tells."""
    world.api.tells_watches = False
    assert await world.bind(A, "n1") == ""
    assert world.harness.cache.is_assumed("a")


async def test_room_is_kept_until_it_is_time_to_look(world: World) -> None:
    await unconfirmed(world)
    world.harness.clock.advance(CONFIRMED_WITHIN - 1)
    await world.bindings.look_up_overdue()

    assert world.harness.cache.is_assumed("a")


async def test_a_pod_that_is_not_where_it_was_bound_gives_its_room_back(world: World) -> None:
    await unconfirmed(world)
    world.harness.clock.advance(CONFIRMED_WITHIN)
    await world.bindings.look_up_overdue()

    assert not world.harness.cache.is_assumed("a")
    assert await world.bind(B, "n1") == ""


@pytest.mark.parametrize(
    "error", [UnavailableError("no route", sent=False), ApiError(403, "Forbidden", "no")]
)
async def test_room_is_kept_while_nobody_knows(world: World, error: ApiError) -> None:
    await unconfirmed(world)
    world.api.read_error = error
    world.harness.clock.advance(CONFIRMED_WITHIN)
    await world.bindings.look_up_overdue()

    assert world.harness.cache.is_assumed("a")


async def test_looking_goes_on_for_ever(world: World) -> None:
    await unconfirmed(world)
    looking = asyncio.create_task(world.bindings.run(), name="looking")
    await asyncio.sleep(0)
    world.harness.clock.advance(CONFIRMED_WITHIN)
    for _ in range(5):
        await asyncio.sleep(0)

    assert not world.harness.cache.is_assumed("a")
    looking.cancel()


async def test_many_questions_at_once_never_give_room_away_twice() -> None:
    world = World()
    pods = [pod(f"p{i}", cpu=1) for i in range(20)]
    world.harness.put(node("n1", cpu=3), node("n2", cpu=4), *pods)

    errors = await asyncio.gather(
        *(world.bind(each, f"n{1 + i % 2}") for i, each in enumerate(pods))
    )

    assert errors.count("") == 7
    assert sorted(world.harness.placements().values()) == ["n1"] * 3 + ["n2"] * 4
    world.harness.cache.check_invariants()


async def test_room_that_is_given_back_wakes_who_waits_for_it_in_our_own_queue(
    world: World,
) -> None:
    large = pod("large", uid="large", cpu=4)
    world.api.may_answer.clear()
    world.api.bind_error = ConflictError(409, "Conflict", "pod a is being deleted")
    binding = asyncio.create_task(world.bind(A, "n2"), name="binding")
    await asyncio.sleep(0)
    queue = world.harness.queue
    for other in (A, B):
        queue.delete(other)
    world.harness.put(large)
    await world.harness.until_idle()
    assert queue.sub_queue_of(large.key) is SubQueue.UNSCHEDULABLE

    world.api.may_answer.set()
    assert "cannot be bound" in await binding

    assert queue.sub_queue_of(large.key) is SubQueue.BACKOFF


async def test_room_that_is_taken_is_told_to_our_own_queue(world: World) -> None:
    queue = world.harness.queue
    for other in (A, B):
        queue.delete(other)
    world.harness.put(pod("large", uid="large", cpu=100, priority=5))
    await world.harness.until_idle()
    alike = pod("alike", uid="alike", cpu=100, priority=5)
    world.harness.put(alike)
    queued = queue.take(alike.key)
    assert queued is not None
    assert queue.answer_for(queued) is not None

    world.api.tells_watches = False
    assert await world.bind(A, "n1") == ""

    assert queue.answer_for(queued) is None, "it could have the lesser pod evicted"
