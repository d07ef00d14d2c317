"""Who is evicted, case by case, against the text of the documentation.

The oracle is written from the section on node-pressure eviction of the documentation and knows
nothing of the implementation. In short, the section says:

1. BestEffort and Burstable pods that use more than they request come first: by priority, and then
   by how far they exceed the request.
2. Guaranteed pods, and Burstable ones that use less than they request, come last: by priority.
3. Inodes and process IDs have no requests, so there only the priority counts.
"""

from itertools import product
from typing import Any, NamedTuple

import pytest

from berth.cluster.kubelet.eviction.stats import PodStats
from berth.cluster.kubelet.eviction.thresholds import Threshold
from tests.cluster.kubelet.eviction.machines import (
    GI,
    MI,
    Machine,
    hard,
    node_stats,
    pod_stats,
    soft,
)

MEMORY = 10 * GI


class Case(NamedTuple):
    """A pod by the words of the documentation."""

    qos: str
    requested: int
    """MiB."""
    used: int
    """MiB."""
    priority: int


PODS = [
    Case("Guaranteed", 1000, 900, 0),
    Case("Guaranteed", 1000, 900, 100),
    *(
        Case("Burstable", requested, used, priority)
        for requested, used in ((1000, 900), (1000, 1000), (500, 900), (200, 900))
        for priority in (0, 100)
    ),
    *(Case("BestEffort", 0, used, priority) for used in (500, 900) for priority in (0, 100)),
]


def first_of(left: Case, right: Case) -> set[Case]:
    """The oracle: which of two pods the documentation has evicted first; both: it does not say."""
    exceeding = {each for each in (left, right) if each.used > each.requested}
    assert all(each.qos in ("BestEffort", "Burstable") for each in exceeding)
    candidates = exceeding or {left, right}
    lowest = min(candidate.priority for candidate in candidates)
    candidates = {candidate for candidate in candidates if candidate.priority == lowest}
    if exceeding:
        furthest = max(candidate.used - candidate.requested for candidate in candidates)
        candidates = {
            candidate
            for candidate in candidates
            if candidate.used - candidate.requested == furthest
        }
    return candidates


def as_stats(case: Case, name: str) -> PodStats:
    text = f"{case.requested}Mi" if case.requested else ""
    return pod_stats(
        name,
        memory=case.used * MI,
        request=text,
        limit=text if case.qos == "Guaranteed" else "",
        priority=case.priority,
        qos=case.qos,
    )


SOFT = soft("memory.available", "1Gi", grace="30s")


@pytest.mark.parametrize(
    ("thresholds", "available", "seconds", "is_eviction"),
    [
        pytest.param(hard(memory_available="1Gi"), 1024, 0, False, id="hard: at the threshold"),
        pytest.param(hard(memory_available="1Gi"), 1023, 0, True, id="hard: below, at once"),
        pytest.param(hard(memory_available="10%"), 1025, 0, False, id="percentage: above"),
        pytest.param(hard(memory_available="10%"), 1023, 0, True, id="percentage: below"),
        pytest.param(SOFT, 1024, 30, False, id="soft: at the threshold, however long"),
        pytest.param(SOFT, 1023, 29, False, id="soft: below, within the grace period"),
        pytest.param(SOFT, 1023, 30, True, id="soft: below for the grace period"),
    ],
)
def test_who_goes_first(
    thresholds: tuple[Threshold, ...], available: int, seconds: int, is_eviction: bool
) -> None:
    """Every pair of pods under every threshold: nobody, or whom the documentation says."""
    for left, right in product(PODS, PODS):
        pods = as_stats(left, "left"), as_stats(right, "right")
        filler = MEMORY // MI - available - left.used - right.used
        critical = pod_stats("critical", memory=filler * MI, priority=2_000_000_000)
        machine = Machine(thresholds, node_stats(*pods, critical, memory=MEMORY))
        machine.look(0)
        evicted = machine.evicted(seconds)
        if not is_eviction:
            assert evicted == [], (left, right)
            continue
        first = first_of(left, right)
        names = {name for name, each in (("left", left), ("right", right)) if each in first}
        assert len(evicted) == 1, (left, right)
        assert set(evicted) <= names, (left, right, evicted)


def test_pods_go_one_at_a_time_in_the_order_of_the_documentation() -> None:
    cases = {
        "guaranteed": Case("Guaranteed", 1000, 900, 0),
        "within": Case("Burstable", 1000, 900, 50),
        "important": Case("Burstable", 100, 900, 100),
        "hungry": Case("Burstable", 100, 1000, 0),
        "modest": Case("BestEffort", 0, 500, 0),
    }
    pods = {name: as_stats(case, name) for name, case in cases.items()}
    order = []
    while pods:
        machine = Machine(hard(memory_available="9Gi"), node_stats(*pods.values(), memory=9 * GI))
        [name] = machine.evicted()
        order.append(name)
        del pods[name]
    assert order == ["hungry", "modest", "important", "guaranteed", "within"]


@pytest.mark.parametrize("resource", ["inodes", "pids"])
def test_inodes_and_processes_have_no_requests_so_priority_decides(resource: str) -> None:
    few: dict[str, Any] = {resource: 100}
    many: dict[str, Any] = {resource: 850}
    stats = node_stats(pod_stats("many", priority=0, **many), pod_stats("few", priority=-1, **few))
    signal = {"inodes": "nodefs.inodesFree", "pids": "pid.available"}[resource]

    assert Machine(hard(**{signal: "100"}), stats).evicted() == ["few"]
