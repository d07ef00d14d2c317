"""A table on which one node is changed in thought, as plugins advise."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from berth.insight.explain.explanation import NearestMiss, Obstacle
from berth.insight.explain.obstacles import Obstacles
from berth.kube.objects.host_ports import conflicts
from berth.kube.objects.node import Node
from berth.kube.objects.taints import UNSCHEDULABLE_TAINT, written
from berth.scheduler.framework.change import Change, ChangeKind
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Mask

FRESH_VALUE: Final = "new"
"""A label value that no node has, taken when those that some have are of no use."""
UNTRIED: Final = frozenset({ChangeKind.FREE_DEVICE, ChangeKind.DETACH_VOLUME, ChangeKind.EDIT_POD})
"""What a table cannot show: who holds devices and attachments is not in it."""
NOT_VERIFIED: Final = "that may not be enough"


class ChangedNode:
    """One row of a copy of a table, and the changes that were made to it.

    Each change is made once, whoever asks for it.
    """

    def __init__(self, pod: PodInfo, nodes: NodeTable, row: int, *, choice: int) -> None:
        """*choice*: which of several values a label gets; 0: the first."""
        self.nodes = nodes.detached()
        self.row = row
        self.is_last_choice = True
        """Whether another *choice* would change nothing."""
        self.untried: set[str] = set()
        """Plugins with objections that cannot be met in thought."""
        self._pod = pod
        self._choice = choice
        self._changed: Node | None = None
        """The node with changes that the table does not show yet: there may be a thousand of them,
        and a row takes as long as all its labels."""
        self._enlarged: dict[str, int] = {}
        self._changes: list[Change] = []
        self._words: dict[str, None] = {}
        self._labels: dict[str, str | None] = {}
        self._moved: set[str] = set()
        self._settled: set[str] = set()
        """Domains in which pods were moved before: to move others as well undoes that."""

    @property
    def only(self) -> Mask:
        """The row, and no other."""
        rows = self.nodes.no_rows()
        rows[self.row] = True
        return rows

    def in_words(self, beside: Sequence[str]) -> NearestMiss:
        """Tell the changes; *beside* are the pods that room is left for."""
        words = [*self._words]
        if self.untried and self._changes:
            words.append(NOT_VERIFIED)
        name = self.nodes.name(self.row)
        where = f"{name}, beside {', '.join(beside)} nominated there" if beside else name
        return NearestMiss(
            node=name,
            changes=tuple(self._changes),
            is_complete=not self.untried,
            words=f"{where}: {'; '.join(words)}",
        )

    def make(self, held_against: Sequence[Obstacle], obstacles: Obstacles) -> bool:
        """Make all changes that *held_against* asks for, which *obstacles* tell of the row.

        False if none of them is new, if one contradicts another, and if nothing would help.
        """
        is_first, before = not self._words, len(self._words)
        self._settled |= {
            change.what for change in self._changes if change.kind is ChangeKind.MOVE_PODS
        }
        for obstacle in held_against:
            if obstacle.plugin in self.untried:
                continue
            if not obstacle.details:
                if not is_first:  # it is the changes that it minds
                    return False
                reasons = ", ".join(obstacle.reasons)
                self._words[f"{obstacle.plugin or 'PreFilter'} says {reasons!r}"] = None
                self.untried.add(obstacle.plugin)
            for detail in obstacle.details:
                if detail.change is None or not self._make(detail.change, obstacle, obstacles):
                    return False
        self._show()
        return len(self._words) > before

    def _make(self, change: Change, obstacle: Obstacle, obstacles: Obstacles) -> bool:
        if change.words in self._words:
            return True
        match change.kind:
            case ChangeKind.FREE_RESOURCE | ChangeKind.REQUEST_LESS | ChangeKind.FREE_POD_SLOT:
                self._enlarge(change.what, change.amount)
            case ChangeKind.FREE_PORT:
                self._close_ports()
            case ChangeKind.REMOVE_TAINT:
                self._set_taints(change.what)
            case ChangeKind.UNCORDON:
                spec = replace(self._node.spec, unschedulable=False)
                self._changed = replace(self._node, spec=spec)
                self._set_taints(written(UNSCHEDULABLE_TAINT))
            case ChangeKind.LABEL_NODE:
                return self._label(change)
            case ChangeKind.MOVE_PODS if change.what in self._settled:
                return False
            case ChangeKind.MOVE_PODS:
                self._move_pods(change, obstacle, obstacles)
            case _:
                self.untried.add(obstacle.plugin)
        self._tell(change)
        return True

    def _tell(self, change: Change) -> None:
        self._changes.append(change)
        self._words[change.words] = None

    @property
    def _node(self) -> Node:
        node = self._changed or self.nodes.nodes[self.row]
        assert node is not None, f"row {self.row} is empty"
        return node

    def _show(self) -> None:
        """Have the table show the changes of the node."""
        if self._changed is not None:
            self.nodes.set_node(self.row, self._changed)
            self._changed = None

    def _enlarge(self, name: str, amount: int) -> None:
        """Let the node have more, which stands for pods that leave, wherever they go."""
        if name in self._enlarged:
            has = self._enlarged[name]
        elif name == "pods":
            has = int(self.nodes.allowed_pods[self.row])
        else:
            columns = self.nodes.resource_rows(name)
            has = 0 if columns is None else int(columns[0][self.row])
        self._enlarged[name] = has + amount
        quantity = f"{has + amount}{'m' if name == 'cpu' else ''}"
        status = self._node.status
        allocatable = {**status.allocatable, name: quantity}
        self._changed = replace(self._node, status=replace(status, allocatable=allocatable))

    def _close_ports(self) -> None:
        """Let the pods on the node keep all but the ports that the pod wants."""
        wanted = self._pod.template.host_ports
        for holder in list(self.nodes.pods[self.row].values()):
            if conflicts(wanted, holder.template.host_ports):
                self.nodes.remove_pod(self.row, holder)
                self.nodes.add_pod(self.row, _without_ports(holder))

    def _set_taints(self, gone: str) -> None:
        spec = self._node.spec
        taints = tuple(taint for taint in spec.taints if written(taint) != gone)
        self._changed = replace(self._node, spec=replace(spec, taints=taints))

    def _label(self, change: Change) -> bool:
        """Set or remove a label; false if something else was done to it before."""
        key = change.what
        if key in self._labels:
            value = self._labels[key]
            if change.removes or value is None:
                return change.removes and value is None
            return not change.values or value in change.values
        labels = dict(self._node.metadata.labels)
        labels.pop(key, None)
        if not change.removes:
            values = change.values or (*self._known_values(key), FRESH_VALUE)
            value = values[min(self._choice, len(values) - 1)]
            self.is_last_choice &= self._choice >= len(values) - 1
            labels[key] = value
            if not change.values or value != values[0]:
                words = f"label it {key}={value}"
                change = Change(kind=change.kind, what=key, words=words, values=(value,))
        self._labels[key] = labels.get(key)
        self._changed = replace(self._node, metadata=replace(self._node.metadata, labels=labels))
        self._tell(change)
        return True

    def _known_values(self, key: str) -> Iterator[str]:
        """Yield the values that nodes have, of the first nodes by name first."""
        values = self.nodes.labels.values(key)
        ids = self.nodes.labels.ids(key)
        rows = (row for _, row in sorted(self.nodes.row_of.items()))
        known = (values[ids[row]] for row in rows if row != self.row)
        yield from dict.fromkeys(value for value in known if value is not None)

    def _move_pods(self, change: Change, obstacle: Obstacle, obstacles: Obstacles) -> None:
        self._show()
        moves = obstacles.moves(obstacle.plugin, change, self.row)
        if moves is None:
            self.untried.add(obstacle.plugin)
            return
        for move in moves:
            pod = move.pod
            if pod.uid in self._moved:
                continue
            self._moved.add(pod.uid)
            if move.comes:
                self.nodes.add_pod(move.row, pod)
            else:
                self.nodes.remove_pod(move.row, self.nodes.pods[move.row][pod.uid])


def _without_ports(holder: PodInfo) -> PodInfo:
    spec = holder.pod.spec
    return PodInfo(
        replace(
            holder.pod,
            spec=replace(
                spec,
                containers=tuple(replace(container, ports=()) for container in spec.containers),
                init_containers=tuple(
                    replace(container, ports=()) for container in spec.init_containers
                ),
            ),
        )
    )
