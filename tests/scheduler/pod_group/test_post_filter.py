"""Groups that have pods evicted through PodGroupPostFilter (1.37 spec N9, N16.4)."""

import asyncio
from typing import ClassVar

import pytest

from berth.kube.objects.meta import Condition
from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.interface import (
    PodGroupAttempt,
    PodGroupPostFilterPlugin,
    PodGroupPostFilterResult,
)
from berth.scheduler.framework.status import Status
from berth_plugins.registry import IN_TREE
from tests.builders import (
    disruption_budget,
    node,
    pod,
    pod_anti_affinity,
    pod_term,
    selector,
    spread,
)
from tests.harness import Harness, RecordedEvent
from tests.scheduler.pod_group.building import (
    group,
    harness_of_entities,
    lesser,
    member,
    members,
    told,
    told_of_group,
)

TOPOLOGY = "TopologyAwareWorkloadScheduling"
PREFIX = "pod group preemption: "
NO_VICTIMS = f"{PREFIX}No preemption victims found for incoming preemptor"
EVICTED = "Preempted by podgroup uid-g on node cluster"


def metric(harness: Harness, name: str, **labels: str) -> float:
    for family in harness.metrics.group_preemption.collect():
        for sample in family.samples:
            if sample.name == f"scheduler_{name}" and sample.labels == labels:
                return sample.value
    return 0.0


def victims(harness: Harness) -> list[str]:
    return [
        event.pod.removeprefix("default/")
        for event in harness.cluster.events
        if event.reason == "Preempted"
    ]


async def test_a_group_takes_the_room_of_pods_of_lower_priority() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="4"), group(min_count=3, priority=100))
    harness.put(*lesser("low0", "low1", "low2"))
    harness.put(*members("a", "b", "c", cpu="1", priority=100))
    await harness.until_idle()
    assert told_of_group(harness) == ("True", "Scheduled", "")
    assert sorted(harness.placements()) == ["a", "b", "c", "low0"]
    assert [event for event in harness.cluster.events if event.reason == "Preempted"] == [
        RecordedEvent("default/low1", "Normal", "Preempted", EVICTED),
        RecordedEvent("default/low2", "Normal", "Preempted", EVICTED),
    ]
    assert metric(harness, "workload_preemption_attempts_total", result="Success") == 1
    assert metric(harness, "workload_preemption_victims_sum") == 2
    assert metric(harness, "preemption_workload_disruptions_sum", preemptor="podgroup") == 0
    labels = {"preemptor": "podgroup", "result": "Success"}
    assert metric(harness, "preemption_evaluation_duration_seconds_count", **labels) == 1
    labels["result"] = "success"
    assert metric(harness, "preemption_execution_duration_seconds_count", **labels) == 1
    assert not harness.registry.get_sample_value("scheduler_preemption_victims_count")


async def test_what_is_told_while_victims_leave() -> None:
    harness = harness_of_entities()
    harness.cluster.lets_victims_linger = True
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100), *lesser("low"))
    harness.put(member("a", cpu="1", priority=100))
    await harness.core.step()
    refused = "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
    found = f"{PREFIX}found a placement for podgroup, preempting 1 victims"
    assert told_of_group(harness) == (
        "False",
        "Unschedulable",
        f"pod group is unschedulable, {refused}, {found}",
    )
    assert told(harness, "a") == "0/1 nodes are available: 1 Insufficient cpu."
    assert [each.name for each in harness.queue.nominator.nominated_pods()["n"]] == ["a"]
    assert harness.queue.sub_queues.pending_counts()["unschedulable"] == 1

    await harness.pass_time(5)  # it tries again, and evicts nobody else
    assert victims(harness) == ["low"]
    assert told_of_group(harness)[2] == (
        f"pod group is unschedulable, {refused}, {PREFIX}ongoing preemption on nominated nodes"
    )
    assert harness.cluster.pods["default/a"].status.nominated_node_name == "n"

    harness.delete(harness.cluster.pods["default/low"])
    await harness.pass_time(5)
    assert set(harness.placements()) == {"a"}


