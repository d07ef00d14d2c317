"""Binding for another scheduler: the room is taken first, and given back if nothing comes of it."""

import asyncio
import random
from collections import Counter

import pytest

from berth.kube.client.errors import ApiError, ConflictError, UnavailableError
from berth.scheduler.queue.sub_queues import SubQueue
from berth.service.extender_server.bindings import CONFIRMED_WITHIN, GIVEN_UP
from tests.builders import node, pod, pod_anti_affinity, pod_term
from tests.harness import Harness
from tests.service.extender_server.world import World

A, B = pod("a", uid="a", cpu=1), pod("b", uid="b", cpu=1)


@pytest.fixture
def world() -> World:
    """A node with room for one of two pods."""
    made = World()
    made.harness.put(node("n1", cpu="1500m"), node("n2", cpu=4), A, B)
    return made


async def settle(turns: int = 10) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


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


async def test_a_pod_that_no_watch_has_told_of_is_where_it_was_bound(world: World) -> None:
    await unconfirmed(world)

    assert await world.bind(A, "n1") == ""
    assert await world.bind(A, "n2") == "pod default/a is on node n1 already"
    assert world.api.bound == [("a", "n1")]


# Its caller has given up on it and asks again.


@pytest.mark.parametrize("state", ["not sent", "sent", "bound, unconfirmed", "confirmed"])
async def test_a_pod_does_not_count_against_itself(world: World, state: str) -> None:
    world.api.tells_watches = state == "confirmed"
    if state == "not sent":
        world.api.may_leave.clear()
    if state == "sent":
        world.api.may_answer.clear()
    binding = asyncio.create_task(world.bind(A, "n1"), name="binding")
    await settle()

    said = await world.filter(A, "n1", "n2")
    if state == "not sent":
        assert said["NodeNames"] == ["n1", "n2"]
    else:  # it will be there, or is
        assert said["NodeNames"] == ["n1"]
        assert said["FailedNodes"] == {"n2": "pod is being bound to node n1"}
    assert (await world.filter(A, "n2"))["NodeNames"] == ["n2"], "should it be refused by n1"
    assert (await world.filter(B, "n1", "n2"))["NodeNames"] == ["n2"]
    # As if it were nowhere: n2 has more left of everything, by the default scores.
    assert await world.priorities(A, "n1", "n2") == await World(twin()).priorities(A, "n1", "n2")
    world.harness.cache.check_invariants()
    assert world.harness.cache.is_assumed("a") == (state != "confirmed")
    world.api.may_leave.set()
    world.api.may_answer.set()
    assert await binding == ""


def twin() -> Harness:
    """The nodes and pods of the world, of which none has been bound."""
    made = Harness()
    made.put(node("n1", cpu="1500m"), node("n2", cpu=4), A, B)
    return made


async def test_nor_when_it_is_asked_whom_to_evict(world: World) -> None:
    world.harness.put(pod("low", uid="low", cpu="500m", node="n1", priority=-1))
    victims = {"n1": ["low"]}
    without = await world.preempt(A, victims)
    assert without
    world.api.tells_watches = False
    assert await world.bind(A, "n1") == ""

    assert await world.preempt(A, victims) == without
    assert await world.preempt(B, victims) == {}


async def test_nor_in_affinity_and_spread(world: World) -> None:
    alone = pod(
        "alone",
        uid="alone",
        labels={"app": "x"},
        affinity=pod_anti_affinity(required=[pod_term({"app": "x"}, key="zone")]),
    )
    world.harness.put(node("z1", labels={"zone": "z"}), node("z2", labels={"zone": "z"}), alone)
    world.api.tells_watches = False
    assert await world.bind(alone, "z1") == ""

    assert (await world.filter(alone, "z2"))["NodeNames"] == ["z2"]


async def test_another_node_takes_the_place_of_one_that_it_was_not_bound_to(world: World) -> None:
    world.api.may_answer.clear()
    world.api.bind_error = UnavailableError("no route", sent=False)
    first = asyncio.create_task(world.bind(A, "n1"), name="first")
    await settle()
    second = asyncio.create_task(world.bind(A, "n2"), name="second")
    await settle()
    assert not second.done(), "what becomes of the first is not known"

    def write() -> None:
        world.api.bind_error = None

    first.add_done_callback(lambda _: write())
    world.api.may_answer.set()
    assert await first == "pod default/a cannot be bound to node n1: no route"
    assert await second == ""
    assert world.harness.placements() == {"a": "n2"}
    assert await world.bind(B, "n1") == "", "its room there has been given back"
    world.harness.cache.check_invariants()


@pytest.mark.parametrize(
    ("node_name", "said"),
    [("n1", ""), ("n2", "pod default/a is on node n1 already")],
    ids=["the same node", "another node"],
)
async def test_a_bind_that_is_made_is_waited_for(world: World, node_name: str, said: str) -> None:
    world.api.tells_watches = False
    world.api.may_answer.clear()
    first = asyncio.create_task(world.bind(A, "n1"), name="first")
    await settle()
    second = asyncio.create_task(world.bind(A, node_name), name="second")
    await settle()

    world.api.may_answer.set()
    assert (await first, await second) == ("", said)
    assert world.api.bound == [("a", "n1")]


