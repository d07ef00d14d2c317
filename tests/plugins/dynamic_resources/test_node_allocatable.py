"""Devices that take cpu and memory of their node: what counts, what is refused (spec G15.3)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import Device, NodeAllocatableResourceMapping, ResourceClaim
from berth.kube.objects.node import Node
from berth.kube.objects.pod import (
    NodeAllocatableResourceClaimStatus,
    Pod,
    ResourceClaimRef,
    ResourceRequirements,
)
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.resources import insufficient_at_pod_level, requested, requested_with_claims
from berth.runtime.clock import FakeClock
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.node_allocatable import GATE, NodeAllocatableResources
from berth_plugins.dynamic_resources.pools import ResourcePools
from berth_plugins.dynamic_resources.state import DevicesOfPod
from tests.builders import node, pod
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    got,
    resource_slice,
    with_claims,
)
from tests.harness import Harness, PluginCluster
from tests.plugins.dynamic_resources.group_world import GATE as GROUP_CLAIMS
from tests.plugins.dynamic_resources.group_world import group_with
from tests.scheduler.pod_group.building import member


def mapped(
    name: str, *, key: str | None = None, capacity: Mapping[str, Quantity] = {}, **amounts: Quantity
) -> Device:
    """Make a device that takes *amounts* of resources, or of each unit of the capacity *key*."""
    plain = device(name, capacity=capacity, shared=key is not None)
    mappings = {
        resource: NodeAllocatableResourceMapping(capacity_key=key, allocation_multiplier=amount)
        for resource, amount in amounts.items()
    }
    return msgspec.structs.replace(plain, node_allocatable_resource_mappings=mappings)


def using(a_pod: Pod, *claims: str) -> Pod:
    """Make the pod's container use claims of these names, which the pod names as well."""
    named = with_claims(a_pod, *claims)
    (container,) = named.spec.containers
    used = tuple(ResourceClaimRef(name=each) for each in claims)
    needs = msgspec.structs.replace(container.resources, claims=used)
    spec = msgspec.structs.replace(
        named.spec, containers=(msgspec.structs.replace(container, resources=needs),)
    )
    return msgspec.structs.replace(named, spec=spec)


def at_pod_level(a_pod: Pod, **requests: str) -> Pod:
    whole = ResourceRequirements(requests=dict(requests))
    return msgspec.structs.replace(a_pod, spec=msgspec.structs.replace(a_pod.spec, resources=whole))


def takes(a_pod: Pod, claim: str, **amounts: str) -> Pod:
    """Make the status of a pod say what its claim takes."""
    told = NodeAllocatableResourceClaimStatus(claim, ("c",), dict(amounts))
    status = msgspec.structs.replace(a_pod.status, node_allocatable_resource_claim_statuses=(told,))
    return msgspec.structs.replace(a_pod, status=status)


def world(
    *devices: Device,
    nodes: tuple[Node, ...] = (),
    gates: tuple[str, ...] = (GATE,),
    release: str = "1.36",
) -> Harness:
    """Make nodes of 4 cpus, n1 by default, each with the devices."""
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": dict.fromkeys(gates, True),
            "emulatedVersion": release,
        }
    )
    harness.put(device_class())
    for each in nodes or (node("n1", cpu="4", memory="8Gi"),):
        harness.put(each, resource_slice(each.name, *devices, node=each.name))
    return harness


def told(harness: Harness, name: str) -> list[dict[str, Any]]:
    """Return what the status of a pod says of its claims."""
    stored = harness.cluster.pods[f"default/{name}"].status
    statuses = stored.node_allocatable_resource_claim_statuses
    found: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(statuses))
    return found


def message(harness: Harness, name: str) -> str:
    return harness.cluster.conditions[f"default/{name}"].message


async def scheduled(harness: Harness, *objects: Any) -> Harness:
    harness.put(*objects)
    await harness.until_idle()
    return harness


# What claims take.


