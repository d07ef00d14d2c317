"""NodeVolumeLimits and VolumeBinding: which events make a waiting pod worth another attempt."""

from typing import Any, Final

import pytest

from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    AzureDisk,
    CSIVolume,
    EphemeralVolumeSource,
    Pod,
    Volume,
)
from berth.kube.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth_plugins.node_volume_limits.plugin import (
    VOLUME_LIMIT_SCALING,
    NodeVolumeLimits,
    after_csi_node_update,
    after_detachment,
    after_driver_installation,
    after_new_claim,
    after_pod_deletion,
)
from berth_plugins.shared.volume_claims import CLAIM_INDEX
from berth_plugins.volume_binding import plugin as volume_binding
from berth_plugins.volume_binding.plugin import VolumeBinding
from tests.builders import ZONE, pod
from tests.plugins.evaluating import table
from tests.volume_builders import (
    attachment,
    claim,
    csi_driver,
    csi_node,
    storage_capacity,
    storage_class,
)

CSI: Final = "csi.example.com"
SCRATCH = Volume("v", ephemeral=EphemeralVolumeSource())
DISK = Volume("d", aws_elastic_block_store=AWSElasticBlockStore("d"))

CLAIMS = [
    pytest.param(claim("c"), QueueingHint.QUEUE, id="a claim of the pod"),
    pytest.param(claim("p-v"), QueueingHint.QUEUE, id="a claim made for the pod"),
    pytest.param(claim("x"), QueueingHint.SKIP, id="another claim"),
    pytest.param(claim("c", ns="x"), QueueingHint.SKIP, id="in another namespace"),
]


def on(
    resource: EventResource, action: ActionType, hint: Any = None, *indexes: HintIndex
) -> ClusterEventWithHint:
    return ClusterEventWithHint(ClusterEvent(resource, action), hint, indexes)


# NodeVolumeLimits.


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(csi_node(), csi_node(limits={CSI: 1}), QueueingHint.QUEUE, id="a new limit"),
        pytest.param(
            csi_node(limits={CSI: 1}),
            csi_node(limits={CSI: 2}),
            QueueingHint.QUEUE,
            id="a higher limit",
        ),
        pytest.param(
            csi_node(limits={CSI: 2}),
            csi_node(limits={CSI: 1}),
            QueueingHint.SKIP,
            id="a lower limit",
        ),
        pytest.param(
            csi_node(limits={CSI: 1}), csi_node(), QueueingHint.SKIP, id="no limit any more"
        ),
    ],
)
def test_after_csi_node_update(old: CSINode, new: CSINode, want: QueueingHint) -> None:
    assert after_csi_node_update(pod(claims=["c"]), old, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            csi_node(), csi_node(limits={CSI: None}), QueueingHint.QUEUE, id="a new driver"
        ),
        pytest.param(
            csi_node(limits={CSI: None}),
            csi_node(limits={CSI: 2}),
            QueueingHint.QUEUE,
            id="a limit that was not known",
        ),
        pytest.param(
            csi_node(limits={CSI: None, "other": None}),
            csi_node(limits={CSI: None}),
            QueueingHint.SKIP,
            id="a driver that is gone",
        ),
    ],
)
def test_after_driver_installation(old: CSINode, new: CSINode, want: QueueingHint) -> None:
    assert after_driver_installation(pod(claims=["c"]), old, new) is want


@pytest.mark.parametrize(
    ("deleted", "want"),
    [
        pytest.param(pod("o", node="n1", claims=["a"]), QueueingHint.QUEUE, id="it had a claim"),
        pytest.param(pod("o", nominated="n1", volumes=[DISK]), QueueingHint.QUEUE, id="nominated"),
        pytest.param(pod("o", claims=["a"]), QueueingHint.SKIP, id="it had no place"),
        pytest.param(pod("o", node="n1"), QueueingHint.SKIP, id="it had no volumes"),
    ],
)
def test_after_pod_deletion(deleted: Pod, want: QueueingHint) -> None:
    assert after_pod_deletion(pod(claims=["c"]), deleted, None) is want


@pytest.mark.parametrize(
    ("new", "want"),
    CLAIMS,
)
def test_after_new_claim(new: PersistentVolumeClaim, want: QueueingHint) -> None:
    assert after_new_claim(pod(claims=["c"], volumes=[SCRATCH]), None, new) is want


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(claims=["c"]), QueueingHint.QUEUE, id="the pod has a claim"),
        pytest.param(pod(volumes=[DISK]), QueueingHint.QUEUE, id="a disk of the same driver"),
        pytest.param(
            pod(volumes=[Volume("v", azure_disk=AzureDisk())]),
            QueueingHint.SKIP,
            id="of another driver",
        ),
        pytest.param(pod(), QueueingHint.SKIP, id="no volumes"),
    ],
)
def test_after_detachment(a_pod: Pod, want: QueueingHint) -> None:
    gone = attachment("x", node="n1", volume="v", attacher="ebs.csi.aws.com")
    assert after_detachment(a_pod, gone, None) is want


