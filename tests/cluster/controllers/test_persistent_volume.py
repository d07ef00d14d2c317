"""Who is bound to whom: what the controller of volumes plans."""

from typing import Any

import pytest

from berth.client.errors import NotFoundError
from berth.clock import FakeClock
from berth.cluster.actions import Action, Create, Delete, Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.persistent_volume import SELECTED_NODE, PersistentVolumeController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import Meta, ResourceView, StorageClassView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.resources import Object

CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/data"
VOLUME = "/api/v1/persistentvolumes/v"
RWO = ["ReadWriteOnce"]


class World:
    def __init__(self) -> None:
        self.recorded: list[Occurrence] = []
        self.volumes: Table[ResourceView] = Table()
        self.claims: Table[ResourceView] = Table()
        self.classes: Table[StorageClassView] = Table()
        self.controller = PersistentVolumeController(
            self.volumes,
            self.claims,
            self.classes,
            recorder=EventRecorder(
                self.recorded.append, "persistentvolume-controller", FakeClock()
            ),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)

    def plan(self, key: str = "default/data") -> list[Action]:
        return self.controller.plan(key).actions


@pytest.fixture
def world() -> World:
    return World()


def claim(*, phase: str = "Pending", annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    requests = {"requests": {"storage": "2Gi"}}
    return ResourceView(
        Meta("data", "uid-data", "default", resource_version="5", annotations=annotations),
        {"accessModes": RWO, "resources": requests, "volumeMode": "Filesystem", **spec},
        {"phase": phase},
    )


def volume(name: str = "v", size: str = "2Gi", *, status: Object | None = None, **spec: Any) -> Any:
    return ResourceView(
        Meta(name, f"uid-{name}", resource_version="7"),
        {
            "accessModes": RWO,
            "capacity": {"storage": size},
            "volumeMode": "Filesystem",
            **spec,
        },
        status or {"phase": "Available"},
    )


def storage_class(mode: str, provisioner: str = "hollow") -> StorageClassView:
    return StorageClassView(Meta("fast", "uid-fast"), provisioner, "Delete", mode)


REFERENCE = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "default",
    "name": "data",
    "uid": "uid-data",
    "resourceVersion": "5",
}


def test_the_smallest_volume_that_does_is_reserved(world: World) -> None:
    for each in (volume("tiny", "1Gi"), volume("huge", "9Gi"), volume("v", "3Gi")):
        world.volumes.on_add(each)
    world.claims.on_add(claim())

    meta = {
        "uid": "uid-v",
        "resourceVersion": "7",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert world.plan() == [Patch(VOLUME, {"metadata": meta, "spec": {"claimRef": REFERENCE}})]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"storageClassName": "slow"}, id="another class"),
        pytest.param({"accessModes": ["ReadOnlyMany"]}, id="other access modes"),
        pytest.param({"volumeMode": "Block"}, id="a raw device"),
        pytest.param({"claimRef": {"namespace": "default", "name": "x"}}, id="somebody else's"),
    ],
)
def test_volumes_that_do_not_do(world: World, other: Object) -> None:
    world.volumes.on_add(volume(**other))
    world.claims.on_add(claim())
    assert world.plan() == []


def test_both_sides_of_a_binding_are_told(world: World) -> None:
    world.volumes.on_add(volume(claimRef=REFERENCE))
    world.claims.on_add(claim())

    meta = {
        "uid": "uid-data",
        "resourceVersion": "5",
        "annotations": {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        },
    }
    status = {"phase": "Bound", "accessModes": RWO, "capacity": {"storage": "2Gi"}}
    assert world.plan() == [
        Patch(CLAIM, {"metadata": meta, "spec": {"volumeName": "v"}}),
        Patch(f"{CLAIM}/status", {"metadata": {"uid": "uid-data"}, "status": status}),
        Patch(f"{VOLUME}/status", {"metadata": {"uid": "uid-v"}, "status": {"phase": "Bound"}}),
    ]


