"""What the eviction manager of a node remembers, frees and says."""

from typing import Any

import pytest

from berth.cluster.kubelet.eviction.manager import Eviction, Synchronization
from berth.cluster.kubelet.eviction.stats import NodeStats
from berth.cluster.kubelet.eviction.thresholds import Filesystems, Threshold, parse_thresholds
from berth.cluster.kubelet.usage import Usage
from tests.cluster.kubelet.eviction.machines import (
    GI,
    MI,
    Machine,
    hard,
    node_stats,
    pod_stats,
    soft,
)

LOW_MEMORY = hard(memory_available="1Gi")


def test_an_eviction_says_all_there_is_to_say() -> None:
    pod = pod_stats("p", memory=9 * GI + 512 * MI, request="200Mi")
    machine = Machine(LOW_MEMORY, node_stats(pod))

    assert machine.look() == Synchronization(
        [
            Eviction(
                pod.pod,
                "The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. "
                "Container c was using 9728Mi, request is 200Mi, "
                "has larger consumption of memory. ",
                grace_seconds=1,
                annotations={
                    "offending_containers": "c",
                    "offending_containers_usage": "9728Mi",
                    "starved_resource": "memory",
                },
                is_disruption=True,
            )
        ],
        "memory",
    )


@pytest.mark.parametrize(
    ("thresholds", "grace"),
    [
        pytest.param(LOW_MEMORY, 1, id="hard: at once"),
        pytest.param(
            soft("memory.available", "1Gi", grace="0s"), 1, id="soft without grace is hard"
        ),
        pytest.param(
            soft("memory.available", "1Gi", grace="1s"), 60, id="soft: what the configuration says"
        ),
    ],
)
def test_how_long_an_evicted_pod_has(thresholds: tuple[Threshold, ...], grace: int) -> None:
    stats = node_stats(pod_stats(memory=10 * GI))
    machine = Machine(thresholds, stats, max_pod_grace_seconds=60)
    machine.look(0)

    [eviction] = machine.look(10).evictions

    assert eviction.grace_seconds == grace


def test_a_condition_is_true_before_the_grace_period_and_long_after() -> None:
    """Conditions regard thresholds whatever their grace period; they end after the transition."""
    pressed, relieved = (node_stats(pod_stats(memory=size)) for size in (10 * GI, GI))
    machine = Machine(soft("memory.available", "1Gi", grace="1m"), pressed)

    machine.look(0)
    at_once = machine.manager.conditions
    machine.stats = relieved
    seen = []
    for now in (10, 299, 300):
        machine.look(now)
        seen.append((machine.manager.conditions, machine.manager.is_calm))

    assert at_once == ("MemoryPressure",)
    assert seen == [(("MemoryPressure",), False)] * 2 + [((), True)]


def test_a_soft_threshold_that_is_kept_for_a_moment_begins_anew() -> None:
    pressed, relieved = (node_stats(pod_stats(memory=size)) for size in (10 * GI, GI))
    machine = Machine(soft("memory.available", "1Gi", grace="30s"), pressed)
    evicted = []
    for now, stats in ((0, pressed), (20, relieved), (30, pressed), (50, pressed), (60, pressed)):
        machine.stats = stats
        evicted.append(machine.evicted(now))
    assert evicted == [[], [], [], [], ["p"]]


def test_reclaiming_goes_on_until_the_minimum_is_free() -> None:
    thresholds = parse_thresholds(
        hard={"memory.available": "1Gi"},
        soft={},
        soft_grace_periods={},
        minimum_reclaim={"memory.available": "500Mi"},
    )
    machine = Machine(thresholds, node_stats(pod_stats("a", memory=10 * GI)))
    sizes = {"b": 9 * GI + 100 * MI, "c": 8 * GI + 600 * MI, "d": 8 * GI + 500 * MI}
    evicted = [machine.evicted(0)]
    for now, (name, size) in enumerate(sizes.items(), 1):
        machine.stats = node_stats(pod_stats(name, memory=size))
        evicted.append(machine.evicted(10.0 * now))
    assert evicted == [["a"], ["b"], ["c"], []]


def test_what_is_above_the_threshold_from_the_start_needs_no_minimum() -> None:
    thresholds = parse_thresholds(
        hard={"memory.available": "1Gi"},
        soft={},
        soft_grace_periods={},
        minimum_reclaim={"memory.available": "500Mi"},
    )
    assert Machine(thresholds, node_stats(pod_stats(memory=9 * GI))).evicted() == []


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param({"priority": 2_000_000_000}, id="of a system priority"),
        pytest.param({"annotations": {"kubernetes.io/config.source": "file"}}, id="static"),
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "abc"}}, id="a mirror"),
    ],
)
def test_critical_pods_are_passed_over(kept: Any) -> None:
    critical = pod_stats("critical", memory=9 * GI, **kept)
    modest = pod_stats("modest", memory=900 * MI, priority=1000)

    assert Machine(LOW_MEMORY, node_stats(critical, modest)).evicted() == ["modest"]
    assert Machine(LOW_MEMORY, node_stats(critical, memory=9 * GI)).evicted() == []


