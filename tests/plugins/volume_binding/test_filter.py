"""VolumeBinding: which pods can be scheduled at all, and which nodes can have their volumes."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from berth.kube.objects.meta import LabelSelectorRequirement
from berth.kube.objects.pod import AWSElasticBlockStore, EphemeralVolumeSource, Pod, Volume
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Code, Status
from berth_plugins.volume_binding.binder import (
    BIND_CONFLICT,
    NODE_CONFLICT,
    NOT_ENOUGH_SPACE,
    PV_NOT_EXIST,
    UNBOUND_IMMEDIATE,
)
from berth_plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs
from tests.builders import HOSTNAME, ZONE, node, pod, requirement, selector, term
from tests.plugins.evaluating import table
from tests.volume_builders import (
    StorageObject,
    claim,
    csi_driver,
    csi_node,
    listers,
    storage_capacity,
    storage_class,
    volume,
)

NODES = [node("n1", zone="a"), node("n2", zone="b")]
SCRATCH = Volume("v", ephemeral=EphemeralVolumeSource())
LOCAL = storage_class("local")
DYNAMIC = storage_class("dyn", provisioner="csi.example.com")


def evaluate(a_pod: Pod, *objects: StorageObject) -> Any:
    """Return what PreFilter says or, if it says nothing, what Filter says of each node."""
    nodes = table(*NODES)
    plugin = VolumeBinding(None, Handle(nodes, listers=listers(*objects)))
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    refused = plugin.pre_filter(state, info, nodes)
    if refused is not None:
        return refused
    verdict = plugin.filter(state, info, nodes)
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


@pytest.mark.parametrize(
    ("a_pod", "objects", "want"),
    [
        pytest.param(pod(), [], SKIP, id="no claims"),
        pytest.param(
            pod(claims=["data"]),
            [],
            Status.unresolvable('persistentvolumeclaim "data" not found'),
            id="a claim is missing",
        ),
        pytest.param(
            pod(volumes=[SCRATCH]),
            [],
            Status.unresolvable(
                'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'
            ),
            id="a claim is yet to be made for the pod",
        ),
        pytest.param(
            pod(claims=["data"]),
            [claim(bound_to="pv", phase="Lost")],
            Status.unresolvable(
                'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'
            ),
            id="a claim lost its volume",
        ),
        pytest.param(
            pod(claims=["data"]),
            [claim(deleted="2026-01-01T00:00:00Z")],
            Status.unresolvable('persistentvolumeclaim "data" is being deleted'),
            id="a claim is being deleted",
        ),
        pytest.param(
            pod(volumes=[SCRATCH]),
            [claim("p-v")],
            Status.unresolvable(
                "PVC default/p-v was not created for pod default/p (pod is not owner)"
            ),
            id="a claim of the name was not made for the pod",
        ),
        pytest.param(
            pod(claims=["data"]), [claim(storage_class="")], UNBOUND_IMMEDIATE, id="no class"
        ),
        pytest.param(pod(claims=["data"]), [claim()], UNBOUND_IMMEDIATE, id="an unknown class"),
        pytest.param(
            pod(claims=["data"]),
            [claim(), storage_class(mode="Immediate")],
            UNBOUND_IMMEDIATE,
            id="volumes of the class come before pods",
        ),
        pytest.param(
            pod(claims=["data"]),
            [claim(volume="pv"), LOCAL, volume()],
            UNBOUND_IMMEDIATE,
            id="a claim that names its volume is not done yet",
        ),
        pytest.param(
            pod(claims=["data"]),
            [claim(), storage_class(mode=None)],
            Status.error('VolumeBindingMode not set for StorageClass "local"'),
            id="a class does not say when",
        ),
    ],
)
def test_pre_filter(a_pod: Pod, objects: Sequence[StorageObject], want: Status) -> None:
    assert evaluate(a_pod, *objects) == want


def reasons(*parts: Status) -> Status:
    return Status.unresolvable(*(reason for part in parts for reason in part.reasons))


BOUND = claim("data", bound_to="pv")


@pytest.mark.parametrize(
    ("claims", "objects", "want"),
    [
        pytest.param([BOUND], [volume()], [None, None], id="a volume for every node"),
        pytest.param([BOUND], [volume(hosts=["n1"])], [None, NODE_CONFLICT], id="only on one node"),
        pytest.param([BOUND], [], [PV_NOT_EXIST, PV_NOT_EXIST], id="the volume is gone"),
        pytest.param(
            [claim("one", bound_to="v1"), claim("two", bound_to="v2")],
            [volume("v1", hosts=["n1"])],
            [PV_NOT_EXIST, NODE_CONFLICT],
            id="the first volume that does not fit is told",
        ),
        pytest.param(
            [claim()], [LOCAL, volume(hosts=["n1"])], [None, BIND_CONFLICT], id="a free one"
        ),
        pytest.param([claim()], [LOCAL], [BIND_CONFLICT, BIND_CONFLICT], id="none is free"),
        pytest.param(
            [BOUND, claim("new")],
            [LOCAL, volume(hosts=["n1"], claim=BOUND)],
            [BIND_CONFLICT, reasons(NODE_CONFLICT, BIND_CONFLICT)],
            id="all claims are evaluated",
        ),
        pytest.param(
            [claim("one"), claim("two")],
            [LOCAL, volume("v1"), volume("v2", hosts=["n1"])],
            [None, BIND_CONFLICT],
            id="two claims need two volumes",
        ),
        pytest.param(
            [claim("new", storage_class="dyn")], [DYNAMIC], [None, None], id="a new volume"
        ),
        pytest.param(
            [claim("new", storage_class="dyn")],
            [storage_class("dyn", provisioner="csi.example.com", topologies=[{ZONE: ["a"]}])],
            [None, BIND_CONFLICT],
            id="a new volume in a zone",
        ),
        pytest.param(
            [claim("new", storage_class="dyn")],
            [
                DYNAMIC,
                csi_driver(),
                storage_capacity(nodes=selector({HOSTNAME: "n1"}), size="1Gi"),
            ],
            [None, NOT_ENOUGH_SPACE],
            id="room for a new volume on one node",
        ),
        pytest.param(
            [claim("new", storage_class="dyn")],
            [DYNAMIC, csi_driver(), volume("free", storage_class="dyn", hosts=["n1"])],
            [None, NOT_ENOUGH_SPACE],
            id="a free volume needs no room",
        ),
        pytest.param(
            [claim("new", storage_class="dyn", selected="n2")],
            [DYNAMIC, volume("free", storage_class="dyn")],
            [BIND_CONFLICT, None],
            id="a node was selected before",
        ),
        pytest.param(
            [claim("new", storage_class="dyn", selected="n2"), claim("b", bound_to="pv")],
            [DYNAMIC, volume(hosts=["n2"])],
            [reasons(NODE_CONFLICT, BIND_CONFLICT), None],
            id="bound claims are evaluated first",
        ),
        pytest.param(
            [claim("small"), claim("new", storage_class="dyn", size="9Gi")],
            [LOCAL, DYNAMIC, csi_driver()],
            [BIND_CONFLICT, BIND_CONFLICT],
            id="the first new volume that cannot be made is told",
        ),
        pytest.param(
            [claim("data", selector=selector(expressions=[LabelSelectorRequirement("x", "In")]))],
            [LOCAL],
            [
                Status.error(
                    "error creating internal label selector for claim: default/data:"
                    " values of 'x': In needs at least one"
                )
            ]
            * 2,
            id="a selector that cannot be",
        ),
    ],
)
def test_filter(
    claims: Sequence[StorageObject], objects: Sequence[StorageObject], want: list[Status | None]
) -> None:
    a_pod = pod(claims=[c.metadata.name for c in claims])
    assert evaluate(a_pod, *claims, *objects) == {"n1": want[0], "n2": want[1]}


def test_a_class_that_is_gone_since_the_pod_was_looked_at() -> None:
    known = listers(claim(), LOCAL)
    nodes = table(*NODES)
    plugin = VolumeBinding(None, Handle(nodes, listers=known))
    state, info = CycleState(nodes.exists.copy()), PodInfo(pod(claims=["data"]))
    assert plugin.pre_filter(state, info, nodes) is None
    known.storage_classes.on_delete(LOCAL)
    error = Status.error('failed to find storage class "local"')
    verdict = plugin.filter(state, info, nodes)
    assert [verdict.status_of(row) for row in nodes.row_of.values()] == [error, error]


EBS = AWSElasticBlockStore("vol-1")
BY_ZONE = [term(requirement(ZONE, "In", "a"))]
DRIVER_ZONE = {"topology.ebs.csi.aws.com/zone": "a"}


@pytest.mark.parametrize(
    ("migrated", "disk", "want"),
    [
        pytest.param("", EBS, None, id="the node knows the in-tree volume"),
        pytest.param(
            "kubernetes.io/aws-ebs", EBS, NODE_CONFLICT, id="the node knows the driver's volume"
        ),
        pytest.param("kubernetes.io/gce-pd", EBS, None, id="it knows others by their driver"),
        pytest.param(
            "kubernetes.io/aws-ebs",
            AWSElasticBlockStore("aws://nothing"),
            Status.error(
                "could not translate pv: awsElasticBlockStore.volumeID 'aws://nothing':"
                " no volume id in it"
            ),
            id="the driver could not be told",
        ),
    ],
)
def test_in_tree_volumes(migrated: str, disk: AWSElasticBlockStore, want: Status | None) -> None:
    """On n1 it depends; n2 has the driver's own label but not the common one."""
    in_tree = volume("pv", reach=BY_ZONE, aws_elastic_block_store=disk)
    nodes = table(node("n1", zone="a"), node("n2", labels=DRIVER_ZONE))
    known = listers(BOUND, in_tree, csi_node("n1", migrated=migrated))
    plugin = VolumeBinding(None, Handle(nodes, listers=known))
    state, info = CycleState(nodes.exists.copy()), PodInfo(pod(claims=["data"]))
    assert plugin.pre_filter(state, info, nodes) is None
    verdict = plugin.filter(state, info, nodes)
    found = {name: verdict.status_of(row) for name, row in nodes.row_of.items()}
    assert found == {"n1": want, "n2": NODE_CONFLICT}


