"""A pod with claims, from the first refusal to its node, as watches tell of storage."""

import asyncio
from typing import Any

import msgspec
import pytest

from berth.objects.storage import BIND_COMPLETED, PersistentVolumeClaim
from berth.scheduler.object_handler import ObjectHandler
from berth.scheduler.storage_watches import storage_watches
from tests.builders import node, pod
from tests.harness import Harness
from tests.volume_builders import (
    StorageObject,
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_capacity,
    storage_class,
    volume,
)


class Storage:
    """A harness with the watches of storage kinds."""

    def __init__(self) -> None:
        self.harness = Harness()
        watches = storage_watches(self.harness.cluster.listers, self.harness.queue)
        self.handlers = {watch.path.rpartition("/")[2]: watch.handler for watch in watches}

    def handler(self, obj: StorageObject) -> ObjectHandler[Any]:
        name = type(obj).__name__.lower()
        plural = {"storageclass": "storageclasses", "csistoragecapacity": "csistoragecapacities"}
        return self.handlers[plural.get(name, f"{name}s")]

    def add(self, *objects: StorageObject) -> None:
        for obj in objects:
            self.handler(obj).on_add(obj)


async def test_a_pod_waits_for_its_claim_and_the_volume() -> None:
    storage = Storage()
    harness = storage.harness
    harness.put(node("n1"), pod("p", claims=["data"]))
    await harness.until_idle()
    assert harness.placements() == {}
    assert harness.cluster.conditions["default/p"].message.startswith(
        '0/1 nodes are available: persistentvolumeclaim "data" not found.'
    )

    storage.add(volume(claim=claim()), claim(bound_to="pv"))
    await harness.until_idle()
    assert harness.placements() == {"p": "n1"}


async def test_a_volume_is_chosen_with_the_node_and_waited_for() -> None:
    storage = Storage()
    harness = storage.harness
    storage.add(storage_class(), claim(), volume(hosts=["n2"]))
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
    ],
)
def test_which_changes_pods_may_wait_for(obj: StorageObject, want: set[str]) -> None:
    """The queue keeps what happens while a pod is being tried."""
    storage = Storage()
    storage.harness.put(pod("p"))
    assert storage.harness.queue.pop() is not None
    handler = storage.handler(obj)
    handler.on_add(obj)
    handler.on_update(obj, obj)
    handler.on_delete(obj)
    assert set(storage.harness.queue.in_flight_counts()) - {"PodPopped"} == want
