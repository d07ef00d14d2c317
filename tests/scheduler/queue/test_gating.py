"""PreEnqueue: who may not be tried yet (spec §3.2)."""

import pytest

from berth.kube.objects.pod import PersistentVolumeClaimSource, Volume
from berth.scheduler.framework.events import (
    ALL_EVENTS,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.interface import PreEnqueuePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from tests.builders import pod
from tests.scheduler.queue.world import Gate, OtherGate, World, listens

POD_ADD = ClusterEvent(EventResource.POD, ActionType.ADD)


class Answers(PreEnqueuePlugin):
    """Gives one answer to everybody; raises it if it is an exception."""

    NAME = "Answers"

    def __init__(self, answer: Status | Exception | None) -> None:
        super().__init__()
        self.answer = answer

    def pre_enqueue(self, _pod: PodInfo) -> Status | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(None, "active", id="None is success"),
        pytest.param(Status(Code.SUCCESS), "active", id="success in so many words"),
        pytest.param(Status.unschedulable("no"), "gated", id="unschedulable"),
        pytest.param(Status.unresolvable("no"), "gated", id="unresolvable"),
        pytest.param(Status.error("no"), "gated", id="an error"),
        pytest.param(Status(Code.WAIT), "gated", id="any other code"),
        pytest.param(ValueError("a bug"), "gated", id="an exception"),
    ],
)
def test_anything_but_success_gates(answer: Status | Exception | None, want: str) -> None:
    world = World(gates=[Answers(answer)])
    world.add(pod("p"))

    assert world.places() == {"p": want}


def test_a_gated_pod_knows_its_gate_and_is_counted() -> None:
    gate = Gate()
    gate.closed_for = {"p"}
    world = World(listens("Gate", POD_ADD), listens("Gate", ASSIGNED_POD_DELETE), gates=[gate])
    world.add(pod("p"))
    queued = world.queue.sub_queues.get("default/p")

    assert queued is not None
    assert queued.unschedulable_plugins == {"Gate"}
    assert queued.gating_plugin == "Gate"
    assert queued.initial_attempt_timestamp is None
    assert world.queue.sub_queues.pending_counts() == {
        "active": 0,
        "backoff": 0,
        "unschedulable": 0,
        "gated": 1,
    }
    assert world.queue.sub_queues.rejected_counts() == {("Gate", "default-scheduler"): 1}
    assert world.queue.incoming_counts() == {("unschedulable", "UnscheduledPodAdd"): 1}


def test_the_gate_that_was_closed_is_asked_first_and_the_first_no_ends_it() -> None:
    first, second = Gate(), OtherGate()
    second.closed_for = {"p"}
    world = World(gates=[first, second])
    world.add(pod("p"))
    assert (first.asked, second.asked) == (["p"], ["p"])

    world.queue.activate([pod("p")])
    assert (first.asked, second.asked) == (["p"], ["p", "p"])

    second.closed_for = set()
    world.queue.activate([pod("p")])
    assert (first.asked, second.asked) == (["p", "p"], ["p", "p", "p"])
    assert world.places() == {"p": "active"}


@pytest.mark.parametrize(
    ("event", "want"),
    [
        pytest.param(ASSIGNED_POD_DELETE, "active", id="what the gate registered"),
        pytest.param(NODE_ADD, "gated", id="what only another rejector registered"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, "gated", id="a timeout"),
        pytest.param(ALL_EVENTS, "gated", id="everything"),
    ],
)
def test_a_gated_pod_is_considered_only_for_events_of_its_gate(
    event: ClusterEvent, want: str
) -> None:
    gate = Gate()
    world = World(listens("Gate", ASSIGNED_POD_DELETE), listens("Fit", NODE_ADD), gates=[gate])
    world.reject(pod("p"), "Fit")
    gate.closed_for = {"p"}
    world.queue.activate([pod("p")])
    assert world.places() == {"p": "gated"}

    gate.closed_for = set()
    world.clock.advance(60)
    world.queue.move_all_to_active_or_backoff_queue(event)

    assert world.places() == {"p": want}


@pytest.mark.parametrize(
    ("release", "closed", "want"),
    [
        pytest.param("1.36", False, "gated", id="1.36 asks no gate"),
        pytest.param("1.37", False, "active", id="1.37 asks, and it lets the pod in"),
        pytest.param("1.37", True, "gated", id="1.37 asks, and it does not"),
    ],
)
def test_gates_are_asked_again_after_a_while(release: str, closed: bool, want: str) -> None:
    """1.37 spec N3.9, whatever the gate has registered."""
    gate = Gate()
    gate.closed_for = {"p"}
    world = World(listens("Gate", ALL_EVENTS), gates=[gate], release=release)
    world.add(pod("p"))
    gate.closed_for = {"p"} if closed else set()
    world.clock.advance(301)
    world.queue.flush_unschedulable_pods_leftover()
    assert world.places() == {"p": want}
    waiting = world.queue.sub_queues.get("default/p")
    assert waiting is not None
    assert waiting.was_flushed_from_unschedulable is (want == "active")
    assert waiting.timestamp == 1000.0


