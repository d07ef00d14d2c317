"""Whom a group evicts, against an oracle that tries everything (spec G9.4).

The pods of a group are alike, so that whether they fit is a matter of counting.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.pod_group import victims as victim_search
from tests.builders import disruption_budget, host_port, node, pod, selector
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness, member
from tests.scheduler.pod_group.test_properties import state_of

GATE = "WorkloadAwarePreemption"
PRIORITY = 100


@dataclass(frozen=True)
class Unit:
    """Pods that are evicted together: their names, nodes and CPUs."""

    names: tuple[str, ...]
    nodes: tuple[str, ...]
    cpus: tuple[int, ...]
    priority: int
    started: int
    is_group: bool
    budget: str = ""
    """The label that a disruption budget goes by."""


@dataclass(frozen=True)
class Case:
    """A cluster, who runs on it and may be evicted, and a gang."""

    capacity: dict[str, int]
    units: tuple[Unit, ...]
    size: int
    cpu: int
    is_one_per_node: bool
    allowed: dict[str, int]
    """Evictions that the budget of a label allows."""

    def fits(self, staying: Iterable[Unit]) -> bool:
        """Whether all pods of the gang have room beside *staying*."""
        free = dict(self.capacity)
        for unit in staying:
            for name, cpu in zip(unit.nodes, unit.cpus, strict=True):
                free[name] -= cpu
        rooms = (max(left, 0) // self.cpu for left in free.values())
        return sum(min(room, 1) if self.is_one_per_node else room for room in rooms) >= self.size

    def victims(self) -> set[Unit]:
        """Return whom the rule evicts: nobody if that is of no help."""
        lesser = [unit for unit in self.units if unit.priority < PRIORITY]
        mighty = [unit for unit in self.units if unit.priority >= PRIORITY]
        if self.fits(self.units) or not self.fits(mighty):
            return set()
        lesser.sort(
            key=lambda unit: (
                -unit.priority,
                0 if unit.is_group else 1,
                -len(unit.names) if unit.is_group else 0,
                unit.started,
            )
        )
        left = Counter(self.allowed)
        violating = []
        for unit in lesser:
            if unit.budget:
                left[unit.budget] -= len(unit.names)
                if left[unit.budget] < 0:
                    violating.append(unit)
        staying = list(mighty)
        for unit in [*violating, *(unit for unit in lesser if unit not in violating)]:
            if self.fits([*staying, unit]):
                staying.append(unit)
        return set(lesser) - set(staying)


def case(rng: random.Random, *, is_one_per_node: bool) -> Case:
    capacity = {f"n{number}": rng.randint(1, 4) for number in range(rng.randint(1, 4))}
    free = dict(capacity)
    units: list[Unit] = []
    starts = rng.sample(range(60), 7)  # no two are equally important
    for number in range(rng.randint(1, 7)):
        is_group = rng.random() < 0.3
        nodes, cpus = [], []
        for _ in range(rng.randint(1, 3) if is_group else 1):
            open_nodes = [name for name, left in free.items() if left]
            if open_nodes:
                name = rng.choice(open_nodes)
                cpu = rng.randint(1, min(free[name], 2))
                free[name] -= cpu
                nodes.append(name)
                cpus.append(cpu)
        if nodes:
            units.append(
                Unit(
                    tuple(f"u{number}-{index}" for index in range(len(nodes))),
                    tuple(nodes),
                    tuple(cpus),
                    rng.choice([0, 0, 10, 50, 200]),
                    starts[number],
                    is_group,
                    rng.choice(["", "", "x", "y"]),
                )
            )
    allowed = {label: rng.randint(0, 2) for label in "xy"}
    size, cpu = rng.randint(1, 4), rng.randint(1, 2)
    return Case(capacity, tuple(units), size, cpu, is_one_per_node, allowed)


def objects_of(given: Case) -> list[Any]:
    made: list[Any] = [node(name, cpu=str(cpu)) for name, cpu in given.capacity.items()]
    for unit in given.units:
        name = unit.names[0]
        if unit.is_group:
            made.append(group(name, priority=unit.priority, disruption_mode="PodGroup"))
        for each, where, cpu in zip(unit.names, unit.nodes, unit.cpus, strict=True):
            fields: dict[str, Any] = {
                "cpu": str(cpu),
                "node": where,
                "labels": {"budget": unit.budget} if unit.budget else {},
                "started": f"2026-01-01T00:{unit.started:02}:00Z",
            }
            if unit.is_group:
                made.append(member(each, name, priority=0, **fields))
            else:
                made.append(pod(each, priority=unit.priority, **fields))
    for label, allows in given.allowed.items():
        made.append(disruption_budget(label, selects=selector({"budget": label}), allows=allows))
    return made


def gang(given: Case) -> list[Pod]:
    fields: dict[str, Any] = {"ports": [host_port(80)]} if given.is_one_per_node else {}
    names = [f"m{number}" for number in range(given.size)]
    return [member(name, cpu=str(given.cpu), priority=0, **fields) for name in names]


async def preempting(given: Case) -> tuple[Harness, set[Unit]]:
    """Let the gang preempt; return the units that were evicted. None is in part."""
    harness = group_harness(GATE)
    harness.put(*objects_of(given))
    before, ran = state_of(harness), set(harness.placements())
    harness.put(group(min_count=given.size, priority=PRIORITY), *gang(given))
    await harness.pass_time(2)
    gone = ran - set(harness.placements())
    evicted = {unit for unit in given.units if gone & set(unit.names)}
    assert gone == {name for unit in evicted for name in unit.names}, "a part of a group"
    if not evicted and not given.fits(given.units):
        assert state_of(harness) == before, "a trial has left something"
    return harness, evicted


def bound(harness: Harness) -> int:
    return sum(name.startswith("m") for name in harness.placements())


async def check_rule(seed: int, *, is_one_per_node: bool) -> bool:
    """Compare with the rule; return whether there were victims."""
    given = case(random.Random(seed), is_one_per_node=is_one_per_node)
    harness, evicted = await preempting(given)
    assert evicted == given.victims(), f"seed {seed}"
    staying = [unit for unit in given.units if unit not in evicted]
    assert bound(harness) == (given.size if given.fits(staying) else 0), f"seed {seed}"
    for unit in evicted:
        assert not given.fits([*staying, unit]), f"seed {seed}: {unit} could stay"
    return bool(evicted)


@pytest.mark.parametrize("is_one_per_node", [False, True], ids=["by resources", "one per node"])
async def test_the_victims_are_those_of_the_rule(*, is_one_per_node: bool) -> None:
    seeds = range(40)
    helped = [await check_rule(seed, is_one_per_node=is_one_per_node) for seed in seeds]
    assert sum(helped) > 8


@pytest.mark.slow
@pytest.mark.parametrize("is_one_per_node", [False, True], ids=["by resources", "one per node"])
async def test_the_victims_are_those_of_the_rule_in_many_clusters(*, is_one_per_node: bool) -> None:
    for seed in range(100, 180):
        await check_rule(seed, is_one_per_node=is_one_per_node)


async def test_few_trials_find_victims_that_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victim_search, "MOST_DECISIONS", 0)
    monkeypatch.setattr(victim_search, "LEAST_TRIALS", 4)
    surplus = []
    for seed in range(30):
        given = case(random.Random(seed), is_one_per_node=True)
        harness, evicted = await preempting(given)
        needed = given.victims()
        assert bool(evicted) == bool(needed), f"seed {seed}"
        if needed:
            assert bound(harness) == given.size, f"seed {seed}"
            surplus.append(len(evicted) - len(needed))
    assert len(surplus) > 5