async def test_nobody_waits_for_an_earlier_bind_for_a_caller_who_has_gone(world: World) -> None:
    world.api.may_answer.clear()
    gone: asyncio.Future[None] = asyncio.Future()
    first = asyncio.create_task(world.bind(A, "n1"), name="first")
    await settle()
    second = asyncio.create_task(world.bind(A, "n2", gone=gone), name="second")
    await settle()

    gone.set_result(None)
    assert await second == GIVEN_UP
    world.api.may_answer.set()
    assert await first == ""


async def test_a_bind_whose_caller_has_gone_does_not_leave(world: World) -> None:
    world.api.may_leave.clear()
    gone: asyncio.Future[None] = asyncio.Future()
    binding = asyncio.create_task(world.bind(A, "n1", gone=gone), name="binding")
    await settle()
    gone.set_result(None)
    await settle()
    assert (await world.filter(B, "n1"))["NodeNames"] == ["n1"], "the room is given back at once"
    again = asyncio.create_task(world.bind(A, "n1"), name="again")
    await settle()
    world.api.may_leave.set()

    assert await binding == "pod default/a cannot be bound to node n1: not sent"
    assert await again == ""
    assert world.api.bound == [("a", "n1")]
    assert await world.bind(B, "n1") == "node n1 no longer fits: Insufficient cpu"


async def test_a_bind_that_has_left_runs_on_to_its_end(world: World) -> None:
    world.api.may_answer.clear()
    gone: asyncio.Future[None] = asyncio.Future()
    binding = asyncio.create_task(world.bind(A, "n1", gone=gone), name="binding")
    await settle()
    gone.set_result(None)
    await settle()
    assert await world.bind(B, "n1") == "node n1 no longer fits: Insufficient cpu"

    world.api.may_answer.set()
    assert await binding == ""
    assert world.api.bound == [("a", "n1")]


async def test_callers_who_give_up_and_come_back_never_have_room_given_away_twice() -> None:
    """Whatever the order in which binds leave, fail, are given up and are asked for again."""
    for seed in range(30):
        rng = random.Random(seed)
        world = World()
        pods = [pod(f"p{i}", uid=f"p{i}", cpu=1) for i in range(6)]
        world.harness.put(node("n1", cpu=3), node("n2", cpu=3), *pods)
        binding: list[asyncio.Task[str]] = []
        callers: list[asyncio.Future[None]] = []
        for _ in range(60):
            match rng.randrange(5):
                case 0 | 1:
                    caller: asyncio.Future[None] = asyncio.Future()
                    asked = world.bind(rng.choice(pods), rng.choice(["n1", "n2"]), gone=caller)
                    binding.append(asyncio.create_task(asked, name="bind"))
                    callers.append(caller)
                case 2:
                    gone = rng.choice(callers or [asyncio.Future()])
                    if not gone.done():
                        gone.set_result(None)
                case 3:
                    gate = rng.choice([world.api.may_leave, world.api.may_answer])
                    if gate.is_set():
                        gate.clear()
                    else:
                        gate.set()
                case 4:
                    refuses = rng.random() < 0.5
                    error = UnavailableError("no route", sent=False) if refuses else None
                    world.api.bind_error = error
                    world.api.tells_watches = rng.random() < 0.5
            await settle(rng.randrange(3))
            world.harness.cache.check_invariants()
        world.api.bind_error = None
        world.api.may_leave.set()
        world.api.may_answer.set()
        await asyncio.gather(*binding)

        bound = Counter(name for name, _ in world.api.bound)
        assert set(bound.values()) <= {1}, "no pod is bound twice"
        on = Counter(node_name for _, node_name in world.api.bound)
        assert max(on.values()) <= 3
        counted = {p.pod.metadata.name: p.node_name for p in world.harness.cache.pods()}
        assert counted == dict(world.api.bound)
        world.harness.cache.check_invariants()


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
    assert queue.sub_queues.place_of(large.key) is SubQueue.UNSCHEDULABLE

    world.api.may_answer.set()
    assert "cannot be bound" in await binding

    assert queue.sub_queues.place_of(large.key) is SubQueue.BACKOFF


async def test_room_that_is_taken_is_told_to_our_own_queue(world: World) -> None:
    queue = world.harness.queue
    for other in (A, B):
        queue.delete(other)
    world.harness.put(pod("large", uid="large", cpu=100, priority=5))
    await world.harness.until_idle()
    twin = pod("twin", uid="twin", cpu=100, priority=5)
    world.harness.put(twin)
    queued = queue.pop_specific_pod(twin.key)
    assert queued is not None
    assert queue.cached_failure(queued) is not None

    world.api.tells_watches = False
    assert await world.bind(A, "n1") == ""

    assert queue.cached_failure(queued) is None, "it could have the lesser pod evicted"