def test_rows_that_others_rejected_are_left_alone() -> None:
    nodes = table(*NODES)
    known = listers(claim(selector=selector({"x": "y"})), LOCAL)
    plugin = VolumeBinding(None, Handle(nodes, listers=known))
    state, info = CycleState(nodes.no_rows()), PodInfo(pod(claims=["data"]))
    assert plugin.pre_filter(state, info, nodes) is None
    rejected = plugin.filter(state, info, nodes).rejected()
    assert rejected is None or not rejected.any()


def test_nothing_is_scored() -> None:
    nodes = table(*NODES)
    plugin = VolumeBinding(None, Handle(nodes))
    state, info = CycleState(nodes.exists.copy()), PodInfo(pod())
    assert plugin.pre_score(state, info, nodes) == SKIP


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({}, 600, id="the default"),
        pytest.param({"bindTimeoutSeconds": 0}, 0, id="no patience"),
    ],
)
def test_args(args: dict[str, Any], want: int) -> None:
    assert VolumeBindingArgs.model_validate(args).bind_timeout_seconds == want


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"bindTimeoutSeconds": -1}, id="less than none"),
    ],
)
def test_wrong_args(args: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        VolumeBindingArgs.model_validate(args)


def test_all_reasons_are_final() -> None:
    codes = {
        status.code for status in (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, PV_NOT_EXIST)
    }
    assert codes == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
