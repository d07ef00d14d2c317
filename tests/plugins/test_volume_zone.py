"""VolumeZone: the zones and regions in the labels of a pod's volumes."""

from collections.abc import Sequence
from typing import Any

import pytest

from berth.kube.objects.pod import EphemeralVolumeSource, Pod, Volume
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.shared.volume_claims import CLAIM_INDEX
from berth_plugins.volume_zone import (
    NO_ZONE,
    VolumeZone,
    after_claim_change,
    after_new_class,
    after_volume_change,
)
from tests.builders import REGION, ZONE, claim_volume, node, pod
from tests.plugins.evaluating import table
from tests.volume_builders import StorageObject, claim, listers, storage_class, volume

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

NODES = [
    node("a", zone="a", region="r"),
    node("b", zone="b", region="r"),
    node("beta-a", labels={BETA_ZONE: "a"}),
    node("bare"),
]


def plugin(nodes: NodeTable, *objects: StorageObject) -> VolumeZone:
    return VolumeZone(None, Handle(nodes, listers=listers(*objects)))


def evaluate(a_pod: Pod, *objects: StorageObject) -> Status | set[str]:
    """Return what PreFilter says or, if it says nothing, the nodes that Filter rejects."""
    nodes = table(*NODES)
    tested = plugin(nodes, *objects)
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    refused = tested.pre_filter(state, info, nodes)
    if refused is not None:
        return refused
    verdict = tested.filter(state, info, nodes)
    statuses = {name: verdict.status_of(row) for name, row in nodes.row_of.items()}
    assert set(statuses.values()) <= {None, NO_ZONE}
    return {name for name, status in statuses.items() if status is not None}


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({}, SKIP, id="no zone at all"),
        pytest.param({ZONE: "a"}, {"b", "beta-a"}, id="a zone"),
        pytest.param({ZONE: "a__b"}, {"beta-a"}, id="two zones"),
        pytest.param({ZONE: " a __b"}, {"beta-a"}, id="blanks around zones"),
        pytest.param({ZONE: "a__"}, SKIP, id="an empty zone makes the label void"),
        pytest.param({BETA_ZONE: "a"}, {"b"}, id="a beta label, which the stable one meets"),
        pytest.param({BETA_ZONE: "b"}, {"a", "beta-a"}, id="a node's beta label comes first"),
        pytest.param({REGION: "r"}, {"beta-a"}, id="a region"),
        pytest.param({ZONE: "a", REGION: "other"}, {"a", "b", "beta-a"}, id="both must match"),
        pytest.param({ZONE: "a", BETA_REGION: "r"}, {"b", "beta-a"}, id="stable and beta"),
    ],
)
def test_labels_of_the_volume(labels: dict[str, str], want: Any) -> None:
    objects = (claim("data", bound_to="pv"), volume("pv", labels=labels))
    assert evaluate(pod(claims=["data"]), *objects) == want


def test_all_volumes_must_match() -> None:
    objects = (
        claim("d1", bound_to="v1"),
        claim("d2", bound_to="v2"),
        volume("v1", labels={ZONE: "a__b"}),
        volume("v2", labels={ZONE: "b__c"}),
    )
    assert evaluate(pod(claims=["d1", "d2"]), *objects) == {"a", "beta-a"}


@pytest.mark.parametrize(
    ("volumes", "objects", "want"),
    [
        pytest.param([], [], SKIP, id="no volumes"),
        pytest.param(
            [Volume("v", ephemeral=EphemeralVolumeSource())], [], SKIP, id="an ephemeral volume"
        ),
        pytest.param(
            [claim_volume("")],
            [],
            Status.unresolvable("PersistentVolumeClaim had no name"),
            id="a claim without a name",
        ),
        pytest.param(
            [claim_volume("data")],
            [],
            Status.unresolvable('persistentvolumeclaim "data" not found'),
            id="a missing claim",
        ),
        pytest.param(
            [claim_volume("data")],
            [claim(bound_to="pv")],
            Status.unresolvable('persistentvolume "pv" not found'),
            id="a missing volume",
        ),
        pytest.param(
            [claim_volume("data")],
            [claim(storage_class="")],
            Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="neither volume nor class",
        ),
        pytest.param(
            [claim_volume("data")],
            [claim()],
            Status.unresolvable('storageclass.storage.k8s.io "local" not found'),
            id="a missing class",
        ),
        pytest.param(
            [claim_volume("data")],
            [claim(), storage_class(mode=None)],
            Status.unresolvable('VolumeBindingMode not set for StorageClass "local"'),
            id="a class without a mode",
        ),
        pytest.param(
            [claim_volume("data")],
            [claim(), storage_class(mode="Immediate")],
            Status.unresolvable("PersistentVolume had no name"),
            id="a volume that should be there",
        ),
        pytest.param(
            [claim_volume("data")],
            [claim(), storage_class()],
            SKIP,
            id="a volume that is chosen with the node",
        ),
    ],
)
def test_pre_filter(
    volumes: Sequence[Volume], objects: Sequence[StorageObject], want: Status
) -> None:
    assert evaluate(pod(volumes=volumes), *objects) == want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(storage_class(), QueueingHint.QUEUE, id="volumes wait for the node"),
        pytest.param(storage_class(mode="Immediate"), QueueingHint.SKIP, id="volumes come first"),
        pytest.param(storage_class(mode=None), QueueingHint.SKIP, id="it does not say"),
    ],
)
def test_after_new_class(new: StorageClass, want: QueueingHint) -> None:
    assert after_new_class(pod(claims=["data"]), None, new) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(claim("data"), QueueingHint.QUEUE, id="a claim of the pod"),
        pytest.param(claim("other"), QueueingHint.SKIP, id="another claim"),
        pytest.param(claim("data", ns="x"), QueueingHint.SKIP, id="in another namespace"),
    ],
)
def test_after_claim_change(new: PersistentVolumeClaim, want: QueueingHint) -> None:
    assert after_claim_change(pod(claims=["data"]), None, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, volume(), QueueingHint.QUEUE, id="a new volume"),
        pytest.param(
            volume(), volume(labels={ZONE: "a"}), QueueingHint.QUEUE, id="now it is somewhere"
        ),
        pytest.param(
            volume(labels={ZONE: "a"}),
            volume(labels={ZONE: "a", "x": "y"}),
            QueueingHint.SKIP,
            id="another label changed",
        ),
    ],
)
def test_after_volume_change(
    old: PersistentVolume | None, new: PersistentVolume, want: QueueingHint
) -> None:
    assert after_volume_change(pod(claims=["data"]), old, new) is want


def test_events() -> None:
    changed = ActionType.ADD | ActionType.UPDATE
    node_event = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    claim_event = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changed)
    volume_event = ClusterEvent(EventResource.PERSISTENT_VOLUME, changed)
    class_event = ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD)
    assert plugin(table()).events_to_register() == [
        ClusterEventWithHint(class_event, after_new_class),
        ClusterEventWithHint(node_event),
        ClusterEventWithHint(claim_event, after_claim_change, (CLAIM_INDEX,)),
        ClusterEventWithHint(volume_event, after_volume_change),
    ]