def test_memory_comes_before_all_other_resources() -> None:
    machine = Machine(
        hard(pid_available="500", nodefs_available="50Gi", memory_available="1Gi"),
        node_stats(pod_stats("p", memory=10 * GI, disk=90 * GI, pids=900)),
    )
    found = machine.look()

    assert found.reclaimed == "memory"
    assert machine.manager.conditions == ("DiskPressure", "MemoryPressure", "PIDPressure")
    assert machine.freed == []


def test_pods_together_may_not_use_what_is_reserved_for_the_system() -> None:
    thresholds = parse_thresholds(
        hard={"memory.available": "1Gi"},
        soft={},
        soft_grace_periods={},
        minimum_reclaim={},
    )
    pod = pod_stats(memory=5 * GI + 512 * MI)
    machine = Machine(thresholds, node_stats(pod, allocatable=6 * GI))

    [eviction] = machine.look().evictions

    assert "Threshold quantity: 1Gi, available: 512Mi. " in eviction.message


def disk(filesystems: Filesystems = Filesystems.SHARED, **more: Any) -> NodeStats:
    """A node whose file systems are all but full."""
    pods = [
        pod_stats("writes", disk=40 * GI),
        pod_stats("stores", volumes={"data": 50 * GI}),
    ]
    return node_stats(
        *pods,
        filesystems=filesystems,
        imagefs_capacity=50 * GI,
        **{"images": 5 * GI, "dead": Usage(ephemeral_storage=4 * GI), **more},
    )


FULL = hard(nodefs_available="10Gi")
IMAGES_FULL = hard(imagefs_available="10Gi")


@pytest.mark.parametrize(
    ("thresholds", "stats", "freed", "evicted"),
    [
        pytest.param(
            FULL, disk(), ["containers", "images"], ["stores"], id="one file system: all of it"
        ),
        pytest.param(
            hard(nodefs_available="60Gi"),
            disk(Filesystems.IMAGEFS),
            [],
            ["stores"],
            id="nodefs beside an imagefs: nothing to free, volumes count",
        ),
        pytest.param(
            IMAGES_FULL,
            disk(Filesystems.IMAGEFS),
            ["containers", "images"],
            ["writes"],
            id="imagefs: unused images, and writable layers count",
        ),
        pytest.param(
            FULL,
            disk(Filesystems.SPLIT),
            ["containers"],
            ["stores"],
            id="split: dead containers are in nodefs",
        ),
        pytest.param(
            hard(imagefs_available="46Gi"),
            disk(Filesystems.SPLIT),
            ["images"],
            ["writes"],
            id="split: only images are in imagefs",
        ),
    ],
)
def test_what_is_no_pods_goes_first_from_full_disks(
    thresholds: tuple[Threshold, ...], stats: NodeStats, freed: list[str], evicted: list[str]
) -> None:
    machine = Machine(thresholds, stats)

    assert (machine.evicted(), machine.freed) == (evicted, freed)


def test_no_pod_is_evicted_when_unused_images_are_enough() -> None:
    machine = Machine(FULL, disk(dead=Usage()))
    machine.after = {"images": node_stats(pod_stats("writes", disk=40 * GI))}

    assert machine.look() == Synchronization(reclaimed="ephemeral-storage")
    assert machine.manager.conditions == ("DiskPressure",)
    assert machine.evicted(10) == []


def test_freeing_must_reach_the_minimum_reclaim() -> None:
    thresholds = parse_thresholds(
        hard={"nodefs.available": "10Gi"},
        soft={},
        soft_grace_periods={},
        minimum_reclaim={"nodefs.available": "5Gi"},
    )
    machine = Machine(thresholds, disk())
    machine.after = {"images": node_stats(pod_stats("writes", disk=88 * GI))}

    assert machine.evicted() == ["stores"]


def test_an_excess_of_local_storage_comes_before_everything_else() -> None:
    greedy = pod_stats("greedy", volumes={"data": 2 * GI}, size_limits={"data": "1Gi"})
    other = pod_stats("other", disk=3 * GI, limit="2Gi", resource="ephemeral-storage")
    hungry = pod_stats("hungry", memory=10 * GI)
    machine = Machine(LOW_MEMORY, node_stats(greedy, other, hungry))

    found = machine.look()

    assert found.evictions == [
        Eviction(greedy.pod, 'Usage of EmptyDir volume "data" exceeds the limit "1Gi". '),
        Eviction(
            other.pod,
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ",
        ),
    ]
    assert machine.manager.conditions == ("MemoryPressure",)
