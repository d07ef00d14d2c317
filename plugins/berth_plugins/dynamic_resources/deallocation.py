"""Frees a claim that keeps a pod off nodes, if nobody uses it: PostFilter (spec §5.17, G15.4)."""

from typing import Final

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, PodGroup
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.pod_groups import PodGroups
from berth.scheduler.framework.status import Status
from berth_plugins.dynamic_resources.binding import ClaimBinding
from berth_plugins.dynamic_resources.claim_writes import may_be_deallocated
from berth_plugins.dynamic_resources.state import DevicesOfPod

NO_CLAIMS: Final = Status.unschedulable("no new claims to deallocate")
DEALLOCATED: Final = Status.unschedulable("deallocation of ResourceClaim completed")
DELETED: Final = Status.unschedulable("deletion of ResourceClaim completed")
UNRESERVED: Final = Status.unresolvable("ResourceClaim unreserved for PodGroup")
STILL_NOT: Final = Status.unschedulable("still not schedulable")


class Deallocation:
    """Chooses what to free, one claim at a time; *binding* does it."""

    def __init__(self, binding: ClaimBinding, pod_groups: PodGroups) -> None:
        self._binding = binding
        self._pod_groups = pod_groups

    def free_one(self, devices: DevicesOfPod, pod: Pod, state: CycleState) -> Status:
        """Have the first claim freed that can be; say what is done."""
        if devices.is_empty:
            return NO_CLAIMS
        for index in sorted(devices.unavailable):
            claim = devices.claims[index]
            if may_be_deallocated(claim, pod):
                self._binding.deallocate(claim, pod)
                return DEALLOCATED
            group = devices.groups.get(claim.metadata.uid)
            if group is not None and self._may_be_unreserved(claim, group, state):
                self._binding.unreserve_group(claim, group)
                return UNRESERVED
        extended = devices.extended
        if extended is not None and extended.is_left_over:
            self._binding.delete(extended.claim)
            return DELETED
        return STILL_NOT

    def _may_be_unreserved(self, claim: ResourceClaim, group: PodGroup, state: CycleState) -> bool:
        """Whether nobody but *group* has the claim, and no pod of the group is on a node.

        Those that are there on trial do not count.
        """
        known = self._pod_groups.get(GroupKey(group.metadata.namespace, group.metadata.name))
        scheduled = known.scheduled.keys() if known is not None else ()
        users = {consumer.uid for consumer in claim.status.reserved_for}
        return users == {group.metadata.uid} and state.on_trial.issuperset(scheduled)
