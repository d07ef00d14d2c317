"""Searches for devices that run out of time: pods get the nodes that they get without."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from tests.builders import node, pod
from tests.device_builders import claim, device, device_class, resource_slice, with_claims
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness, member

TOPOLOGY = "TopologyAwareWorkloadScheduling"
PREEMPTION = "WorkloadAwarePreemption"


class Stalling(FakeClock):
    """From some looks at it to the next the processor is busy for ten seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.stalls = frozenset[int]()
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        if self.looks in self.stalls:
            self.advance(10.0)
        return super().monotonic()


def put_nodes(harness: Harness, *, cpu: Sequence[int] = (2, 4, 8)) -> None:
    """Make nodes n1, n2, n3 with two devices each, in racks of their own."""
    harness.put(device_class())
    for name, size in zip(("n1", "n2", "n3"), cpu, strict=False):
        devices = [device(f"{name}-{number}") for number in range(2)]
        harness.put(
            node(name, cpu=size, labels={"rack": name}), resource_slice(name, *devices, node=name)
        )


def single(clock: Stalling) -> tuple[Harness, list[Pod]]:
    harness = Harness(clock=clock)
    put_nodes(harness)
    harness.put(claim("c"))
    return harness, [with_claims(pod("p", cpu="1"), "c")]


def gang(clock: Stalling) -> tuple[Harness, list[Pod]]:
    harness = group_harness(clock=clock)
    put_nodes(harness)
    harness.put(group(min_count=3), *(claim(f"c{i}") for i in range(3)))
    return harness, [with_claims(member(f"p{i}", cpu="1"), f"c{i}") for i in range(3)]


def gang_in_a_rack(clock: Stalling) -> tuple[Harness, list[Pod]]:
    harness = group_harness(TOPOLOGY, clock=clock)
    put_nodes(harness)
    harness.put(group(min_count=2, topology="rack"), claim("c0"), claim("c1"))
    return harness, [with_claims(member(f"p{i}", cpu="1"), f"c{i}") for i in range(2)]


def preemptor(clock: Stalling) -> tuple[Harness, list[Pod]]:
    harness = Harness(clock=clock)
    put_nodes(harness, cpu=(1, 1))
    for number, priority in enumerate((1, 2), 1):
        harness.put(pod(f"v{number}", cpu="1", priority=priority, node=f"n{number}"))
    harness.put(claim("c"))
    return harness, [with_claims(pod("p", cpu="1", priority=10), "c")]


def gang_that_preempts(clock: Stalling) -> tuple[Harness, list[Pod]]:
    harness = group_harness(PREEMPTION, clock=clock)
    put_nodes(harness, cpu=(1, 1, 2))
    for number, cpu in enumerate("112", 1):
        harness.put(pod(f"v{number}", cpu=cpu, priority=number, node=f"n{number}"))
    harness.put(group(min_count=2, priority=100), claim("c0"), claim("c1"))
    return harness, [with_claims(member(f"p{i}", cpu="1"), f"c{i}") for i in range(2)]


async def ends(kind: str, stalls: frozenset[int]) -> list[str]:
    """Return which nodes the pods get, and which other pods are left.

    Which pod of a group gets which node goes by who comes first.
    """
    clock = Stalling()
    harness, pods = KINDS[kind](clock)
    harness.put(*pods)
    clock.looks, clock.stalls = 0, stalls
    for _ in range(30):
        await harness.pass_time(5)
        for each in [*harness.cluster.pods.values()]:
            if each.metadata.deletion_timestamp is not None:
                harness.delete(each)
        if all(each.metadata.name in harness.placements() for each in pods):
            break
    placements = harness.placements()
    hosts = sorted(placements.pop(each.metadata.name, "") for each in pods)
    return [*hosts, *sorted(placements)]


KINDS = {
    each.__name__: each for each in (single, gang, gang_in_a_rack, preemptor, gang_that_preempts)
}
WANT = {
    "single": ["n3"],
    "gang": ["n2", "n3", "n3"],
    "gang_in_a_rack": ["n1", "n1"],
    "preemptor": ["n1", "v2"],
    "gang_that_preempts": ["n1", "n2", "v3"],
}
NEVER = frozenset[int]()


@pytest.mark.parametrize("kind", KINDS)
async def test_without_interruption(kind: str) -> None:
    assert await ends(kind, NEVER) == WANT[kind]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(st.frozensets(st.integers(1, 150), max_size=12))
@example(frozenset(range(20, 150)))
@example(frozenset({20}))
async def test_interruptions_change_nothing(kind: str, stalls: frozenset[int]) -> None:
    assert await ends(kind, stalls) == WANT[kind]
