"""VolumeRestrictions: disks that cannot be shared, and claims for one pod only."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    EphemeralVolumeSource,
    GCEPersistentDisk,
    ISCSIVolume,
    Pod,
    RBDVolume,
    Volume,
)
from berth.kube.objects.storage import PersistentVolumeClaim
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    NODE_ADD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.shared.volume_claims import CLAIM_INDEX
from berth_plugins.volume_restrictions import (
    CLAIM_IN_USE,
    DISK_CONFLICT,
    SHARED_INDEX,
    VolumeRestrictions,
    after_new_claim,
    after_pod_deletion,
)
from tests.builders import node, pod
from tests.plugins.evaluating import table
from tests.volume_builders import claim, listers


def gce(name: str = "d", *, read_only: bool = False) -> Volume:
    return Volume("v", gce_persistent_disk=GCEPersistentDisk(name, read_only))


def aws(name: str = "d", *, read_only: bool = False) -> Volume:
    return Volume("v", aws_elastic_block_store=AWSElasticBlockStore(name, read_only))


def iscsi(iqn: str = "d", *, read_only: bool = False) -> Volume:
    return Volume("v", iscsi=ISCSIVolume(iqn, read_only))


def rbd(*monitors: str, pool: str = "rbd", image: str = "d", read_only: bool = False) -> Volume:
    return Volume("v", rbd=RBDVolume(monitors, pool, image, read_only))


def plugin(nodes: NodeTable, *claims: PersistentVolumeClaim) -> VolumeRestrictions:
    return VolumeRestrictions(None, Handle(nodes, listers=listers(*claims)))


def evaluate(
    a_pod: Pod, nodes: NodeTable, *claims: PersistentVolumeClaim
) -> Status | dict[str, Status | None]:
    """Return what PreFilter says or, if it says nothing, what Filter says of each node."""
    tested = plugin(nodes, *claims)
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    refused = tested.pre_filter(state, info, nodes)
    if refused is not None:
        return refused
    verdict = tested.filter(state, info, nodes)
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


@pytest.mark.parametrize(
    ("mine", "theirs", "conflicts"),
    [
        pytest.param(gce(), gce(), True, id="a GCE disk"),
        pytest.param(gce(), gce("e"), False, id="another GCE disk"),
        pytest.param(gce(read_only=True), gce(read_only=True), False, id="both only read"),
        pytest.param(gce(read_only=True), gce(), True, id="the other writes"),
        pytest.param(gce(), gce(read_only=True), True, id="this one writes"),
        pytest.param(aws(), aws(), True, id="an AWS disk"),
        pytest.param(aws(), aws("e"), False, id="another AWS disk"),
        pytest.param(aws(read_only=True), aws(read_only=True), True, id="AWS, both only read"),
        pytest.param(iscsi(), iscsi(), True, id="an iSCSI name"),
        pytest.param(iscsi(read_only=True), iscsi(read_only=True), False, id="iSCSI, both read"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), True, id="an RBD image"),
        pytest.param(rbd("m1"), rbd("m2"), False, id="RBD, on other monitors"),
        pytest.param(rbd("m"), rbd("m", pool="p"), False, id="RBD, in another pool"),
        pytest.param(rbd("m"), rbd("m", image="e"), False, id="another RBD image"),
        pytest.param(rbd("m", read_only=True), rbd("m", read_only=True), False, id="RBD, read"),
        pytest.param(gce(), aws(), False, id="disks of two clouds by one name"),
    ],
)
def test_disks(mine: Volume, theirs: Volume, *, conflicts: bool) -> None:
    other = pod("other", node="n1", volumes=[theirs])
    nodes = table(node("n1"), node("n2"), pods=[pod("plain", node="n1"), other])
    want = {"n1": DISK_CONFLICT if conflicts else None, "n2": None}
    assert evaluate(pod(volumes=[mine]), nodes) == want

    hint = QueueingHint.QUEUE if conflicts else QueueingHint.SKIP
    assert after_pod_deletion(pod(volumes=[mine]), other, None) is hint


RWOP = claim("single", modes=["ReadWriteOncePod"])
IN_USE = {"n1": CLAIM_IN_USE, "n2": CLAIM_IN_USE}


@pytest.mark.parametrize(
    ("a_pod", "others", "want"),
    [
        pytest.param(pod(), [], SKIP, id="no volumes"),
        pytest.param(pod(claims=["shared"]), [], SKIP, id="a claim that can be shared"),
        pytest.param(pod(claims=["single"]), [], SKIP, id="nobody else has the claim"),
        pytest.param(
            pod(claims=["single"]),
            [pod("o", node="n1", claims=["single"])],
            IN_USE,
            id="somebody has it: no node will do",
        ),
        pytest.param(
            pod(claims=["single"]),
            [pod("o", ns="x", node="n1", claims=["single"])],
            SKIP,
            id="a claim of that name in another namespace",
        ),
        pytest.param(
            pod(claims=["p-v"]),
            [pod("p", node="n1", volumes=[Volume("v", ephemeral=EphemeralVolumeSource())])],
            SKIP,
            id="ephemeral volumes are not looked at",
        ),
        pytest.param(
            pod(claims=["single"], volumes=[gce()]),
            [pod("o", node="n1", claims=["single"]), pod("q", node="n2", volumes=[gce()])],
            {"n1": CLAIM_IN_USE, "n2": DISK_CONFLICT},
            id="the disk is told first",
        ),
        pytest.param(
            pod(claims=["shared", "gone"]),
            [],
            Status.unresolvable('persistentvolumeclaim "gone" not found'),
            id="a claim is missing",
        ),
    ],
)
def test_claims(a_pod: Pod, others: Sequence[Pod], want: Any) -> None:
    nodes = table(node("n1"), node("n2"), pods=others)
    claims = (RWOP, claim("shared"), claim("p-v", modes=["ReadWriteOncePod"]))
    assert evaluate(a_pod, nodes, *claims) == want


def test_taking_the_other_pod_away_frees_the_claim() -> None:
    """Namespaces are not compared here, as in kube-scheduler."""
    other = pod("o", node="n1", claims=["single"])
    nodes = table(node("n1"), node("n2"), pods=[other])
    tested = plugin(nodes, RWOP)
    state, info = CycleState(nodes.exists.copy()), PodInfo(pod(claims=["single"]))
    assert tested.pre_filter(state, info, nodes) is None
    twin, part = state.clone(), nodes.take([nodes.row_of["n1"], nodes.row_of["n2"]])
    there = np.array([0])
    part.remove_pods(there, [PodInfo(other)])

    tested.remove_pods(twin, info, there, PodBatch([PodInfo(other)]), part)
    assert [tested.filter(twin, info, part).status_of(i) for i in range(2)] == [
        None,
        CLAIM_IN_USE,
    ]
    assert tested.filter(state, info, nodes).status_of(nodes.row_of["n1"]) == CLAIM_IN_USE

    namesake = PodInfo(pod("o", ns="x", node="n1", claims=["single"]))
    tested.add_pods(twin, info, there, PodBatch([namesake]), part)
    assert tested.filter(twin, info, part).status_of(0) == CLAIM_IN_USE


@pytest.mark.parametrize(
    ("deleted", "want"),
    [
        pytest.param(pod("o", claims=["data"]), QueueingHint.QUEUE, id="it had a claim of the pod"),
        pytest.param(
            pod("o", ns="x", claims=["data"]), QueueingHint.SKIP, id="in another namespace"
        ),
        pytest.param(
            pod("o", ns="x", volumes=[gce()]),
            QueueingHint.SKIP,
            id="disks count in the namespace only",
        ),
        pytest.param(pod("o", claims=["other"]), QueueingHint.SKIP, id="it had another claim"),
    ],
)
def test_after_pod_deletion(deleted: Pod, want: QueueingHint) -> None:
    assert after_pod_deletion(pod(claims=["data"], volumes=[gce()]), deleted, None) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(claim("data"), QueueingHint.QUEUE, id="a claim of the pod"),
        pytest.param(claim("other"), QueueingHint.SKIP, id="another claim"),
        pytest.param(claim("data", ns="x"), QueueingHint.SKIP, id="in another namespace"),
    ],
)
def test_after_new_claim(new: PersistentVolumeClaim, want: QueueingHint) -> None:
    assert after_new_claim(pod(claims=["data"]), None, new) is want


def test_events() -> None:
    claim_added = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
    assert plugin(table()).events_to_register() == [
        ClusterEventWithHint(
            ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deletion, (SHARED_INDEX,)
        ),
        ClusterEventWithHint(NODE_ADD),
        ClusterEventWithHint(claim_added, after_new_claim, (CLAIM_INDEX,)),
    ]
