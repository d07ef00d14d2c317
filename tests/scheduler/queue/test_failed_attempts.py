"""AddUnschedulableIfNotPresent: where a pod goes after a failed attempt (spec §3.5)."""

from collections.abc import Sequence
from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
)
from tests.builders import node, pod
from tests.scheduler.queue.world import World, listens


def big_enough(_pod: Pod, _old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if new.name == "big" else QueueingHint.SKIP


@pytest.mark.parametrize(
    ("rejectors", "pending", "nodes", "want"),
    [
        pytest.param([], [], [], "backoff", id="no plugins: it rests"),
        pytest.param(["Fit"], [], [], "unschedulable", id="nothing happened meanwhile"),
        pytest.param(["Fit"], [], ["small"], "unschedulable", id="nothing that helps happened"),
        pytest.param(["Fit"], [], ["small", "big"], "backoff", id="what helps happened"),
        pytest.param(["Fit"], [], ["big", "small"], "backoff", id="what came later is no matter"),
        pytest.param(["Ports"], [], ["big"], "unschedulable", id="it helps another plugin"),
        pytest.param([], ["Fit"], ["small", "big"], "active", id="a pending plugin waits for it"),
        pytest.param(["Quota"], ["Fit"], ["small"], "backoff", id="one yes, no pending one"),
        pytest.param(["Quota"], ["Fit"], ["small", "big"], "active", id="immediately wins"),
    ],
)
def test_events_during_the_attempt_are_evaluated_after_it(
    rejectors: Sequence[str], pending: Sequence[str], nodes: Sequence[str], want: str
) -> None:
    world = World(listens("Fit", NODE_ADD, big_enough), listens("Quota", NODE_ADD))
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node("big"))
    world.add(pod("p"))
    queued = world.pop()
    for name in nodes:
        world.queue.move_all_to_active_or_backoff_queue(NODE_ADD, new=node(name))

    assert world.give_back(queued, *rejectors, pending=pending)
    assert world.places() == {"p": want}
    assert not world.queue.is_in_flight(queued.uid)
    world.queue.check_invariants()


def test_the_pod_has_a_new_history() -> None:
    world = World()
    world.add(pod("p"))
    queued = world.pop()
    queued.was_flushed_from_unschedulable = True
    queued.backoff_expiration = 5.0
    world.clock.advance(3)
    world.give_back(queued, "Fit", pending=["Quota"])

    taken_back = world.queue.sub_queues.get("default/p")

    assert taken_back is not None
    assert taken_back.timestamp == 1003.0
    assert taken_back.backoff_expiration is None
    assert not taken_back.was_flushed_from_unschedulable
    assert world.queue.sub_queues.rejected_counts() == {
        ("Fit", "default-scheduler"): 1,
        ("Quota", "default-scheduler"): 1,
    }
    assert world.queue.incoming_counts() == {
        ("active", "UnscheduledPodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
    }


def test_a_pod_that_waits_already_is_not_taken_but_is_done() -> None:
    world = World()
    world.add(pod("p"))
    queued = world.pop()
    world.add(pod("p", uid="recreated"))

    assert not world.give_back(queued, "Fit")
    assert not world.queue.is_in_flight(queued.uid)
    assert world.places() == {"p": "active"}
    assert world.pop().uid == "recreated"


def test_a_pod_that_was_not_in_flight_rests_for_nobody_knows_what_it_missed() -> None:
    world = World()
    world.add(pod("p"))
    queued = world.pop()
    world.queue.done(queued.uid)

    assert world.give_back(queued, "Fit")
    assert world.places() == {"p": "backoff"}


def test_a_pod_that_has_rested_needs_no_backoff() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("p"), "Fit")
    world.clock.advance(60)
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)

    assert world.places() == {"p": "active"}


def test_a_flush_during_the_attempt_counts_for_every_pod() -> None:
    world = World()
    world.reject(pod("old"), "Fit")
    world.clock.advance(301)
    world.add(pod("p"))
    queued = world.pop()
    world.queue.flush_unschedulable_pods_leftover()
    assert world.queue.in_flight_counts() == {UNSCHEDULABLE_TIMEOUT.label: 1, "PodPopped": 1}

    world.give_back(queued, "Fit")
    assert world.places() == {"old": "active", "p": "backoff"}


def test_events_are_recorded_only_while_a_pod_is_in_flight_and_somebody_cares() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    world.add(pod("p"))
    world.pop()
    world.queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE)
    assert world.queue.in_flight_counts() == {"PodPopped": 1}

    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    assert world.queue.in_flight_counts() == {"NodeAdd": 1, "PodPopped": 1}
