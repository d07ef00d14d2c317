"""Whom a group evicts, against putting one unit back after the other (1.37 spec N9.2)."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.preemption.victim_units import VictimUnit
from berth_plugins.default_preemption import pod_group
from tests.scheduler.pod_group.building import group, group_harness
from tests.scheduler.pod_group.test_preemption_properties import (
    PRIORITY,
    Case,
    case,
    gang,
    objects_of,
)
from tests.scheduler.pod_group.test_properties import state_of


async def one_by_one(
    self: pod_group._Reprieve, units: Sequence[VictimUnit]
) -> list[VictimUnit] | None:
    """Put back each unit beside which all pods of the group fit on their nodes: the rule."""
    gone = [*units]
    for unit in units:
        left = [other for other in gone if other is not unit]
        if self._fits_without(left):
            gone = left
    return gone


def with_priority(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=PRIORITY))


async def evicted(given: Case) -> tuple[set[str], int]:
    """Let the gang preempt; return who was evicted, and how many of the gang were bound."""
    harness = group_harness(release="1.37")
    harness.put(*objects_of(given))
    before, ran = state_of(harness), set(harness.placements())
    harness.put(group(min_count=given.size, priority=PRIORITY), *map(with_priority, gang(given)))
    await harness.until_idle()
    placed = set(harness.placements())
    gone = ran - placed
    if not gone and not given.fits(given.units):
        assert state_of(harness) == before, "a trial has left something"
    return gone, sum(name.startswith("m") for name in placed)


@pytest.mark.parametrize("is_one_per_node", [False, True], ids=["by resources", "one per node"])
async def test_the_victims_are_those_of_the_rule(
    monkeypatch: pytest.MonkeyPatch, *, is_one_per_node: bool
) -> None:
    helped = 0
    for seed in range(40):
        given = case(random.Random(seed), is_one_per_node=is_one_per_node)
        gone, bound = await evicted(given)
        with monkeypatch.context() as patch:
            patch.setattr(pod_group._Reprieve, "run", one_by_one)
            assert (gone, bound) == await evicted(given), f"seed {seed}"
        units = [unit for unit in given.units if gone & set(unit.names)]
        assert gone == {name for unit in units for name in unit.names}, "a part of a group"
        could_help = given.fits([unit for unit in given.units if unit.priority >= PRIORITY])
        assert bound == (given.size if could_help else 0), f"seed {seed}"
        helped += bool(gone)
    assert helped > 8
