"""One row of a table as an object, for plugins that evaluate nodes one by one."""

from collections.abc import Collection, Mapping

from berth.kube.objects.node import Node
from berth.scheduler.framework.node_table import CPU, MEMORY, NodeTable
from berth.scheduler.framework.pod_info import PodInfo


class NodeInfo:
    """A view of one row; reads the table when asked, keeps nothing."""

    __slots__ = ("_nodes", "row")

    def __init__(self, nodes: NodeTable, row: int) -> None:
        self._nodes = nodes
        self.row = row

    @property
    def node(self) -> Node:
        """The API object."""
        node = self._nodes.nodes[self.row]
        assert node is not None, f"row {self.row} is empty"
        return node

    @property
    def name(self) -> str:
        """``metadata.name`` of the node."""
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """``metadata.labels`` of the node."""
        return self.node.metadata.labels

    @property
    def pods(self) -> Collection[PodInfo]:
        """The pods on the node, assumed ones included, in order of arrival."""
        return self._nodes.pods[self.row].values()

    def allocatable(self, resource: str) -> int:
        """CPU in milli-cores, memory in bytes, others in their own unit; 0 if not offered."""
        columns = self._nodes.resource_rows(resource)
        return int(columns[0][self.row]) if columns else 0

    def requested(self, resource: str) -> int:
        """What the pods on the node request, in the units of :meth:`allocatable`."""
        columns = self._nodes.resource_rows(resource)
        return int(columns[1][self.row]) if columns else 0

    @property
    def non_zero_requested(self) -> tuple[int, int]:
        """Milli-CPU and bytes, with defaults for pods that request none (spec §4.4)."""
        cpu, memory = self._nodes.non_zero_requested[[CPU, MEMORY], self.row]
        return int(cpu), int(memory)
