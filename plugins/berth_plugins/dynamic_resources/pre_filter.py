"""PreFilter for the claims of a pod (spec §5.17)."""

from collections.abc import Sequence

from berth.kube.objects.pod import Pod
from berth.kube.objects.selectors import compile_node_selector
from berth.scheduler.framework.status import Status
from berth_plugins.dynamic_resources.binding_conditions import is_lost
from berth_plugins.dynamic_resources.claim_tracker import PendingAllocation, ResourceClaimTracker
from berth_plugins.dynamic_resources.features import Features
from berth_plugins.dynamic_resources.group_claims import GroupClaims
from berth_plugins.dynamic_resources.requests import (
    AllocationError,
    NoSuchClassError,
    UnknownRequestError,
    requests_of,
)
from berth_plugins.dynamic_resources.resolution import ClaimOfPod
from berth_plugins.dynamic_resources.state import DevicesOfPod
from berth_plugins.shared.device_classes import DeviceClassResolver


class ClaimsPreparation:
    """Sorts claims into those with devices and those that are to get some."""

    def __init__(
        self,
        claims: ResourceClaimTracker,
        classes: DeviceClassResolver,
        groups: GroupClaims,
        *,
        timeout: float,
        features: Features,
    ) -> None:
        """*timeout* is how many seconds after their allocation devices must be ready."""
        self._claims = claims
        self._classes = classes
        self._groups = groups
        self._timeout = timeout
        self._features = features

    def prepare(
        self, devices: DevicesOfPod, pod: Pod, claims: Sequence[ClaimOfPod], *, now: float
    ) -> Status | None:
        """Note in *devices* which claims are allocated where, and which are to be allocated.

        Returns why they cannot be.
        """
        bound_to, lost, to_allocate, shared = [], set(), [], set()
        skipping = set()
        for index, (claim, _) in enumerate(claims):
            uid, allocation = claim.metadata.uid, claim.status.allocation
            pending = self._claims.pending_allocation(uid)
            if allocation is not None:
                has_conditions = self._features.binding_conditions
                if has_conditions and is_lost(claim, timeout=self._timeout, now=now):
                    lost.add(index)
            elif pending is not None:
                if not self._may_share(pending, pod):
                    return Status.unresolvable(
                        f"resource claim {claim.metadata.key} is in the process of being allocated"
                    )
                allocation = pending.allocation
                shared.add(uid)
            else:
                try:
                    to_allocate.append(requests_of(claim, self._classes, self._features))
                except (NoSuchClassError, UnknownRequestError) as exc:
                    return Status.unresolvable(str(exc))
                except AllocationError as exc:
                    return Status.error(str(exc))
                continue
            if self._features.optional_node_operations and any(
                result.skip_node_operations for result in allocation.devices.results
            ):
                skipping.add(index)
            if allocation.node_selector is not None:
                bound_to.append((index, compile_node_selector(allocation.node_selector)))
        devices.bound_to, devices.lost = tuple(bound_to), frozenset(lost)
        devices.skipping = frozenset(skipping)
        devices.to_allocate, devices.shared = tuple(to_allocate), frozenset(shared)
        devices.claims = [claim for claim, _ in claims]
        devices.groups = {claim.metadata.uid: group for claim, group in claims if group is not None}
        return None

    def _may_share(self, pending: PendingAllocation, pod: Pod) -> bool:
        """Whether *pod* is of the group whose pods share an allocation in flight (spec G15.4)."""
        return pending.group is not None and pending.group == self._groups.scheduled_with(pod)
