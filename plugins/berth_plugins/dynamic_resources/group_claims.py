"""Claims that the pods of a PodGroup share, with DRAWorkloadResourceClaims (spec G15.4, KEP-5729).

Decision (2026-11): a PodGroup is recognised by its UID where it is known. kube-scheduler 1.36
compares names, so that the pods of a group that was deleted and made again would rely on the
reservation of the old one, which is taken away under them.
"""

from typing import Final

from berth.kube.objects import pod_group
from berth.kube.objects.devices import ResourceClaim, ResourceClaimConsumerReference
from berth.kube.objects.meta import OwnerReference
from berth.kube.objects.pod import Pod, PodResourceClaim
from berth.kube.objects.pod_group import GroupKey, PodGroup, group_of
from berth.scheduler.framework.handle import Handle

GENERIC_WORKLOAD: Final = "GenericWorkload"
WORKLOAD_RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
POD_GROUP: Final = "PodGroup"


class GroupClaims:
    """Tells which claims of a pod are those of its group."""

    def __init__(self, handle: Handle) -> None:
        self._groups_are_scheduled = GENERIC_WORKLOAD in handle.features
        self._groups_have_claims = WORKLOAD_RESOURCE_CLAIMS in handle.features
        self._groups = handle.listers.pod_groups

    def scheduled_with(self, pod: Pod) -> GroupKey | None:
        """Return the group whose pods are tried together with *pod*; None: it is tried alone."""
        return group_of(pod) if self._groups_are_scheduled else None

    def owner_group(self, pod: Pod) -> GroupKey | None:
        """Return the group that may own claims of *pod*; None: only the pod may."""
        return group_of(pod) if self._groups_have_claims else None

    def group_with(self, pod: Pod, reference: PodResourceClaim) -> PodGroup | None:
        """Return the group that has the claim of *pod* that *reference* means; None: none has."""
        key = self.owner_group(pod)
        group = None if key is None else self._groups.get(key.namespace, key.name)
        if group is None:
            return None
        has_it = any(
            claim.name == reference.name
            and claim.resource_claim_name == reference.resource_claim_name
            and claim.resource_claim_template_name == reference.resource_claim_template_name
            for claim in group.spec.resource_claims
        )
        return group if has_it else None

    def is_owned(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Whether *claim*, made from a template, was made for *pod* or for its group."""
        owner = claim.metadata.controller
        if owner is None:
            return False
        if owner.uid == pod.metadata.uid:
            return True
        key = self.owner_group(pod)
        return key is not None and self._is_group(owner, key)

    def _is_group(self, owner: OwnerReference, key: GroupKey) -> bool:
        group, _, _ = owner.api_version.rpartition("/")
        if (group, owner.kind, owner.name) != (pod_group.GROUP, POD_GROUP, key.name):
            return False
        known = self._groups.get(key.namespace, key.name)
        return known is None or known.metadata.uid == owner.uid


def consumer_of(pod: Pod) -> ResourceClaimConsumerReference:
    """Return how the ``reservedFor`` of a claim names *pod*."""
    meta = pod.metadata
    return ResourceClaimConsumerReference(resource="pods", name=meta.name, uid=meta.uid)


def consumer_of_group(group: PodGroup) -> ResourceClaimConsumerReference:
    """Return how the ``reservedFor`` of a claim names *group*."""
    return ResourceClaimConsumerReference(
        api_group=pod_group.GROUP,
        resource=pod_group.RESOURCE,
        name=group.metadata.name,
        uid=group.metadata.uid,
    )
