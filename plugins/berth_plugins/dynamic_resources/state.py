"""The state of DynamicResources for a pod during one attempt."""

from collections.abc import Mapping
from typing import Final

import msgspec

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.pod import NodeAllocatableResourceClaimStatus
from berth.kube.objects.pod_group import PodGroup
from berth.kube.objects.selectors import NodeSelectorMatcher
from berth_plugins.dynamic_resources.claim_tracker import PendingAllocation
from berth_plugins.dynamic_resources.extended_resources import RequestMapping
from berth_plugins.dynamic_resources.requests import ClaimRequests
from berth_plugins.dynamic_resources.search_result import ClaimPicks

KEY: Final = "DynamicResources"
"""Where it stands in the cycle state."""


class ExtendedResources(msgspec.Struct):
    """The claim for extended resources, and how much of them the pod needs."""

    claim: ResourceClaim
    """In memory at first, then as it was created."""
    amounts: Mapping[str, int]
    """By resource, all that may be devices; none is 0."""
    is_left_over: bool = False
    """Whether the claim is from an attempt that failed; then it has to go first."""
    variants: dict[frozenset[str], tuple[ClaimRequests | None, tuple[RequestMapping, ...]]] = (
        msgspec.field(default_factory=dict)
    )
    """What is to be found, by the resources that a node does not offer by other means."""


class NodeFind(msgspec.Struct, frozen=True):
    """Devices found on one node for all claims that need some."""

    claims: tuple[ClaimRequests, ...] = ()
    picks: tuple[ClaimPicks, ...] = ()
    """One for each claim."""
    mappings: tuple[RequestMapping, ...] = ()
    """For the claim for extended resources, which is the last one if there is one."""


class NodeFinds:
    """What was found, by node name. It stays as it is while others search."""

    def __init__(self) -> None:
        self._picks: dict[str, tuple[ClaimPicks, ...]] = {}
        self._claims: tuple[ClaimRequests, ...] = ()
        self._mappings: tuple[RequestMapping, ...] = ()
        self._others: dict[str, NodeFind] = {}
        """Where other claims are allocated than ``_claims``."""

    def add_all(
        self,
        claims: tuple[ClaimRequests, ...],
        mappings: tuple[RequestMapping, ...],
        picks: Mapping[str, tuple[ClaimPicks, ...]],
    ) -> None:
        """Note what was found for *claims*, by node name."""
        if not self._picks:
            self._claims, self._mappings, self._picks = claims, mappings, dict(picks)
        elif claims == self._claims:
            self._picks.update(picks)
        else:
            self._others |= {name: NodeFind(claims, of, mappings) for name, of in picks.items()}

    def get(self, node_name: str) -> NodeFind | None:
        other = self._others.get(node_name)
        if other is not None:
            return other
        picks = self._picks.get(node_name)
        return None if picks is None else NodeFind(self._claims, picks, self._mappings)

    def __contains__(self, node_name: str) -> bool:
        return node_name in self._picks or node_name in self._others

    def __bool__(self) -> bool:
        return bool(self._picks or self._others)


class DevicesOfPod(msgspec.Struct):
    """Written by PreFilter and, node by node, by Filter. Shared by copies of the cycle state."""

    namespace: str = ""
    """Of the pod: it pays for the search."""
    claims: list[ResourceClaim] = msgspec.field(default_factory=list)
    """Those that the pod names, in its order; replaced as they are written."""
    groups: dict[str, PodGroup] = msgspec.field(default_factory=dict)
    """By UID of the claim, those that are of the pod's group, with the group."""
    extended: ExtendedResources | None = None
    bound_to: tuple[tuple[int, NodeSelectorMatcher], ...] = ()
    """Index into ``claims`` of those allocated for some nodes only, and for which."""
    lost: frozenset[int] = frozenset()
    """Indexes of claims allocated in vain: their devices do not get ready."""
    skipping: frozenset[int] = frozenset()
    """Indexes of allocated claims for which a kubelet must skip operations."""
    to_allocate: tuple[ClaimRequests, ...] = ()
    """What is to be found for ``claims``."""
    shared: frozenset[str] = frozenset()
    """UIDs of claims for which another pod of the group has devices that are not written yet."""
    unavailable: set[int] = msgspec.field(default_factory=set)
    """Indexes of claims that kept the pod off some node."""
    found: NodeFinds = msgspec.field(default_factory=NodeFinds)
    """Of the nodes that were searched, and of some that others had rejected before."""
    search_time: float | None = None
    """Seconds of CPU time to search on all nodes; None before the first search."""
    searched: float = 0.0
    """Seconds of CPU time that it has taken."""
    claim_statuses: dict[str, tuple[NodeAllocatableResourceClaimStatus, ...]] = msgspec.field(
        default_factory=dict
    )
    """By node name, what the devices of all claims take of it."""
    has_told_pod: bool = False
    """Whether ``claim_statuses`` may have been written to the status of the pod."""
    pending: dict[str, PendingAllocation] = msgspec.field(default_factory=dict)
    """By UID of the claim, what the pod counts on since Reserve."""

    @property
    def is_empty(self) -> bool:
        return not self.claims and self.extended is None
