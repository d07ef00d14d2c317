"""What plugins tell of the whole cluster, and of nodes that devices and volumes keep a pod off."""

from collections.abc import Sequence

import pytest

from berth.insight.explain.explanation import Evaluation
from berth.kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.explanation import SummingUp, SumsUp
from berth.scheduler.framework.interface import FilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Mask, Verdict
from tests import device_builders as devices
from tests import volume_builders as volumes
from tests.builders import ZONE, claim_volume, host_port, node, pod, taint
from tests.harness import Harness, with_plugins
from tests.insight.explain.asking import evaluation, explain, verdict

GPU = "nvidia.com/gpu"
WITH_GPUS = {GPU: 4}


@pytest.mark.parametrize(
    ("waiting", "objects", "findings"),
    [
        pytest.param(
            pod(requests={GPU: 2}),
            [
                node("n1", allocatable=WITH_GPUS),
                node("n2", allocatable=WITH_GPUS),
                node("n3"),
                pod("a", requests={GPU: 4}, node="n1"),
                pod("b", requests={GPU: 3}, node="n2"),
            ],
            (f"2 nodes have 8 {GPU} in all, 1 free, the others held by default/a and default/b",),
            id="what only some nodes have",
        ),
        pytest.param(
            pod(requests={GPU: 1}),
            [
                node("n1", allocatable=WITH_GPUS),
                *(pod(f"p{i}", requests={GPU: 1}, node="n1") for i in range(4)),
            ],
            (
                f"1 node has 4 {GPU} in all, 0 free, held by default/p0, default/p1, default/p2"
                " and 1 more",
            ),
            id="of many holders, some",
        ),
        pytest.param(pod(requests={GPU: 1}), [node()], (f"no node has {GPU}",), id="nothing"),
        pytest.param(
            pod(requests={GPU: 1}),
            [node("n1", allocatable=WITH_GPUS, taints=[taint("a")]), node("n2")],
            (),
            id="enough where only a taint is in the way",
        ),
        pytest.param(pod(cpu=8), [node()], (), id="what all nodes have is told by node"),
        pytest.param(
            pod(ports=[host_port(80), host_port(53, protocol="UDP")]),
            [node(), pod("dns", ports=[host_port(53, protocol="UDP")], node="n1")],
            ("port 53/UDP is taken on 1 node by default/dns",),
            id="ports",
        ),
        pytest.param(
            pod(node_selector={"disk": "ssd", "rack": "r1"}),
            [node("n1", labels={"rack": "r1"})],
            ("no node has disk=ssd",),
            id="labels that no node has",
        ),
    ],
)
def test_what_there_is_and_who_has_it(
    waiting: Pod, objects: list[Node | Pod], findings: tuple[str, ...]
) -> None:
    assert evaluation(waiting, *objects).findings == findings


Devices = Sequence[ResourceClaim | ResourceSlice | DeviceClass]
TWO = devices.resource_slice("s1", devices.device("a"), devices.device("b"), node="n1")


def of_devices(*objects: ResourceClaim | ResourceSlice | DeviceClass) -> Evaluation:
    """Return what is found for a pod with the claim ``c`` on n1 and n2."""
    harness = Harness()
    harness.put(node("n1"), node("n2"), devices.device_class("gpu"), *objects)
    harness.put(devices.with_claims(pod("p"), "c"))
    found = explain(harness, "default/p").evaluation
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("objects", "finding", "on_n1"),
    [
        pytest.param(
            [devices.claim("c")],
            "claim default/c asks for 1 device of class gpu: no device matches on any node",
            Detail("claim default/c asks for 1 device of class gpu, none here matches"),
            id="none at all",
        ),
        pytest.param(
            [TWO, devices.claim("c", devices.exactly(3))],
            "claim default/c asks for 3 devices of class gpu: 2 devices on 1 node match, 2 free",
            Detail("claim default/c asks for 3 devices of class gpu, 2 here match"),
            id="too few, though nobody has them",
        ),
        pytest.param(
            [
                TWO,
                devices.claim("c", devices.exactly(2)),
                devices.claim("other", allocated=devices.allocation("b")),
            ],
            "claim default/c asks for 2 devices of class gpu: 2 devices on 1 node match, 1 free,"
            " the others held by claim default/other",
            Detail(
                "claim default/c asks for 2 devices of class gpu: 2 devices on 1 node match,"
                " 1 free, the others held by claim default/other",
                Change(
                    kind=ChangeKind.FREE_DEVICE,
                    what="default/c",
                    amount=1,
                    shortfall=0.5,
                    words="free 1 device for claim default/c, held by claim default/other",
                ),
            ),
            id="one is held by a claim that no pod uses",
        ),
        pytest.param(
            [TWO, devices.claim("c", devices.exactly(1), devices.exactly(2))],
            "claim default/c asks for 1 device of class gpu: 2 devices on 1 node match, 2 free;"
            " claim default/c asks for 2 devices of class gpu: 2 devices on 1 node match, 2 free",
            Detail(
                "has matching devices for each request, but not for all together: their"
                " constraints, taints or shared capacity leave too few"
            ),
            id="enough for each request, not for both",
        ),
        pytest.param(
            [
                TWO,
                devices.claim("c", devices.exactly(1, where=['device.driver == "other"'])),
            ],
            "claim default/c asks for 1 device of class gpu: no device matches on any node",
            Detail("claim default/c asks for 1 device of class gpu, none here matches"),
            id="selectors are asked",
        ),
    ],
)
def test_devices_are_counted(objects: Devices, finding: str, on_n1: Detail) -> None:
    evaluated = of_devices(*objects)

    assert evaluated.findings == (finding,)
    assert [d for o in verdict(evaluated, "n1").obstacles for d in o.details] == [on_n1]


