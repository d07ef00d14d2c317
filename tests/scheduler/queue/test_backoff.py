"""How long pods rest, and in which order they come back (spec §3.7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.framework.events import NODE_ADD
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.queue.backoff import Backoff
from tests.builders import pod
from tests.scheduler.queue.world import Gate, World, listens


@pytest.mark.parametrize(
    ("backoff", "want"),
    [
        pytest.param(Backoff(), [0, 1, 2, 4, 8, 10, 10], id="doubles from one second to ten"),
        pytest.param(
            Backoff(3, 20), [0, 3, 6, 12, 20, 20, 20], id="the cap need not be a multiple"
        ),
        pytest.param(Backoff(5, 5), [0, 5, 5, 5, 5, 5, 5], id="the cap is the start"),
        pytest.param(Backoff(1, 0), [0] * 7, id="a maximum of zero turns resting off"),
        pytest.param(Backoff(0, 10), [0] * 7, id="nothing doubled is nothing"),
    ],
)
def test_duration(backoff: Backoff, want: list[float]) -> None:
    assert [backoff.duration(count) for count in range(7)] == want


@given(st.integers(1, 600), st.integers(1, 3600), st.integers(1, 100_000))
def test_duration_follows_the_rule_on_whole_nanoseconds(
    initial: int, maximum: int, count: int
) -> None:
    nanos = maximum * 10**9
    start = initial * 10**9
    rule = nanos if start > nanos >> (count - 1) else start << (count - 1)

    assert Backoff(initial, maximum).duration(count) == rule / 10**9


@pytest.mark.parametrize(
    ("errors", "rejections", "want"),
    [
        pytest.param(0, 0, 0.0, id="no failure: no rest"),
        pytest.param(0, 3, 1004.0, id="rejections count when nothing broke"),
        pytest.param(1, 3, 1001.0, id="errors in a row count instead of rejections"),
        pytest.param(5, 0, 1010.0, id="never longer than the maximum"),
    ],
)
def test_expiration_is_cut_to_whole_seconds(errors: int, rejections: int, want: float) -> None:
    queued = QueuedPodInfo(
        PodInfo(pod()),
        timestamp=1000.9,
        consecutive_errors_count=errors,
        unschedulable_count=rejections,
    )

    assert Backoff().expiration(queued) == want
    assert queued.backoff_expiration == want


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(0.5, "backoff", id="within the rest"),
        pytest.param(1.0, "backoff", id="at its end, for the second in which it ends counts"),
        pytest.param(1.99, "backoff", id="late in that second"),
        pytest.param(2.0, "active", id="in the next second"),
    ],
)
def test_flush_lets_go_of_pods_that_rested(after: float, want: str) -> None:
    world = World()
    world.reject(pod("p"))
    world.clock.advance(after)
    world.queue.flush_backoff_completed()

    assert world.places() == {"p": want}


def test_flush_takes_the_rejected_first_then_the_failed() -> None:
    world = World(listens("Fit", NODE_ADD))
    world.reject(pod("failed"))
    world.reject(pod("rejected"), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    assert world.places() == {"failed": "backoff", "rejected": "backoff"}

    world.clock.advance(3)
    world.queue.flush_backoff_completed()

    assert world.pop_names() == ["rejected", "failed"]
    assert world.queue.incoming_counts()["active", "BackoffComplete"] == 2


def test_rejected_pods_whose_rest_ends_in_the_same_second_come_in_order_of_priority() -> None:
    world = World(listens("Fit", NODE_ADD))
    for priority, name in enumerate(("low", "middle", "high")):
        world.reject(pod(name, priority=priority), "Fit")
        world.clock.advance(0.1)
    world.reject(pod("later", priority=9), "Fit")
    world.clock.advance(0.9)
    world.reject(pod("next second", priority=10), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)

    assert world.pop_names() == ["later", "high", "middle", "low", "next second"]


def test_each_failure_doubles_the_rest_and_a_rejection_ends_a_row_of_errors() -> None:
    world = World()
    queued = world.reject(pod("p"))
    ends = []
    for rejectors in ((), (), ("Fit",), (), ("Fit",)):
        world.clock.advance(20)
        world.queue.flush_backoff_completed()
        world.queue.activate([queued.pod])
        assert world.pop() is queued
        world.give_back(queued, *rejectors)
        ends.append((queued.consecutive_errors_count, queued.unschedulable_count, queued.attempts))

    assert ends == [(2, 0, 2), (3, 0, 3), (0, 1, 4), (1, 1, 5), (0, 2, 6)]


# Without the feature gate SchedulerPopFromBackoffQ.

STAYS = Backoff(pops_early=False)


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(1.0, "backoff", id="at its end"),
        pytest.param(1.01, "active", id="after its end, within the second"),
    ],
)
def test_without_early_pops_a_rest_ends_when_it_ends(after: float, want: str) -> None:
    world = World(listens("Fit", NODE_ADD), backoff=STAYS)
    world.clock.advance(0.5)
    world.reject(pod("p"), "Fit")
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    assert world.pop_names() == []
    world.clock.advance(after)
    world.queue.flush_backoff_completed()
    assert world.places() == {"p": want}


def test_without_early_pops_gates_are_asked_after_the_rest() -> None:
    gate = Gate()
    world = World(listens("Fit", NODE_ADD), gates=[gate], backoff=STAYS)
    world.reject(pod("p"), "Fit")
    gate.closed_for = {"p"}
    world.queue.move_all_to_active_or_backoff_queue(NODE_ADD)
    assert (gate.asked, world.places()) == (["p"], {"p": "backoff"})
    world.clock.advance(2)
    world.queue.flush_backoff_completed()
    assert (gate.asked, world.places()) == (["p", "p"], {"p": "gated"})
    world.queue.check_invariants()
