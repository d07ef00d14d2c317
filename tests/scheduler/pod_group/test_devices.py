"""Groups whose pods ask for GPUs, and for devices that claims allocate (spec G10, G19 21)."""

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest

from berth.kube.objects.devices import ResourceClaimStatus, ResourceSlice
from berth.kube.objects.pod import Pod
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from tests.builders import node
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    resource_slice,
    with_claims,
)
from tests.harness import Harness
from tests.scheduler.pod_group.building import condition_of, group, group_harness, member

GPU = "example.com/gpu"
TOPOLOGY = "TopologyAwareWorkloadScheduling"
RACKS = {"a": 8, "b": 6, "c": 2}
"""GPUs by rack. Rack a has the least cpu, so that with 4 pods it is the fullest by cpu."""
CPUS = {"a": "8", "b": "40", "c": "8"}


def racks(*plugins: str) -> Harness:
    """Make a scheduler for groups in racks, with placementScore *plugins* beside the default."""
    enabled = [{"name": name, "weight": 10} for name in plugins]
    profile: dict[str, Any] = {"plugins": {"placementScore": {"enabled": enabled}}}
    return group_harness(TOPOLOGY, profiles=[profile])


def extended(harness: Harness) -> Sequence[Pod]:
    for rack, gpus in RACKS.items():
        harness.put(node(rack, cpu=CPUS[rack], allocatable={GPU: gpus}, labels={"rack": rack}))
    return [member(name, cpu="1", requests={GPU: 1}) for name in "wxyz"]


def put_devices(harness: Harness) -> None:
    harness.put(device_class("gpu", extended_resource=GPU))
    for rack, gpus in RACKS.items():
        harness.put(node(rack, cpu=CPUS[rack], labels={"rack": rack}))
        harness.put(resource_slice(rack, *(device(f"d{i}") for i in range(gpus)), node=rack))


def claimed(harness: Harness) -> Sequence[Pod]:
    put_devices(harness)
    harness.put(*(claim(name) for name in "wxyz"))
    return [with_claims(member(name, cpu="1"), name) for name in "wxyz"]


def shared_claim(harness: Harness) -> Sequence[Pod]:
    put_devices(harness)
    harness.put(claim("all", exactly(4)))
    return [with_claims(member(name, cpu="1"), "all") for name in "wxyz"]


def backed(harness: Harness) -> Sequence[Pod]:
    put_devices(harness)
    return [member(name, cpu="1", requests={GPU: 1}) for name in "wxyz"]


@pytest.mark.parametrize("ask", [extended, claimed, shared_claim, backed])
@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param((), "a", id="by cpu and memory: 4 of 8 cpus, rather than 4 of 40"),
        pytest.param(("PodGroupDevices",), "b", id="by devices: 4 of 6 GPUs, rather than 4 of 8"),
    ],
)
async def test_which_rack_is_fuller(ask: Any, plugins: tuple[str, ...], want: str) -> None:
    harness = racks(*plugins)
    pods = ask(harness)
    harness.put(group(min_count=4, topology="rack"), *pods)
    await harness.until_idle()
    assert harness.placements() == dict.fromkeys("wxyz", want)


async def test_what_is_allocated_counts() -> None:
    harness = racks("PodGroupDevices")
    pods = claimed(harness)
    harness.put(claim("other", allocated=allocation("d0", "d1", "d2", pool="a"), users=["u"]))
    harness.put(group(min_count=4, topology="rack"), *pods)
    await harness.until_idle()
    assert harness.placements() == dict.fromkeys("wxyz", "a"), "7 of 8, rather than 4 of 6"


async def test_pods_that_ask_for_no_devices_are_placed_as_ever() -> None:
    harness = racks("PodGroupDevices")
    extended(harness)
    harness.put(group(min_count=2, topology="rack"))
    harness.put(member("x", cpu="4"), member("y", cpu="4"))
    await harness.until_idle()
    assert set(harness.placements().values()) <= {"a", "c"}, "full racks, rather than 8 of 40"


