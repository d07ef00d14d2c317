"""Pods that preempt where pods of groups run (1.37 spec N9.4)."""

import pytest

from berth.kube.objects.pod_group import PodGroup
from tests.builders import disruption_budget, node, pod, selector
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness, member


def harness_of(*groups: PodGroup, release: str = "1.37") -> Harness:
    """Make a cluster of two nodes of 2 CPUs, with *groups*."""
    harness = group_harness(release=release)
    harness.put(node("n", cpu="2"), node("m", cpu="2"), *groups)
    return harness


def victims(harness: Harness) -> set[str]:
    return {
        event.pod.removeprefix("default/")
        for event in harness.cluster.events
        if event.reason == "Preempted"
    }


@pytest.mark.parametrize(
    ("release", "mode", "gone"),
    [
        pytest.param("1.37", "PodGroup", {"v0", "v1"}, id="all, also on the other node"),
        pytest.param("1.37", "Pod", {"v0"}, id="one of them"),
        pytest.param("1.36", "PodGroup", {"v0"}, id="1.36: one of them in any case"),
    ],
)
async def test_a_group_goes_as_its_disruption_mode_says(
    release: str, mode: str, gone: set[str]
) -> None:
    victim = group("v", min_count=2, priority=5, disruption_mode=mode)
    harness = harness_of(victim, release=release)
    harness.put(member("v0", "v", cpu="2", node="n", priority=5))
    harness.put(member("v1", "v", cpu="1", node="m", priority=5))
    harness.put(pod("mighty", cpu="1", node="m", priority=1_000))
    harness.put(pod("p", cpu="2", priority=100))
    await harness.core.step()
    if release == "1.37":
        assert f"preempting {len(gone)} victims" in harness.cluster.conditions["default/p"].message
    await harness.until_idle()
    assert victims(harness) == gone
    assert harness.placements()["p"] == "n"


@pytest.mark.parametrize("mode", ["PodGroup", "Pod"])
async def test_the_priority_of_a_unit_is_that_of_the_group(mode: str) -> None:
    harness = harness_of(group("v", min_count=1, priority=200, disruption_mode=mode))
    harness.put(member("v0", "v", cpu="2", node="n", priority=5))
    harness.put(pod("mighty", cpu="2", node="m", priority=1_000), pod("p", cpu="1", priority=100))
    await harness.pass_time(3)
    assert not victims(harness)


async def test_a_group_of_lower_priority_than_its_pods_may_go() -> None:
    harness = harness_of(group("v", min_count=1, priority=5, disruption_mode="PodGroup"))
    harness.put(member("v0", "v", cpu="2", node="n", priority=500))
    harness.put(pod("mighty", cpu="2", node="m", priority=1_000), pod("p", cpu="1", priority=100))
    await harness.pass_time(3)
    assert victims(harness) == {"v0"}


async def test_of_equal_priority_single_pods_go_before_groups() -> None:
    harness = harness_of(group("v", min_count=1, priority=5, disruption_mode="PodGroup"))
    harness.put(member("v0", "v", cpu="1", node="n", priority=5, started="2026-01-01T00:01:00Z"))
    harness.put(pod("alone", cpu="1", node="n", priority=5, started="2026-01-01T00:00:00Z"))
    harness.put(pod("mighty", cpu="2", node="m", priority=1_000), pod("p", cpu="1", priority=100))
    await harness.until_idle()
    assert victims(harness) == {"alone"}


async def test_the_node_where_no_group_must_go_is_better() -> None:
    harness = harness_of(group("v", min_count=2, priority=5, disruption_mode="PodGroup"))
    harness.put(*(member(f"v{i}", "v", cpu="1", node="n", priority=5) for i in range(2)))
    harness.put(pod("alone", cpu="2", node="m", priority=5), pod("p", cpu="2", priority=100))
    await harness.until_idle()
    assert victims(harness) == {"alone"}


async def test_budgets_count_for_all_pods_of_a_unit() -> None:
    harness = harness_of(group("v", min_count=2, priority=5, disruption_mode="PodGroup"))
    harness.put(disruption_budget(selects=selector({"app": "kept"})))
    harness.put(member("v0", "v", cpu="2", node="n", priority=5))
    harness.put(member("v1", "v", cpu="1", node="m", priority=5, labels={"app": "kept"}))
    harness.put(pod("mighty", cpu="1", node="m", priority=1_000), pod("p", cpu="2", priority=100))
    await harness.until_idle()
    assert victims(harness) == {"v0", "v1"}
    found = {
        (sample.name, sample.labels.get("preemptor")): sample.value
        for family in harness.metrics.group_preemption.collect()
        for sample in family.samples
    }
    assert found["scheduler_preemption_pdb_violations_total", "pod"] == 1
    assert found["scheduler_preemption_workload_disruptions_sum", "pod"] == 1
    assert found["scheduler_preemption_evaluation_duration_seconds_count", "pod"] == 1