@pytest.mark.parametrize(
    ("devices", "a_claim", "want"),
    [
        pytest.param([mapped("a", cpu="2")], claim("c"), {"cpu": "2"}, id="by device"),
        pytest.param(
            [mapped("a", cpu="500m", memory="1Gi"), mapped("b", cpu="1")],
            claim("c", exactly(2)),
            {"cpu": "1500m", "memory": "1Gi"},
            id="of several devices together",
        ),
        pytest.param(
            [mapped("a", key="cores", capacity={"cores": "8"}, cpu="2")],
            claim("c", exactly(capacity={"cores": "1"})),
            {"cpu": "2"},
            id="by unit of a capacity",
        ),
        pytest.param([device("a")], claim("c"), None, id="nothing"),
    ],
)
async def test_what_devices_take(
    devices: list[Device], a_claim: ResourceClaim, want: dict[str, str] | None
) -> None:
    a_pod = using(pod("p", cpu="100m"), "c")
    harness = await scheduled(world(*devices), a_claim, a_pod)
    assert harness.placements() == {"p": "n1"}
    container = a_pod.spec.containers[0].name
    assert told(harness, "p") == (
        [{"resourceClaimName": "c", "containers": [container], "resources": want}] if want else []
    )
    cpu = int(harness.cache.table.requested[0, 0])
    assert cpu == 100 + (0 if want is None else {"2": 2000, "1500m": 1500}[want["cpu"]])


async def test_what_was_allocated_before_counts_by_share() -> None:
    shares = [got("a", share=f"s{cores}", consumed={"cores": str(cores)}) for cores in (1, 2)]
    held = claim("c", allocated=allocation(*shares))
    harness = world(mapped("a", key="cores", capacity={"cores": "8"}, cpu="1"))
    await scheduled(harness, held, using(pod("p", cpu="100m"), "c"))
    assert told(harness, "p")[0]["resources"] == {"cpu": "3"}


def test_requests_with_claims() -> None:
    a_pod = takes(pod("p", cpu="1"), "c", cpu="2", memory="1Gi")
    assert requested(a_pod).milli_cpu == requested_with_claims(a_pod).milli_cpu == 3000
    assert requested(a_pod).memory == 1024**3
    assert insufficient_at_pod_level(a_pod) == []
    assert requested(at_pod_level(a_pod, cpu="5")).milli_cpu == 5000
    assert insufficient_at_pod_level(at_pod_level(a_pod, cpu="2")) == ["cpu"]


# What is refused.


async def refused(harness: Harness, *objects: Any) -> str:
    """Return why the pod p cannot go to n1, which is the only node."""
    await scheduled(harness, *objects)
    assert "p" not in harness.placements()
    head = "0/1 nodes are available: 1 "
    text = message(harness, "p")
    assert text.startswith(head)
    return text.removeprefix(head).partition(".")[0]


async def test_the_node_has_no_room_for_the_claim() -> None:
    harness = world(mapped("a", cpu="3"))
    others = pod("other", cpu="2", node="n1")
    text = await refused(harness, others, claim("c"), using(pod("p", cpu="1"), "c"))
    assert text == "Insufficient cpu"
    harness.delete(others)
    await harness.pass_time(5)
    assert harness.placements() == {"p": "n1"}


async def test_a_claim_that_no_container_uses() -> None:
    text = await refused(world(mapped("a", cpu="1")), claim("c"), with_claims(pod("p"), "c"))
    assert text == (
        "claim c: node-allocatable resource claim not referenced by any container within the pod"
    )


async def test_the_pod_requests_less_as_a_whole() -> None:
    a_pod = at_pod_level(using(pod("p", cpu="1"), "c"), cpu="2")
    text = await refused(world(mapped("a", cpu="2")), claim("c"), a_pod)
    assert text == (
        "pod level request for cpu is insufficient to cover the aggregated container and"
        " node-allocatable DRA requests"
    )


async def test_a_claim_that_several_pods_may_use() -> None:
    held = claim("c", allocated=allocation("a"), users=["one", "two"])
    text = await refused(world(mapped("a", cpu="1")), held, using(pod("p"), "c"))
    assert text == "node allocatable resource claim c shared by multiple pods"


async def test_a_claim_that_another_pod_uses_there() -> None:
    held = claim("c", allocated=allocation("a"), users=["one"])
    other = takes(using(pod("other", node="n1"), "c"), "c", cpu="1")
    text = await refused(world(mapped("a", cpu="1")), held, other, using(pod("p"), "c"))
    assert text == "node allocatable resource claim c is already used by another pod"


