"""What pods want of devices, in numbers."""

import pytest

from berth.kube.objects.devices import DeviceConstraint, ExactDeviceRequest, ResourceClaim
from berth.kube.objects.node import Taint
from berth.scheduler.framework.device_demands import DeviceDemands
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import pod
from tests.device_builders import (
    DRIVER,
    allocation,
    claim,
    device,
    exactly,
    first_available,
    resource_slice,
    same,
    with_claims,
    with_template_claim,
)
from tests.plugins.dynamic_resources.device_world import SLICES, World

POD = with_template_claim(pod("p"), "gpu", made="c")
UID = POD.metadata.uid
TAINTED = device("c", taints=[Taint(key="broken", effect="NoSchedule")])


def demands(*objects: object, of: PodInfo | None = None) -> DeviceDemands:
    world = World(*objects)  # type: ignore[arg-type]
    of = of or PodInfo(POD)
    return world.plugin.device_demands([of], world.nodes).get(of.key, DeviceDemands())


def numbers(counted: DeviceDemands) -> list[tuple[int, dict[str, int]]]:
    return [
        (demand.needed, {node: len(devices) for node, devices in demand.free.items()})
        for demand in counted.demands
    ]


def mine(
    *requests: ExactDeviceRequest, constraints: tuple[DeviceConstraint, ...] = ()
) -> ResourceClaim:
    return claim("c", *requests, owner=UID, constraints=constraints)


OTHER = claim("other", allocated=allocation("a", node="n1"))


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        pytest.param([mine()], [(1, {"n1": 2, "n2": 1})], id="one of each node's"),
        pytest.param(
            [mine(exactly(2), exactly())],
            [(2, {"n1": 2, "n2": 1}), (1, {"n1": 2, "n2": 1})],
            id="two requests",
        ),
        pytest.param([mine(), OTHER], [(1, {"n1": 1, "n2": 1})], id="who has one has it alone"),
        pytest.param(
            [mine(exactly(where=[f'device.driver != "{DRIVER}"']))], [(1, {})], id="none will do"
        ),
        pytest.param(
            [claim("c", owner=UID, allocated=allocation("a", node="n1"))],
            [],
            id="a claim that has devices wants none",
        ),
    ],
)
def test_all_that_is_wanted(objects: list[ResourceClaim], wanted: list[object]) -> None:
    counted = demands(*SLICES, *objects)
    assert numbers(counted) == wanted
    assert counted.is_all


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [
        pytest.param([mine(exactly(None))], [], id="all devices"),
        pytest.param([mine(exactly(admin=True))], [], id="admin access"),
        pytest.param(
            [claim("c", first_available("r", one=exactly(), two=exactly(2)), owner=UID)],
            [],
            id="alternatives",
        ),
        pytest.param(
            [mine(constraints=(same("gpu.example.com/kind", "r0"),))],
            [(1, {"n1": 2, "n2": 1})],
            id="a constraint",
        ),
        pytest.param([mine(exactly(of="unknown"))], [], id="a class that is not there"),
        pytest.param([], [], id="a claim that is not there"),
        pytest.param(
            [mine(), resource_slice("s3", TAINTED, node="n3")],
            [(1, {"n1": 2, "n2": 1, "n3": 1})],
            id="a tainted device counts, and may not do",
        ),
        pytest.param(
            [mine(), resource_slice("s3", device("c", shared=True), node="n3")],
            [],
            id="a device that several may have",
        ),
        pytest.param(
            [mine(), resource_slice("s3", device("c"), pool="net", all_nodes=True)],
            [(1, {"n1": 3, "n2": 2, "n3": 1})],
            id="a device that several nodes see",
        ),
    ],
)
def test_at_least_that_is_wanted(objects: list[ResourceClaim], wanted: list[object]) -> None:
    counted = demands(*SLICES, *objects)
    assert numbers(counted) == wanted
    assert not counted.is_all


def test_a_claim_of_several_pods_is_not_counted_for_each() -> None:
    counted = demands(*SLICES, claim("c"), of=PodInfo(with_claims(pod("p"), "c")))
    assert counted == DeviceDemands((), is_all=False)


def test_a_pod_without_claims_wants_nothing() -> None:
    world = World(*SLICES)
    assert world.plugin.device_demands([PodInfo(pod("p"))], world.nodes) == {}