async def test_every_pod_that_has_a_place_is_nominated_to_it() -> None:
    harness = harness_of_entities()
    harness.cluster.lets_victims_linger = True
    harness.put(node("n", cpu="2"), node("m", cpu="1"), group(min_count=3, priority=100))
    harness.put(*lesser("low0", "low1"), *members("a", "b", "c", cpu="1", priority=100))
    await harness.core.step()
    nominated = harness.queue.nominator.nominated_pods()
    assert [sorted(each.name for each in nominated[name]) for name in "mn"] in (
        [["a"], ["b", "c"]],
        [["b"], ["a", "c"]],
        [["c"], ["a", "b"]],
    )


@pytest.mark.parametrize(
    ("mode", "evicted"),
    [("PodGroup", {"v0", "v1", "v2", "v3"}), ("Pod", {"v3"})],
    ids=["as a whole", "pod by pod"],
)
async def test_a_group_is_evicted_as_its_disruption_mode_says(mode: str, evicted: set[str]) -> None:
    harness = harness_of_entities()
    names = ["v0", "v1", "v2", "v3"]
    harness.put(*(node(f"n{number}", cpu="1") for number in range(4)))
    harness.put(group("v", min_count=4, priority=5, disruption_mode=mode))
    for number, name in enumerate(names):
        started = f"2026-01-01T00:0{number}:00Z"
        harness.put(member(name, "v", cpu="1", node=f"n{number}", priority=5, started=started))
    harness.put(group(min_count=1, priority=100), member("a", cpu="1", priority=100))
    await harness.core.schedule_next()
    host = harness.queue.nominator.nominated_node(harness.cluster.pods["default/a"].metadata.uid)
    await harness.until_idle()
    gone = {*names} - harness.placements().keys()
    assert len(gone) == len(evicted)
    assert "a" in harness.placements()
    assert harness.placements()["a"] == host
    disruptions = metric(harness, "preemption_workload_disruptions_sum", preemptor="podgroup")
    assert disruptions == (1 if mode == "PodGroup" else 0)


@pytest.mark.parametrize("mode", ["PodGroup", "Pod"], ids=["as a whole", "pod by pod"])
async def test_the_priority_of_pods_is_that_of_their_group(mode: str) -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="1"), group("v", min_count=1, priority=200, disruption_mode=mode))
    harness.put(member("v0", "v", cpu="1", node="n", priority=0))
    harness.put(group(min_count=1, priority=100), member("a", cpu="1", priority=100))
    await harness.pass_time(3)
    assert set(harness.placements()) == {"v0"}
    assert told_of_group(harness)[2].endswith(NO_VICTIMS)


@pytest.mark.parametrize(
    ("gates", "policies"),
    [
        pytest.param((), ("Never", "Never", None), id="the pods never preempt"),
        pytest.param(
            ("PodGroupPreemptionPolicy",), ("Never", "Never", "Never"), id="the group never does"
        ),
    ],
)
async def test_a_group_that_never_preempts(
    gates: tuple[str, ...], policies: tuple[str | None, ...]
) -> None:
    *of_pods, of_group = policies
    harness = harness_of_entities(*gates)
    harness.put(node("n", cpu="2"), *lesser("low0", "low1"))
    harness.put(group(min_count=2, priority=100, preemption_policy=of_group))
    for name, policy in zip("ab", of_pods, strict=True):
        harness.put(member(name, cpu="1", priority=100, preemption_policy=policy))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["low0", "low1"]
    assert told_of_group(harness)[2].endswith(
        f"{PREFIX}not eligible due to preemptionPolicy=Never."
    )


async def test_no_victims_for_a_group_that_has_no_room_even_so() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="3"), group(min_count=3, priority=100), *lesser("low0", "low1"))
    harness.put(pod("mighty", cpu="1", node="n", priority=1_000))
    harness.put(*members("a", "b", "c", cpu="1", priority=100))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["low0", "low1", "mighty"]
    trial = "pod group is unschedulable, minCount (3) cannot be satisfied: {} scheduled, {}"
    assert told_of_group(harness)[2] == (
        f"{trial.format(0, '2 remaining')}, {PREFIX}{trial.format(2, '0 remaining')}"
    )
    assert not len(harness.queue.nominator)


