"""A gang gets nodes for all its pods in one step, or for none."""

from collections.abc import Sequence
from typing import Any

import pytest
from examples.plugins.gang.gang_by_label import NAME_LABEL, SIZE_LABEL, GangByLabel
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.interface import PreEnqueuePlugin, ReservePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from tests.builders import node, pod
from tests.harness import Harness, with_plugins


def member(
    name: str, *, gang: str = "train", size: int | str = 3, cpu: str = "1", **more: Any
) -> Pod:
    return pod(name, cpu=cpu, labels={NAME_LABEL: gang, SIZE_LABEL: str(size)}, **more)


@pytest.fixture
def harness() -> Harness:
    return with_plugins(GangByLabel)


def told(harness: Harness) -> dict[str, str]:
    """Return the last FailedScheduling message of each pod."""
    events = harness.cluster.events
    return {e.pod: e.note for e in events if e.reason == "FailedScheduling"}


async def test_nobody_is_tried_until_all_members_exist(harness: Harness) -> None:
    harness.put(node("n1", cpu="8"), member("a"), member("b"))
    await harness.until_idle()

    assert harness.placements() == {}
    assert harness.queue.sub_queues.pending_counts()["gated"] == 2

    harness.put(member("c"))
    await harness.until_idle()

    assert harness.placements() == {"a": "n1", "b": "n1", "c": "n1"}


async def test_a_gang_that_does_not_fit_takes_no_room(harness: Harness) -> None:
    harness.put(node("n1", cpu="2"), member("a"), member("b"), member("c"))
    await harness.until_idle()
    harness.put(pod("other", cpu="2"))
    await harness.until_idle()

    assert harness.placements() == {"other": "n1"}
    why = (
        "gang train: 2 of 3 members fit; first blocker default/b: 0/1 nodes are available:"
        " 1 Insufficient cpu."
    )
    assert told(harness) == {f"default/{name}": why for name in "abc"}


async def test_room_for_all_lets_all_go(harness: Harness) -> None:
    harness.put(node("n1", cpu="2"), member("a"), member("b"), member("c"))
    await harness.until_idle()
    harness.clock.advance(30)
    harness.put(node("n2", cpu="1"))
    await harness.until_idle()

    assert sorted(harness.placements()) == ["a", "b", "c"]
    assert sorted(harness.placements().values()) == ["n1", "n1", "n2"]


async def test_two_gangs_do_not_block_each_other(harness: Harness) -> None:
    """The classic deadlock of gangs that hold what they have while they wait for the rest."""
    harness.put(node("n1", cpu="3"))
    harness.put(*(member(f"one-{i}", gang="one") for i in range(3)))
    harness.put(*(member(f"two-{i}", gang="two") for i in range(3)))
    await harness.until_idle()

    assert sorted(harness.placements()) == ["one-0", "one-1", "one-2"]


async def test_members_see_each_other(harness: Harness) -> None:
    """Each member is evaluated with those before it in place: here no two share a node's port."""
    harness.put(node("n1"), node("n2"), *(member(n, size=2, ports=[80]) for n in "ab"))
    await harness.until_idle()

    assert sorted(harness.placements().values()) == ["n1", "n2"]


async def test_pods_of_no_gang_are_left_alone(harness: Harness) -> None:
    harness.put(node("n1"), pod("plain"))
    await harness.until_idle()

    assert harness.placements() == {"plain": "n1"}


@pytest.mark.parametrize("size", ["", "0", "three", "-1"])
async def test_a_size_that_is_no_number_gates_the_pod(harness: Harness, size: str) -> None:
    harness.put(node("n1"), member("a", size=size))
    await harness.until_idle()

    assert harness.queue.sub_queues.pending_counts()["gated"] == 1


async def test_a_member_with_a_scheduling_gate_is_none_yet(harness: Harness) -> None:
    harness.put(node("n1"), member("held", size=2, gates=["later"]), member("a", size=2))
    await harness.until_idle()
    assert harness.queue.sub_queues.pending_counts()["gated"] == 2

    harness.put(member("held", size=2))
    await harness.until_idle()

    assert sorted(harness.placements()) == ["a", "held"]


