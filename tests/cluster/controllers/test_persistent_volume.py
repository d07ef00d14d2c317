"""Who is bound to whom: what the controller of volumes plans."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Create, Delete, Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.persistent_volume import SELECTED_NODE, PersistentVolumeController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    CSIDriverView,
    CSINodeSpecView,
    CSINodeView,
    NodeView,
    ResourceView,
    StorageClassView,
    TopologyLabelView,
    TopologySelectorTermView,
)
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta
from berth.cluster.resources import Object
from berth.kube.client.errors import NotFoundError
from berth.kube.objects.storage import PersistentVolume
from berth.runtime.clock import FakeClock
from tests import volume_builders as builders
from tests.builders import claim_volume, pod
from tests.builders import node as real_node
from tests.insight.whatif.asking import ask, snapshot

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/data"
VOLUME = "/api/v1/persistentvolumes/v"
RWO = ["ReadWriteOnce"]


class World:
    def __init__(self) -> None:
        self.recorded: list[Occurrence] = []
        self.volumes: Table[ResourceView] = Table()
        self.claims: Table[ResourceView] = Table()
        self.classes: Table[StorageClassView] = Table()
        self.nodes: Table[NodeView] = Table()
        self.csi_nodes: Table[CSINodeView] = Table()
        self.controller = PersistentVolumeController(
            self.volumes,
            self.claims,
            self.classes,
            self.nodes,
            self.csi_nodes,
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


def storage_class(
    mode: str, provisioner: str = "hollow", *, allowed: list[Object] | None = None
) -> StorageClassView:
    """Make a class; *allowed* are values by key, in terms of which one must hold."""
    terms = [
        TopologySelectorTermView([TopologyLabelView(key, values) for key, values in term.items()])
        for term in allowed or ()
    ]
    meta = Meta("fast", "uid-fast")
    return StorageClassView(meta, provisioner, "Delete", mode, terms or None)


def node(name: str, **labels: str) -> NodeView:
    """Make a node with its host name, and labels such as zone."""
    given = {f"topology.kubernetes.io/{key}": value for key, value in labels.items()}
    return NodeView(Meta(name, f"uid-{name}", labels={HOSTNAME: name, **given}))


def csi_node(name: str, driver: str, *keys: str) -> CSINodeView:
    return CSINodeView(Meta(name, f"uid-{name}"), CSINodeSpecView([CSIDriverView(driver, [*keys])]))


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
    ("mode", "selected", "provisioner", "made"),
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
    world: World, mode: str, selected: str | None, provisioner: str, made: bool
) -> None:
    world.classes.on_add(storage_class(mode, provisioner))
    world.nodes.on_add(node("n1", zone="a"))
    annotations = {"volume.kubernetes.io/selected-node": selected} if selected else None
    world.claims.on_add(claim(storageClassName="fast", annotations=annotations))

    actions = world.plan()

    assert len(actions) == made
    for action in actions:
        assert isinstance(action, Create)
        assert action.body["metadata"]["name"] == "pvc-uid-data"
        assert action.body["spec"] == {
            "capacity": {"storage": "2Gi"},
            "accessModes": RWO,
            "claimRef": REFERENCE,
            "csi": {"driver": "hollow", "volumeHandle": "pvc-uid-data"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "fast",
            "volumeMode": "Filesystem",
        }


KEY = "topology.example.com/rack"
NODES = (
    node("n1", zone="a", region="r"),
    node("n2", zone="a", region="r"),
    node("n3", zone="b", region="r"),
)


def reach(actions: list[Action]) -> dict[str, str]:
    """Return the labels of the nodes that can use the volume that is made; empty: all."""
    [action] = actions
    assert isinstance(action, Create)
    affinity = action.body["spec"].get("nodeAffinity")
    if affinity is None:
        return {}
    [term] = affinity["required"]["nodeSelectorTerms"]
    assert {expression["operator"] for expression in term["matchExpressions"]} == {"In"}
    return {
        expression["key"]: ",".join(expression["values"]) for expression in term["matchExpressions"]
    }


@pytest.mark.parametrize(
    ("made", "csi_nodes", "want"),
    [
        pytest.param(("example.com/net",), [], {}, id="of an unknown provisioner: everywhere"),
        pytest.param(("rancher.io/local-path",), [], {HOSTNAME: "n1"}, id="a local one: the node"),
        pytest.param(("ebs.csi.aws.com",), [], {ZONE: "a"}, id="a zonal disk: the zone"),
        pytest.param(
            ("example.com/net", {ZONE: ["a", "b"]}), [], {ZONE: "a"}, id="the class names zones"
        ),
        pytest.param(
            ("example.com/net", {ZONE: ["b"]}, {REGION: ["r"]}),
            [],
            {ZONE: "a", REGION: "r"},
            id="the class names zones and regions",
        ),
        pytest.param(
            ("example.com/net",),
            [csi_node("n1", "example.com/net", ZONE)],
            {ZONE: "a"},
            id="the driver has a key",
        ),
        pytest.param(
            ("ebs.csi.aws.com",),
            [csi_node("n1", "ebs.csi.aws.com")],
            {},
            id="the driver has none, whatever its name",
        ),
        pytest.param(
            ("ebs.csi.aws.com",),
            [csi_node("n1", "other", KEY), csi_node("n2", "ebs.csi.aws.com", KEY)],
            {ZONE: "a"},
            id="the driver is not on the node",
        ),
        pytest.param(
            ("example.com/net",),
            [csi_node("n1", "example.com/net", KEY)],
            {},
            id="the node has no such label",
        ),
    ],
)
def test_from_where_a_volume_can_be_used(
    world: World, made: tuple[Any, ...], csi_nodes: list[CSINodeView], want: dict[str, str]
) -> None:
    provisioner, *allowed = made
    for each in NODES:
        world.nodes.on_add(each)
    for csi in csi_nodes:
        world.csi_nodes.on_add(csi)
    world.classes.on_add(storage_class("WaitForFirstConsumer", provisioner, allowed=allowed))
    world.claims.on_add(claim(storageClassName="fast", annotations={SELECTED_NODE: "n1"}))
    assert reach(world.plan()) == want


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(("example.com/net",), [{}], id="everywhere"),
        pytest.param(("ebs.csi.aws.com",), [{ZONE: "a"}, {ZONE: "b"}], id="in one of the zones"),
        pytest.param(("ebs.csi.aws.com", {ZONE: ["b"]}), [{ZONE: "b"}], id="in the allowed zone"),
        pytest.param(
            ("ebs.csi.aws.com", {ZONE: ["new"]}), [{ZONE: "new"}], id="in a zone without nodes"
        ),
    ],
)
def test_without_a_node_claims_are_spread(
    world: World, made: tuple[Any, ...], want: list[dict[str, str]]
) -> None:
    provisioner, *allowed = made
    for each in NODES:
        world.nodes.on_add(each)
    world.classes.on_add(storage_class("Immediate", provisioner, allowed=allowed))
    found = []
    for number in range(8):
        one = claim(storageClassName="fast")
        meta = msgspec.structs.replace(one.metadata, name=f"data-{number}", uid=f"uid-{number}")
        world.claims.on_add(msgspec.structs.replace(one, metadata=meta))
        found.append(reach(world.plan(f"default/data-{number}")))
    assert sorted({*map(str, found)}) == sorted(map(str, want))


def test_a_claim_waits_for_a_node_that_is_not_known_yet(world: World) -> None:
    world.classes.on_add(storage_class("WaitForFirstConsumer"))
    world.claims.on_add(claim(storageClassName="fast", annotations={SELECTED_NODE: "n1"}))
    assert world.plan() == []
    world.enqueued.clear()
    world.nodes.on_add(node("n1"))
    assert world.enqueued == ["default/data"]
    assert reach(world.plan()) == {}


@pytest.mark.parametrize(
    ("provisioner", "taken", "moves_to"),
    [
        pytest.param("ebs.csi.aws.com", "0", ["n2"], id="to the other node of its zone"),
        pytest.param("ebs.csi.aws.com", "4", [], id="nowhere: its zone has no room"),
        pytest.param("rancher.io/local-path", "0", [], id="nowhere: its disk is the node's"),
        pytest.param("example.com/net", "4", ["n3"], id="to any node"),
    ],
)
def test_where_a_database_goes_when_its_node_is_drained(
    world: World, provisioner: str, taken: str, moves_to: list[str]
) -> None:
    for each in NODES:
        world.nodes.on_add(each)
    world.classes.on_add(storage_class("WaitForFirstConsumer", provisioner))
    world.claims.on_add(claim(storageClassName="fast", annotations={SELECTED_NODE: "n1"}))
    [action] = world.plan()
    assert isinstance(action, Create)
    made = msgspec.convert(action.body, PersistentVolume)
    bound = builders.claim("data", storage_class="fast", bound_to=made.metadata.name)
    found = ask(
        snapshot(
            *(real_node(each, zone=zone) for each, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))),
            made,
            msgspec.structs.replace(
                bound,
                metadata=msgspec.structs.replace(bound.metadata, uid="uid-data"),
                spec=msgspec.structs.replace(bound.spec, volume_name=made.metadata.name),
            ),
            pod("db", cpu="1", node="n1", owner="db", volumes=[claim_volume("data")]),
            pod("busy", cpu=taken, node="n2", owner="web"),
        ),
        findRemovable={"names": ["n1"]},
    )
    assert found.removable is not None
    assert [each.moves["default/db"] for each in found.removable.nodes] == moves_to


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
    world.nodes.on_add(node("n"))
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
