"""Groups of groups in the queue: the topmost that is known is the entity (1.37 spec N11)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.events import NODE_ADD
from tests.builders import node
from tests.scheduler.pod_group.building import composite, group, member, members
from tests.scheduler.queue.entity_world import EntityWorld
from tests.scheduler.queue.test_entities import FIT
from tests.scheduler.queue.world import Gate

ROOT, MID = composite("root"), composite("mid", parent="root")
A, B = group("a", parent="mid"), group("b", parent="root")


def world_of(*groups: PodGroup) -> EntityWorld:
    world = EntityWorld(FIT, with_composites=True)
    world.put_group(*groups)
    return world


def entities(world: EntityWorld) -> dict[str, set[str]]:
    """Return the names of the pods of each group that waits as one."""
    queued = world.queue._groups.queued
    return {
        f"{key.ENTITY_TYPE}:{key.name}": {each.pod.metadata.name for each in entity.pods}
        for key, entity in queued.items()
    }


@pytest.mark.parametrize("order", [(ROOT, MID, A, B), (A, B, MID, ROOT), (B, A, ROOT, MID)])
def test_whatever_comes_first_all_wait_below_the_root(order: tuple[PodGroup, ...]) -> None:
    world = world_of()
    world.add(*members("a1", "a2", of="a"), member("b1", "b"))
    assert world.counts() == {"incomplete": 3}
    world.put_group(*order)
    assert entities(world) == {"compositepodgroup:root": {"a1", "a2", "b1"}}
    assert world.counts() == {"active": 3}
    assert world.entity_counts() == {("active", "compositepodgroup"): 1}
    world.queue.check_invariants()


@pytest.mark.parametrize(
    ("gone", "want", "incomplete"),
    [
        pytest.param(
            ROOT,
            {"compositepodgroup:mid": {"a1", "a2"}, "podgroup:b": {"b1"}},
            0,
            id="the root: its children are roots",
        ),
        pytest.param(
            MID,
            {"compositepodgroup:root": {"b1"}, "podgroup:a": {"a1", "a2"}},
            0,
            id="one in the middle: what is below it is a root",
        ),
        pytest.param(A, {"compositepodgroup:root": {"b1"}}, 2, id="a group of pods"),
    ],
)
def test_pods_leave_a_tree_that_falls_apart(
    gone: PodGroup, want: dict[str, set[str]], incomplete: int
) -> None:
    world = world_of(ROOT, MID, A, B)
    world.add(*members("a1", "a2", of="a"), member("b1", "b"))
    world.delete_group(gone)
    assert entities(world) == want
    assert world.counts().get("incomplete", 0) == incomplete
    world.queue.check_invariants()
    world.put_group(gone)
    assert entities(world) == {"compositepodgroup:root": {"a1", "a2", "b1"}}


def test_a_tree_that_changes_while_it_is_tried_is_put_together_when_it_is_back() -> None:
    world = world_of(ROOT, MID, A, B)
    world.add(*members("a1", "a2", of="a"), member("b1", "b"))
    entity = world.pop_group()
    assert {each.pod.metadata.name for each in entity.pods} == {"a1", "a2", "b1"}
    world.delete_group(MID)
    world.add(member("b2", "b"), member("a3", "a"))
    world.end(entity, "Fit")
    assert entities(world) == {
        "compositepodgroup:root": {"b1", "b2"},
        "podgroup:a": {"a1", "a2", "a3"},
    }
    world.queue.check_invariants()


def test_a_pod_whose_binding_failed_comes_back_to_the_tree() -> None:
    world = world_of(ROOT, MID, A, B)
    world.add(member("a1", "a"), member("b1", "b"))
    entity = world.pop_group()
    a1, b1 = entity.pods
    world.reject_member(b1, "Fit")
    world.queue.add_attempted_pod_group_if_needed(
        entity, is_scheduled=True, unschedulable_plugins=("Fit",)
    )
    world.reject_member(a1)
    assert entities(world) == {"compositepodgroup:root": {"a1", "b1"}}
    world.queue.check_invariants()


def test_the_priority_is_that_of_the_root() -> None:
    world = world_of(composite("root", priority=5), group("a", parent="root", priority=1))
    world.put_group(group("h", priority=3))
    world.add(member("h1", "h", priority=3), member("a1", "a", priority=5))
    assert {each.pod.metadata.name for each in world.pop_group().pods} == {"a1"}


GROUPS = {each.metadata.name: each for each in (ROOT, MID, A, B)}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "delete", "pop", "fail", "start", "group", "gone", "event", "tick", "activate"]
        ),
        st.sampled_from(["a1", "a2", "b1", "b2"]),
        st.sampled_from([*GROUPS]),
    ),
    max_size=40,
)


@settings(max_examples=100)
@given(STEPS)
def test_whatever_happens_each_pod_is_below_its_root(steps: list[tuple[str, str, str]]) -> None:
    world = EntityWorld(FIT, gates=[Gate()], with_composites=True)
    popped: list[Any] = []
    there: set[str] = set()
    for what, name, which in steps:
        the_pod = member(name, name[0])
        is_known = the_pod.key in world.pods
        match what:
            case "add" if not is_known:
                world.add(the_pod)
            case "delete":
                world.delete(the_pod)
            case "activate" if is_known:
                world.queue.activate([the_pod])
            case "group":
                there.add(which)
                world.put_group(GROUPS[which])
            case "gone" if which in there:
                there.remove(which)
                world.delete_group(GROUPS[which])
            case "pop" if (queued := world.queue.pop()) is not None:
                popped.append(queued)
            case "fail" | "start" if popped:
                entity = popped.pop()
                bound = [each.pod.metadata.name for each in entity.pods][:1]
                is_scheduled = what == "start"
                world.end(
                    entity, "Fit", bound=bound if is_scheduled else (), is_scheduled=is_scheduled
                )
                for gone in bound if is_scheduled else ():
                    world.delete(member(gone, gone[0]))
            case "event":
                world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node())
            case "tick":
                world.clock.advance(2)
                world.queue.flush_backoff_completed()
        world.queue.check_invariants()
        in_flight = {each.key for entity in popped for each in entity.pods}
        assert world.pods.keys() - in_flight <= {f"default/{each}" for each in world.places()}