def test_events_of_node_volume_limits() -> None:
    plugin = NodeVolumeLimits(None, Handle(table(), features=Features.of()))
    assert plugin.events_to_register() == [
        on(EventResource.CSI_NODE, ActionType.ADD),
        on(EventResource.CSI_NODE, ActionType.UPDATE, after_csi_node_update),
        on(EventResource.POD, ActionType.DELETE, after_pod_deletion),
        on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, after_new_claim, CLAIM_INDEX),
        on(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, after_detachment),
    ]


def test_with_volume_limit_scaling_a_new_driver_wakes() -> None:
    features = Features.of(VOLUME_LIMIT_SCALING)
    plugin = NodeVolumeLimits(None, Handle(table(), features=features))
    update = on(EventResource.CSI_NODE, ActionType.UPDATE, after_driver_installation)
    assert update in plugin.events_to_register()


# VolumeBinding.

ZONED = storage_class(topologies=[{ZONE: ["a"]}])


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, storage_class(), QueueingHint.QUEUE, id="a new class"),
        pytest.param(ZONED, storage_class(), QueueingHint.QUEUE, id="it allows other nodes now"),
        pytest.param(ZONED, ZONED, QueueingHint.SKIP, id="it allows the same nodes"),
    ],
)
def test_after_class_change(
    old: StorageClass | None, new: StorageClass, want: QueueingHint
) -> None:
    assert volume_binding.after_class_change(pod(claims=["c"]), old, new) is want


@pytest.mark.parametrize(("new", "want"), CLAIMS)
def test_after_claim_change(new: PersistentVolumeClaim, want: QueueingHint) -> None:
    a_pod = pod(claims=["c"], volumes=[SCRATCH])
    assert volume_binding.after_claim_change(a_pod, None, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, csi_node(), QueueingHint.QUEUE, id="a new node"),
        pytest.param(
            csi_node(),
            csi_node(migrated="kubernetes.io/cinder"),
            QueueingHint.QUEUE,
            id="taken over",
        ),
        pytest.param(csi_node(), csi_node(limits={CSI: 1}), QueueingHint.SKIP, id="another limit"),
    ],
)
def test_after_csi_node_change(old: CSINode | None, new: CSINode, want: QueueingHint) -> None:
    assert volume_binding.after_csi_node_change(pod(claims=["c"]), old, new) is want


@pytest.mark.parametrize(
    ("driver", "old", "new", "want"),
    [
        pytest.param(
            CSI,
            csi_driver(),
            csi_driver(capacity=False),
            QueueingHint.QUEUE,
            id="it stops reporting",
        ),
        pytest.param(
            CSI,
            csi_driver(capacity=False),
            csi_driver(),
            QueueingHint.SKIP,
            id="it starts reporting",
        ),
        pytest.param(
            "other",
            csi_driver(),
            csi_driver(capacity=False),
            QueueingHint.SKIP,
            id="another driver",
        ),
    ],
)
def test_after_driver_update(
    driver: str, old: CSIDriver, new: CSIDriver, want: QueueingHint
) -> None:
    a_pod = pod(claims=["c"], volumes=[Volume("v", csi=CSIVolume(driver))])
    assert volume_binding.after_driver_update(a_pod, old, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, storage_capacity(), QueueingHint.QUEUE, id="a new report"),
        pytest.param(
            storage_capacity(size="1Gi"),
            storage_capacity(size="2Gi"),
            QueueingHint.QUEUE,
            id="more",
        ),
        pytest.param(
            storage_capacity(size="2Gi"), storage_capacity(size="1Gi"), QueueingHint.SKIP, id="less"
        ),
        pytest.param(
            storage_capacity(), storage_capacity(size="1"), QueueingHint.QUEUE, id="it is told"
        ),
        pytest.param(
            storage_capacity(size="1"), storage_capacity(), QueueingHint.SKIP, id="not any more"
        ),
        pytest.param(
            storage_capacity(size="1Gi", largest="1Gi"),
            storage_capacity(size="9Gi", largest="1Gi"),
            QueueingHint.SKIP,
            id="more, but not in one volume",
        ),
    ],
)
def test_after_capacity_change(
    old: CSIStorageCapacity | None, new: CSIStorageCapacity, want: QueueingHint
) -> None:
    assert volume_binding.after_capacity_change(pod(claims=["c"]), old, new) is want


def test_events_of_volume_binding() -> None:
    changed = ActionType.ADD | ActionType.UPDATE
    plugin = VolumeBinding(None, Handle(table()))
    assert plugin.events_to_register() == [
        on(EventResource.STORAGE_CLASS, changed, volume_binding.after_class_change),
        on(
            EventResource.PERSISTENT_VOLUME_CLAIM,
            changed,
            volume_binding.after_claim_change,
            CLAIM_INDEX,
        ),
        on(EventResource.PERSISTENT_VOLUME, changed),
        on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        on(EventResource.CSI_NODE, changed, volume_binding.after_csi_node_change),
        on(EventResource.CSI_DRIVER, ActionType.UPDATE, volume_binding.after_driver_update),
        on(EventResource.CSI_STORAGE_CAPACITY, changed, volume_binding.after_capacity_change),
    ]