def test_a_claim_that_has_its_devices_elsewhere() -> None:
    evaluated = of_devices(TWO, devices.claim("c", allocated=devices.allocation("a", node="n9")))

    (obstacle,) = verdict(evaluated, "n1").obstacles
    assert obstacle.details == (Detail("claim default/c has its devices on other nodes"),)
    assert evaluated.nearest_miss is None


def of_volume(
    volume: volumes.StorageObject, *others: volumes.StorageObject, nodes: int = 2
) -> Evaluation:
    """Return what is found for a pod with the claim ``data``, which is bound to *volume*."""
    harness = Harness()
    harness.put(*(node(f"n{i}", zone=f"zone-{i}") for i in range(1, nodes + 1)))
    bound = volumes.claim("data", bound_to="pv")
    known = (bound, volume, volumes.storage_class("local"), *others)
    volumes.add(harness.cluster.listers, *known)
    harness.put(pod("p", cpu=99, volumes=[claim_volume("data")]))
    found = explain(harness, "default/p").evaluation
    assert found is not None
    return found


def test_a_volume_that_can_be_used_from_one_node() -> None:
    evaluated = of_volume(volumes.volume(hosts=["n2"], claim=volumes.claim("data", bound_to="pv")))

    assert evaluated.findings == ("volume pv (claim data) can be used from 1 of 2 nodes: n2",)
    assert evaluated.nearest_miss is not None
    assert evaluated.nearest_miss.node == "n2", "the volume does not move"
    assert Detail(
        "volume pv (claim data): node(s) didn't match PersistentVolume's node affinity"
    ) in [d for o in verdict(evaluated, "n1").obstacles for d in o.details]


def test_a_volume_in_a_zone_without_nodes() -> None:
    bound = volumes.claim("data", bound_to="pv")
    evaluated = of_volume(volumes.volume(labels={ZONE: "zone-9"}, claim=bound))

    assert evaluated.findings == ("volume pv (claim data) is in zone-9, where none of 2 nodes is",)
    assert evaluated.nearest_miss is None
    assert Detail("volume pv (claim data) is in zone-9, the node in zone-1") in [
        d for o in verdict(evaluated, "n1").obstacles for d in o.details
    ]


def test_a_node_that_takes_no_more_volumes() -> None:
    bound = volumes.claim("data", bound_to="pv")
    evaluated = of_volume(
        volumes.volume(claim=bound), volumes.csi_node("n1", limits={"csi.example.com": 0}), nodes=1
    )

    details = [d for o in verdict(evaluated, "n1").obstacles for d in o.details]
    assert Detail("takes 0 volumes of csi.example.com, has 0, with this pod 1 more") in details


class Talkative(FilterPlugin, SumsUp):
    """Rejects all nodes, and breaks when it is to sum up."""

    NAME = "Talkative"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        return Verdict.reject(Status.unschedulable("no"), where=nodes.exists)

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        yield
        raise ValueError("no idea")


def test_a_plugin_that_cannot_sum_up_costs_its_clause_only() -> None:
    harness = with_plugins(Talkative)
    harness.put(node("n1"), pod("p", requests={GPU: 1}))
    evaluated = explain(harness, "default/p").evaluation

    assert evaluated is not None
    assert evaluated.findings == (f"no node has {GPU}",)