async def test_as_many_pods_as_possible_get_room() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="4"), group(min_count=2, priority=100))
    harness.put(*lesser("low0", "low1", "low2", "low3"))
    harness.put(*members("a", "b", "c", cpu="1", priority=100))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["a", "b", "c", "low0"]


async def test_pods_of_the_group_that_run_are_no_victims() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="1"), group(min_count=2, priority=100))
    harness.put(member("a", cpu="1", node="n", priority=100), member("b", cpu="1", priority=100))
    await harness.pass_time(3)
    assert set(harness.placements()) == {"a"}


async def test_budgets_are_kept_if_others_can_go() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="3"), group(min_count=1, priority=100))
    harness.put(disruption_budget(selects=selector({"app": "kept"})))
    harness.put(pod("kept", cpu="1", node="n", priority=0, labels={"app": "kept"}))
    harness.put(
        pod("other", cpu="1", node="n", priority=50), pod("x", cpu="1", node="n", priority=99)
    )
    harness.put(member("a", cpu="1", priority=100))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["a", "kept", "x"]
    assert metric(harness, "preemption_pdb_violations_total", preemptor="podgroup") == 0


async def test_a_budget_that_must_break_is_counted() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100))
    harness.put(disruption_budget(selects=selector({"app": "kept"})))
    harness.put(pod("kept", cpu="1", node="n", priority=0, labels={"app": "kept"}))
    harness.put(member("a", cpu="1", priority=100))
    await harness.until_idle()
    assert set(harness.placements()) == {"a"}
    assert metric(harness, "preemption_pdb_violations_total", preemptor="podgroup") == 1


async def test_the_placement_is_not_looked_for_again_to_spare_a_pod() -> None:
    """On the node that the trial takes, the victim stays though another node has room, too."""
    harness = harness_of_entities()
    harness.put(node("n", cpu="1"), node("m", cpu="2"), group(min_count=1, priority=100))
    harness.put(*lesser("low0", on="n"), *lesser("low1", "low2", on="m"))
    harness.put(member("a", cpu="1", priority=100))
    await harness.until_idle()
    assert len(victims(harness)) == 1


async def test_victims_that_exclude_the_group_go_though_there_is_room() -> None:
    harness = harness_of_entities()
    labels = {"app": "x"}
    apart = pod_anti_affinity(required=[pod_term(labels)])
    harness.put(node("n", cpu="4"), group(min_count=1, priority=100))
    harness.put(pod("apart", cpu="1", node="n", priority=1, affinity=apart))
    harness.put(*lesser("low0", "low1"))
    harness.put(member("a", cpu="1", priority=100, labels=labels))
    await harness.until_idle()
    assert victims(harness) == ["apart"]
    assert sorted(harness.placements()) == ["a", "low0", "low1"]


async def test_a_group_with_a_topology_preempts_in_one_of_its_placements() -> None:
    harness = harness_of_entities(TOPOLOGY)
    for name in "ab":
        harness.put(*(node(f"{name}{i}", cpu="1", labels={"rack": name}) for i in range(2)))
        harness.put(*lesser(f"low-{name}", on=f"{name}0"))
    harness.put(pod("mighty", cpu="1", node="a1", priority=1_000))
    harness.put(group(min_count=2, priority=100, topology="rack"))
    harness.put(*members("x", "y", cpu="1", priority=100))
    await harness.until_idle()
    assert {harness.placements()[name][0] for name in "xy"} == {"b"}
    assert victims(harness) == ["low-b"]


async def test_pods_of_groups_do_not_preempt_alone() -> None:
    harness = harness_of_entities()
    harness.put(node("n", cpu="1"), *lesser("low"), group(min_count=1))
    harness.put(member("a", cpu="1"))
    await harness.pass_time(3)
    assert told(harness, "a") == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize("point", ["podGroupPostFilter", "multiPoint"])
