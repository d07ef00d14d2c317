"""Groups that the queue has as one entity (1.37 spec N8.1)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    NODE_ADD,
    UNSCHEDULED_POD_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodGroupInfo, QueuedPodInfo
from berth.scheduler.queue.backoff import Backoff
from berth.scheduler.queue.sub_queues import SubQueue
from tests.builders import node, pod
from tests.scheduler.pod_group.building import group, member, members
from tests.scheduler.queue.entity_world import EntityWorld
from tests.scheduler.queue.world import PROFILE, Gate, OtherGate, listens

FIT = listens("Fit", NODE_ADD)


@pytest.mark.parametrize(
    ("size", "want"),
    [
        pytest.param(1, [1, 2, 4, 8, 10, 10], id="one pod: as ever"),
        pytest.param(4, [1, 2, 4, 8, 16, 20, 20], id="four pods: at most twice as long"),
        pytest.param(2, [1, 2, 4, 8, 14.142135623], id="in whole nanoseconds"),
    ],
)
def test_backoff_of_a_group(size: int, want: list[float]) -> None:
    assert [Backoff().duration(n, size=size) for n in range(1, len(want) + 1)] == want


def test_a_group_is_one_entity_with_one_history() -> None:
    world = EntityWorld(FIT)
    world.put_group(group(priority=7))
    world.add(*members("a", "b"))
    assert world.counts() == {"active": 2}
    assert world.entity_counts() == {("active", "podgroup"): 1}
    world.clock.advance(1)
    world.add(pod("alone", priority=7))
    entity = world.pop_group()
    assert (entity.priority, entity.timestamp, entity.attempts) == (7, 1000.0, 1)
    assert [each.attempts for each in entity.pods] == [1, 1]
    assert sorted(world.queue.in_flight()) == sorted(each.uid for each in entity.pods)

    world.end(entity, "Fit")
    assert world.counts() == {"active": 1, "unschedulable": 2}
    assert (entity.unschedulable_count, entity.timestamp) == (1, 1001.0)
    assert not world.queue.in_flight()
    world.queue.check_invariants()


def test_incoming_pods_and_entities_are_counted() -> None:
    world = EntityWorld(FIT)
    world.add(*members("a", "b"), pod("alone"))
    world.put_group(group())
    label = UNSCHEDULED_POD_ADD.label
    # The group came with a, and once more when b had joined it.
    assert world.queue.incoming_counts() == {("active", label): 1 + 1 + 2}
    assert world.queue.incoming_entity_counts() == {
        ("active", label, "podgroup"): 2,
        ("active", label, "pod"): 1,
    }


@pytest.mark.parametrize(
    "place", [SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE, SubQueue.PENDING]
)
def test_a_pod_joins_its_group_wherever_that_is(place: SubQueue) -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    world.add(member("a"))
    if place is not SubQueue.ACTIVE:
        entity = world.pop_group()
        match place:
            case SubQueue.BACKOFF:
                world.end(entity)
            case SubQueue.UNSCHEDULABLE:
                world.end(entity, "Fit")
    world.add(member("b"))
    assert world.places()["b"] == place.value
    world.queue.check_invariants()


def test_what_came_while_a_group_was_tried_goes_on_with_it() -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    world.add(*members("a", "b"))
    entity = world.pop_group()
    world.add(member("c"))
    world.end(entity, "Fit", bound=["a"])
    assert world.places() == {"b": "unschedulable", "c": "unschedulable"}
    world.queue.check_invariants()


def test_the_rest_of_a_group_that_started_is_tried_at_once_in_its_old_place() -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    world.add(*members("a", "b"))
    world.clock.advance(1)
    world.add(pod("later"))
    entity = world.pop_group()
    world.end(entity, "Fit", bound=["a"], is_scheduled=True)
    assert (entity.timestamp, [*entity.members]) == (1000.0, ["default/b"])
    assert world.pop_group() is entity


def test_a_group_all_of_whose_pods_are_bound_is_gone() -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    world.add(*members("a", "b"))
    world.end(world.pop_group(), bound=["a", "b"], is_scheduled=True)
    assert not world.counts()
    world.queue.check_invariants()


def test_a_group_whose_attempt_broke_backs_off() -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    world.add(*members("a", "b"))
    entity = world.pop_group()
    world.end(entity)
    assert (entity.consecutive_errors_count, world.counts()) == (1, {"backoff": 2})
    assert world.queue.pop() is None  # not early
    world.clock.advance(2)
    world.queue.flush_backoff_completed()
    assert world.pop_group() is entity


def says(*names: str) -> Callable[[Pod, Any, Any], QueueingHint]:
    """Make a hint that says Queue of the pods of these names."""
    return lambda pod, _old, _new: (
        QueueingHint.QUEUE if pod.metadata.name in names else QueueingHint.SKIP
    )


@pytest.mark.parametrize(
    ("helped", "moves"),
    [
        pytest.param(["b"], True, id="one of them may be helped"),
        pytest.param(["z"], False, id="none of them may be"),
    ],
)
@pytest.mark.parametrize("in_flight", [False, True], ids=["while it waits", "while it is tried"])
def test_an_event_helps_a_group_if_it_helps_one_pod(
    helped: list[str], moves: bool, in_flight: bool
) -> None:
    world = EntityWorld(listens("Fit", NODE_ADD, says(*helped)))
    world.put_group(group())
    world.add(member("a", cpu=1), member("b", cpu=2))
    entity = world.pop_group()
    if in_flight:
        world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node())
    world.end(entity, "Fit")
    if not in_flight:
        world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node())
    assert set(world.places().values()) == ({"backoff"} if moves else {"unschedulable"})


def test_of_pods_alike_one_is_asked_about() -> None:
    world = EntityWorld(listens("Fit", NODE_ADD, says()))
    world.put_group(group())
    world.add(*members("a", "b", "c", cpu=1))
    world.end(world.pop_group(), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node())
    assert len(world.hints_called) == 1


def test_one_gated_pod_gates_the_group_and_all_are_asked() -> None:
    gate, other = Gate(), OtherGate()
    gate.closed_for, other.closed_for = {"a"}, {"b"}
    world = EntityWorld(gates=[gate, other])
    world.add(*members("a", "b", "c"))
    world.put_group(group())
    assert world.counts() == {"gated": 3}
    entity = world.queue.sub_queues.entity_of(next(world.queue.sub_queues.pods(SubQueue.GATED)))
    gate.asked.clear()
    other.asked.clear()
    world.queue.activate([member("c")])
    assert (gate.asked, other.asked) == (["a", "b", "c"], ["b", "c"])
    assert entity.gating_plugin == "OtherGate"  # that of the last one
    assert entity.unschedulable_plugins == {"Gate", "OtherGate"}

    gate.closed_for, other.closed_for = set(), set()
    world.queue.activate([member("c")])
    assert world.counts() == {"active": 3}
    world.queue.check_invariants()


def test_a_new_pod_of_an_active_group_is_asked_about_alone() -> None:
    gate = Gate()
    world = EntityWorld(gates=[gate])
    world.put_group(group())
    world.add(*members("a", "b", "c"))
    assert gate.asked == ["a", "b", "c"]
    gate.closed_for = {"d"}
    world.add(member("d"))
    assert world.counts() == {"gated": 4}


def test_activating_a_pod_activates_its_group() -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    world.add(*members("a", "b"))
    world.end(world.pop_group(), "Fit")
    world.queue.activate([member("a"), member("b")])
    assert world.counts() == {"active": 2}
    entity = world.pop_group()
    world.queue.activate([member("a")])  # while it is tried
    world.end(entity, "Fit")
    assert set(world.places().values()) == {"backoff"}


def test_a_changed_pod_is_found_in_its_group() -> None:
    world = EntityWorld(listens("Fit", ClusterEvent(EventResource.POD, ActionType.UPDATE)))
    world.put_group(group())
    world.add(*members("a", "b"))
    world.update(member("b", labels={"new": "one"}))
    entity = world.pop_group()
    assert [each.pod.metadata.labels for each in entity.pods] == [{}, {"new": "one"}]
    world.update(member("a", labels={"new": "two"}))  # while it is tried
    world.end(entity, "Fit")
    assert set(world.places().values()) == {"backoff"}  # a change of a pod may help
    world.queue.check_invariants()


def test_an_event_about_a_pod_is_asked_about_that_pod() -> None:
    changed = ClusterEvent(EventResource.POD, ActionType.UPDATE)
    world = EntityWorld(listens("Fit", changed, says("b")))
    world.put_group(group())
    world.add(*members("a", "b"))
    world.end(world.pop_group(), "Fit")
    world.update(member("b", nominated="n"))
    assert set(world.places().values()) == {"backoff"}


def test_deleted_pods_leave_their_group() -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    a, b, c = members("a", "b", "c")
    world.add(a, b, c)
    world.delete(a)
    assert world.counts() == {"active": 2}
    entity = world.pop_group()
    world.add(member("d"))
    world.delete(member("d"))
    world.delete(b)
    world.end(entity, "Fit")
    assert world.places() == {"c": "unschedulable"}
    world.delete(c)
    assert not world.counts()
    world.queue.check_invariants()


def test_a_group_that_is_deleted_while_it_is_tried_makes_its_pods_incomplete() -> None:
    world = EntityWorld(FIT)
    g = group()
    world.put_group(g)
    world.add(*members("a", "b"))
    entity = world.pop_group()
    world.delete_group(g)
    world.end(entity, "Fit")
    assert world.counts() == {"incomplete": 2}
    world.put_group(g)
    assert world.counts() == {"active": 2}
    world.queue.check_invariants()


def test_the_priority_of_another_schedulers_group_is_that_of_its_pods() -> None:
    world = EntityWorld(FIT)
    theirs = group()
    theirs = type(theirs)(theirs.metadata, theirs.spec, api_version="scheduling.volcano.sh/v1beta1")
    world.put_group(theirs)
    world.add(pod("low", priority=1), member("a", priority=5))
    assert isinstance(world.pop(), QueuedPodGroupInfo)


NAMES = "abcd"
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "delete", "pop", "fail", "break", "start", "group", "gone", "event", "tick",
             "update", "activate", "leftover"]
        ),
        st.sampled_from(NAMES),
        st.sampled_from("gh"),
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=150)
@given(STEPS)
def test_whatever_happens_each_pod_is_in_one_place(steps: list[tuple[str, str, str]]) -> None:
    gate = Gate()
    world = EntityWorld(FIT, gates=[gate])
    of: dict[str, str] = {}
    popped: list[Any] = []
    for what, name, which in steps:
        of.setdefault(name, which)
        the_pod = member(name, of[name])
        is_known = the_pod.key in world.pods
        match what:
            case "add" if not is_known:
                world.add(the_pod)
            case "update" if is_known:
                world.update(member(name, of[name], labels={"n": str(len(popped))}))
            case "delete":
                world.delete(the_pod)
            case "activate" if is_known:
                world.queue.activate([the_pod])
            case "group":
                world.put_group(group(which))
            case "gone" if (gone := world.groups.get("default", which)) is not None:
                world.delete_group(gone)
            case "pop" if (queued := world.queue.pop()) is not None:
                popped.append(queued)
            case "fail" | "break" | "start" if popped:
                entity = popped.pop()
                bound = [each.pod.metadata.name for each in entity.pods][:1]
                rejectors = () if what == "break" else ("Fit",)
                world.end(
                    entity,
                    *rejectors,
                    bound=bound if what == "start" else (),
                    is_scheduled=what == "start",
                )
                if what == "start":
                    for each in bound:
                        world.delete(member(each, of[each]))
            case "event":
                world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node())
            case "tick":
                world.clock.advance(2)
                world.queue.flush_backoff_completed()
            case "leftover":
                world.clock.advance(301)
                world.queue.flush_unschedulable_pods_leftover()
        world.queue.check_invariants()
        in_flight = {each.key for entity in popped for each in entity.pods}
        waiting = set(world.places())
        expected = {key.removeprefix("default/") for key in world.pods.keys() - in_flight}
        assert expected <= waiting
    assert len(popped) == len(world.queue._groups.in_flight)


def test_groups_go_on_with_other_profiles_or_without() -> None:
    world = EntityWorld(FIT)
    world.put_group(group("g"), group("h"))
    world.add(*members("a", "b", of="g"), member("c", "h", nominated="n"))
    world.end(world.pop_group(), "Fit")
    gate = Gate()
    gate.closed_for = {"c"}
    world.queue.reconfigure(
        pre_enqueue={PROFILE: [gate]}, hints={PROFILE: [FIT]}, backoff=Backoff(), observers={}
    )
    assert world.places() == {"a": "backoff", "b": "backoff", "c": "gated"}
    world.queue.check_invariants()

    world.queue.reconfigure(pre_enqueue={}, hints={}, backoff=Backoff(), observers={})
    assert not world.counts()
    assert not len(world.queue.nominator)
    world.queue.check_invariants()


@pytest.mark.parametrize(
    ("place", "goes_to"),
    [
        (SubQueue.ACTIVE, "active"),
        (SubQueue.BACKOFF, "backoff"),
        (SubQueue.UNSCHEDULABLE, "unschedulable"),
    ],
)
def test_a_group_is_restored_where_it_waited(place: SubQueue, goes_to: str) -> None:
    world = EntityWorld(FIT)
    world.put_group(group())
    for the_pod in members("a", "b"):
        world.pods[the_pod.key] = the_pod
        plugins = set() if place is SubQueue.BACKOFF else {"Fit"}
        queued = QueuedPodInfo(
            PodInfo(the_pod),
            900.0,
            attempts=3,
            unschedulable_count=2,
            unschedulable_plugins=plugins,
        )
        world.queue.restore(queued, place)
    assert set(world.places().values()) == {goes_to}
    [entity] = world.queue.sub_queues.entities(place)
    assert (entity.timestamp, entity.attempts, entity.unschedulable_count) == (900.0, 3, 2)
    assert len(entity.pods) == 2
    world.queue.check_invariants()


def test_pods_whose_group_is_unknown_are_restored_as_incomplete() -> None:
    world = EntityWorld(FIT)
    the_pod = member("a")
    world.pods[the_pod.key] = the_pod
    world.queue.restore(QueuedPodInfo(PodInfo(the_pod), 900.0), SubQueue.GATED)
    assert world.places() == {"a": "incomplete"}
    assert world.queue.sub_queues.waiting_since()["incomplete"] == 900.0