def test_a_gated_pod_is_flushed_again_and_again_and_each_time_counts() -> None:
    gate = Gate()
    gate.closed_for = {"p"}
    world = World(gates=[gate])
    world.add(pod("p"))
    for _ in range(3):
        world.clock.advance(301)
        world.queue.flush_unschedulable_pods_leftover()
    assert world.queue.incoming_counts()["unschedulable", "UnschedulableTimeout"] == 3
    assert world.queue.sub_queues.rejected_counts() == {("Gate", "default-scheduler"): 1}


def test_a_pod_that_waited_at_a_gate_needs_no_rest_and_starts_counting_now() -> None:
    gate = Gate()
    gate.closed_for = {"p"}
    world = World(listens("Gate", NODE_ADD), gates=[gate])
    world.add(pod("p"))
    gate.closed_for = set()
    world.clock.advance(7)
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    queued = world.pop()

    assert (queued.timestamp, queued.initial_attempt_timestamp) == (1000.0, 1007.0)
    assert queued.gating_plugin == ""


def test_gates_are_asked_on_the_way_into_backoff_and_not_again_on_the_way_out() -> None:
    gate = Gate()
    world = World(listens("Fit", NODE_ADD), gates=[gate])
    world.reject(pod("p"), "Fit")
    gate.asked.clear()
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    assert (world.places(), gate.asked) == ({"p": "backoff"}, ["p"])

    gate.closed_for = {"p"}
    world.clock.advance(2)
    world.queue.flush_backoff_completed()
    assert (world.places(), gate.asked) == ({"p": "active"}, ["p"])


def test_a_gate_may_close_on_the_way_into_backoff() -> None:
    gate = Gate()
    world = World(gates=[gate])
    world.add(pod("p"))
    queued = world.pop()
    gate.closed_for = {"p"}
    world.give_back(queued)

    assert world.places() == {"p": "gated"}
    assert (queued.consecutive_errors_count, queued.unschedulable_plugins) == (1, {"Gate"})


class GateBySignature(Gate):
    """Its hints give all pods of a signature the same answer; who is let in is another matter."""

    DECIDES_BY_SIGNATURE = True


@pytest.mark.parametrize(
    ("gate", "num_asked"),
    [
        pytest.param(GateBySignature(), 1, id="hints by signature"),
        pytest.param(Gate(), 30, id="hints that may look at each pod"),
    ],
)
def test_gated_pods_of_a_signature_are_moved_if_their_gate_lets_them_in(
    gate: Gate, num_asked: int
) -> None:
    names = {f"p{n}" for n in range(30)}
    gate.closed_for = set(names)
    hint = listens("Gate", ASSIGNED_POD_DELETE, lambda _pod, _old, _new: QueueingHint.QUEUE)
    world = World(hint, gates=[gate], by_signature=True)
    for name in sorted(names):
        world.add(pod(name, nominated="n1"))
    gate.closed_for -= {"p3", "p7"}
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE)

    assert {name for name, place in world.places().items() if place == "active"} == {"p3", "p7"}
    assert len(world.hints_called) == num_asked
    assert world.queue.incoming_counts() == {
        ("unschedulable", "UnscheduledPodAdd"): 30,
        ("unschedulable", "AssignedPodDelete"): 28,
        ("active", "AssignedPodDelete"): 2,
    }
    world.queue.check_invariants()


@pytest.mark.parametrize(
    ("rejector", "num_asked"),
    [
        pytest.param("Fit", 1, id="the claims of each pod do not matter"),
        pytest.param("Volumes", 6, id="they do to the plugin that rejected the pods"),
    ],
)
def test_gated_pods_with_claims_are_asked_about_together(rejector: str, num_asked: int) -> None:
    gate = GateBySignature()
    world = World(
        listens("Gate", ASSIGNED_POD_DELETE, lambda _pod, _old, _new: QueueingHint.SKIP),
        listens(rejector, NODE_ADD),
        gates=[gate],
        by_signature=True,
        by_volumes={"Volumes"},
    )
    for name in (f"p{n}" for n in range(6)):
        own = Volume("data", persistent_volume_claim=PersistentVolumeClaimSource(name))
        world.add(pod(name, volumes=[own]))
        world.give_back(world.pop(), rejector)
        gate.closed_for.add(name)
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    assert set(world.places().values()) == {"gated"}
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE)

    assert len(world.hints_called) == num_asked
    world.queue.check_invariants()
