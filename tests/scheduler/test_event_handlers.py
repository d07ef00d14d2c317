"""What the changes of storage and device kinds do: listers know them, waiting pods are woken."""

import asyncio
from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod_group import CompositePodGroup
from berth.kube.objects.storage import BIND_COMPLETED, PersistentVolumeClaim
from berth.scheduler.framework.events import ActionType
from berth.scheduler.framework.listers import KINDS, ApiObject
from tests.builders import node, pod
from tests.device_builders import (
    claim as resource_claim,
)
from tests.device_builders import (
    device,
    device_class,
    exactly,
    resource_slice,
    with_claims,
)
from tests.harness import Harness
from tests.scheduler.pod_group.building import composite, group, group_harness
from tests.volume_builders import (
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_capacity,
    storage_class,
    volume,
)


async def test_a_pod_waits_for_its_claim_and_the_volume() -> None:
    harness = Harness()
    harness.put(node("n1"), pod("p", claims=["data"]))
    await harness.until_idle()
    assert harness.placements() == {}
    assert harness.cluster.conditions["default/p"].message.startswith(
        '0/1 nodes are available: persistentvolumeclaim "data" not found.'
    )

    harness.put(volume(claim=claim()), claim(bound_to="pv"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}


async def test_a_volume_is_chosen_with_the_node_and_waited_for() -> None:
    harness = Harness()
    harness.put(storage_class(), claim(), volume(hosts=["n2"]))
    harness.put(node("n1"), node("n2"), pod("p", claims=["data"]))
    running = asyncio.create_task(harness.until_idle(), name="scheduler")
    await asyncio.sleep(0)

    listers = harness.cluster.listers
    written = listers.persistent_volumes.get("", "pv")
    assert written is not None
    assert written.spec.claim_ref is not None
    assert written.spec.claim_ref.name == "data"
    assert harness.placements() == {}

    listers.persistent_volume_claims.on_add(bound(claim(), "pv"))
    harness.clock.advance(1)
    await running
    assert harness.placements() == {"p": "n2"}


def bound(waiting: PersistentVolumeClaim, volume_name: str) -> PersistentVolumeClaim:
    """Do the volume controller's part."""
    meta = msgspec.structs.replace(waiting.metadata, annotations={BIND_COMPLETED: "yes"})
    spec = msgspec.structs.replace(waiting.spec, volume_name=volume_name)
    return msgspec.structs.replace(waiting, metadata=meta, spec=spec)


@pytest.mark.parametrize(
    ("obj", "want"),
    [
        pytest.param(
            claim(), {"PersistentVolumeClaimAdd", "PersistentVolumeClaimUpdate"}, id="claims"
        ),
        pytest.param(volume(), {"PersistentVolumeAdd", "PersistentVolumeUpdate"}, id="volumes"),
        pytest.param(
            storage_class(),
            {"storage.k8s.io/StorageClassAdd", "storage.k8s.io/StorageClassUpdate"},
            id="classes",
        ),
        pytest.param(
            csi_node(),
            {"storage.k8s.io/CSINodeAdd", "storage.k8s.io/CSINodeUpdate"},
            id="drivers on nodes",
        ),
        pytest.param(csi_driver(), {"storage.k8s.io/CSIDriverUpdate"}, id="drivers"),
        pytest.param(
            storage_capacity(),
            {"storage.k8s.io/CSIStorageCapacityAdd", "storage.k8s.io/CSIStorageCapacityUpdate"},
            id="capacities",
        ),
        pytest.param(
            attachment("a", node="n1", volume="pv"),
            {"storage.k8s.io/VolumeAttachmentDelete"},
            id="attachments",
        ),
        pytest.param(
            resource_claim("c"),
            {"resource.k8s.io/ResourceClaimAdd", "resource.k8s.io/ResourceClaimUpdate"},
            id="claims for devices",
        ),
        pytest.param(
            resource_slice("s", device("a"), node="n1"),
            {"resource.k8s.io/ResourceSliceAdd", "resource.k8s.io/ResourceSliceUpdate"},
            id="slices",
        ),
        pytest.param(
            device_class("gpu"),
            {"resource.k8s.io/DeviceClassAdd", "resource.k8s.io/DeviceClassUpdate"},
            id="classes of devices",
        ),
        pytest.param(group("g"), {"scheduling.k8s.io/PodGroupAdd"}, id="groups of pods"),
        pytest.param(
            composite("c"),
            {
                "scheduling.k8s.io/CompositePodGroupAdd",
                "scheduling.k8s.io/CompositePodGroupUpdate",
            },
            id="groups of groups",
        ),
    ],
)
def test_which_changes_pods_may_wait_for(obj: ApiObject, want: set[str]) -> None:
    """The queue keeps what happens while a pod is being tried."""
    harness = group_harness()
    if isinstance(obj, CompositePodGroup):
        gates = ("TopologyAwareWorkloadScheduling", "CompositePodGroup")
        harness = group_harness(*gates, release="1.37")
    harness.put(pod("p"))
    assert harness.queue.pop() is not None
    handler = harness.handlers[type(obj)]
    handler.on_add(obj)
    handler.on_update(obj, newer(obj))
    handler.on_delete(newer(obj))
    assert set(harness.queue.in_flight_counts()) - {"PodPopped"} == want


def newer(obj: Any) -> Any:
    meta = msgspec.structs.replace(obj.metadata, resource_version="1000")
    return msgspec.structs.replace(obj, metadata=meta)


def test_every_kind_with_events_is_tested_here() -> None:
    marks = test_which_changes_pods_may_wait_for.pytestmark  # type: ignore[attr-defined]
    tested = {type(param.values[0]) for param in marks[0].args[1]}
    waking = {kind.type for kind in KINDS.values() if kind.wakes != ActionType(0)}
    assert tested == waking


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(resource_claim("c"), id="claims"),
        pytest.param(resource_slice("s", device("a"), node="n1"), id="slices"),
        pytest.param(device_class("gpu"), id="classes"),
    ],
)
def test_what_is_decoded_is_known_until_it_is_deleted(obj: KubeStruct) -> None:
    harness = Harness()
    handler, listers = harness.handlers[type(obj)], harness.listers
    data = msgspec.json.encode(obj)
    decoded = KINDS[type(obj).__name__].decode(data)
    handler.on_add(decoded)
    if isinstance(decoded, ResourceClaim):
        assert decoded.raw == data
        assert listers.resource_claims.get("default", "c") is decoded
    handler.on_update(decoded, decoded)
    handler.on_delete(decoded)
    assert listers.resource_claims.get("default", "c") is None
    assert listers.device_classes.get("", "gpu") is None
    assert list(listers.resource_slices) == []


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(resource_slice("s", device("a"), node="n1"), id="a slice"),
        pytest.param(device_class("gpu"), id="a class"),
    ],
)
async def test_a_waiting_pod_is_woken_by_what_it_lacked(
    missing: ResourceSlice | DeviceClass,
) -> None:
    harness = Harness()
    everything: list[ResourceSlice | DeviceClass] = [
        device_class("gpu"),
        resource_slice("s", device("a"), node="n1"),
    ]
    harness.put(node("n1"), resource_claim("c", exactly()))
    harness.put(*(obj for obj in everything if type(obj) is not type(missing)))
    harness.put(with_claims(pod("p"), "c"))
    await harness.until_idle()
    assert harness.placements() == {}
    harness.put(*(obj for obj in everything if type(obj) is type(missing)))
    harness.clock.advance(10)
    harness.queue.flush_backoff_completed()
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}
