"""Hollow nodes: what they admit, how they register, and their leases."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.client.errors import AlreadyExistsError, NotFoundError
from berth.clock import FakeClock
from berth.cluster.actions import Create, Patch
from berth.cluster.kubelet.hollow_node import HollowNode, Rejection
from berth.cluster.kubelet.node_reports import JITTER, LEASES, Leases, NodeReports
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.kubelet.pod_lifecycles import Timings
from berth.cluster.strategies.node import NODE
from tests.cluster.bodies import complaints

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
PATH = "/api/v1/namespaces/default/pods/p"
TIMINGS = Timings(start_seconds=2.0, stop_seconds=1.0, retry_seconds=3.0)


@pytest.mark.parametrize(
    ("requests", "want"),
    [
        pytest.param({}, None, id="nothing asked"),
        pytest.param({"cpu": 4 * 10**9}, None, id="all of it"),
        pytest.param(
            {"example.com/gpu": 10**9},
            Rejection(
                "OutOfexample.com/gpu",
                "Pod was rejected: Node didn't have enough resource: example.com/gpu, "
                "requested: 1, used: 0, capacity: 0",
            ),
            id="what the node has not got",
        ),
    ],
)
def test_admission(requests: Mapping[str, int], want: Rejection | None) -> None:
    node = HollowNode("n", index=0, allocatable={"cpu": "4", "pods": "1"})
    assert node.admit("a", requests) == want


def test_a_node_takes_so_many_pods() -> None:
    node = HollowNode("n", index=0, allocatable={"cpu": "4", "pods": "1"})
    node.admit("a", {})

    rejection = node.admit("b", {})

    assert rejection is not None
    assert rejection.reason == "OutOfpods"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 5), st.booleans())))
def test_a_node_is_never_overcommitted(steps: list[tuple[str, int, bool]]) -> None:
    node = HollowNode("n", index=0, allocatable={"cpu": "7", "pods": "3"})
    admitted: dict[str, int] = {}
    for uid, cpu, leaves in steps:
        if leaves:
            node.release(uid)
            admitted.pop(uid, None)
        elif uid not in admitted and node.admit(uid, {"cpu": cpu * 10**9}) is None:
            admitted[uid] = cpu
        assert sum(admitted.values()) <= 7
        assert len(admitted) <= 3
        node.check_invariants()


def test_a_node_is_what_the_api_takes() -> None:
    template = NodeTemplate(
        zones=3, resources={"example.com/gpu": "2"}, taints=({"key": "k", "effect": "NoSchedule"},)
    )
    body = template.node("node-4", index=4, now=NOW)

    assert complaints(NODE, body) == []
    assert body["metadata"]["labels"] == {
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
    assert [each["type"] for each in body["status"]["conditions"] if each["status"] == "True"] == [
        "Ready"
    ]


def test_names_sort_as_they_count() -> None:
    names = NodeTemplate().names(11)
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


def test_leases_are_made_once_then_renewed() -> None:
    clock = FakeClock(NOW)
    leases = Leases(seconds=40, clock=clock, rng=random.Random(1))

    create = leases.step("n")
    delay = leases.finished("n", None)
    renewal = leases.step("n")
    leases.finished("n", NotFoundError(404, "NotFound", ""))

    assert isinstance(create, Create)
    assert create.body["spec"] == {
        "holderIdentity": "n",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    assert 10.0 <= delay <= 10.0 * (1 + JITTER)
    assert renewal == Patch(f"{LEASES}/n", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    assert isinstance(leases.step("n"), Create)


def test_a_lease_from_before_is_renewed_at_once() -> None:
    leases = Leases(seconds=40, clock=FakeClock(NOW), rng=random.Random(1))
    leases.step("n")

    assert leases.finished("n", AlreadyExistsError(409, "AlreadyExists", "")) == 0.0
    assert isinstance(leases.step("n"), Patch)
