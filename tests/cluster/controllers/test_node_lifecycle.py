"""What becomes of nodes by what is heard of them: conditions, taints, events, pods."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.controllers.controller import NOTHING
from berth.cluster.controllers.node_lifecycle import MONITOR
from berth.runtime.clock import rfc3339
from tests.cluster.controllers.node_world import NOT_READY, NOW, PRESSURES, World, node
from tests.cluster.objects import pod_view


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(node(), set(), id="it is well"),
        pytest.param(
            node(taints=[(NOT_READY, "NoSchedule"), ("gpu", "NoSchedule")]),
            {("gpu", "NoSchedule")},
            id="it has become ready; the taints of others stay",
        ),
        pytest.param(node(ready=None, taints=[(NOT_READY, "NoSchedule")]), set(), id="no status"),
        pytest.param(node(ready="False"), {("not-ready", "NoSchedule")}, id="not ready"),
        pytest.param(node(ready="Unknown"), {("unreachable", "NoSchedule")}, id="unreachable"),
        pytest.param(
            node(
                MemoryPressure="True", DiskPressure="True", PIDPressure="True",
                NetworkUnavailable="True",
            ),
            {
                (f"{key}", "NoSchedule")
                for key in (
                    "memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable",
                )
            },
            id="under pressure",
        ),
        pytest.param(
            node(MemoryPressure="Unknown", NetworkUnavailable="False"), set(),
            id="what is not known is no pressure",
        ),
        pytest.param(
            node(taints=[("node.kubernetes.io/memory-pressure", "NoSchedule")]), set(),
            id="the pressure is over",
        ),
        pytest.param(
            {**node(), "spec": {"unschedulable": True}}, {("unschedulable", "NoSchedule")},
            id="it was cordoned",
        ),
        pytest.param(
            node(taints=[("node.kubernetes.io/memory-pressure", "NoExecute")]),
            {("memory-pressure", "NoExecute")},
            id="a taint of another effect is somebody else's",
        ),
    ],
)  # fmt: skip
def test_taints_follow_conditions(obj: dict[str, Any], want: set[tuple[str, str]]) -> None:
    world = World(obj)
    world.queue.pop(MONITOR)
    world.settle()
    assert world.taints() == want
    assert len(world.patches) <= 1
    world.put(world.objects["n1"])
    assert world.queue == {}, "nothing more is to be done"


def test_a_taint_says_since_when() -> None:
    world = World(
        {**node(), "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]}}
    )
    world.clock.advance(7.0)
    world.report("n1", DiskPressure="True")
    world.settle()
    [patch] = world.patches
    assert patch == Patch(
        "/api/v1/nodes/n1",
        {
            "spec": {
                "taints": [
                    {"key": "a", "value": "b", "effect": "NoExecute"},
                    {
                        "key": "node.kubernetes.io/disk-pressure",
                        "effect": "NoSchedule",
                        "timeAdded": "2026-01-01T00:00:07Z",
                    },
                ]
            },
            "metadata": {"uid": "uid-n1", "resourceVersion": "1"},
        },
    )


def test_labels_are_kept_under_their_old_names() -> None:
    world = World(
        node(labels={"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "plan9"}),
    )
    world.settle()
    assert world.objects["n1"]["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"


def test_a_silent_node_becomes_unknown_and_then_loses_its_pods() -> None:
    pods = [pod_view("a"), pod_view("b", ready=None), pod_view("elsewhere", node="n2")]
    world = World(node(), node("n2"), pods=pods)
    world.settle()
    assert world.events("RegisteredNode") == [
        "Node n1 event: Registered Node n1 in Controller",
        "Node n2 event: Registered Node n2 in Controller",
    ]
    world.wait(50, alive=["n1", "n2"])
    assert world.patches == []

    world.wait(50, alive=["n2"])
    assert world.patches == [], "its last lease was 50 seconds ago, which is not yet too long"
    world.wait(5, alive=["n2"])
    assert {type_: world.status(type_) for type_ in ("Ready", *PRESSURES)} == dict.fromkeys(
        ("Ready", *PRESSURES), "Unknown"
    )
    assert world.taints() == {("unreachable", "NoSchedule")}
    [status, *_] = world.patches
    stamp = rfc3339(world.clock.now())
    assert status.path == "/api/v1/nodes/n1/status"
    assert status.body["status"]["conditions"][0] == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": stamp,
    }
    assert world.events("NodeNotReady") == [
        "Node n1 status is now: NodeNotReady",
        "Node is not ready",
    ]
    assert [patch.path for patch in world.patches if "/pods/" in patch.path] == [
        "/api/v1/namespaces/default/pods/a/status"
    ]

    world.wait(5, alive=["n2"])
    assert world.taints() == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert world.taints("n2") == set()

    world.report("n1")
    world.settle()
    assert world.taints() == {("unreachable", "NoExecute")}, "this one goes when all are looked at"
    world.wait(5, alive=["n1", "n2"])
    assert world.taints() == set()


def test_a_node_that_says_that_it_is_not_ready() -> None:
    world = World(node(), node("n2"), pods=[pod_view("a")])
    world.settle()
    world.report("n1", ready="False")
    world.wait(5, alive=["n1", "n2"])
    assert world.taints() == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    assert world.events("NodeNotReady") == [], "its kubelet has told, and marks its pods itself"

    world.wait(55, alive=["n2"])
    assert world.taints() == {("unreachable", "NoSchedule"), ("not-ready", "NoExecute")}
    world.wait(5, alive=["n2"])
    assert world.taints() == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


def test_a_node_whose_kubelet_never_came() -> None:
    world = World(node(ready=None), node("n2"))
    world.settle()
    world.wait(60, alive=["n2"])
    assert world.status("Ready") == ""
    world.wait(5, alive=["n2"])
    [patch, *_] = world.patches
    assert patch.body["status"]["conditions"][0] == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": rfc3339(NOW),
        "lastTransitionTime": rfc3339(world.clock.now()),
    }
    assert world.events("NodeNotReady") == []


def test_a_status_is_a_sign_of_life_as_a_lease_is() -> None:
    world = World(node(), node("n2"))
    for _ in range(10):
        world.wait(30, alive=["n2"])
        world.report("n1")
    assert world.patches == []


def test_a_change_of_a_lease_that_renews_nothing_is_none() -> None:
    world = World(node(), node("n2"))
    world.wait(5, alive=["n1", "n2"])
    lease = world.leases.get("kube-node-lease/n1")
    assert lease is not None
    for _ in range(60):
        world.leases.on_update(lease, msgspec.structs.replace(lease))
        world.wait(1, alive=["n2"])
    assert world.status("Ready") == "Unknown"


def test_a_status_that_changes_meanwhile_is_not_overwritten() -> None:
    world = World(node(), node("n2"), pods=[pod_view("a")])
    world.settle()
    world.refused.add("/api/v1/nodes/n1/status")
    world.wait(55, alive=["n2"])
    assert world.patches == []
    world.report("n1")
    world.wait(1, alive=["n2"])
    assert world.patches == []
    assert world.events("NodeNotReady") == []


def test_marking_pods_is_tried_again() -> None:
    world = World(node(), node("n2"), pods=[pod_view("a")])
    world.settle()
    world.refused.add("/api/v1/namespaces/default/pods/a/status")
    world.wait(60, alive=["n2"])
    assert world.events("NodeNotReady")[1:] == ["Node is not ready"]


def test_a_pod_that_comes_to_an_unreachable_node_is_not_ready() -> None:
    world = World(node(), node("n2"))
    world.settle()
    world.wait(60, alive=["n2"])
    world.patches.clear()
    world.pods.on_add(pod_view("late"))
    world.pods.on_add(pod_view("fine", node="n2"))
    world.settle()
    assert [patch.path for patch in world.patches] == [
        "/api/v1/namespaces/default/pods/late/status"
    ]


def test_a_node_that_is_deleted() -> None:
    world = World(node(), node("n2"))
    world.settle()
    gone = world.nodes.get("n1")
    assert gone is not None
    world.nodes.on_delete(gone)
    world.wait(5)
    assert world.events("RemovingNode") == ["Node n1 event: Removing Node n1 from Controller"]
    assert world.controller.plan("n1") == NOTHING
    world.put(node())
    world.wait(5)
    assert len(world.events("RegisteredNode")) == 3


def fleet(**zones: int) -> list[dict[str, Any]]:
    """So many nodes in each zone, ``a-0`` and so on."""
    return [
        node(f"{zone}-{index}", zone=zone)
        for zone, count in zones.items()
        for index in range(count)
    ]


def names(zone: str, start: int, end: int) -> list[str]:
    return [f"{zone}-{index}" for index in range(start, end)]


@pytest.mark.parametrize(
    ("zones", "silent", "seconds", "want"),
    [
        pytest.param({"a": 10}, names("a", 0, 2), 5, 1, id="the first at once"),
        pytest.param({"a": 10}, names("a", 0, 2), 15, 2, id="one in ten seconds"),
        pytest.param({"a": 10}, names("a", 0, 6), 600, 0, id="most of a small zone: none"),
        pytest.param({"a": 4}, names("a", 0, 2), 15, 2, id="two are not many"),
        pytest.param({"a": 10}, names("a", 0, 5), 60, 5, id="half of them are not many"),
        pytest.param({"a": 60}, names("a", 0, 40), 105, 2, id="most of a large zone: slowly"),
        pytest.param({"a": 3}, names("a", 0, 3), 600, 0, id="all nodes of the cluster: none"),
        pytest.param(
            {"a": 3, "b": 1}, names("a", 0, 3), 30, 3, id="all of a zone: at the usual rate"
        ),
        pytest.param(
            {"a": 5, "b": 5}, [*names("a", 0, 2), *names("b", 0, 2)], 5, 2,
            id="each zone has a rate of its own",
        ),
    ],
)  # fmt: skip
def test_how_fast_nodes_lose_their_pods(
    zones: dict[str, int], silent: list[str], seconds: float, want: int
) -> None:
    world = World(*fleet(**zones))
    world.settle()
    alive = [name for name in world.objects if name not in silent]
    world.wait(55, alive=alive)
    assert world.evicting() == set()
    world.wait(seconds, alive=alive)
    assert len(world.evicting()) == want
    assert world.evicting() <= set(silent)


def test_nodes_that_are_excluded_do_not_count() -> None:
    excluded = {"node.kubernetes.io/exclude-disruption": ""}
    world = World(*fleet(a=3), node("x", zone="a", labels=excluded))
    world.settle()
    world.wait(600, alive=["x"])
    assert world.evicting() == set(), "of those that count, none is ready"


def test_when_all_fail_nobody_is_evicted_and_all_get_time_when_it_is_over() -> None:
    world = World(*fleet(a=3, b=3))
    world.settle()
    world.wait(65, alive=names("b", 0, 3))
    assert len(world.evicting()) >= 1
    world.wait(60)
    assert world.evicting() == set()
    assert {world.status("Ready", name) for name in world.objects} == {"Unknown"}

    world.report("b-0")
    world.wait(5, alive=["b-0"])
    world.report("a-0", ready="False")
    world.wait(45, alive=["b-0"])
    assert world.status("Ready", "a-0") == "False", "it has the grace period again"


def test_the_health_of_a_large_fleet_is_not_told_node_by_node() -> None:
    world = World(*fleet(a=101))
    world.settle()
    assert world.events("RegisteredNode") == []
