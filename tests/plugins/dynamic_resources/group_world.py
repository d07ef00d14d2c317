"""Groups whose pods share claims, on nodes with devices."""

import msgspec

from berth.kube.objects.devices import DeviceId, ResourceClaim
from berth.kube.objects.meta import ObjectMeta, OwnerReference
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup, PodGroupResourceClaim
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from tests.builders import node
from tests.device_builders import claim, device, device_class, resource_slice
from tests.harness import Harness
from tests.scheduler.pod_group.building import group, group_harness

GATE = "DRAWorkloadResourceClaims"


def world(
    *nodes: str, devices: int = 1, cpu: str = "4", gates: tuple[str, ...] = (GATE,)
) -> Harness:
    """Make nodes with so many devices each, which pods can use that are on the node."""
    harness = group_harness(*gates)
    harness.put(device_class())
    for name in nodes:
        names = [f"{name}-{number}" for number in range(devices)]
        harness.put(node(name, cpu=cpu), resource_slice(name, *map(device, names), node=name))
    return harness


def group_with(
    *claims: str, name: str = "g", min_count: int | None = None, uid: str = ""
) -> PodGroup:
    """Make a group with claims of these names, which its pods name as well."""
    plain = group(name, min_count=min_count)
    shared = tuple(PodGroupResourceClaim(name=each, resource_claim_name=each) for each in claims)
    return msgspec.structs.replace(
        plain,
        metadata=msgspec.structs.replace(plain.metadata, uid=uid or plain.metadata.uid),
        spec=msgspec.structs.replace(plain.spec, resource_claims=shared),
    )


def owned_by_group(name: str, *, of: str = "g", uid: str = "uid-g") -> ResourceClaim:
    """Make a claim that was made from a template for a group."""
    owner = OwnerReference(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="PodGroup",
        name=of,
        uid=uid,
        controller=True,
    )
    plain = claim(name)
    meta: ObjectMeta = msgspec.structs.replace(plain.metadata, owner_references=(owner,))
    return msgspec.structs.replace(plain, metadata=meta)


def users(harness: Harness, name: str) -> list[tuple[str, str]]:
    """Return whom a claim on the server is reserved for, as kind and UID."""
    reserved = harness.cluster.resource_claims.claim(name).status.reserved_for
    return [(each.resource, each.uid) for each in reserved]


def devices_of(harness: Harness, name: str) -> list[DeviceId]:
    allocation = harness.cluster.resource_claims.claim(name).status.allocation
    return [] if allocation is None else [result.id for result in allocation.devices.results]


def check_devices(harness: Harness) -> None:
    """Check that what is known of devices is what claims on the server say, and nothing else."""
    server = harness.cluster.resource_claims
    allocated = [each for name in server.names() for each in devices_of(harness, name)]
    assert len(allocated) == len(set(allocated)), "a device is allocated twice"
    tracker = harness.listers.shared(ResourceClaimTracker)
    for name in server.names():
        assert tracker.pending_allocation(server.claim(name).metadata.uid) is None
    in_use = {
        DeviceId(pool.spec.driver, pool.spec.pool.name, each.name)
        for pool in harness.listers.resource_slices
        for each in pool.spec.devices
        if tracker.in_use.is_allocated(DeviceId(pool.spec.driver, pool.spec.pool.name, each.name))
    }
    assert in_use == set(allocated)


def check_reservations(harness: Harness, claims_of: dict[str, str]) -> None:
    """Check that each pod on a node may use its claim; *claims_of* tells it by name of the pod."""
    for pod in harness.cluster.pods.values():
        name = claims_of.get(pod.metadata.name)
        if not pod.spec.node_name or name is None:
            continue
        stored = harness.cluster.resource_claims.claim(name)
        assert stored.status.allocation is not None, f"{pod.key} is bound without devices"
        consumers = {each.uid for each in stored.status.reserved_for}
        assert consumers & {pod.metadata.uid, group_uid(harness, pod)}, f"{pod.key} may not use it"


def group_uid(harness: Harness, pod: Pod) -> str:
    assert pod.spec.scheduling_group is not None
    found = harness.listers.pod_groups.get("default", pod.spec.scheduling_group.pod_group_name)
    return found.metadata.uid if found is not None else ""
