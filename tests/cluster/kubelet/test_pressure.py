"""What hollow nodes do when they run out of something."""

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.node_reports import NodeReports
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.resources import Object
from berth.kube.objects.node import Node
from berth.runtime.clock import FakeClock
from tests.cluster.kubelet.pressed_machine import (
    CAPACITY,
    NOW,
    Machine,
    configured,
    pod,
)


def test_pods_are_evicted_one_after_the_other_until_there_is_enough() -> None:
    machine = Machine()
    machine.bind(
        pod("large", memory="5Gi"),
        pod("modest", memory="3Gi", request="3500Mi"),
        pod("small", memory="1Gi"),
    )
    machine.run(5)
    machine.use("small", "1800Mi")
    machine.run(60)

    assert machine.phases() == {"large": "Evicted", "modest": "Running", "small": "Running"}
    assert machine.events("EvictionThresholdMet", "Evicted") == [
        ("n", "EvictionThresholdMet", "Attempting to reclaim memory"),
        (
            "large",
            "Evicted",
            "The node was low on resource: memory. Threshold quantity: 100Mi, "
            "available: 44237Ki. Container c was using 5Gi, request is 0, "
            "has larger consumption of memory. ",
        ),
    ]


def test_the_condition_is_reported_at_once_and_taken_back_after_the_transition_period() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.run(400)

    assert [pressure for _, pressure in machine.reports] == [("MemoryPressure",), ()]
    first, last = (at for at, _ in machine.reports)
    assert 300 <= last - first <= 310
    assert machine.events("NodeHasInsufficientMemory", "NodeHasSufficientMemory") == [
        ("n", "NodeHasInsufficientMemory", "Node n status is now: NodeHasInsufficientMemory"),
        ("n", "NodeHasSufficientMemory", "Node n status is now: NodeHasSufficientMemory"),
    ]


def test_an_evicted_pod_says_that_it_was_disrupted() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.run(20)

    status = machine.bodies["default/p"]["status"]
    [target] = [
        condition for condition in status["conditions"] if condition["type"] == "DisruptionTarget"
    ]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == status["message"]


def test_nodes_of_which_nobody_says_anything_are_not_looked_at() -> None:
    machine = Machine()
    machine.bind(pod("p", request="9Gi"))
    machine.run(60)
    assert not machine.is_watched


def test_a_node_is_left_alone_when_nothing_more_is_told_of_it() -> None:
    machine = Machine()
    machine.annotate(usage_memory="1Gi")
    machine.run(60)
    before = machine.is_watched
    machine.annotate()
    machine.run(20)
    assert (before, machine.is_watched) == (True, False)


def test_with_thresholds_of_its_own_every_node_is_looked_at() -> None:
    machine = Machine(configured(evictionHard={"memory.available": "95%"}))
    machine.bind(pod("p", request="4Gi"))
    machine.run(20)
    assert machine.phases() == {"p": "Evicted"}


def test_a_soft_threshold_waits_and_lets_pods_end_in_peace() -> None:
    configuration = configured(
        evictionHard={"memory.available": "100Mi"},
        evictionSoft={"memory.available": "1Gi"},
        evictionSoftGracePeriod={"memory.available": "30s"},
        evictionMaxPodGracePeriod=20,
    )
    machine = Machine(configuration)
    machine.bind(pod("p", memory="9500Mi"))
    machine.run(29)
    early = machine.phases()
    machine.run(15)

    assert (early, machine.phases()) == ({"p": "Running"}, {"p": "Evicted"})
    assert machine.reports[0][0] < 1


@pytest.mark.parametrize(
    ("body", "phase"),
    [
        pytest.param(pod("late"), "Evicted", id="nothing requested: not taken"),
        pytest.param(pod("late", request="10Mi"), "Running", id="something requested: taken"),
        pytest.param(pod("late", priority=2_000_000_000), "Running", id="critical: taken"),
    ],
)
def test_under_memory_pressure(body: Object, phase: str) -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.run(20)
    machine.bind(body)
    machine.run(1)

    assert machine.phases()["late"] == phase
    if phase == "Evicted":
        status = machine.bodies["default/late"]["status"]
        message = "The node had condition: [MemoryPressure]. "
        assert status["message"] == f"Pod was rejected: {message}"
        assert machine.events("Evicted")[-1] == ("late", "Evicted", message)


