"""Gates that tell when they may open: asked less often, with the same result."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import ASSIGNED_POD_DELETE, NODE_ADD, QueueingHint
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import GatedUntilTold, Status
from tests.builders import pod
from tests.scheduler.queue.world import Gate, OtherGate, World, listens

NAMES = ("a", "b", "c", "d")
CLOSED = GatedUntilTold.unresolvable("closed")


class TellingGate(Gate):
    """Is to tell the queue when it opens."""

    DECIDES_BY_SIGNATURE = True

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return None if super().pre_enqueue(pod) is None else CLOSED


class SilentGate(Gate):
    """Closes and opens like it, and tells nothing."""

    DECIDES_BY_SIGNATURE = True


def world_of(gate: Gate, *more: Gate) -> World:
    return World(
        listens("Gate", ASSIGNED_POD_DELETE),
        listens("OtherGate", ASSIGNED_POD_DELETE),
        gates=[gate, *more],
        by_signature=True,
    )


def delete_some_pod(world: World) -> None:
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, old=pod("x", node="n"))


def test_a_pod_is_not_asked_about_until_its_gate_may_be_open() -> None:
    gate = TellingGate()
    gate.closed_for = set(NAMES)
    world = world_of(gate)
    world.add(*map(pod, NAMES))
    for _ in range(3):
        delete_some_pod(world)
    assert gate.asked == [*NAMES, *NAMES], "once more after it was gated"
    assert world.queue.incoming_counts() == {
        ("unschedulable", "UnscheduledPodAdd"): 4,
        ("unschedulable", "AssignedPodDelete"): 12,
    }

    gate.closed_for.remove("c")
    delete_some_pod(world)
    assert set(world.places().values()) == {"gated"}, "it has not told"

    world.queue.gate_may_open("default/c")
    delete_some_pod(world)
    assert world.places() == {"a": "gated", "b": "gated", "c": "active", "d": "gated"}


def test_what_is_told_of_other_pods_changes_nothing() -> None:
    gate = TellingGate()
    gate.closed_for = {"a"}
    world = world_of(gate)
    world.add(pod("a"), pod("b"))

    for key in ("default/b", "default/nobody"):
        world.queue.gate_may_open(key)
    delete_some_pod(world)

    assert world.places() == {"a": "gated", "b": "active"}


def test_a_gate_that_tells_leaves_its_pod_to_one_that_does_not() -> None:
    telling, silent = TellingGate(), OtherGate()
    telling.closed_for = silent.closed_for = {"a"}
    world = world_of(telling, silent)
    world.add(pod("a"))
    delete_some_pod(world)
    telling.closed_for = set()
    world.queue.gate_may_open("default/a")
    delete_some_pod(world)
    assert world.places() == {"a": "gated"}

    silent.closed_for = set()
    delete_some_pod(world)
    assert world.places() == {"a": "active"}


names = st.sampled_from(NAMES)
step = st.one_of(
    st.tuples(st.just("add"), names, st.integers(0, 1)),
    st.tuples(st.just("delete"), names, st.none()),
    st.tuples(st.just("activate"), names, st.none()),
    st.tuples(st.just("label"), names, st.integers(0, 1)),
    st.tuples(st.just("close"), names, st.none()),
    st.tuples(st.just("open"), names, st.none()),
    st.tuples(st.just("event"), st.none(), st.sampled_from([None, 0, 1])),
    st.tuples(st.just("node"), st.none(), st.none()),
    st.tuples(st.just("try"), st.none(), st.none()),
)


def take(world: World, gate: Gate, what: str, name: str | None, number: int | None) -> None:
    """Do a step; *number* is a priority, or up to which one an event is of interest, or a label."""
    key = f"default/{name}"
    match what:
        case "add" if name is not None and key not in world.pods:
            world.add(pod(name, priority=number))
        case "delete" if key in world.pods:
            world.queue.delete(world.pods.pop(key))
        case "activate" if key in world.pods:
            world.queue.activate([world.pods[key]])
        case "label" if key in world.pods and name is not None:
            before = world.pods[key]
            world.update(pod(name, priority=before.priority, labels={"n": str(number)}))
        case "close" if name is not None:
            gate.closed_for.add(name)
        case "open" if name is not None:
            gate.closed_for.discard(name)
            world.queue.gate_may_open(key)
        case "event":
            old, check = pod("x", node="n"), None
            if number is not None:
                check = lambda waiting: waiting.priority <= number  # noqa: E731
            world.queue.move_all_to_active_or_backoff_queue(
                ASSIGNED_POD_DELETE, old=old, pre_check=check
            )
        case "node":
            world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
        case "try":
            queued = world.queue.pop()
            if queued is not None:
                world.give_back(queued, "Fit")


def skip_odd(waiting: Pod, _old: Any, _new: Any) -> QueueingHint:
    return QueueingHint.SKIP if waiting.metadata.labels.get("n") == "1" else QueueingHint.QUEUE


@settings(max_examples=60)
@given(st.lists(step, max_size=40))
def test_pods_move_as_if_each_were_asked_about_at_each_event(
    steps: list[tuple[str, str | None, int | None]],
) -> None:
    hints = (
        listens("Gate", ASSIGNED_POD_DELETE, skip_odd),
        listens("Fit", ASSIGNED_POD_DELETE, skip_odd),
        listens("Fit", NODE_ADD),
    )
    gates = TellingGate(), SilentGate()
    told, full = (World(*hints, gates=[gate], by_signature=True) for gate in gates)
    for each in steps:
        for world, gate in zip((told, full), gates, strict=True):
            take(world, gate, *each)
            world.queue.check_invariants()
        assert told.places() == full.places()
        assert told.queue.incoming_counts() == full.queue.incoming_counts()
        assert told.hints_called == full.hints_called
    assert sorted(told.pop_names()) == sorted(full.pop_names())
