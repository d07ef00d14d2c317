"""Health of nodes: when each was heard of last, and what is still to be done because of it."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from berth.cluster.controllers.node_lifecycle_zones import zone_of
from berth.cluster.controllers.views import LeaseView, NodeView
from berth.cluster.times import seconds_of

EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that do not count when a zone's health is judged."""

UNKNOWN_TYPES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that a kubelet reports. Others come from elsewhere."""


@dataclass(slots=True)
class NodeHealth:
    """What was seen of a node when all were looked at last, and what it needs."""

    node: NodeView
    zone: str
    counts: bool
    """Whether the health of its zone depends on it."""
    heard_at: float
    """When a sign of life came, monotonic: a status with another heartbeat, or a renewed lease."""
    lease: LeaseView | None = None
    renewed_at: datetime | None = None
    is_lost: bool = False
    """Whether its conditions are to become Unknown."""
    evicting: str | None = None
    """The key of the NoExecute taint that it is to get; empty: it is to have none. None: nothing
    is to be done."""
    marks_pods: bool = False
    """Whether its pods are to be marked as not ready."""

    @classmethod
    def of(cls, node: NodeView, *, now: float, wall: float) -> "NodeHealth":
        """Return what is known of a node that is new; *wall* is the time in unix seconds."""
        heard_at = now
        born = node.metadata.creation_timestamp
        if node.condition("Ready") is None and born:
            heard_at = now - max(wall - seconds_of(born), 0.0)
        return cls(node, zone_of(node), _counts(node), heard_at)

    def see(self, node: NodeView, lease: LeaseView | None, *, now: float) -> None:
        """Take in the present state. Cheap when nothing has changed."""
        if node is not self.node:
            if _heartbeat(node) != _heartbeat(self.node):
                self.heard_at = now
            self.node, self.zone, self.counts = node, zone_of(node), _counts(node)
        if lease is not None and lease is not self.lease:
            self.lease = lease
            try:
                renewed_at = lease.renew_time
            except msgspec.ValidationError:
                return
            if renewed_at is not None and (self.renewed_at is None or renewed_at > self.renewed_at):
                self.renewed_at, self.heard_at = renewed_at, now


def _counts(node: NodeView) -> bool:
    return EXCLUDED not in (node.metadata.labels or {})


def _heartbeat(node: NodeView) -> str | None:
    ready = node.condition("Ready")
    return None if ready is None else ready.last_heartbeat_time or ""