def test_a_container_that_exceeds_its_limit_is_killed_and_backs_off() -> None:
    machine = Machine()
    limits = {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    machine.bind(pod("p", memory="1025Mi", resources=limits))
    machine.run(5)

    [container] = machine.bodies["default/p"]["status"]["containerStatuses"]
    assert machine.phases() == {"p": "CrashLoopBackOff"}
    terminated = container["lastState"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("OOMKilled", 137)
    assert machine.events("Evicted", "SystemOOM") == []


def test_when_memory_is_gone_the_kernel_is_faster_than_the_manager() -> None:
    machine = Machine()
    machine.bind(pod("careful", memory="4Gi", request="9500Mi"), pod("careless", memory="1Gi"))
    machine.run(12)
    machine.use("careful", "9800Mi")
    machine.run(0.5)

    [container] = machine.bodies["default/careless"]["status"]["containerStatuses"]
    assert container["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert machine.events("SystemOOM")[0] == (
        "n",
        "SystemOOM",
        "System OOM encountered, victim process: c, pid: 0",
    )


def test_a_container_that_the_node_cannot_hold_is_killed_again_and_again() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="11Gi"), pod("other", request="1Gi"))
    machine.run(60)

    assert machine.phases() == {"p": "CrashLoopBackOff", "other": "Running"}
    assert len(machine.events("SystemOOM")) >= 3
    assert machine.events("Evicted") == []


def test_a_machine_that_is_down_evicts_nobody() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="1Gi"))
    machine.run(5)
    machine.annotate(failure="unreachable", usage_memory="9Gi")
    machine.run(60)
    down = machine.phases()
    machine.annotate(usage_memory="9Gi")
    machine.lives.node_returned(machine.node, restarted=False)
    machine.run(30)
    assert (down, machine.phases()["p"]) == ({"p": "Running"}, "Evicted")


def test_a_removed_machine_is_forgotten() -> None:
    machine = Machine()
    machine.bind(pod("p", memory="9980Mi"))
    machine.nodes.clear()
    machine.lives.forget_node("n")
    machine.pressure.forget_node("n")
    machine.run(60)
    assert machine.events("Evicted") == []


def reported(pressure: tuple[str, ...], known: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return the conditions that a node reports which has *known* ones, by type."""
    node = HollowNode("n", index=0, allocatable=CAPACITY)
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(node, NodeTemplate())
    reports.step("n")
    reports.finished("n", None)
    conditions = [{"type": type_, "status": status} for type_, status in known.items()]
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": conditions}
    view = msgspec.convert({"metadata": {"name": "n"}, "status": status}, Node)
    node.observe(view)
    node.pressure = pressure
    patch = reports.step("n") if reports.is_wrong(view) else None
    if patch is None:
        return []
    assert isinstance(patch, Patch)
    return [
        (condition["type"], condition["status"], condition["reason"])
        for condition in patch.body["status"]["conditions"]
    ]


WELL = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
UNKNOWN = dict.fromkeys(WELL, "Unknown")


@pytest.mark.parametrize(
    ("pressure", "known", "want"),
    [
        pytest.param((), WELL, [], id="as it is"),
        pytest.param(
            ("MemoryPressure",),
            WELL,
            [("MemoryPressure", "True", "KubeletHasInsufficientMemory")],
            id="only what changes is reported",
        ),
        pytest.param(
            (),
            {**WELL, "DiskPressure": "True"},
            [("DiskPressure", "False", "KubeletHasNoDiskPressure")],
            id="over again",
        ),
        pytest.param(
            ("PIDPressure",),
            UNKNOWN,
            [
                ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                ("PIDPressure", "True", "KubeletHasInsufficientPID"),
                ("Ready", "True", "KubeletReady"),
            ],
            id="everything, where it was missed",
        ),
    ],
)
def test_conditions_are_reported(
    pressure: tuple[str, ...], known: dict[str, str], want: list[tuple[str, str, str]]
) -> None:
    assert reported(pressure, known) == want


def test_what_is_reserved_is_not_for_pods() -> None:
    configuration = configured(
        evictionHard={"memory.available": "512Mi", "nodefs.available": "10Gi"},
        systemReserved={"memory": "1Gi", "cpu": "200m"},
        kubeReserved={"memory": "512Mi"},
        maxPods=50,
    )
    template = configuration.applied_to(NodeTemplate())

    assert template.capacity()["memory"] == "16Gi"
    assert template.allocatable() == {
        "cpu": "3800m",
        "memory": "14Gi",
        "ephemeral-storage": "90Gi",
        "pods": "50",
    }
    assert KubeletConfiguration().applied_to(NodeTemplate()) == NodeTemplate()
