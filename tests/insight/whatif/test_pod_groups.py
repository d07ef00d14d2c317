"""What if a group of pods is to start as one."""

from typing import Any

import pytest

from berth.insight.whatif.answer import PodGroupOutcome
from berth.insight.whatif.engine import GATE_OFF
from berth.insight.whatif.live import LiveSnapshots
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.tables import render
from berth.runtime.tables import as_text
from tests.builders import node
from tests.insight.whatif.asking import ask, deployment, reread, snapshot
from tests.scheduler.pod_group.building import group, group_harness, members

GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")


def cluster(*, gates: tuple[str, ...] = GATES, **racks: int) -> Snapshot:
    """Return a cluster of racks with so many nodes of 2 CPUs each."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": dict.fromkeys(gates, True),
    }
    nodes = [
        node(f"{rack}{number}", cpu="2", labels={"rack": rack})
        for rack, size in racks.items()
        for number in range(size)
    ]
    return reread(snapshot(*nodes, config=config))


def gang(min_count: int, *, topology: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": spec,
    }


def job(parallelism: int) -> dict[str, Any]:
    made = deployment("train", kind="Job", schedulingGroup={"podGroupName": "train"})
    spec = {"parallelism": parallelism, "template": made["spec"]["template"]}
    return {**made, "apiVersion": "batch/v1", "spec": spec}


def templates(*manifests: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"manifest": manifest} for manifest in manifests]


def outcome(found: tuple[PodGroupOutcome, ...]) -> PodGroupOutcome:
    [only] = found
    return only


@pytest.mark.parametrize("topology", ["", "rack"])
def test_a_gang_is_placed_together(topology: str) -> None:
    answer = ask(cluster(a=1, b=2), templates=templates(gang(4, topology=topology), job(4)))

    assert answer.fits
    found = outcome(answer.pod_groups)
    assert (found.placed, found.starts, found.why) == (4, True, "")
    assert found.topology == ("rack=b" if topology else "")
    if topology:
        assert set(answer.placements.values()) == {"b0", "b1"}


def test_a_gang_without_room_is_not_placed_in_part() -> None:
    answer = ask(cluster(a=1, b=2), templates=templates(gang(5, topology="rack"), job(5)))

    assert not answer.fits
    assert not answer.placements
    found = outcome(answer.pod_groups)
    assert (found.placed, found.starts, found.obstacle) == (0, False, "shop/train-4")
    assert found.why == (
        "4 of 5 waiting pods can get nodes now, and 5 are needed together; shop/train-4 has none:"
        " 0/2 nodes are available: 2 Insufficient cpu; it lacks room for 1 more pod (1000m cpu) in"
        " rack=b; 1 more node like b0 would do"
    )
    rows = [line.split() for line in as_text(render(answer), width=400).splitlines()]
    assert ["shop/train", "5", "0", "no"] in [row[:4] for row in rows]


def test_pods_beyond_the_minimum_need_not_fit() -> None:
    answer = ask(cluster(a=2), templates=templates(gang(3), job(6)))

    assert not answer.fits  # not all pods have a node
    found = outcome(answer.pod_groups)
    assert (found.placed, found.starts, found.obstacle) == (4, True, "shop/train-4")


def test_too_few_pods_for_the_gang() -> None:
    found = outcome(ask(cluster(a=2), templates=templates(gang(3), job(2))).pod_groups)
    assert not found.starts
    assert found.why.startswith("only 2 of at least 3 pods exist")


@pytest.mark.parametrize(
    ("topology", "count"),
    [
        pytest.param("", 2, id="anywhere"),
        pytest.param("rack", 3, id="in one rack, where other racks are no help"),
    ],
)
def test_so_many_nodes_let_a_gang_start(topology: str, count: int) -> None:
    answer = ask(
        cluster(a=1, b=1),
        templates=templates(gang(8, topology=topology), job(8)),
        findNodes={"like": "b0"},
    )
    assert answer.nodes_needed is not None
    assert answer.nodes_needed.count == count
    assert answer.nodes_needed.tried[count - 1] is False


def test_without_the_gate_pods_are_placed_one_by_one() -> None:
    answer = ask(cluster(gates=(), a=1), templates=templates(gang(4), job(4)))
    assert len(answer.placements) == 2
    assert GATE_OFF in answer.notes
    assert not answer.pod_groups


async def test_a_group_that_waits_in_a_running_scheduler() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group(min_count=4), *members("a", "b", "c", "d", cpu="1"))
    await harness.pass_time(3)
    taken = reread(LiveSnapshots(harness.core).take())

    waits = outcome(ask(taken).pod_groups)
    assert (waits.starts, waits.obstacle) == (False, "default/c")
    starts = outcome(ask(taken, addNodes=[{"like": "n"}]).pod_groups)
    assert (starts.starts, starts.placed) == (True, 4)


def tree(*replicas: str) -> list[dict[str, Any]]:
    """Make a group of groups that needs all of its *replicas*, each of two pods on one rack."""
    made: list[dict[str, Any]] = [
        {
            "apiVersion": "scheduling.k8s.io/v1alpha3",
            "kind": "CompositePodGroup",
            "metadata": {"name": "serving", "namespace": "shop"},
            "spec": {"schedulingPolicy": {"gang": {"minGroupCount": len(replicas)}}},
        }
    ]
    for name in replicas:
        replica = gang(2, topology="rack")
        replica["metadata"]["name"] = name
        replica["spec"]["parentCompositePodGroupName"] = "serving"
        pods = deployment(name, kind="Job", schedulingGroup={"podGroupName": name})
        spec = {"parallelism": 2, "template": pods["spec"]["template"]}
        made += [replica, {**pods, "apiVersion": "batch/v1", "spec": spec}]
    return made


@pytest.mark.parametrize(("racks", "starts"), [({"a": 1, "b": 1}, True), ({"a": 1}, False)])
def test_groups_of_a_group_start_together(racks: dict[str, int], starts: bool) -> None:
    gates = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
    question = templates(*tree("one", "two"))
    answer = ask(cluster(gates=gates, **racks), templates=question)
    assert answer.fits is starts
    assert [(found.pod_group, found.placed, found.starts) for found in answer.pod_groups] == [
        ("shop/one", 2 * starts, starts),
        ("shop/two", 2 * starts, starts),
    ]
    if not starts:
        why = answer.pod_groups[0].why
        assert "part of compositepodgroup shop/serving: it cannot start: " in why
