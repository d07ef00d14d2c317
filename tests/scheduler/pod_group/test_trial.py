"""Equal pods of a group are tried at the cost of few; each gets what it would get by itself."""

import random
from contextlib import ExitStack

from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.pod_group.trial import Member, PodGroupTrial, undo
from berth.scheduler.signatures import signature_profiles
from tests.builders import node
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness, member, members
from tests.scheduler.pod_group.test_properties import fields_of, nodes_of, running_on, state_of


def taken_from(harness: Harness) -> list[QueuedPodInfo]:
    first = harness.queue.pop()
    assert first is not None
    others = [harness.queue.pop_specific_pod(key) for key in list(harness.cluster.pods)]
    return [first, *(other for other in others if other is not None)]


def trial_of(harness: Harness, taken: list[QueuedPodInfo]) -> list[str]:
    """Try and undo a group; return the node of each pod, empty if it had none."""
    harness.core.outside.rng.seed(1)
    (profile,) = harness.scheduler.profiles.values()
    tried = [Member(each, profile, 0.0) for each in taken]
    with ExitStack() as nominations:
        PodGroupTrial(harness.scheduler).run(tried, nominations, may_preempt=False)
        hosts = [each.host for each in tried]
        undo(tried)
    return hosts


def test_a_group_that_is_tried_again_gets_the_same_nodes_and_leaves_no_trace() -> None:
    placed = 0
    for seed in range(40):
        rng, harness = random.Random(seed), group_harness()
        nodes = nodes_of(rng)
        fields = fields_of(rng)
        harness.put(*nodes, *running_on(nodes, rng), group())
        harness.put(*(member(f"m{number}", **fields) for number in range(6)))
        taken = taken_from(harness)
        before = state_of(harness)
        hosts = trial_of(harness, taken)
        assert state_of(harness) == before, f"seed {seed}"
        assert trial_of(harness, taken) == hosts, f"seed {seed}"
        harness.cache.check_invariants()
        harness.cache.table.pod_counters.check_invariants()
        placed += sum(map(bool, hosts))
    assert placed > 40


async def test_equal_pods_that_fit_nowhere_are_refused_together_until_one_is_placed() -> None:
    harness = group_harness()
    large = members("a", "b", "c", cpu="4", priority=9)
    harness.put(node(cpu="3"), group(min_count=7), *large)
    harness.put(*members("d", "e", cpu="4", priority=5))
    harness.put(member("small", cpu="1", priority=7), member("f", cpu="4", priority=5))
    await harness.until_idle()

    (profile,) = harness.scheduler.profiles.values()
    # Once for a, b and c, and once for those that come after small has its node.
    assert profile.evaluations["PostFilter"]["DefaultPreemption"] == 2
    records = {each.pod: each for each in harness.scheduler.decisions.all()}
    assert len(records) == 7
    assert {records[each.key].message for each in large} == {records["default/a"].message}
    assert records["default/a"].message.startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert records["default/f"].attempt == 1


async def test_gangs_do_not_keep_other_pods_from_failing_by_signature() -> None:
    harness = group_harness()

    assert signature_profiles(harness.scheduler.profiles).keys() == {"default-scheduler"}