def test_what_is_bound_is_left_alone(world: World) -> None:
    world.volumes.on_add(volume(claimRef=REFERENCE, status={"phase": "Bound"}))
    done = claim(
        annotations={"pv.kubernetes.io/bind-completed": "yes"}, volumeName="v", phase="Bound"
    )
    done.status.update(accessModes=RWO, capacity={"storage": "2Gi"})
    world.claims.on_add(done)
    assert (world.plan(), world.plan("v")) == ([], [])


@pytest.mark.parametrize(
    ("mode", "node", "provisioner", "made"),
    [
        pytest.param("Immediate", None, "hollow", True, id="at once"),
        pytest.param("WaitForFirstConsumer", None, "hollow", False, id="no pod has a node yet"),
        pytest.param("WaitForFirstConsumer", "n1", "hollow", True, id="for the pod's node"),
        pytest.param(
            "WaitForFirstConsumer", "n1", "kubernetes.io/no-provisioner", False, id="by hand only"
        ),
    ],
)
def test_making_volumes(
    world: World, mode: str, node: str | None, provisioner: str, made: bool
) -> None:
    world.classes.on_add(storage_class(mode, provisioner))
    annotations = {"volume.kubernetes.io/selected-node": node} if node else None
    world.claims.on_add(claim(storageClassName="fast", annotations=annotations))

    actions = world.plan()

    assert len(actions) == made
    for action in actions:
        assert isinstance(action, Create)
        assert action.body["metadata"]["name"] == "pvc-uid-data"
        spec = dict(action.body["spec"])
        affinity = spec.pop("nodeAffinity", None)
        assert (affinity is not None) is (node is not None)
        assert spec == {
            "capacity": {"storage": "2Gi"},
            "accessModes": RWO,
            "claimRef": REFERENCE,
            "csi": {"driver": "hollow", "volumeHandle": "pvc-uid-data"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "fast",
            "volumeMode": "Filesystem",
        }


def test_a_class_that_waits_leaves_the_choice_of_volumes_to_the_scheduler(world: World) -> None:
    world.classes.on_add(storage_class("WaitForFirstConsumer"))
    world.volumes.on_add(volume(storageClassName="fast"))
    world.claims.on_add(claim(storageClassName="fast"))
    assert world.plan() == []


RELEASED = Patch(
    f"{VOLUME}/status", {"metadata": {"uid": "uid-v"}, "status": {"phase": "Released"}}
)


@pytest.mark.parametrize(
    ("policy", "phase", "want"),
    [
        pytest.param("Delete", "Bound", [RELEASED], id="is released"),
        pytest.param("Delete", "Released", [Delete(VOLUME, "uid-v")], id="and deleted"),
        pytest.param("Retain", "Bound", [RELEASED], id="or kept"),
        pytest.param("Retain", "Released", [], id="for good"),
    ],
)
def test_a_volume_whose_claim_is_gone(
    world: World, policy: str, phase: str, want: list[Action]
) -> None:
    spec: Object = {"claimRef": REFERENCE, "persistentVolumeReclaimPolicy": policy}
    world.volumes.on_add(volume(status={"phase": phase}, **spec))

    assert world.plan("v") == [Get(CLAIM)]
    world.controller.finished("v", Outcome(Get(CLAIM), error=NotFoundError(404, "NotFound", "no")))

    assert world.plan("v") == want


def test_a_new_volume_wakes_the_claims_of_its_class(world: World) -> None:
    world.claims.on_add(claim(storageClassName="fast"))
    world.enqueued.clear()
    world.volumes.on_add(volume(storageClassName="fast"))
    assert world.enqueued == ["v", "default/data"]


def test_events_tell_what_a_claim_waits_for_and_gets(world: World) -> None:
    world.classes.on_add(storage_class("WaitForFirstConsumer"))
    world.claims.on_add(claim(storageClassName="fast"))
    world.plan()
    world.claims.on_add(claim(storageClassName="fast", annotations={SELECTED_NODE: "n"}))
    [create] = world.plan()
    world.controller.finished("default/data", Outcome(create, answer=b"{}"))
    world.claims.on_add(claim())
    world.plan()

    assert [(each.reason, each.message) for each in world.recorded] == [
        ("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        ("ProvisioningSucceeded", "Successfully provisioned volume pvc-uid-data"),
        (
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ),
    ]
