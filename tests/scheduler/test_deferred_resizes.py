"""Pods that run preempt others on their node, to be resized there (1.37 spec N12.2)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from berth.kube.objects.meta import Condition
from berth.kube.objects.node import Node, NodePodPreemptionPolicy
from berth.kube.objects.pod import Pod, SchedulingGroup
from berth.runtime.clock import Clock
from berth.scheduler.core.scheduler_core import CoreJournal
from tests.builders import condition, container_status, disruption_budget, node, pod, selector
from tests.harness import Harness, RecordedEvent

GATE: Final = "InPlacePodVerticalScalingSchedulerPreemption"
DEFERRED: Final = condition("PodResizePending", reason="Deferred")
SCHEDULED: Final = condition("PodScheduled")
PREEMPTS: Final = (
    "preemption: found a potential placement for pod on node n1, preempting {} victims"
)


def new_harness(
    *,
    on: bool = True,
    gates: Mapping[str, bool] = {},
    journal: Callable[[Clock], CoreJournal] | None = None,
    **fields: Any,
) -> Harness:
    return Harness(
        journal=journal,
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": {GATE: on, **gates},
            **fields,
        },
    )


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def resized(
    name: str = "p",
    *,
    to: int,
    was: int = 1,
    node: str = "n1",
    priority: int = 9,
    conditions: Sequence[Condition] = (DEFERRED,),
    **fields: Any,
) -> Pod:
    """A pod that runs with *was* CPUs, and is to have *to*."""
    has = {"cpu": was}
    built = pod(
        name,
        cpu=to,
        node=node,
        priority=priority,
        phase="Running",
        conditions=(SCHEDULED, *conditions),
        **fields,
    )
    status = container_status(actuated=has, allocated=has)
    return replace(built, status=replace(built.status, container_statuses=(status,)))


def disabling(built: Node, *owners: str) -> Node:
    policy = NodePodPreemptionPolicy(disable_resize_preemption=owners)
    return replace(built, spec=replace(built.spec, pod_preemption_policy=policy))


def low(name: str, *, cpu: int = 1, on: str = "n1", priority: int = 1, **fields: Any) -> Pod:
    return pod(name, cpu=cpu, node=on, priority=priority, **fields)


def failures(harness: Harness) -> list[str]:
    return [event.note for event in harness.cluster.events if event.reason == "FailedScheduling"]


def waits(harness: Harness, name: str = "p") -> bool:
    return harness.queue.sub_queues.get(f"default/{name}") is not None


async def test_the_least_pods_of_its_node_go_and_others_stay(harness: Harness) -> None:
    p = resized(to=3)
    harness.put(node("n1", cpu=4), node("n2", cpu=8))
    harness.put(low("middle", priority=5), low("low", cpu=2), low("elsewhere", on="n2"), p)
    await harness.until_idle()

    assert sorted(harness.placements()) == ["elsewhere", "middle", "p"]
    note = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s)"
        f" [NodeName]. {PREEMPTS.format(1)}"
    )
    assert harness.cluster.events == [
        RecordedEvent("default/p", "Warning", "FailedScheduling", note),
        RecordedEvent(
            "default/low", "Normal", "Preempted", "Preempted by pod pod-default-p on node n1"
        ),
    ]
    # It runs as before, nominated to nothing; what it waits for is the kubelet.
    assert harness.cluster.pods["default/p"] is p
    assert waits(harness)
    assert not len(harness.queue.nominator)

    harness.put(replace(p, status=replace(p.status, conditions=(SCHEDULED,))))
    await harness.until_idle()
    assert not waits(harness)


@pytest.mark.parametrize(
    ("nodes", "pods", "note"),
    [
        pytest.param(
            [node("n1", cpu=4)],
            [low("other", cpu=3, priority=9), resized(to=2)],
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1"
            " No preemption victims found for incoming pod.",
            id="none is of lower priority",
        ),
        pytest.param(
            [node("n1", cpu=4)],
            [low("other", cpu=3), resized(to=2, preemption_policy="Never")],
            "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to"
            " preemptionPolicy=Never.",
            id="it preempts nobody",
        ),
        pytest.param(
            [disabling(node("n1", cpu=4), "example.com/autoscaler")],
            [low("other", cpu=3), resized(to=2)],
            "0/1 nodes are available: 1 node had resize preemption disabled. preemption: 0/1 nodes"
            " are available: 1 Preemption is not helpful for scheduling.",
            id="the node disables it",
        ),
        pytest.param(
            [node("n1", cpu=4)],
            [low("other", cpu=3), resized(to=5)],
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1"
            " Preemption is not helpful for scheduling.",
            id="the node has not as much in all",
        ),
        pytest.param(
            [node("n1", cpu=4)], [low("other", cpu=2), resized(to=2)], None, id="there is room"
        ),
        pytest.param(
            [node("n1", cpu=4, pods=2)],
            [low("other", cpu=2), resized(to=2)],
            None,
            id="there is room, but for no other pod",
        ),
        pytest.param(
            [node("n1", cpu=4)],
            [low("other", cpu=4), resized(to=1, was=1)],
            f"0/1 nodes are available: 1 Insufficient cpu. {PREEMPTS.format(1)}",
            id="it asks for no more than it has, where too much is promised",
        ),
    ],
)
async def test_nobody_goes(
    nodes: Sequence[Node], pods: Sequence[Pod], note: str | None, harness: Harness
) -> None:
    harness.put(*nodes, *pods)
    await harness.until_idle()

    assert failures(harness) == ([] if note is None else [note])
    is_preempting = note is not None and "found a potential" in note
    assert sorted(harness.placements()) == (["p"] if is_preempting else ["other", "p"])
    assert waits(harness), "until the kubelet has resized it"


@pytest.mark.parametrize(
    ("on", "conditions", "is_queued"),
    [
        pytest.param(True, [DEFERRED], True, id="deferred"),
        pytest.param(False, [DEFERRED], False, id="deferred, without the gate"),
        pytest.param(
            True, [condition("PodResizePending", reason="Infeasible")], False, id="infeasible"
        ),
        pytest.param(True, [condition("PodResizeInProgress")], False, id="in progress"),
        pytest.param(
            True,
            [DEFERRED, condition("PodResizePreemptionDisabled")],
            False,
            id="deferred, and kept from preempting",
        ),
        pytest.param(
            True,
            [DEFERRED, condition("PodResizePreemptionDisabled", "False")],
            True,
            id="deferred, and kept from preempting no more",
        ),
        pytest.param(True, [], False, id="not resized"),
    ],
)
async def test_who_is_queued(on: bool, conditions: list[Condition], is_queued: bool) -> None:
    seen, changed, missed, gone = (new_harness(on=on) for _ in range(4))
    p = resized(to=2, conditions=conditions)
    for harness, pods in (
        (seen, [p]),
        (changed, [resized(to=2, conditions=()), p]),
        (missed, [pod("p", gates=["wait"]), p]),
        (gone, [p, resized(to=2, conditions=())]),
    ):
        harness.put(node("n1", cpu=1), low("other", cpu=0, priority=99), *pods)
    assert [waits(each) for each in (seen, changed, missed)] == [is_queued] * 3
    assert not waits(gone)

    seen.delete(p)
    await seen.until_idle()
    assert not waits(seen)


async def test_it_is_left_alone_where_the_plugin_is_disabled() -> None:
    disabled = {"multiPoint": {"disabled": [{"name": "DeferredPodScheduling"}]}}
    harness = new_harness(profiles=[{"plugins": disabled}])
    harness.put(node("n1", cpu=1), low("other"), resized(to=2))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["other", "p"]
    assert not waits(harness)


async def test_victims_that_leave_are_waited_for(harness: Harness) -> None:
    harness.cluster.lets_victims_linger = True
    others = [low("a", cpu=2), low("b", cpu=2, priority=2)]
    harness.put(node("n1", cpu=5), *others, resized(to=3))
    await harness.pass_time(20)
    assert failures(harness) == [
        f"0/1 nodes are available: 1 Insufficient cpu. {PREEMPTS.format(1)}"
    ], "it has its victim, and does not look for more"
    assert sorted(harness.placements()) == ["a", "b", "p"]

    harness.put(low("c", cpu=0))  # an event that it is not woken by
    await harness.pass_time(20)
    assert [event.pod for event in harness.cluster.events if event.reason == "Preempted"] == [
        "default/a"
    ]


async def test_a_restarted_scheduler_does_not_look_for_more_victims(harness: Harness) -> None:
    told = condition("DisruptionTarget", reason="PreemptionByScheduler")
    leaving = low("a", cpu=2, deleted="2026-01-01T00:00:00Z", conditions=[told])
    harness.put(node("n1", cpu=5), leaving, low("b", cpu=2, priority=2), resized(to=3))
    await harness.until_idle()
    assert failures(harness) == [
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to a"
        " terminating pod on the nominated node."
    ]


EVENTS: Final[dict[str, tuple[Callable[[Harness], None], bool]]] = {
    "a pod of its node is gone": (lambda h: h.delete(low("other", cpu=4, priority=9)), True),
    "a pod of another node is gone": (
        lambda h: h.delete(low("elsewhere", on="n2", cpu=4, priority=9)),
        False,
    ),
    "a pod of its node needs less": (lambda h: h.put(low("other", cpu=3, priority=9)), True),
    "a pod of another node needs less": (
        lambda h: h.put(low("elsewhere", on="n2", cpu=3, priority=9)),
        False,
    ),
    "its node is larger": (lambda h: h.put(node("n1", cpu=6, version="2")), True),
    "another node is larger": (lambda h: h.put(node("n2", cpu=6, version="2")), False),
    "another node comes": (lambda h: h.put(node("n3", cpu=6)), False),
    "it is to have less": (lambda h: h.put(resized(to=2)), True),
    "it is to have more": (lambda h: h.put(resized(to=4)), True),
    "its labels change": (lambda h: h.put(resized(to=3, labels={"a": "b"})), False),
}


@pytest.mark.parametrize("name", EVENTS)
async def test_events_that_it_is_tried_again_after(name: str, harness: Harness) -> None:
    harness.put(node("n1", cpu=5), node("n2", cpu=5))
    harness.put(
        *(low(n, cpu=4, on=o, priority=9) for n, o in (("other", "n1"), ("elsewhere", "n2")))
    )
    harness.put(resized(to=3))
    await harness.pass_time(20)
    change, wakes = EVENTS[name]
    before = _attempts(harness)
    change(harness)
    await harness.pass_time(20)
    assert (_attempts(harness) > before) is wakes


def _attempts(harness: Harness) -> int:
    queued = harness.queue.sub_queues.get("default/p")
    assert queued is not None
    return queued.attempts


async def test_it_is_tried_again_when_the_node_allows_it_to_preempt(harness: Harness) -> None:
    harness.put(disabling(node("n1", cpu=4), "a", "b"), low("other", cpu=3), resized(to=3))
    await harness.pass_time(20)
    harness.put(disabling(node("n1", cpu=4, version="2"), "a"))
    await harness.pass_time(20)
    assert _attempts(harness) == 1
    harness.put(node("n1", cpu=4, version="3"))
    await harness.pass_time(20)
    assert sorted(harness.placements()) == ["p"]


async def test_victims_are_found_again_when_others_take_the_room(harness: Harness) -> None:
    harness.put(node("n1", cpu=4), low("low", cpu=1), resized(to=3))
    await harness.pass_time(20)
    assert not failures(harness), "there is room, and the kubelet is about to use it"
    harness.put(low("late", cpu=1, priority=2))  # bound by another scheduler
    await harness.pass_time(20)
    assert sorted(harness.placements()) == ["late", "p"]


async def test_budgets_count(harness: Harness) -> None:
    harness.put(disruption_budget(selects=selector({"app": "a"})))
    harness.put(low("kept", labels={"app": "a"}), low("goes", priority=2))
    harness.put(node("n1", cpu=3), resized(to=2))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["kept", "p"]


async def test_what_is_about_finding_a_node_does_not_count(harness: Harness) -> None:
    full = replace(node("n1", cpu=3), spec=replace(node("n1").spec, unschedulable=True))
    p = resized(to=2, node_selector={"gone": "label"})
    harness.put(full, low("other", cpu=2), p)
    await harness.until_idle()
    assert sorted(harness.placements()) == ["p"]


@pytest.mark.parametrize("topology_aware", [False, True])
async def test_a_pod_of_a_group_is_alone(topology_aware: bool) -> None:
    gates = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": topology_aware}
    harness = new_harness(gates=gates)
    p = resized(to=2)
    group = SchedulingGroup(pod_group_name="g")
    harness.put(node("n1", cpu=2), low("other"))
    harness.put(replace(p, spec=replace(p.spec, scheduling_group=group)))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["p"]
    assert waits(harness)


async def test_without_asynchronous_preemption() -> None:
    harness = new_harness(gates={"SchedulerAsyncPreemption": False})
    harness.put(node("n1", cpu=2), low("other"), resized(to=2))
    await harness.until_idle()
    assert sorted(harness.placements()) == ["p"]
