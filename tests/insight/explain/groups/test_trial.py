"""An answer is found in a trial that nobody sees."""

import random

import pytest
from prometheus_client import generate_latest

from berth.scheduler.schedule_one import Scheduler
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.groups.asking import explain_group, racks
from tests.scheduler.pod_group.building import group, group_harness, member, members
from tests.scheduler.pod_group.test_properties import state_of


def counted(harness: Harness) -> list[str]:
    """Return what metrics say, but how often plugins were asked, which every answer adds to."""
    lines = generate_latest(harness.registry).decode().splitlines()
    return [line for line in lines if "extension_point" not in line and "plugin=" not in line]


def traces(harness: Harness) -> tuple[object, ...]:
    scheduler: Scheduler = harness.scheduler
    groups = scheduler.groups
    assert groups is not None
    return (
        state_of(harness),
        dict(groups.pod_groups.snapshot()),
        harness.queue.sub_queues.pending_counts(),
        harness.core.sampling.next_start_node_index,
        scheduler.decisions.made,
        counted(harness),
        list(harness.cluster.events),
        dict(harness.cluster.conditions),
    )


@pytest.mark.parametrize("seed", range(20))
async def test_looking_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    harness = racks(a=rng.randint(1, 3), b=rng.randint(1, 3))
    names = [f"m{i}" for i in range(rng.randint(2, 8))]
    topology = rng.choice(["", "rack"])
    harness.put(group(min_count=len(names), topology=topology), *members(*names, cpu="1"))
    harness.put(pod("old", cpu="1", node="a0", priority=-1))
    await harness.pass_time(rng.randint(0, 3))
    before = traces(harness)
    dice = harness.core.outside.rng.ties.getstate()

    explain_group(harness)

    assert traces(harness) == before
    assert harness.core.outside.rng.ties.getstate() == dice
    harness.core.check_invariants()


async def test_a_member_that_waits_on_permit_is_not_let_go_by_a_trial() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="1"), group(min_count=2), member("a", cpu="1"), member("b", cpu="1"))
    queued = harness.queue.pop()
    assert queued is not None
    # As after a failed bind of its gang: one member holds its room, the others are tried alone.
    [binding] = harness.scheduler.scheduling_cycle(queued)
    assert binding.waiting is not None
    harness.put(node("m", cpu="1"))

    found = explain_group(harness)

    assert (found.num_tried, found.num_fit, found.can_start) == (1, 1, True)
    assert not binding.waiting.is_decided
