"""Hollow nodes: how they register, what they report, and their leases."""

import random

import msgspec
import pytest

from berth.cluster.actions import Create, Patch
from berth.cluster.kinds.builtin import find
from berth.cluster.kubelet.hollow_node import HollowNode, Return
from berth.cluster.kubelet.node_reports import JITTER, LEASES, Leases, NodeReports
from berth.cluster.kubelet.node_template import NodePool, NodeTemplate
from berth.cluster.resources import Object
from berth.kube.client.errors import AlreadyExistsError, NotFoundError
from berth.kube.objects.node import Node
from berth.runtime.clock import FakeClock
from tests.cluster.bodies import complaints

NODE = find("", "v1", "nodes").strategy

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"


def test_a_node_is_what_the_api_takes() -> None:
    template = NodeTemplate(
        zones=3, resources={"example.com/gpu": "2"}, taints=({"key": "k", "effect": "NoSchedule"},)
    )
    body = template.node("node-4", index=4, now=NOW)

    assert complaints(NODE, body) == []
    assert body["metadata"]["labels"] == {
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "node-4",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": "zone-2",
    }
    assert body["status"]["allocatable"] == {
        "cpu": "4",
        "memory": "16Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "example.com/gpu": "2",
    }
    assert [
        condition["type"]
        for condition in body["status"]["conditions"]
        if condition["status"] == "True"
    ] == ["Ready"]


def test_names_sort_as_they_count() -> None:
    names = NodePool(11).names()
    assert (names[0], names[-1], names) == ("node-00", "node-10", sorted(names))


def test_registration_takes_over_a_node_that_exists() -> None:
    node = HollowNode("n", index=0, allocatable={})
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(node, NodeTemplate())

    create = reports.step("n")
    delay = reports.finished("n", AlreadyExistsError(409, "AlreadyExists", ""))
    patch = reports.step("n")
    early = reports.all_registered
    reports.finished("n", None)

    assert isinstance(create, Create)
    assert isinstance(patch, Patch)
    assert (delay, patch.path) == (0.0, "/api/v1/nodes/n/status")
    assert (early, reports.all_registered) == (False, True)
    assert reports.step("n") is None


def a_node(
    capacity: Object, allocatable: Object, *, ready: str = "True", failure: str = ""
) -> Node:
    annotations = {"berth.dev/failure": failure} if failure else {}
    status = {
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": [{"type": "Ready", "status": ready}],
    }
    return msgspec.convert(
        {"metadata": {"name": "n", "annotations": annotations}, "status": status}, Node
    )


@pytest.mark.parametrize(
    ("node", "want"),
    [
        pytest.param(a_node({"cpu": "4"}, {"cpu": "4"}), None, id="all is as it should be"),
        pytest.param(
            a_node({"cpu": "4", "example.com/cpu": "5"}, {"cpu": "4"}),
            {"allocatable": {"example.com/cpu": "5"}},
            id="an extended resource that others add can be allocated",
        ),
        pytest.param(
            a_node({"cpu": "8"}, {"cpu": "4"}),
            {"allocatable": {"cpu": "8"}},
            id="capacity that is raised can be allocated",
        ),
        pytest.param(
            a_node({"cpu": "4"}, {"cpu": "4", "example.com/cpu": "5"}),
            {"allocatable": {"example.com/cpu": None}},
            id="what has no capacity cannot be allocated",
        ),
    ],
)
def test_allocatable_follows_capacity(node: Node, want: Object | None) -> None:
    hollow = HollowNode("n", index=0, allocatable={"cpu": "4"})
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(hollow, NodeTemplate())
    reports.finished("n", None)

    hollow.observe(node)
    action = reports.step("n")

    assert reports.is_wrong(node) is (want is not None)
    assert (action.body["status"] if isinstance(action, Patch) else None) == want


def test_a_node_that_was_missed_says_that_it_is_well() -> None:
    hollow = HollowNode("n", index=0, allocatable={})
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(hollow, NodeTemplate())
    reports.finished("n", None)

    hollow.observe(a_node({}, {}, ready="Unknown"))
    action = reports.step("n")

    assert isinstance(action, Patch)
    statuses = {
        condition["type"]: condition["status"] for condition in action.body["status"]["conditions"]
    }
    assert statuses == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }


