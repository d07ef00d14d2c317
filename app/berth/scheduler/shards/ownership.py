"""Which nodes and pods are this replica's at this moment."""

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.verdict import Mask
from berth.scheduler.shards.slots import home_of, offered_to, slot_of


class Ownership:
    """The slots that are this replica's, and what falls into them; changed by the keeper only."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.active: frozenset[int] = frozenset()
        """The slots whose nodes and pods decisions are made about."""
        self._placement_key = object()

    def become(self, active: frozenset[int]) -> None:
        self.active = active
        self._placement_key = object()

    def is_active(self, node_name: str) -> bool:
        """Whether a pod that is decided about now may be bound to the node."""
        return slot_of(node_name, self.num_slots) in self.active

    def slot_of_pod(self, pod: Pod, table: NodeTable) -> int:
        """Return the slot whose holder decides about *pod*: its home, or that of the node that it
        is offered to."""
        node = offered_to(pod) if pod.status.conditions else ""
        at = node if node and node in table.row_of else home_of(pod)
        return slot_of(at, self.num_slots)

    def has_pod(self, pod: Pod, table: NodeTable) -> bool:
        """Whether this replica decides about *pod*, which has no node."""
        return self.slot_of_pod(pod, table) in self.active

    def among(self, placement: Placement, table: NodeTable) -> Placement:
        """Return the own nodes of *placement*: the same object while neither they nor nodes
        change, so that answers can be kept for it."""
        rows = table.kept(self._placement_key, lambda: self._rows(table))
        if placement is not EVERYWHERE:
            return Placement(placement.name, placement.rows_of(table) & rows)
        return table.kept((Ownership, self._placement_key), lambda: Placement("own nodes", rows))

    def _rows(self, table: NodeTable) -> Mask:
        rows = table.no_rows()
        own = [
            r for name, r in table.row_of.items() if slot_of(name, self.num_slots) in self.active
        ]
        rows[own] = True
        return rows
