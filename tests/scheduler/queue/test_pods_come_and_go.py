"""Add, update, delete, activate, pop (spec §3.3, §3.4)."""

from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from tests.builders import pod, toleration
from tests.scheduler.queue.world import Gate, World, listens

POD_LABEL = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
POD_TOLERATION = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)


def test_pods_come_out_by_priority_then_by_age() -> None:
    world = World()
    for name, priority in (("old", 0), ("young", 0), ("urgent", 10)):
        world.add(pod(name, priority=priority))
        world.clock.advance(1)

    assert world.pop_names() == ["urgent", "old", "young"]


def test_pop_counts_the_attempt_and_leaves_the_last_rejectors() -> None:
    world = World()
    queued = world.reject(pod("p"), "Fit", pending=["Permit"])
    world.queue.activate([queued.pod])

    assert world.pop() is queued
    assert (queued.attempts, queued.unschedulable_plugins, queued.pending_plugins) == (
        2,
        {"Fit"},
        {"Permit"},
    )
    assert world.queue.is_in_flight(queued.uid)
    assert world.queue.sub_queues.rejected_counts() == {}


def test_the_first_attempt_is_dated_once() -> None:
    world = World()
    queued = world.reject(pod("p"), "Fit")
    world.clock.advance(9)
    world.queue.activate([queued.pod])

    assert (queued.timestamp, queued.initial_attempt_timestamp) == (1000.0, 1000.0)


def test_rejected_pods_are_popped_before_their_rest_is_over_and_failed_ones_not() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("rejected"), "Fit")
    world.reject(pod("failed"))
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    world.add(pod("fresh"))

    assert world.places() == {"rejected": "backoff", "failed": "backoff", "fresh": "active"}
    assert world.pop_names() == ["fresh", "rejected"]
    assert world.places() == {"failed": "backoff"}
    assert world.queue.incoming_counts()["active", "PopFromBackoffQ"] == 1


def test_a_pod_in_flight_is_not_popped_again() -> None:
    world = World()
    world.add(pod("a"))
    first = world.pop()
    world.queue.add(pod("a"))
    world.add(pod("b"))

    assert world.pop_names() == ["b"]
    assert world.places() == {}
    assert world.queue.is_in_flight(first.uid)


def test_a_pod_added_twice_is_there_once_as_new() -> None:
    world = World()
    world.reject(pod("p"), "Fit")
    world.add(pod("p", uid="another"))

    world.queue.check_invariants()
    assert world.places() == {"p": "active"}
    queued = world.pop()
    assert (queued.uid, queued.attempts, queued.unschedulable_count) == ("another", 1, 0)


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable", "gated"])
def test_delete_forgets_a_pod_wherever_it_waits(where: str) -> None:
    gate = Gate()
    world = World(gates=[gate])
    a_pod = pod("p", nominated="n1")
    match where:
        case "active":
            world.add(a_pod)
        case "backoff":
            world.reject(a_pod)
        case "unschedulable":
            world.reject(a_pod, "Fit")
        case "gated":
            gate.closed_for = {"p"}
            world.add(a_pod)
    assert world.places() == {"p": where}

    world.queue.delete(a_pod)

    assert world.places() == {}
    assert len(world.queue.nominator) == 0
    assert world.queue.sub_queues.rejected_counts() == {}
    assert set(world.queue.sub_queues.pending_counts().values()) == {0}
    world.queue.check_invariants()


@pytest.mark.parametrize(
    ("release", "label"), [("1.36", "UnschedulablePodUpdate"), ("1.37", "UnscheduledPodAdd")]
)
def test_an_unknown_pod_that_is_updated_is_added(release: str, label: str) -> None:
    world = World(release=release)
    world.pods["default/p"] = pod("p")
    world.update(pod("p", labels={"a": "b"}, nominated="n1"))

    assert world.places() == {"p": "active"}
    assert world.queue.incoming_counts() == {("active", label): 1}
    assert [p.name for p in world.queue.nominator.nominated_pods_for_node("n1")] == ["p"]


def test_a_pod_that_was_recreated_starts_anew() -> None:
    world = World()
    world.reject(pod("p"), "Fit")
    world.update(pod("p", uid="another"))

    assert world.places() == {"p": "active"}
    assert world.pop().attempts == 1


