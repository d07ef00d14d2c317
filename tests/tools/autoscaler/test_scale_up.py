"""Which group grows by how many nodes, and what pods are told that no group helps."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod import Pod
from berth.runtime.clock import rfc3339
from berth.runtime.duration import Duration
from berth.tools.autoscaler.actions import NotTriggered, ScaleUp
from berth.tools.autoscaler.backoff import Backoff
from berth.tools.autoscaler.node_groups import NodeGroup
from berth.tools.autoscaler.options import AutoscalingOptions
from tests.builders import node_affinity, pod, requirement, term, toleration
from tests.tools.autoscaler.planning import (
    NOW,
    group,
    member,
    plan,
    planner,
    running,
    scan,
    states,
    unschedulable,
    view,
)

GENERAL = group()
GPU_TAINT = {"key": "gpu", "effect": "NoSchedule"}


def ups(*objects: KubeStruct, groups: Sequence[NodeGroup] = (GENERAL,)) -> list[str]:
    seen = view(*objects)
    return [str(each) for each in scan(seen, states(seen, *groups)) if isinstance(each, ScaleUp)]


def pods(count: int, *, cpu: str = "1") -> list[Pod]:
    return [unschedulable(f"p{i}", cpu=cpu) for i in range(count)]


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        pytest.param([], [], id="nobody waits"),
        pytest.param(pods(1), ["{general 0->1 (max: 5)}"], id="the first node of a group"),
        pytest.param(pods(9), ["{general 0->3 (max: 5)}"], id="as few nodes as hold all"),
        pytest.param(pods(99), ["{general 0->5 (max: 5)}"], id="no more than the maximum"),
        pytest.param(pods(1, cpu="5"), [], id="no node is large enough"),
        pytest.param(
            [member("n"), *pods(4)], [], id="there is room on a node, which the scheduler will find"
        ),
        pytest.param(
            [member("n"), running("a", "n", cpu="3"), *pods(2)],
            ["{general 1->2 (max: 5)}"],
            id="one has room on a node, the other not",
        ),
        pytest.param(
            [*pods(1), *pods(1, cpu="5")][1:], [], id="who can never run does not add nodes"
        ),
        pytest.param(
            [unschedulable("a", cpu="5"), unschedulable("b")],
            ["{general 0->1 (max: 5)}"],
            id="who can run is helped, whoever else waits",
        ),
        pytest.param([pod("p", cpu="1", owner="web")], [], id="who was not tried does not count"),
        pytest.param(
            [unschedulable("p", nominated="n")], [], id="who waits for preemption does not count"
        ),
        pytest.param(
            [unschedulable("p", deleted="2026-01-01T00:00:00Z")], [], id="nor who is leaving"
        ),
        pytest.param([unschedulable("p", priority=-11)], [], id="nor who is expendable"),
        pytest.param(
            [unschedulable("p"), pod("gated", cpu="1", gates=["later"])],
            ["{general 0->1 (max: 5)}"],
            id="a pod with a scheduling gate adds nothing",
        ),
    ],
)
def test_as_many_nodes_as_help(objects: list[KubeStruct], wanted: list[str]) -> None:
    assert ups(*objects) == wanted


def test_upcoming_nodes_are_counted_on() -> None:
    seen = view(*pods(5))
    groups = states(seen, GENERAL, upcoming={"general": 1})
    (action,) = scan(seen, groups)
    assert isinstance(action, ScaleUp)
    assert (str(action), len(action.pods)) == ("{general 1->2 (max: 5)}", 1)

    groups = states(seen, GENERAL, upcoming={"general": 2})
    found = plan(seen, groups)
    assert (found.actions, len(found.scale_up.pending)) == ([], 5)


@pytest.mark.parametrize(
    ("asked", "grown"),
    [
        pytest.param({"node_selector": {"pool": "b"}}, "b", id="by node selector"),
        pytest.param(
            {"affinity": node_affinity(required=[term(requirement("pool", "In", "b"))])},
            "b",
            id="by affinity",
        ),
        pytest.param(
            {"node_selector": {"pool": "gpu"}, "tolerations": [toleration("gpu")]},
            "gpu",
            id="by toleration",
        ),
    ],
)
def test_the_group_that_fits_grows(asked: Mapping[str, Any], grown: str) -> None:
    groups = [
        group("a", labels={"pool": "a"}),
        group("b", labels={"pool": "b"}),
        group("gpu", labels={"pool": "gpu"}, taints=(GPU_TAINT,)),
    ]
    assert ups(unschedulable("p", **asked), groups=groups) == [f"{{{grown} 0->1 (max: 5)}}"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        pytest.param(AutoscalingOptions(max_nodes_total=3), 2, id="nodes of the whole cluster"),
        pytest.param(AutoscalingOptions(max_nodes_per_scaleup=3), 3, id="nodes of one scale-up"),
    ],
)
def test_limits(options: AutoscalingOptions, wanted: int) -> None:
    seen = view(member("n", cpu="100m"), *pods(40))
    actions = scan(seen, states(seen, group(max_size=99)), options=options)
    assert [action.delta for action in actions if isinstance(action, ScaleUp)] == [wanted]


def test_pods_may_have_to_be_of_some_age() -> None:
    young = AutoscalingOptions(new_pod_scale_up_delay=Duration.of(30.0))
    waiting = unschedulable("p")
    metadata = replace(waiting.metadata, creation_timestamp=rfc3339(NOW))
    seen = view(replace(waiting, metadata=metadata))
    assert scan(seen, states(seen, GENERAL), options=young, at=29.0) == []
    assert len(scan(seen, states(seen, GENERAL), options=young, at=30.0)) == 1


def whys(*objects: KubeStruct, groups: Sequence[NodeGroup], **options: Any) -> dict[str, str]:
    seen = view(*objects)
    actions = scan(seen, states(seen, *groups), options=AutoscalingOptions(**options))
    return {action.pod: action.why for action in actions if isinstance(action, NotTriggered)}


def test_why_no_group_helps() -> None:
    groups = [
        group("a"),
        group("b", cpu="2", taints=(GPU_TAINT,)),
        group("c", max_size=1),
        group("d", labels={"pool": "d"}),
    ]
    full = member("c-0", of="c", cpu="100m")
    waiting = unschedulable("p", cpu="8", node_selector={"pool": "d"})
    assert whys(full, waiting, groups=groups) == {
        "default/p": "1 Insufficient cpu, 1 max node group size reached,"
        " 1 node(s) didn't match Pod's node affinity/selector,"
        " 1 node(s) had untolerated taint(s)"
    }


def test_why_there_are_enough_nodes() -> None:
    full = member("n", cpu="100m")
    assert whys(full, unschedulable("p"), groups=[GENERAL], max_nodes_total=1) == {
        "default/p": "max total nodes in cluster reached"
    }


def test_a_group_that_failed_rests() -> None:
    seen = view(unschedulable("p"))
    (state,) = states(seen, GENERAL)
    resting = Backoff(300.0, until=300.0, since=0.0, code="outOfResource", message="none left")
    state = dataclasses.replace(state, backoff=resting)
    assert scan(seen, [state]) == [NotTriggered("default/p", "1 in backoff after failed scale-up")]


def test_the_same_question_is_not_asked_again() -> None:
    """A scan of a cluster in which nothing has changed costs no simulation."""
    used, asked = planner(), []
    simulation = used.scale_up.simulation

    class Counting:
        def answer(self, *args: object) -> object:
            asked.append(args)
            return simulation.answer(*args)  # type: ignore[arg-type]

        refusals = simulation.refusals

    used.scale_up.simulation = Counting()  # type: ignore[assignment]
    for at in range(3):
        seen = view(unschedulable("p", cpu="9"))
        (told,) = scan(seen, states(seen, GENERAL), by=used, at=10.0 * at)
        assert told == NotTriggered("default/p", "1 Insufficient cpu")
    first = len(asked)
    seen = view(unschedulable("p", cpu="9"), member("new"))
    scan(seen, states(seen, GENERAL), by=used, at=40.0)
    assert 0 < first < len(asked)
