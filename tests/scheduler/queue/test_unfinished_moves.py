"""What moves many pods is done in turns with others on the event loop, and no attempt notices."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
)
from berth.scheduler.queue import scheduling_queue
from berth.scheduler.queue.scheduling_queue import MOST_UNFINISHED, STEPS_PER_TURN
from tests.builders import pod
from tests.loop_turns import turns_during
from tests.scheduler.queue.world import World, listens

MANY = 5 * STEPS_PER_TURN
FULL_TURNS = MANY // STEPS_PER_TURN - 1
"""After the first, which is that of the event."""


def crowd(*, by_signature: bool = False) -> World:
    """Many pods that Fit rejected; those that come later have the higher priority."""
    world = World(listens("Fit", NODE_ADD), by_signature=by_signature)
    for number in range(MANY):
        priority = None if by_signature else number
        world.reject(pod(f"p{number}", priority=priority), "Fit")
    world.clock.advance(100)
    return world


def moved(world: World) -> int:
    return sum(place != "unschedulable" for place in world.places().values())


def is_settled(world: World) -> bool:
    return world.queue.is_settled


def node_comes(world: World) -> None:
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)


def all_are_told(world: World) -> None:
    world.queue.move_all_to_active_or_backoff_queue(UNSCHEDULABLE_TIMEOUT)


def waited_too_long(world: World) -> None:
    world.clock.advance(1_000)
    world.queue.flush_unschedulable_pods_leftover()


@pytest.mark.parametrize(
    ("happens", "by_signature"),
    [
        pytest.param(node_comes, False, id="an event about pods that differ"),
        pytest.param(node_comes, True, id="an event about pods that are equal"),
        pytest.param(all_are_told, False, id="the wildcard event"),
        pytest.param(waited_too_long, False, id="the flush of what waited too long"),
    ],
)
async def test_others_get_turns_while_many_pods_move(
    happens: Callable[[World], None], *, by_signature: bool
) -> None:
    world = crowd(by_signature=by_signature)
    happens(world)

    assert moved(world) == STEPS_PER_TURN
    assert not is_settled(world)
    assert await turns_during(world.queue.settled) >= FULL_TURNS
    assert moved(world) == MANY
    assert is_settled(world)
    world.queue.check_invariants()


async def test_others_get_turns_while_backoffs_end() -> None:
    world = crowd()
    for key in world.pods:
        queued = world.queue.pop_specific_pod(key)
        assert queued is not None
        world.give_back(queued)  # the attempt broke
    world.clock.advance(100)
    world.queue.flush_backoff_completed()

    assert [*world.places().values()].count("active") == STEPS_PER_TURN
    assert await turns_during(world.queue.settled) >= FULL_TURNS
    assert {*world.places().values()} == {"active"}


def test_the_first_pod_is_the_first_of_all_that_move() -> None:
    world = crowd()
    node_comes(world)
    world.add(pod("new", priority=3))

    assert world.pop().pod.metadata.name == f"p{MANY - 1}"
    assert moved(world) == MANY  # the new one in place of what was popped


async def test_who_waits_for_a_pod_waits_until_all_have_moved() -> None:
    world = crowd()
    node_comes(world)

    assert await world.queue.wait_ready()
    assert world.queue.is_settled


def test_few_pods_move_at_once() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("p"), "Fit")
    node_comes(world)

    assert world.queue.is_settled


def test_a_pod_that_goes_meanwhile_does_not_come_back() -> None:
    world = crowd()
    node_comes(world)
    last = world.pods.pop(f"default/p{MANY - 1}")
    world.queue.delete(last)
    world.queue.settle()

    assert world.queue.sub_queues.place_of(last.key) is None
    world.queue.check_invariants()


def test_a_pod_of_the_same_name_that_comes_meanwhile_is_left_alone() -> None:
    world = crowd()
    waited_too_long(world)
    name = f"p{MANY - 1}"
    world.add(pod(name, uid="another"))
    (first,) = [each for each in world.queue.sub_queues if each.uid == "another"]
    world.queue.settle()

    assert not first.was_flushed_from_unschedulable


def test_events_keep_their_order() -> None:
    told: list[str] = []

    def hint(name: str) -> Callable[..., QueueingHint]:
        def answer(_waiting: Pod, _old: Any, _new: Any) -> QueueingHint:
            told.append(name)
            return QueueingHint.SKIP

        return answer

    world = World(
        listens("Fit", NODE_ADD, hint("came")), listens("Fit", ASSIGNED_POD_DELETE, hint("went"))
    )
    for number in range(MANY):
        world.reject(pod(f"p{number}"), "Fit")
    node_comes(world)
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE)
    world.queue.settle()

    assert told == ["came"] * MANY + ["went"] * MANY


def test_there_is_an_end_to_what_is_put_off() -> None:
    world = crowd()
    for _ in range(MOST_UNFINISHED):
        node_comes(world)
    assert not is_settled(world)
    node_comes(world)
    assert is_settled(world)


async def test_a_move_that_others_have_finished_is_over() -> None:
    world = crowd()
    node_comes(world)
    settling = asyncio.create_task(world.queue.settled(), name="settling")
    await asyncio.sleep(0)
    world.queue.settle()
    node_comes(world)
    await settling

    assert moved(world) == MANY


async def test_a_move_goes_on_after_who_waited_for_it_was_cancelled() -> None:
    world = crowd()
    node_comes(world)
    settling = asyncio.create_task(world.queue.settled(), name="settling")
    await asyncio.sleep(0)
    settling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await settling
    world.queue.settle()

    assert moved(world) == MANY


names = st.sampled_from("abcdef")
happenings = st.one_of(
    st.tuples(st.sampled_from(["node", "gone", "all", "leftovers", "backoffs"])),
    st.tuples(st.sampled_from(["add", "delete", "reject", "pop"]), names),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(names, st.integers(0, 3)), unique_by=lambda p: p[0]), st.data())
def test_pods_come_out_as_if_all_had_moved_at_once(
    first: list[tuple[str, int]], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling_queue, "STEPS_PER_TURN", 1)
        worlds = [
            World(listens("Fit", NODE_ADD), listens("Ports", ASSIGNED_POD_DELETE)) for _ in range(2)
        ]
        for name, priority in first:
            rejector = data.draw(st.sampled_from(["Fit", "Ports"]))
            for world in worlds:
                world.reject(pod(name, priority=priority), rejector)
        for world in worlds:
            world.clock.advance(400)
        for kind, *about in data.draw(st.lists(happenings, max_size=12)):
            answers = [_happen(world, kind, *about) for world in worlds]
            worlds[0].queue.settle()
            assert answers[0] == answers[1]
        assert worlds[0].pop_names() == worlds[1].pop_names()
        assert worlds[0].places() == worlds[1].places()


def _happen(world: World, kind: str, name: str = "") -> str:
    """Let something happen; return who was popped."""
    queue = world.queue
    match kind:
        case "node":
            node_comes(world)
        case "gone":
            queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE)
        case "all":
            all_are_told(world)
        case "leftovers":
            queue.flush_unschedulable_pods_leftover()
        case "backoffs":
            queue.flush_backoff_completed()
        case "add" if f"default/{name}" not in world.pods:
            world.add(pod(name))
        case "delete" if f"default/{name}" in world.pods:
            queue.delete(world.pods.pop(f"default/{name}"))
        case "pop" | "reject" if (queued := queue.pop()) is not None:
            if kind == "reject":
                world.give_back(queued, "Fit")
            else:
                queue.done(queued.uid)
            return queued.key
    return ""
