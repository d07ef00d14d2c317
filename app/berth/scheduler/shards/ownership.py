"""Which nodes and pods are this replica's at this moment."""

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.verdict import Mask
from berth.scheduler.shards.slots import NO_SLOT, Slots, offered_to, slot_of


class Ownership:
    """The slots that are this replica's, and what falls into them; changed by the keeper, and by
    the handler of nodes."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.active: frozenset[int] = frozenset()
        """The slots whose nodes and pods decisions are made about."""
        self.closed: frozenset[int] = frozenset()
        """The slots of pools that nobody holds: no pod is offered there."""
        self.unrecorded: dict[str, Node] = {}
        """Nodes that are nobody's before their slot is recorded, by name."""
        self.ours: set[str] = set()
        """The UIDs of the pods without a node that decisions are made about; kept by the handler of
        pods."""
        self._slots: dict[str, int] = {}
        """Slots of nodes by name."""
        self._placement_key = object()

    def become(self, active: frozenset[int]) -> None:
        self.active = active
        self._placement_key = object()

    def close(self, slots: frozenset[int]) -> None:
        """Have no pods offered to the nodes of *slots*, and to all others again."""
        if slots != self.closed:
            self.closed = slots
            self._placement_key = object()

    def saw_node(self, node: Node) -> bool:
        """Take note of the slot of *node*; whether it is another than before."""
        name, slot = node.metadata.name, self.slots.of_node(node)
        if slot == NO_SLOT:
            self.unrecorded[name] = node
        else:
            self.unrecorded.pop(name, None)
        changed = self.slot_of_node(name) != slot
        self._slots[name] = slot
        return changed

    def forget_node(self, name: str) -> None:
        self._slots.pop(name, None)
        self.unrecorded.pop(name, None)

    def slot_of_node(self, name: str) -> int:
        """Return the slot of a node, :data:`NO_SLOT` if there is none yet."""
        slot = self._slots.get(name)
        if slot is None:
            slot = NO_SLOT if self.slots.label else slot_of(name, self.slots.number)
        return slot

    def is_active(self, node_name: str) -> bool:
        """Whether a pod that is decided about now may be bound to the node."""
        return self.slot_of_node(node_name) in self.active

    def slot_of_pod(self, pod: Pod, table: NodeTable) -> int:
        """Return the slot whose holder decides about *pod*: its home, or that of the node that it
        is offered to."""
        node = offered_to(pod) if pod.status.conditions else ""
        if node and node in table.row_of:
            return self.slot_of_node(node)
        return self.slots.home_of(pod)

    def has_pod(self, pod: Pod, table: NodeTable) -> bool:
        """Whether this replica decides about *pod*, which has no node."""
        return self.slot_of_pod(pod, table) in self.active

    def among(self, placement: Placement, table: NodeTable) -> Placement:
        """Return the own nodes of *placement*: the same object while neither they nor nodes
        change, so that answers can be kept for it."""
        rows = table.kept(self._placement_key, lambda: self._rows(table, self.active))
        if placement is not EVERYWHERE:
            return Placement(placement.name, placement.rows_of(table) & rows)
        return table.kept((Ownership, self._placement_key), lambda: Placement("own nodes", rows))

    def open(self, table: NodeTable) -> Placement:
        """Return the nodes that pods are bound or offered to; see :meth:`among`."""
        if not self.closed and not self.unrecorded:
            return EVERYWHERE

        def build() -> Placement:
            outside = self._rows(table, self.closed | {NO_SLOT})
            return Placement("open nodes", table.exists & ~outside)

        return table.kept(("open", self._placement_key), build)

    def _rows(self, table: NodeTable, slots: frozenset[int]) -> Mask:
        rows = table.no_rows()
        rows[[r for name, r in table.row_of.items() if self.slot_of_node(name) in slots]] = True
        return rows