async def test_a_member_that_another_plugin_holds_back_holds_back_all() -> None:
    class Office(PreEnqueuePlugin):
        NAME = "Office"
        is_open = False

        def pre_enqueue(self, pod: PodInfo) -> Status | None:
            is_late = pod.name == "late" and not Office.is_open
            return Status.unschedulable("closed") if is_late else None

    harness = with_plugins(GangByLabel, Office)
    harness.put(node("n1"), member("late", size=2), member("a", size=2))
    await harness.until_idle()
    assert told(harness) == {"default/a": "gang train: 1 of 2 members fit; missing: default/late"}

    Office.is_open = True
    harness.put(node("n2"))  # which a plugin hears of that registers no events of its own
    await harness.until_idle()

    assert sorted(harness.placements()) == ["a", "late"]


async def test_a_member_that_is_gone_is_missed(harness: Harness) -> None:
    harness.put(node("n1", cpu="1"), *(member(name) for name in "abc"))
    await harness.until_idle()
    harness.delete(harness.cluster.pods["default/c"])
    harness.put(node("n2", cpu="8"))
    harness.clock.advance(60)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert harness.placements() == {}

    harness.put(member("d"))
    await harness.until_idle()

    assert sorted(harness.placements()) == ["a", "b", "d"]


async def test_members_that_run_count(harness: Harness) -> None:
    harness.put(node("n1"), member("a", node="n1"), member("b", node="n1"), member("c"))
    await harness.until_idle()

    assert harness.placements() == {"a": "n1", "b": "n1", "c": "n1"}


async def test_the_label_of_a_waiting_member_may_change(harness: Harness) -> None:
    harness.put(node("n1"), member("a"), member("b"))
    await harness.until_idle()
    harness.put(member("a", size=2), member("b", size=2))
    await harness.until_idle()

    assert sorted(harness.placements()) == ["a", "b"]


async def test_a_bind_that_fails_is_repeated_for_that_pod_alone(harness: Harness) -> None:
    harness.put(node("n1"), *(member(name) for name in "abc"))
    harness.cluster.bind_error = OSError("connection lost")
    queued = harness.queue.pop()
    assert queued is not None
    first, *others = await harness.scheduler.schedule_one(queued)
    await harness.scheduler.binding_cycle.run(first)
    harness.cluster.bind_error = None
    for binding in others:
        await harness.scheduler.binding_cycle.run(binding)
    assert len(harness.placements()) == 2

    harness.clock.advance(60)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()

    assert sorted(harness.placements()) == ["a", "b", "c"]


async def test_nobody_is_evicted_for_a_gang(harness: Harness) -> None:
    harness.put(node("n1", cpu="2"), pod("low", cpu="2", node="n1", priority=0))
    harness.put(*(member(name, priority=100) for name in "abc"))
    await harness.until_idle()

    assert harness.placements() == {"low": "n1"}


async def test_what_other_plugins_reserved_is_given_back() -> None:
    held: list[str] = []

    class Desk(ReservePlugin):
        NAME = "Desk"

        def reserve(self, _state: Any, pod: Any, _node_name: str) -> Status | None:
            held.append(pod.name)
            return Status.unschedulable("no desk") if len(held) == 3 else None

        def unreserve(self, _state: Any, pod: Any, _node_name: str) -> None:
            held.remove(pod.name)

    harness = with_plugins(GangByLabel, Desk)
    harness.put(node("n1"), *(member(name) for name in "abc"))
    queued = harness.queue.pop()
    assert queued is not None

    assert not await harness.scheduler.schedule_one(queued)
    assert held == []
    assert harness.cache.table.pod_count.tolist() == [0]
    assert len(harness.scheduler.bindings) == 0


@given(
    nodes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    gangs=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
async def test_no_gang_is_ever_placed_in_part(
    nodes: Sequence[int], gangs: Sequence[int], order: Any
) -> None:
    harness = with_plugins(GangByLabel)
    pods = [
        member(f"{gang}-{i}", gang=str(gang), size=size)
        for gang, size in enumerate(gangs)
        for i in range(size)
    ]
    order.shuffle(pods)
    harness.put(*pods)
    await harness.until_idle()
    for i, cpu in enumerate(nodes):
        harness.put(node(f"n{i}", cpu=str(cpu)))
        harness.clock.advance(30)
        harness.queue.flush_backoff_completed()
        await harness.until_idle()

        placed = [name.split("-")[0] for name in harness.placements()]
        assert all(placed.count(gang) == gangs[int(gang)] for gang in placed)
    left = sum(nodes) - len(harness.placements())
    waiting = [size for gang, size in enumerate(gangs) if f"{gang}-0" not in harness.placements()]
    assert all(size > left for size in waiting), "room is left for a whole gang"
