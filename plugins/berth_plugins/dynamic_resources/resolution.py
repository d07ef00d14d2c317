"""Resolution of the ResourceClaims of a pod (spec §5.17)."""

from collections.abc import Iterator
from typing import NamedTuple

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod, PodResourceClaim
from berth.kube.objects.pod_group import PodGroup
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.group_claims import GroupClaims


class UnresolvedError(Exception):
    """A claim is not there, or not to be used; the text is for people."""


class ClaimOfPod(NamedTuple):
    claim: ResourceClaim
    group: PodGroup | None
    """The group of the pod, if the claim is the group's; it is reserved for the group then."""


def claims_of(
    pod: Pod, claims: ResourceClaimTracker, groups: GroupClaims
) -> tuple[ClaimOfPod, ...]:
    """Return the claims of *pod*, in its order; UnresolvedError if one cannot be used.

    What the pod turned out not to need is left out.
    """
    return tuple(_resolved(pod, claims, groups))


def _resolved(pod: Pod, claims: ResourceClaimTracker, groups: GroupClaims) -> Iterator[ClaimOfPod]:
    namespace = pod.metadata.namespace
    for reference in pod.spec.resource_claims:
        name = claim_name(pod, reference)
        if name is None:
            continue
        claim = claims.get(namespace, name)
        if claim is None:
            raise UnresolvedError(f'could not find ResourceClaim "{namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise UnresolvedError(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None and not groups.is_owned(claim, pod):
            group = groups.owner_group(pod)
            who = (
                "Pod is not owner"
                if group is None
                else f"neither Pod nor PodGroup {group.name} is the owner"
            )
            raise UnresolvedError(
                f"ResourceClaim {namespace}/{name} was not created for Pod"
                f" {namespace}/{pod.metadata.name} ({who})"
            )
        yield ClaimOfPod(claim, groups.group_with(pod, reference))


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of the claim that *reference* means; None if the pod needs none.

    UnresolvedError while it is not made from its template yet.
    """
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    whose = f'pod "{pod.metadata.key}"'
    if reference.resource_claim_template_name is None:
        raise UnresolvedError(
            f'{whose}, spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise UnresolvedError(f"{whose}: ResourceClaim not created yet")
