"""DefaultPreemption: whom it would evict for a pod, and what it says when that is of no help."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import QueueingHint
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scalar import ScalarFilter
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.outcome import CLEAR, KEEP, To
from berth_plugins.default_preemption.plugin import (
    STILL_EVICTING,
    DefaultPreemption,
    DefaultPreemptionArgs,
    after_pod_deletion,
)
from berth_plugins.registry import IN_TREE
from tests.builders import disruption_budget, node, pod, selector
from tests.preempting import World, candidates

WEB = selector({"app": "web"})


def config(**args: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}],
    }


def test_the_fewest_and_least_pods_go() -> None:
    world = World(
        [node("n1", cpu=4), node("n2", cpu=4)],
        [
            pod("a", cpu=2, priority=1, node="n1"),
            pod("b", cpu=2, priority=2, node="n1"),
            pod("c", cpu=1, priority=0, node="n2"),
            pod("d", cpu=3, priority=3, node="n2"),
        ],
    )
    decision = world.attempt(pod(cpu=2, priority=9))

    assert decision.post_filter is not None
    found = decision.post_filter.preemption
    assert candidates(found) == {"n1": (["a"], 0), "n2": (["d"], 0)}
    assert (decision.nomination, decision.post_filter.status) == (To("n1"), None)
    assert decision.message == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for"
        " pod on node n1, preempting 1 victims"
    )


def test_older_pods_are_spared() -> None:
    world = World(
        [node("n1", cpu=2)],
        [
            pod("new", cpu=1, node="n1", started="2026-01-02T00:00:00Z"),
            pod("unstarted", cpu=1, node="n1"),
        ],
    )
    found = world.attempt(pod(cpu=1, priority=1)).post_filter
    assert found is not None
    assert candidates(found.preemption) == {"n1": (["unstarted"], 0)}


def test_budgets_are_kept_where_others_can_go() -> None:
    world = World(
        [node("n1", cpu=2)],
        [
            pod("web", cpu=1, node="n1", labels={"app": "web"}),
            pod("batch", cpu=1, priority=5, node="n1", labels={"app": "batch"}),
        ],
        budgets=[disruption_budget(selects=WEB)],
    )
    found = world.attempt(pod(cpu=1, priority=9)).post_filter
    assert found is not None
    assert candidates(found.preemption) == {"n1": (["batch"], 0)}

    found = world.attempt(pod(cpu=2, priority=9)).post_filter
    assert found is not None
    assert candidates(found.preemption) == {"n1": (["batch", "web"], 1)}


def test_room_for_nominated_pods_is_left_alone() -> None:
    world = World(
        [node("n1", cpu=2), node("n2", cpu=2)],
        [pod("a", cpu=1, node="n1"), pod("b", cpu=2, node="n2")],
        nominated={"n1": [pod("other", cpu=1, priority=9)]},
    )
    found = world.attempt(pod("new", cpu=1, priority=9)).post_filter
    assert found is not None
    assert candidates(found.preemption) == {"n1": (["a"], 0), "n2": (["b"], 0)}

    found = world.attempt(pod("new", cpu=2, priority=9)).post_filter
    assert found is not None
    assert candidates(found.preemption) == {"n2": (["b"], 0)}


def test_a_nomination_of_lower_priority_does_not_count() -> None:
    world = World(
        [node("n1", cpu=2)],
        [pod("a", cpu=2, node="n1")],
        nominated={"n1": [pod("other", cpu=1, priority=8)]},
    )
    found = world.attempt(pod("new", cpu=2, priority=9)).post_filter
    assert found is not None
    assert candidates(found.preemption) == {"n1": (["a"], 0)}


@pytest.mark.parametrize(
    ("preemptor", "says"),
    [
        pytest.param(
            pod(cpu=1, priority=9, preemption_policy="Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="never",
        ),
        pytest.param(
            pod(cpu=1, priority=1),
            "0/3 nodes are available: 1 Preemption is not helpful for scheduling,"
            " 2 No preemption victims found for incoming pod.",
            id="nobody is less important",
        ),
        pytest.param(
            pod(cpu=2, priority=9),
            "0/3 nodes are available: 1 Insufficient cpu,"
            " 1 No preemption victims found for incoming pod,"
            " 1 Preemption is not helpful for scheduling.",
            id="evicting all lesser pods is not enough",
        ),
        pytest.param(
            pod(cpu=9, priority=9),
            "0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            id="the pod is too large for any node",
        ),
    ],
)
def test_what_is_said_when_nothing_helps(preemptor: Pod, says: str) -> None:
    world = World(
        [node("n1", cpu=2), node("n2", cpu=2), node("cordoned", unschedulable=True)],
        [
            pod("high", cpu=2, priority=10, node="n1"),
            pod("low", cpu=1, priority=1, node="n2"),
            pod("middle", cpu=1, priority=10, node="n2"),
        ],
    )
    decision = world.attempt(preemptor)
    assert decision.post_filter_message == f"no new claims to deallocate, preemption: {says}"


def test_an_ineligible_pod_keeps_its_nomination() -> None:
    world = World([node("n1", cpu=1)], [pod("low", cpu=1, node="n1")])
    assert world.attempt(pod(cpu=1, priority=9, preemption_policy="Never")).nomination == KEEP
    assert world.attempt(pod(cpu=1)).nomination == CLEAR


def test_a_pod_that_is_gone_is_an_error() -> None:
    world = World([node("n1", cpu=1)], [pod("low", cpu=1, node="n1")])
    decision = world.attempt(pod(cpu=1, priority=9), is_known=False)

    assert decision.post_filter is not None
    assert decision.post_filter.status == Status.error('preemption: pod "p" not found')
    assert decision.nomination == KEEP


class Picky(ScalarFilter):
    """Lets no pod beside others, and fails where nobody is."""

    NAME = "Picky"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        if not node_info.pods:
            return Status.error(f"nobody on {node_info.name[0]}")
        return Status.unschedulable("crowded")


FAILED = 'running "Picky" filter plugin: nobody on'


class Moody(ScalarFilter):
    """Refuses whole clusters and accepts any part of one."""

    NAME = "Moody"

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        whole = "low" in node_info.name and state.get("asked") is None
        state.write("asked", "once")
        return Status.unschedulable("not today") if whole else None


def with_plugin(kind: type[ScalarFilter], names: Sequence[str]) -> World:
    return World(
        [node(name) for name in names],
        [pod(f"on-{name}", node=name) for name in names],
        registry={**IN_TREE, kind.NAME: kind},
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": kind.NAME}]}}}],
        },
    )


@pytest.mark.parametrize(
    ("names", "says"),
    [
        pytest.param(["a1", "a2"], {f"{FAILED} a"}, id="the same error twice is told once"),
        pytest.param(
            ["a1", "b1"],
            {f"[{FAILED} a, {FAILED} b]", f"[{FAILED} b, {FAILED} a]"},
            id="different ones are listed, from a random node on",
        ),
    ],
)
def test_errors_are_told_when_no_candidate_is_left(names: list[str], says: set[str]) -> None:
    decision = with_plugin(Picky, names).attempt(pod(priority=9))
    assert decision.post_filter is not None
    status = decision.post_filter.status
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.removeprefix("preemption: ") in says
    assert decision.nomination == KEEP


def test_a_node_that_needs_no_victim_after_all_is_an_error() -> None:
    decision = with_plugin(Moody, ["low"]).attempt(pod(priority=9))
    assert decision.post_filter is not None
    assert decision.post_filter.status == Status.error(
        'preemption: expected at least one victim pod on node "low"'
    )


def crowd(count: int, *, guarded: int = 0, **args: int) -> World:
    """So many nodes with a pod each, of which the first *guarded* have a broken budget."""
    return World(
        [node(f"n{i}", cpu=1) for i in range(count)],
        [
            pod(f"p{i}", cpu=1, node=f"n{i}", labels={"app": "web" if i < guarded else "batch"})
            for i in range(count)
        ],
        budgets=[disruption_budget(selects=WEB)],
        config=config(**args),
    )


@pytest.mark.parametrize(
    ("world", "tried"),
    [
        pytest.param(crowd(20), 20, id="a hundred are enough by default"),
        pytest.param(
            crowd(20, minCandidateNodesAbsolute=5), 5, id="five are, if that is more than 10 %"
        ),
        pytest.param(
            crowd(40, minCandidateNodesAbsolute=2, minCandidateNodesPercentage=25),
            10,
            id="a quarter of the nodes, if that is more than two",
        ),
        pytest.param(
            crowd(9, minCandidateNodesAbsolute=0, minCandidateNodesPercentage=10),
            0,
            id="ten percent of nine are none",
        ),
    ],
)
def test_how_many_candidates_are_enough(world: World, tried: int) -> None:
    found = world.attempt(pod("new", cpu=1, priority=9)).post_filter
    assert found is not None
    assert len(candidates(found.preemption)) == tried


def test_the_search_starts_anywhere() -> None:
    chosen = set()
    for seed in range(10):
        world = crowd(5, minCandidateNodesAbsolute=1)
        world.seed = seed
        chosen.add(world.attempt(pod("new", cpu=1, priority=9)).nomination)
    assert len(chosen) > 1


@pytest.mark.parametrize("seed", range(5))
def test_the_search_goes_on_until_a_candidate_breaks_no_budget(seed: int) -> None:
    world = crowd(8, guarded=7, minCandidateNodesAbsolute=2)
    world.seed = seed
    found = world.attempt(pod("new", cpu=1, priority=9)).post_filter
    assert found is not None
    broken = [violations for _, violations in candidates(found.preemption).values()]

    assert broken[0] == 0
    assert set(broken[1:]) <= {1}
    assert len(broken) <= 3
    assert found.nominated_node == "n7"


def test_a_pod_waits_while_its_victims_leave() -> None:
    handle = Handle(NodeTable(), is_preempting=lambda uid: uid == "busy")
    plugin = DefaultPreemption(None, handle)
    assert plugin.pre_enqueue(PodInfo(pod(uid="busy"))) == STILL_EVICTING
    assert plugin.pre_enqueue(PodInfo(pod(uid="idle"))) is None


def test_deletions_wake_gated_pods_only() -> None:
    assert after_pod_deletion(pod(), pod("low", node="n1"), None) is QueueingHint.SKIP


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({"minCandidateNodesPercentage": 101}, id="more than all nodes"),
        pytest.param({"minCandidateNodesPercentage": -1}, id="a negative share"),
        pytest.param({"minCandidateNodesAbsolute": -1}, id="a negative number"),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, id="none at all"
        ),
    ],
)
def test_args_that_make_no_sense(written: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="minCandidateNodes"):
        DefaultPreemptionArgs.model_validate(written)