@pytest.mark.parametrize("rejectors", [(), ("Fit",)], ids=["failed", "rejected"])
def test_an_update_in_backoff_changes_the_object_and_the_order_but_not_the_place(
    rejectors: tuple[str, ...],
) -> None:
    world = World(listens("Fit", NODE_ADD), listens("Fit", POD_LABEL))
    for name in ("a", "b"):
        world.reject(pod(name), *rejectors)
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    changed = pod("b", labels={"a": "b"}, priority=5)
    world.update(changed)

    assert world.places() == {"a": "backoff", "b": "backoff"}
    queued = world.queue.sub_queues.get("default/b")
    assert queued is not None
    assert queued.pod is changed
    world.queue.check_invariants()
    world.clock.advance(5)
    world.queue.flush_backoff_completed()
    assert world.pop_names() == ["b", "a"]


def test_an_update_of_an_active_pod_changes_the_object_the_order_and_the_nomination() -> None:
    world = World()
    world.add(pod("a"), pod("b"))
    world.update(pod("b", priority=5, nominated="n1"))

    assert [p.name for p in world.queue.nominator.nominated_pods_for_node("n1")] == ["b"]
    assert world.pop_names() == ["b", "a"]


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(pod("p", version="2"), "unschedulable", id="nothing that somebody registered"),
        pytest.param(pod("p", labels={"a": "b"}), "backoff", id="its labels"),
        pytest.param(pod("p", tolerations=[toleration("a")]), "active", id="pending: at once"),
        pytest.param(
            pod("p", labels={"a": "b"}, tolerations=[toleration("a")]),
            "backoff",
            id="the first event that moves it decides",
        ),
    ],
)
def test_an_update_of_an_unschedulable_pod_may_be_what_it_waited_for(new: Pod, want: str) -> None:
    world = World(listens("Fit", POD_LABEL), listens("Quota", POD_TOLERATION))
    queued = world.reject(pod("p"), "Fit", pending=["Quota"])
    world.update(new)

    assert world.places() == {"p": want}
    assert queued.pod is new


def test_hints_of_an_update_see_the_old_pod_and_the_new() -> None:
    seen = []

    def hint(waiting: Pod, old: Any, new: Any) -> QueueingHint:
        seen.append((waiting, old, new))
        return QueueingHint.SKIP

    world = World(listens("Fit", POD_LABEL, hint))
    before, after = pod("p"), pod("p", labels={"a": "b"})
    world.reject(before, "Fit")
    world.update(after)

    assert seen == [(after, before, after)]
    assert world.places() == {"p": "unschedulable"}


def test_an_update_in_flight_is_evaluated_after_the_attempt() -> None:
    world = World(listens("Fit", POD_LABEL))
    world.add(pod("p"))
    queued = world.pop()
    world.update(pod("p", labels={"a": "b"}))
    assert world.places() == {}

    world.give_back(queued, "Fit")
    assert world.places() == {"p": "backoff"}


def test_activate_spares_the_rest() -> None:
    gate = Gate()
    world = World(gates=[gate])
    world.reject(pod("unschedulable"), "Fit")
    world.reject(pod("failed"))
    gate.closed_for = {"gated"}
    world.add(pod("gated"), pod("active"))
    world.queue.activate([*world.pods.values(), pod("unknown")])

    assert world.places() == {
        "unschedulable": "active",
        "failed": "active",
        "gated": "gated",
        "active": "active",
    }
    assert world.queue.incoming_counts()["active", "ForceActivate"] == 2


def test_activating_a_pod_in_flight_concerns_that_pod_alone() -> None:
    world = World()
    world.add(pod("a"), pod("b"))
    a, b = world.pop(), world.pop()
    world.queue.activate([a.pod])
    world.give_back(a, "Fit")
    world.give_back(b, "Fit")

    assert world.places() == {"a": "backoff", "b": "unschedulable"}


@pytest.mark.parametrize(
    ("release", "want"),
    [
        pytest.param("1.36", ["ready"], id="1.36: when it becomes active"),
        pytest.param("1.37", ["ready", "gated"], id="1.37: when it is added"),
    ],
)
def test_a_nominated_pod_is_registered(release: str, want: list[str]) -> None:
    gate = Gate()
    gate.closed_for = {"gated"}
    world = World(gates=[gate], release=release)
    world.add(pod("ready", nominated="n1"), pod("gated", nominated="n1"))

    assert [p.name for p in world.queue.nominator.nominated_pods_for_node("n1")] == want
