"""Devices that stand for resources of their node, or take some: as 1.37 has it (spec N4.11)."""

from collections.abc import Mapping

import msgspec
import pytest

from berth.kube.objects.devices import (
    Device,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    ResourceClaim,
)
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import Quantity
from berth_plugins.dynamic_resources.node_allocatable import GATE
from tests.builders import pod
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    got,
    with_claims,
)
from tests.harness import Harness
from tests.plugins.dynamic_resources import test_node_allocatable
from tests.plugins.dynamic_resources.group_world import GATE as GROUP_CLAIMS
from tests.plugins.dynamic_resources.group_world import group_with
from tests.plugins.dynamic_resources.test_node_allocatable import (
    at_pod_level,
    mapped,
    message,
    refused,
    scheduled,
    told,
    using,
)
from tests.scheduler.pod_group.building import member


def world(*devices: Device, gates: tuple[str, ...] = (GATE,)) -> Harness:
    return test_node_allocatable.world(*devices, gates=gates, release="1.37")


def taking(
    name: str,
    resource: str = "cpu",
    *,
    key: str | None = None,
    each: Quantity | None = None,
    per_pod: Quantity | None = None,
    per_container: Quantity | None = None,
    capacity: Mapping[str, Quantity] = {},
    shared: bool = False,
) -> Device:
    """Make a device that is *each* of a resource, or so much for each unit of the capacity *key*.

    Whoever uses it takes *per_pod* and *per_container* beside it.
    """
    mapping = overhead = None
    if key is not None:
        mapping = NodeAllocatableMapping(capacity_key=key, capacity_multiplier=each)
    elif each is not None:
        mapping = NodeAllocatableMapping(device_multiplier=each)
    if per_pod is not None or per_container is not None:
        overhead = NodeAllocatableOverhead(per_pod=per_pod, per_container=per_container)
    return msgspec.structs.replace(
        device(name, capacity=capacity, shared=shared or key is not None),
        node_allocatable_resources={resource: NodeAllocatableResource(mapping, overhead)},
    )


def with_another_container(a_pod: Pod) -> Pod:
    """Make the pod have a second container that is like the first one."""
    (container,) = a_pod.spec.containers
    both = (container, msgspec.structs.replace(container, name="second"))
    return msgspec.structs.replace(a_pod, spec=msgspec.structs.replace(a_pod.spec, containers=both))


P = using(pod("p", cpu="100m"), "c")
C = P.spec.containers[0].name


@pytest.mark.parametrize(
    ("devices", "a_claim", "a_pod", "want", "cpu"),
    [
        pytest.param(
            [taking("a", each="2")],
            claim("c"),
            P,
            {"containers": [C], "mapping": [{"name": "cpu", "quantity": "2"}]},
            2100,
            id="by device",
        ),
        pytest.param(
            [taking("a", each="500m"), taking("b", each="1")],
            claim("c", exactly(2)),
            P,
            {"containers": [C], "mapping": [{"name": "cpu", "quantity": "1500m"}]},
            1600,
            id="several devices",
        ),
        pytest.param(
            [taking("a", key="cores", each="500m", capacity={"cores": 8})],
            claim("c", exactly(capacity={"cores": 3})),
            P,
            {"containers": [C], "mapping": [{"name": "cpu", "quantity": "1500m"}]},
            1600,
            id="by unit of a capacity",
        ),
        pytest.param(
            [taking("a", key="cores", capacity={"cores": 8})],
            claim("c", exactly(capacity={"cores": 3})),
            P,
            {"containers": [C], "mapping": [{"name": "cpu", "quantity": "3"}]},
            3100,
            id="by unit of a capacity, one for one",
        ),
        pytest.param(
            [taking("a", per_pod="200m", per_container="10m")],
            claim("c"),
            P,
            {
                "containers": [C],
                "overhead": [{"name": "cpu", "perPod": "200m", "perContainer": "10m"}],
            },
            310,
            id="overhead",
        ),
        pytest.param(
            [taking("a", per_pod="200m", per_container="10m"), taking("b", per_pod="100m")],
            claim("c", exactly(2)),
            with_another_container(P),
            {
                "containers": [C, "second"],
                "overhead": [{"name": "cpu", "perPod": "300m", "perContainer": "10m"}],
            },
            520,
            id="overhead of several devices, for several containers",
        ),
        pytest.param(
            [taking("a", each="1", per_pod="200m")],
            claim("c"),
            P,
            {
                "containers": [C],
                "mapping": [{"name": "cpu", "quantity": "1"}],
                "overhead": [{"name": "cpu", "perPod": "200m"}],
            },
            1300,
            id="both",
        ),
        pytest.param(
            [taking("a", each="1", per_pod="200m", per_container="10m")],
            claim("c"),
            with_claims(pod("p", cpu="100m"), "c"),
            {
                "mapping": [{"name": "cpu", "quantity": "1"}],
                "overhead": [{"name": "cpu", "perPod": "200m", "perContainer": "10m"}],
            },
            1300,
            id="no container uses the claim",
        ),
        pytest.param(
            [taking("a", "memory", each="1Gi")],
            claim("c"),
            P,
            {"containers": [C], "mapping": [{"name": "memory", "quantity": "1Gi"}]},
            100,
            id="memory",
        ),
        pytest.param([mapped("a", cpu="2")], claim("c"), P, None, 100, id="what 1.36 had"),
    ],
)
async def test_what_devices_take(
    devices: list[Device],
    a_claim: ResourceClaim,
    a_pod: Pod,
    want: dict[str, object] | None,
    cpu: int,
) -> None:
    harness = await scheduled(world(*devices), a_claim, a_pod)
    assert harness.placements() == {"p": "n1"}
    assert told(harness, "p") == ([] if want is None else [{"resourceClaimName": "c", **want}])
    assert int(harness.cache.table.requested[0, 0]) == cpu