@pytest.mark.parametrize(
    ("failures", "want", "boot_id"),
    [
        pytest.param([""], None, "n", id="nothing has happened"),
        pytest.param(["stopped"], None, "n", id="it is down"),
        pytest.param(["stopped", ""], Return.RESTARTED, "n-1", id="it was down"),
        pytest.param(["unreachable", ""], Return.RECONNECTED, "n", id="it was cut off"),
        pytest.param(
            ["unreachable", "stopped", ""], Return.RESTARTED, "n-1", id="cut off, then down"
        ),
        pytest.param(
            ["stopped", "unreachable", ""], Return.RESTARTED, "n-1", id="down, then cut off"
        ),
        pytest.param(["on fire", ""], None, "n", id="no such failure"),
    ],
)
def test_machines_fail_and_return(failures: list[str], want: Return | None, boot_id: str) -> None:
    hollow = HollowNode("n", index=0, allocatable={})
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(hollow, NodeTemplate())

    returns = [hollow.observe(a_node({}, {}, failure=failure)) for failure in failures]

    assert returns == [None] * (len(failures) - 1) + [want]
    assert reports.boot_id("n") == boot_id


def test_a_machine_that_is_down_is_not_registered_again() -> None:
    hollow = HollowNode("n", index=0, allocatable={})
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(hollow, NodeTemplate())
    reports.skip("n")

    quiet = reports.step("n")
    reports.returned("n")
    action = reports.step("n")

    assert reports.all_registered
    assert quiet is None
    assert isinstance(action, Patch)
    assert action.body["status"].keys() == {"conditions", "nodeInfo"}


def test_leases_are_made_once_then_renewed() -> None:
    clock = FakeClock(NOW)
    leases = Leases(seconds=40, clock=clock, rng=random.Random(1))

    create = leases.step("n", "uid-n")
    delay = leases.finished("n", None)
    renewal = leases.step("n", "uid-n")
    leases.finished("n", NotFoundError(404, "NotFound", ""))

    assert isinstance(create, Create)
    assert create.body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "uid-n"}
    ]
    assert create.body["spec"] == {
        "holderIdentity": "n",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    assert 10.0 <= delay <= 10.0 * (1 + JITTER)
    assert renewal == Patch(f"{LEASES}/n", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    assert isinstance(leases.step("n", "uid-n"), Create)


def test_there_is_no_lease_without_a_node() -> None:
    leases = Leases(seconds=40, clock=FakeClock(NOW), rng=random.Random(1))
    assert leases.step("n", "") is None
    leases.step("n", "uid-n")
    leases.finished("n", None)
    assert isinstance(leases.step("n", ""), Patch)
    leases.finished("n", NotFoundError(404, "NotFound", ""))
    assert leases.step("n", "") is None


def test_a_lease_from_before_is_renewed_at_once() -> None:
    leases = Leases(seconds=40, clock=FakeClock(NOW), rng=random.Random(1))
    leases.step("n", "uid-n")

    assert leases.finished("n", AlreadyExistsError(409, "AlreadyExists", "")) == 0.0
    assert isinstance(leases.step("n", "uid-n"), Patch)


def test_images_that_were_pulled_are_reported_once() -> None:
    hollow = HollowNode("n", index=0, allocatable={})
    reports = NodeReports(clock=FakeClock(NOW))
    reports.add(hollow, NodeTemplate())
    reports.skip("n")
    for image, size in (("web", 5), ("registry.example.com:5000/db:1", 7)):
        hollow.pulled(image, size)
    hollow.pulled("missing", None)

    action = reports.step("n")
    reports.finished("n", None)

    assert isinstance(action, Patch)
    assert action.body["status"] == {
        "images": [
            {"names": ["registry.example.com:5000/db:1"], "sizeBytes": 7},
            {"names": ["web:latest"], "sizeBytes": 5},
        ]
    }
    assert reports.step("n") is None


def test_images_are_pulled_one_after_the_other() -> None:
    hollow = HollowNode("n", index=0, allocatable={})

    assert hollow.pull("one", 10.0, 4.0) == 14.0
    assert hollow.pull("two", 11.0, 4.0) == 18.0
    assert hollow.pull("one", 12.0, 4.0) == 14.0
    hollow.pulled("one", 1)
    hollow.pulled("two", 1)
    assert hollow.pull("three", 30.0, 4.0) == 34.0