async def test_pods_of_a_group_cannot_share_it() -> None:
    gates = (GATE, GROUP_CLAIMS, "GenericWorkload", "GangScheduling")
    harness = world(mapped("a", cpu="1"), gates=gates)
    pods = [using(member(name, cpu="100m"), "c") for name in ("o", "p")]
    await scheduled(harness, group_with("c", min_count=2), claim("c"), *pods)
    assert harness.placements() == {}
    why = "0/1 nodes are available: 1 node allocatable resource claim c shared by multiple pods."
    texts = [message(harness, name) for name in ("o", "p")]
    assert len([text for text in texts if text.startswith(why)]) == 1


async def test_a_capacity_that_was_not_consumed() -> None:
    whole = mapped("a", key="cores", capacity={"cores": "8"}, cpu="1")
    whole = msgspec.structs.replace(whole, allow_multiple_allocations=False)
    harness = await scheduled(world(whole), claim("c"), using(pod("p"), "c"))
    assert message(harness, "p").endswith(
        "claim default/c, device a: ConsumedCapacity is nil, but Capacity key 'cores' is set in"
        " NodeAllocatableResourceMappings for resource cpu"
    )


async def test_no_container_names_the_claim_for_extended_resources() -> None:
    harness = world(mapped("a", cpu="1"))
    harness.put(device_class("ext", extended_resource="example.com/gpu"))
    await scheduled(harness, pod("p", requests={"example.com/gpu": 1}))
    assert harness.placements() == {}
    assert message(harness, "p").startswith(
        "0/1 nodes are available: 1 claim <extended-resources>: node-allocatable resource claim not"
        " referenced by any container within the pod."
    )


async def test_devices_that_take_nothing_serve_extended_resources() -> None:
    harness = world(device("a"))
    harness.put(device_class("ext", extended_resource="example.com/gpu"))
    await scheduled(harness, pod("p", requests={"example.com/gpu": 1}))
    assert harness.placements() == {"p": "n1"}


# From Assume to the end.


async def test_without_the_gate_devices_take_nothing() -> None:
    harness = await scheduled(
        world(mapped("a", cpu="9"), gates=()), claim("c"), using(pod("p", cpu="1"), "c")
    )
    assert harness.placements() == {"p": "n1"}
    assert told(harness, "p") == []


async def test_claims_of_pods_that_are_being_bound_count() -> None:
    devices = [mapped(name, cpu="2") for name in ("a", "b", "c")]
    harness = world(*devices, nodes=(node("n1", cpu="4"), node("n2", cpu="4")))
    pods = [using(pod(f"p{number}", cpu="100m"), f"c{number}") for number in range(3)]
    harness.put(*(claim(f"c{number}") for number in range(3)), *pods)
    await harness.until_idle()
    assert sorted(harness.placements().values()) == ["n1", "n2"]
    assert list(harness.cluster.conditions) == ["default/p2"]


async def test_what_was_told_is_taken_back_when_the_binding_fails() -> None:
    harness = world(mapped("a", cpu="2"))
    harness.cluster.bind_error = OSError("no route")
    await scheduled(harness, claim("c"), using(pod("p", cpu="1"), "c"))
    assert told(harness, "p") == []
    assert int(harness.cache.table.requested[0, 0]) == 0
    harness.cluster.bind_error = None
    await harness.pass_time(10)
    assert harness.placements() == {"p": "n1"}
    assert told(harness, "p")[0]["resources"] == {"cpu": "2"}
    assert int(harness.cache.table.requested[0, 0]) == 3000


def test_nothing_is_taken_back_that_was_not_told() -> None:
    cluster = PluginCluster(FakeClock())
    claims, pools = ResourceClaimTracker(cluster.listers), ResourcePools(cluster.listers)
    counted, devices = NodeAllocatableResources(cluster.handle, claims, pools), DevicesOfPod()
    counted.clear(devices, pod("p"))
    assert cluster.background.is_idle
    devices.has_told_pod = True
    counted.clear(devices, pod("p"))
    assert not cluster.background.is_idle


async def test_a_pod_that_is_tried_again_is_told_what_its_claims_take_now() -> None:
    harness = world(mapped("a", cpu="2"))
    stale = takes(using(pod("p", cpu="1"), "c"), "c", cpu="3")
    await scheduled(harness, claim("c"), stale)
    assert told(harness, "p")[0]["resources"] == {"cpu": "2"}
    assert int(harness.cache.table.requested[0, 0]) == 3000
