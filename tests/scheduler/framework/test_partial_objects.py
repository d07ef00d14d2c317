"""What counts of objects that could only be read in part."""

from typing import Any

import msgspec
import pytest

from berth.kube.objects.cluster import Namespace
from berth.kube.objects.devices import DeviceClass, ResourceClaim
from berth.kube.objects.node import Node
from berth.kube.objects.partial_objects import NOBODYS_VICTIM
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.scheduler.framework.listers import KINDS
from tests.builders import node, pod
from tests.harness import Harness

META = {"name": "x", "namespace": "ns", "uid": "u"}


def read(kind: type[msgspec.Struct], last: Any = None, **written: Any) -> Any:
    obj, _ = KINDS[kind.__name__].decode_partly(
        msgspec.json.encode({"metadata": META} | written), last
    )
    return obj


CONTAINERS = [{"resources": {"requests": {"cpu": "3", "memory": "lots"}}}]


def test_a_bound_pod_takes_its_room() -> None:
    harness = Harness()
    harness.put(node("n1", cpu="4"))
    bound = read(Pod, spec={"nodeName": "n1", "containers": CONTAINERS})

    harness.put(bound, pod("p", cpu="2"))

    row = harness.cache.table.row_of["n1"]
    assert harness.cache.table.requested[0, row] == 3000
    assert harness.cache.pod("u") is not None


def test_a_waiting_pod_is_not_placed_by_a_part_of_what_it_asks_for() -> None:
    with pytest.raises(ValueError, match=r"requests\.memory: quantity 'lots'"):
        read(Pod, spec={"containers": CONTAINERS})


def test_nobody_takes_the_place_of_a_pod_of_unknown_priority() -> None:
    spec = {"nodeName": "n1", "priority": "high"}
    assert read(Pod, spec=spec).priority == NOBODYS_VICTIM
    assert read(Pod, spec=spec | {"priority": 7, "containers": 7}).priority == 7


@pytest.mark.parametrize(
    ("written", "unschedulable"),
    [
        pytest.param({"spec": {"taints": [{"key": 7}]}}, True, id="a taint"),
        pytest.param({"spec": 7}, True, id="all of the spec"),
        pytest.param({"status": {"images": 7}}, False, id="images"),
        pytest.param({"status": {"allocatable": {"cpu": "4", "memory": "x"}}}, False, id="room"),
    ],
)
def test_a_node_counts_and_is_left_alone_while_its_taints_are_unknown(
    written: dict[str, Any], unschedulable: bool
) -> None:
    assert read(Node, **written).spec.unschedulable is unschedulable


ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}


def test_an_allocated_claim_keeps_its_devices_and_its_json() -> None:
    written = {"spec": {"devices": 7}, "status": {"allocation": ALLOCATION}}
    claim = read(ResourceClaim, **written)
    assert [result.device for result in claim.status.allocation.devices.results] == ["x"]
    assert msgspec.json.decode(claim.raw) == {"metadata": META} | written


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        pytest.param(ResourceClaim, {"spec": {"devices": 7}}, id="a claim for devices"),
        pytest.param(DeviceClass, {"spec": {"selectors": 7}}, id="a class of devices"),
        pytest.param(StorageClass, {"allowedTopologies": 7}, id="a class of volumes"),
        pytest.param(PersistentVolume, {"spec": {"nodeAffinity": 7}}, id="a volume"),
        pytest.param(PersistentVolumeClaim, {"spec": {"volumeName": 7}}, id="a claim of a volume"),
    ],
)
def test_what_decisions_go_by_is_read_whole_or_not_at_all(
    kind: type[msgspec.Struct], written: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="Expected"):
        read(kind, **written)


def test_null_for_a_list_is_nothing_left_out() -> None:
    volume = read(PersistentVolume, spec={"accessModes": None, "capacity": {"storage": "1"}})
    assert volume.spec.capacity == {"storage": "1"}
    assert msgspec.json.decode(volume.raw)["metadata"] == META


def test_labels_of_a_namespace() -> None:
    last = Namespace()
    namespace = read(Namespace, last, metadata=META | {"labels": {"a": "b", "c": 7}})
    assert namespace.metadata.labels == {"a": "b"}