async def test_without_the_plugin_groups_do_not_preempt(point: str) -> None:
    off = {"plugins": {point: {"disabled": [{"name": "DefaultPreemption"}]}}}
    harness = harness_of_entities(profiles=[off])
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100), *lesser("low"))
    harness.put(member("a", cpu="1", priority=100))
    await harness.pass_time(3)
    assert told_of_group(harness)[2] == (
        "pod group is unschedulable, minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
    )


async def test_victims_that_linger_are_known_after_a_restart() -> None:
    harness = harness_of_entities()
    left = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = pod(
        "low", cpu="1", node="n", priority=10, deleted="2026-01-01T00:00:00Z", conditions=[left]
    )
    harness.put(node("n", cpu="1"), node("m", cpu="1"), group(min_count=1, priority=100))
    harness.put(leaving, *lesser("other", on="m"))
    harness.put(member("a", cpu="1", nominated="n", priority=100))
    await harness.pass_time(5)
    assert told_of_group(harness)[2].endswith(f"{PREFIX}ongoing preemption on nominated nodes")
    assert "other" in harness.placements()


class Says(PodGroupPostFilterPlugin):
    """Says what it is told to."""

    NAME = "Says"
    status: ClassVar[Status | None] = None

    async def pod_group_post_filter(
        self, group: PodGroup, attempt: PodGroupAttempt
    ) -> PodGroupPostFilterResult:
        return PodGroupPostFilterResult(self.status, "made room")


@pytest.mark.parametrize(
    ("status", "told_then", "evicts"),
    [
        pytest.param(None, ", made room", False, id="it has made room"),
        pytest.param(Status.unresolvable("hopeless"), ", hopeless", False, id="nothing helps"),
        pytest.param(
            Status.unschedulable("not I"),
            f", {PREFIX}found a placement for podgroup, preempting 1 victims",
            True,
            id="it cannot help",
        ),
        pytest.param(Status.error("broken"), "broken", False, id="it fails"),
    ],
)
async def test_plugins_are_asked_until_one_helps(
    status: Status | None, told_then: str, evicts: bool
) -> None:
    said = type("Says", (Says,), {"status": status})
    names = ("Says", "DefaultPreemption")
    off = [{"name": "DefaultPreemption"}]
    first = {"enabled": [{"name": name} for name in names], "disabled": off}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {"GenericWorkload": True},
        "profiles": [{"plugins": {"podGroupPostFilter": first}}],
    }
    harness = Harness(config=config, registry={**IN_TREE, "Says": said})
    harness.put(node("n", cpu="1"), group(min_count=1, priority=100), *lesser("low"))
    harness.put(member("a", cpu="1", priority=100))
    await harness.core.schedule_next()
    assert told_of_group(harness)[2].endswith(told_then)
    assert (not harness.preemptions.is_idle) is evicts


@pytest.mark.parametrize("what", ["the group", "a pod of it"])
async def test_nobody_is_evicted_for_what_is_deleted_during_the_search(what: str) -> None:
    harness = harness_of_entities()
    labels = {"app": "x"}
    apart = pod_anti_affinity(required=[pod_term(labels)])
    the_group = group(min_count=2, priority=100)
    pods = members("a", "b", cpu="1", priority=100, labels=labels)
    harness.put(node("n", cpu="4"), pod("low", cpu="1", node="n", priority=1, affinity=apart))
    harness.put(the_group, *pods)
    attempt = asyncio.create_task(harness.core.schedule_next(), name="attempt")
    await asyncio.sleep(0)
    assert not attempt.done(), "nothing was awaited"
    harness.delete(the_group if what == "the group" else pods[0])
    await attempt
    harness.core.check_invariants()
    assert harness.preemptions.is_idle


async def test_a_group_that_spreads_does_not_block_itself_by_its_nominations() -> None:
    harness = harness_of_entities()
    labels = {"app": "x"}
    for name in "nm":
        harness.put(node(name, cpu="2", labels={"zone": name}))
        harness.put(*lesser(f"low-{name}0", f"low-{name}1", on=name))
    harness.put(group(min_count=4, priority=100))
    apart = [spread("zone", selector=selector(labels))]
    harness.put(*members("a", "b", "c", "d", cpu="1", priority=100, labels=labels, spread=apart))
    await harness.until_idle()
    assert len(harness.placements()) == 4
