"""NodeVolumeLimits: as many volumes of a driver as its nodes take, each counted once."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.pod import (
    AWSElasticBlockStore,
    AzureDisk,
    EphemeralVolumeSource,
    Pod,
    RBDVolume,
    Volume,
)
from berth.kube.objects.storage import CSISource, VolumeAttachment
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.node_volume_limits.plugin import (
    TOO_MANY,
    VOLUME_LIMIT_SCALING,
    NodeVolumeLimits,
    not_installed,
)
from tests.builders import claim_volume, node, pod
from tests.plugins.evaluating import table
from tests.volume_builders import (
    StorageObject,
    attachment,
    claim,
    csi_driver,
    csi_node,
    listers,
    storage_class,
    volume,
)

CSI = "csi.example.com"
EBS = "ebs.csi.aws.com"


def plugin(nodes: NodeTable, *objects: StorageObject) -> NodeVolumeLimits:
    """The plugin of 1.36, in which VolumeLimitScaling is off."""
    features = Features.of(release="1.36")
    return NodeVolumeLimits(None, Handle(nodes, listers=listers(*objects), features=features))


def evaluate(a_pod: Pod, nodes: NodeTable, *objects: StorageObject) -> dict[str, Status | None]:
    """Return what Filter says of each node."""
    tested = plugin(nodes, *objects)
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    assert tested.pre_filter(state, info, nodes) is None
    verdict = tested.filter(state, info, nodes)
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


def on_n1(a_pod: Pod, *objects: StorageObject, pods: Sequence[Pod] = ()) -> Status | None:
    return evaluate(a_pod, table(node("n1"), pods=pods), *objects)["n1"]


def bound(*names: str, driver: str = CSI) -> list[StorageObject]:
    """Claims that have a volume of the driver each, of their name."""
    return [
        *(claim(name, bound_to=name) for name in names),
        *(volume(name, csi=CSISource(driver, name)) for name in names),
    ]


def disk(name: str) -> Volume:
    return Volume(name, aws_elastic_block_store=AWSElasticBlockStore(name))


DYNAMIC = storage_class("dyn", provisioner=CSI)
SCRATCH = Volume("v", ephemeral=EphemeralVolumeSource())


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), SKIP, id="no volumes"),
        pytest.param(pod(volumes=[Volume("v", rbd=RBDVolume())]), SKIP, id="no driver's volume"),
        pytest.param(pod(claims=["c"]), None, id="a claim"),
        pytest.param(pod(volumes=[SCRATCH]), None, id="a claim made for the pod"),
        pytest.param(pod(volumes=[disk("d")]), None, id="a disk that a driver took over"),
    ],
)
def test_pre_filter(a_pod: Pod, want: Status | None) -> None:
    nodes = table()
    assert plugin(nodes).pre_filter(CycleState(), PodInfo(a_pod), nodes) == want


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        pytest.param(3, None, id="just room enough"),
        pytest.param(2, TOO_MANY, id="one too many"),
        pytest.param(0, TOO_MANY, id="none at all"),
        pytest.param(None, None, id="without a limit"),
    ],
)
def test_limit(limit: int | None, want: Status | None) -> None:
    nodes = table(node("n1"), node("n2"), pods=[pod("o", node="n1", claims=["a", "b"])])
    found = evaluate(pod(claims=["c"]), nodes, csi_node(limits={CSI: limit}), *bound("a", "b", "c"))
    assert found == {"n1": want, "n2": None}


FULL = csi_node(limits={CSI: 2, EBS: 1})


@pytest.mark.parametrize(
    ("a_pod", "others", "objects", "want"),
    [
        pytest.param(
            pod(claims=["a"]),
            [pod("o", node="n1", claims=["a", "b"])],
            bound("a", "b"),
            None,
            id="a volume that is there already",
        ),
        pytest.param(
            pod(claims=["c"]),
            [pod("o", node="n1", claims=["a"]), pod("q", node="n1", claims=["a"])],
            bound("a", "c"),
            None,
            id="two pods share a volume",
        ),
        pytest.param(
            pod(claims=["c"]),
            [pod("o", node="n1", claims=["a", "b"])],
            [*bound("a", "b", driver="other"), *bound("c")],
            None,
            id="volumes of another driver",
        ),
        pytest.param(
            pod(claims=["a", "b", "c"]),
            [],
            bound("a", "b", "c"),
            TOO_MANY,
            id="the pod alone has too many",
        ),
        pytest.param(
            pod(claims=["a", "b", "new"]),
            [],
            [*bound("a", "b"), claim("new", storage_class="dyn"), DYNAMIC],
            TOO_MANY,
            id="a volume that is yet to come",
        ),
        pytest.param(
            pod(claims=["a", "b", "new"]),
            [],
            [*bound("a", "b"), claim("new", storage_class="dyn", volume="gone"), DYNAMIC],
            TOO_MANY,
            id="a volume that is gone counts by its class",
        ),
        pytest.param(
            pod(claims=["a", "b", "new"]),
            [],
            [*bound("a", "b"), claim("new", storage_class="dyn")],
            None,
            id="of an unknown class: nobody's",
        ),
        pytest.param(
            pod(claims=["a", "b", "nfs"]),
            [],
            [*bound("a", "b"), claim("nfs", bound_to="nfs"), volume("nfs", csi=None)],
            None,
            id="a volume without a driver",
        ),
        pytest.param(
            pod(claims=["c"]),
            [pod("o", node="n1", claims=["a", "gone"])],
            bound("a", "c"),
            None,
            id="a running pod's claim is gone",
        ),
        pytest.param(
            pod(volumes=[disk("vol-2")]),
            [pod("o", node="n1", volumes=[disk("vol-1")])],
            [],
            TOO_MANY,
            id="in-tree disks count as the driver's",
        ),
        pytest.param(
            pod(volumes=[disk("vol-1")]),
            [pod("o", node="n1", volumes=[disk("vol-1")])],
            [],
            None,
            id="the same in-tree disk",
        ),
        pytest.param(
            pod(claims=["a"]),
            [pod("o", node="n1", volumes=[disk("vol-1")])],
            [
                claim("a", bound_to="a"),
                volume("a", aws_elastic_block_store=AWSElasticBlockStore("aws:///vol-2")),
            ],
            TOO_MANY,
            id="an in-tree volume behind a claim",
        ),
        pytest.param(
            pod(claims=["new"]),
            [pod("o", node="n1", volumes=[disk("vol-1")])],
            [
                claim("new", storage_class="x"),
                storage_class("x", provisioner="kubernetes.io/aws-ebs"),
            ],
            TOO_MANY,
            id="a class with an in-tree provisioner",
        ),
        pytest.param(
            pod(volumes=[Volume("v", azure_disk=AzureDisk("d", "u"))]),
            [pod("o", node="n1", volumes=[disk("vol-1")])],
            [],
            None,
            id="a driver that the node does not limit",
        ),
    ],
)
def test_what_is_counted(
    a_pod: Pod, others: list[Pod], objects: list[StorageObject], want: Status | None
) -> None:
    assert on_n1(a_pod, FULL, *objects, pods=others) == want


@pytest.mark.parametrize(
    ("attached", "want"),
    [
        pytest.param([], None, id="nothing is attached"),
        pytest.param([attachment("x", node="n1", volume="b")], TOO_MANY, id="a volume of nobody"),
        pytest.param([attachment("x", node="n1", volume="a")], None, id="a running pod's volume"),
        pytest.param(
            [attachment("x", node="n1", volume="c")],
            TOO_MANY,
            id="the pod's own counts twice, as long as no pod there uses it",
        ),
        pytest.param([attachment("x", node="n2", volume="b")], None, id="to another node"),
        pytest.param(
            [attachment("x", node="n1", volume="b", attacher="other")], None, id="by another driver"
        ),
        pytest.param([attachment("x", node="n1", volume="gone")], None, id="an unknown volume"),
        pytest.param([attachment("x", node="n1", volume=None)], None, id="a volume without a name"),
    ],
)
def test_attachments(attached: list[VolumeAttachment], want: Status | None) -> None:
    others = [pod("o", node="n1", claims=["a"])]
    objects = (FULL, *bound("a", "b", "c"), *attached)
    assert on_n1(pod(claims=["c"]), *objects, pods=others) == want


def test_attachments_come_and_go() -> None:
    known = listers(csi_node(limits={CSI: 1}), *bound("a", "b"))
    nodes = table(node("n1"))
    tested = NodeVolumeLimits(None, Handle(nodes, listers=known))
    state = CycleState(nodes.exists.copy())

    def fits() -> bool:
        return not tested.filter(state, PodInfo(pod(claims=["a"])), nodes)

    assert fits()
    there = attachment("x", node="n1", volume="b")
    known.volume_attachments.on_add(there)
    assert not fits()
    known.volume_attachments.on_delete(there)
    assert fits()


@pytest.mark.parametrize(
    ("volumes", "objects", "want"),
    [
        pytest.param(
            [claim_volume("data")],
            [],
            Status.unresolvable(
                'looking up PVC default/data: persistentvolumeclaim "data" not found'
            ),
            id="the claim is missing",
        ),
        pytest.param(
            [claim_volume("")],
            [],
            Status.error("PersistentVolumeClaim had no name"),
            id="the claim has no name",
        ),
        pytest.param(
            [SCRATCH],
            [claim("p-v", owner="somebody")],
            Status.error("PVC default/p-v was not created for pod default/p (pod is not owner)"),
            id="the claim was made for another pod",
        ),
    ],
)
def test_what_is_wrong_with_the_pod(
    volumes: list[Volume], objects: list[StorageObject], want: Status
) -> None:
    nodes = table(node("n1"), node("n2"))
    assert evaluate(pod(volumes=volumes), nodes, *objects) == {"n1": want, "n2": want}


def test_a_claim_made_for_the_pod_counts() -> None:
    a_pod = pod(volumes=[SCRATCH])
    made = claim("p-v", owner=a_pod.metadata.uid, storage_class="dyn")
    assert on_n1(a_pod, made, DYNAMIC, csi_node(limits={CSI: 1})) is None
    assert on_n1(a_pod, made, DYNAMIC, csi_node(limits={CSI: 0})) == TOO_MANY


# Against the rule.

CLAIMS = ["a", "b", "c", "d"]

some_claims = st.lists(st.sampled_from(CLAIMS), unique=True, max_size=3)


@given(
    running=st.lists(some_claims, max_size=4),
    attached=some_claims,
    wanted=some_claims.filter(bool),
    limit=st.integers(0, 5),
)
def test_counting_follows_the_rule(
    running: list[list[str]], attached: list[str], wanted: list[str], limit: int
) -> None:
    used = {name for names in running for name in names}
    new = set(wanted) - used
    exceeded = bool(new) and len(used | set(attached)) + len(new) > limit
    found = on_n1(
        pod(claims=wanted),
        csi_node(limits={CSI: limit}),
        *bound(*CLAIMS),
        *(attachment(name, node="n1", volume=name) for name in attached),
        pods=[pod(f"p{i}", node="n1", claims=names) for i, names in enumerate(running)],
    )
    assert found == (TOO_MANY if exceeded else None)


# The gate VolumeLimitScaling.

REQUIRED = csi_driver(CSI, required=True)
MISSING = not_installed(CSI)


def evaluate_scaling(
    a_pod: Pod, *objects: StorageObject, pods: Sequence[Pod] = ()
) -> dict[str, Status | None]:
    """Return what Filter says of two nodes, with the gate on."""
    nodes = table(node("n1"), node("n2"), pods=pods)
    features = Features.of(VOLUME_LIMIT_SCALING)
    tested = NodeVolumeLimits(None, Handle(nodes, listers=listers(*objects), features=features))
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    assert tested.pre_filter(state, info, nodes) is None
    verdict = tested.filter(state, info, nodes)
    for name, row in nodes.row_of.items():
        details = list(tested.explain(state, info, nodes, row))
        assert bool(details) is (verdict.status_of(row) is not None), name
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


@pytest.mark.parametrize(
    ("a_pod", "others", "objects", "want"),
    [
        pytest.param(
            pod(claims=["c"]),
            [],
            [REQUIRED, csi_node("n1"), csi_node("n2", limits={CSI: None}), *bound("c")],
            {"n1": MISSING, "n2": None},
            id="a node without the driver",
        ),
        pytest.param(
            pod(claims=["c"]),
            [],
            [REQUIRED, csi_node("n2", limits={CSI: 1}), *bound("c")],
            {"n1": MISSING, "n2": None},
            id="a node without CSINode",
        ),
        pytest.param(
            pod(claims=["c"]),
            [],
            [csi_driver(CSI), csi_node("n1"), *bound("c")],
            {"n1": None, "n2": None},
            id="a driver that does not ask for it",
        ),
        pytest.param(
            pod(claims=["c"]), [], bound("c"), {"n1": None, "n2": None}, id="an unknown driver"
        ),
        pytest.param(
            pod(claims=["c"]),
            [],
            [REQUIRED, DYNAMIC, claim("c", storage_class="dyn"), csi_node("n2", limits={CSI: 1})],
            {"n1": MISSING, "n2": None},
            id="a volume that is yet to be made",
        ),
        pytest.param(
            pod(claims=["c"]),
            [pod("o", node="n1", claims=["c"])],
            [REQUIRED, csi_node("n1"), *bound("c")],
            {"n1": None, "n2": MISSING},
            id="a volume that a pod there uses already",
        ),
        pytest.param(
            pod(claims=["c", "d"]),
            [pod("o", node="n1", claims=["c"])],
            [REQUIRED, csi_node("n1"), *bound("c", "d")],
            {"n1": MISSING, "n2": MISSING},
            id="one that is used there and one that is not",
        ),
        pytest.param(
            pod(volumes=[disk("d")]),
            [],
            [csi_driver(EBS, required=True), csi_node("n1")],
            {"n1": not_installed(EBS), "n2": None},
            id="a disk that no driver has taken over where there is no CSINode",
        ),
        pytest.param(
            pod(claims=["c", "d"]),
            [],
            [
                csi_driver("other", required=True),
                csi_node("n1", limits={CSI: 0}),
                csi_node("n2", limits={CSI: 0, "other": None}),
                *bound("c"),
                *bound("d", driver="other"),
            ],
            {"n1": not_installed("other"), "n2": TOO_MANY},
            id="a driver that is missing is told before one that is full",
        ),
    ],
)
def test_drivers_that_must_be_installed(
    a_pod: Pod,
    others: Sequence[Pod],
    objects: Sequence[StorageObject],
    want: dict[str, Status | None],
) -> None:
    assert evaluate_scaling(a_pod, *objects, pods=others) == want


def test_nobody_asks_for_drivers_while_the_gate_is_off() -> None:
    assert on_n1(pod(claims=["c"]), REQUIRED, csi_node("n1"), *bound("c")) is None