async def test_claims_are_told_by_name() -> None:
    harness = world(taking("a", each="1"), taking("b", each="1"))
    await scheduled(harness, claim("y"), claim("x"), using(pod("p", cpu="100m"), "y", "x"))
    assert [status["resourceClaimName"] for status in told(harness, "p")] == ["x", "y"]


async def test_1_36_passes_over_what_1_37_has() -> None:
    harness = test_node_allocatable.world(taking("a", each="2"))
    await scheduled(harness, claim("c"), P)
    assert (harness.placements(), told(harness, "p")) == ({"p": "n1"}, [])


async def test_the_node_has_no_room_for_the_overhead() -> None:
    two = with_another_container(using(pod("p", cpu="1"), "c"))
    text = await refused(world(taking("a", per_container="1500m")), claim("c"), two)
    assert text == "Insufficient cpu"


async def test_the_pod_requests_less_as_a_whole() -> None:
    a_pod = at_pod_level(using(pod("p", cpu="1"), "c"), cpu="2")
    text = await refused(world(taking("a", each="1", per_pod="100m")), claim("c"), a_pod)
    assert text == (
        "pod level request for cpu is insufficient to cover the aggregated container and"
        " node-allocatable DRA requests"
    )


async def test_the_pod_requests_enough_as_a_whole() -> None:
    a_pod = at_pod_level(using(pod("p", cpu="1"), "c"), cpu="3")
    harness = await scheduled(world(taking("a", each="2")), claim("c"), a_pod)
    assert harness.placements() == {"p": "n1"}
    assert int(harness.cache.table.requested[0, 0]) == 3000


NOT_SHARED = (
    "node allocatable resource claim c has a mapped device and cannot be shared across pods"
)


async def test_pods_may_share_what_is_overhead_only() -> None:
    """Each of them takes it."""
    harness = world(taking("a", per_pod="1"))
    pods = [using(pod(name, cpu="100m"), "c") for name in ("p", "q")]
    await scheduled(harness, claim("c"), *pods)
    await harness.pass_time(10)
    assert harness.placements() == {"p": "n1", "q": "n1"}
    assert int(harness.cache.table.requested[0, 0]) == 2200


async def test_a_claim_that_another_pod_uses() -> None:
    held = claim("c", allocated=allocation("a"), users=["one"])
    assert await refused(world(taking("a", each="1")), held, P) == NOT_SHARED


async def test_a_claim_that_the_pod_has_already() -> None:
    held = claim("c", allocated=allocation("a"), users=[P.metadata.uid])
    harness = await scheduled(world(taking("a", each="1")), held, P)
    assert harness.placements() == {"p": "n1"}


async def test_pods_of_a_group_cannot_share_it() -> None:
    harness = world(taking("a", each="1"), gates=(GATE, GROUP_CLAIMS, "GenericWorkload"))
    pods = [using(member(name, cpu="100m"), "c") for name in ("o", "p")]
    await scheduled(harness, group_with("c", min_count=2), claim("c"), *pods)
    assert harness.placements() == {}
    texts = [message(harness, name) for name in ("o", "p")]
    assert len([text for text in texts if NOT_SHARED in text]) == 1


async def test_a_capacity_that_was_not_consumed() -> None:
    whole = taking("a", key="cores", capacity={"cores": "8"})
    whole = msgspec.structs.replace(whole, allow_multiple_allocations=False)
    harness = await scheduled(world(whole), claim("c"), P)
    assert message(harness, "p").endswith(
        "claim default/c, device a: ConsumedCapacity is nil, but Capacity key 'cores' is set in"
        " NodeAllocatableResources for resource cpu"
    )


async def test_another_capacity_than_the_one_that_counts_takes_nothing() -> None:
    share = got("a", share="s", consumed={"memory": "1"})
    held = claim("c", allocated=allocation(share))
    a_device = taking("a", key="cores", capacity={"cores": "8", "memory": "8"})
    harness = await scheduled(world(a_device), held, P)
    assert (harness.placements(), told(harness, "p")) == ({"p": "n1"}, [])


async def test_the_claim_for_extended_resources_is_named_as_it_was_created() -> None:
    harness = world(taking("a", each="1", per_container="1"))
    harness.put(device_class("ext", extended_resource="example.com/gpu"))
    await scheduled(harness, pod("p", cpu="100m", requests={"example.com/gpu": 1}))
    assert harness.placements() == {"p": "n1"}
    (status,) = told(harness, "p")
    assert status["resourceClaimName"].startswith("p-extended-resources-")
    assert status["mapping"] == [{"name": "cpu", "quantity": "1"}]
    assert int(harness.cache.table.requested[0, 0]) == 1100