# What a trial leaves.


def device_state(harness: Harness) -> tuple[object, ...]:
    """Return what decisions about devices are made by, but for the numbers of their changes."""
    tracker = harness.listers.shared(ResourceClaimTracker)
    in_use = vars(tracker.in_use)
    return deepcopy(
        (
            {name: in_use[name] for name in ("_dedicated", "_shares", "_consumed")},
            vars(tracker)["_in_flight"],
            dict(tracker.cache.assumed),
            tracker.holders(),
        )
    )


async def test_a_gang_with_a_claim_for_each_pod_and_one_device() -> None:
    harness = group_harness()
    harness.put(node("n"), device_class(), resource_slice("s", device("gpu-0"), node="n"))
    harness.put(claim("x"), claim("y"))
    before = device_state(harness)
    harness.put(group(min_count=2))
    harness.put(*(with_claims(member(name), name) for name in "xy"))
    await harness.pass_time(5)
    assert harness.placements() == {}
    assert harness.cluster.resource_claims.writes == []
    assert device_state(harness) == before
    condition = condition_of(harness)
    assert condition is not None
    assert (condition.status, condition.message) == ("False", "pod group is unschedulable")

    harness.put(resource_slice("t", device("gpu-1"), node="n", pool="t"))
    await harness.pass_time(30)
    assert harness.placements() == {"x": "n", "y": "n"}


@pytest.mark.parametrize("seed", range(40))
async def test_a_trial_leaves_no_trace_on_devices(seed: int) -> None:
    """Dedicated devices, shared ones with capacity, counters, and extended resources."""
    rng = random.Random(seed)
    harness = group_harness(*rng.choice([(), (TOPOLOGY,)]))
    harness.put(device_class("gpu", extended_resource=GPU))
    for name in "ab"[: rng.randint(1, 2)]:
        harness.put(node(name, labels={"rack": name}), *_slices(name, rng))
    held = allocation("gpu-0", pool="a")
    if rng.random() < 0.5:
        harness.put(claim("held", allocated=held, users=["u"]))
    before = device_state(harness)

    size = rng.randint(2, 5)
    topology = rng.choice(["", "rack"])
    harness.put(group(min_count=size, topology=topology))
    pods, claims = [], []
    for name in (f"m{i}" for i in range(size)):
        if rng.random() < 0.3:
            pods.append(member(name, requests={GPU: rng.randint(1, 2)}))
            continue
        capacity = {"memory": rng.choice(["1", "3"])} if rng.random() < 0.5 else {}
        claims.append(claim(name, exactly(rng.randint(1, 2), capacity=capacity)))
        pods.append(with_claims(member(name), name))
    harness.put(*claims, *pods)
    await harness.pass_time(15)

    started = harness.placements()
    if started:
        assert len(started) == size, "a gang in part"
        return
    assert harness.cluster.resource_claims.writes == []
    assert device_state(harness) == before
    assert all(
        found.status == ResourceClaimStatus()
        for found in harness.listers.resource_claims
        if found.metadata.name != "held"
    )


def _slices(name: str, rng: random.Random) -> list[ResourceSlice]:
    gpus = [device(f"gpu-{i}") for i in range(rng.randint(1, 3))]
    slices = [resource_slice(f"gpus-{name}", *gpus, node=name)]
    if rng.random() < 0.5:
        shared = device("shared", shared=True, capacity={"memory": "4"})
        slices.append(resource_slice(f"shared-{name}", shared, node=name, pool=f"shared-{name}"))
    if rng.random() < 0.5:
        parts = [device(f"part-{i}", consumes={"slots": "2"}) for i in range(2)]
        pool = f"parts-{name}"
        slices += [
            resource_slice(pool, *parts, node=name, pool=pool, count=2),
            resource_slice(
                f"{pool}-set", node=name, pool=pool, count=2, counters={"set": {"slots": "3"}}
            ),
        ]
    return slices
