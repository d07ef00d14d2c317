"""Resource claims of pods that are made again elsewhere."""

from collections.abc import Iterator

from msgspec.structs import replace

from berth.kube.objects.devices import ResourceClaim, ResourceClaimStatus
from berth.kube.objects.pod import Pod
from berth.scheduler.core.simulated_cluster import SimulatedCluster


def claims_made_for(cluster: SimulatedCluster, pod: Pod) -> Iterator[ResourceClaim]:
    """Yield the claims that were made from templates for *pod* alone, and go with it."""
    for status in pod.status.resource_claim_statuses:
        name = status.resource_claim_name
        claim = name and cluster.listers.resource_claims.get(pod.metadata.namespace, name)
        owner = claim.metadata.controller if claim else None
        if claim and owner is not None and owner.uid == pod.metadata.uid:
            yield claim


def free_claims(cluster: SimulatedCluster, pod: Pod) -> None:
    """Have the claims that were made for *pod* as those of the pod that comes in its place are."""
    for claim in claims_made_for(cluster, pod):
        cluster.put(replace(claim, status=ResourceClaimStatus()))
