"""Explanations by plugins of one node: the numbers, and what would help."""

from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.taints import UNSCHEDULABLE_TAINT
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.verdict import Mask


class ChangeKind(StrEnum):
    """What has to be changed, for programs; ``Change.what`` says what it is about."""

    FREE_RESOURCE = "FreeResource"
    """``amount`` of the resource ``what`` is to be given back by pods of the node."""
    REQUEST_LESS = "RequestLess"
    """The same, but not even an empty node has enough."""
    FREE_POD_SLOT = "FreePodSlot"
    """``amount`` pods are too many on the node for it to take one more."""
    FREE_PORT = "FreePort"
    """``what`` is the port, as in 8080/TCP."""
    REMOVE_TAINT = "RemoveTaint"
    """``what`` is the taint, as in key=value:effect; to be removed, or tolerated by the pod."""
    UNCORDON = "Uncordon"
    LABEL_NODE = "LabelNode"
    """``what`` is the key of the label to be set, changed or removed."""
    FREE_DEVICE = "FreeDevice"
    """``amount`` devices for the claim ``what`` are to be given back by pods of the node."""
    DETACH_VOLUME = "DetachVolume"
    """``amount`` volumes of the driver ``what`` are too many on the node."""
    MOVE_PODS = "MovePods"
    """``amount`` pods more or fewer in the topology domain ``what``, as in key=value."""
    EDIT_POD = "EditPod"
    """``what`` is the field of the pod that rules the node out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The least that must change on a node, or in the pod, for one objection to go away."""

    kind: ChangeKind
    what: str
    words: str
    """For people, as an order: "free 180m more cpu"."""
    amount: int = 0
    """Of resources in the units of :class:`~berth.scheduler.framework.node_table.NodeTable`."""
    shortfall: float = 1.0
    """How far off the node is: what is missing, as a part of what is needed; 1: all of it."""
    values: tuple[str, ...] = ()
    """Of LabelNode: the values that the label may get; empty: any."""
    removes: bool = False
    """Of LabelNode: whether the label is to be removed."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One objection to a node, with numbers: "needs cpu 500m, free 320m of 4000m".

    Its change is one that an operator can make: what a node is, where it is, and the hardware in it
    cannot be changed.
    """

    message: str
    change: Change | None = None
    """None: nothing short of another node or another pod would do."""


class Explains(Plugin):
    """A Filter plugin that can tell more of one node than the reasons in its verdict."""

    @abstractmethod
    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterable[Detail]:
        """Tell everything that the filter holds against *row*, which it has rejected.

        Called when somebody asks, never in a scheduling attempt, with the *state* that PreFilter
        of the same question has written. As in Filter, the table that is given is evaluated.
        """


class Move(NamedTuple):
    """A pod that leaves a node, or comes to it."""

    row: int
    pod: PodInfo
    comes: bool = False


class MovesPods(Explains):
    """A Filter plugin whose MovePods changes can be tried out before they are advised."""

    @abstractmethod
    def moves(
        self, change: Change, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterable[Move] | None:
        """Name pods that are to move for *change*, which :meth:`explain` told of *row*.

        A pod that comes may be one that there is not yet. None if nobody can tell.
        """


@dataclass(frozen=True, slots=True)
class Objection:
    """One detail of many rows at once, without its words."""

    where: Mask
    kind: ChangeKind | None
    """Of the change that would help; None: nothing short of another node or another pod would."""
    shortfall: NDArray[np.float64] | float = 1.0
    """Of each row, or of all."""


class ExplainsColumns(Explains):
    """A Filter plugin that can also tell how far off all rows are, faster than one by one."""

    @abstractmethod
    def objections(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Iterable[Objection]:
        """Tell what :meth:`explain` holds against each row, in the order of its details.

        Rows without an objection are asked about one by one.
        """


SummingUp: TypeAlias = Generator[None, None, str]
"""What there is to say, after so many steps between which others may have a turn."""


class SumsUp(Plugin):
    """A Filter plugin that can tell of the whole cluster what no single node shows."""

    @abstractmethod
    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Say in a clause how much there is of what the rows *where* lack, and who holds it.

        "port 80/TCP is taken on 3 nodes by default/a, default/b and default/c"; empty if there is
        nothing to add to the reasons. *where* are the rows that the filter has rejected, called as
        :meth:`Explains.explain`; a step takes no longer than one node of that.
        """


class Records(Plugin):
    """A plugin whose findings on nodes are part of the record of a decision."""

    @abstractmethod
    def record(self, state: CycleState, nodes: NodeTable, rows: Mask) -> Mapping[str, Any]:
        """Return the findings on *rows*, which passed all filters, as JSON would have them.

        Called after the cycle that has written *state*; empty if there is nothing to record.
        """


_GIVEN_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
    }
)
_GIVEN_PREFIXES: Final = (
    "topology.",  # topology.kubernetes.io, and what storage drivers add: topology.ebs.csi...
    "failure-domain.beta.kubernetes.io/",
    "feature.node.kubernetes.io/",
)
"""Well-known labels that say what a node is and where, not what it is for
(https://kubernetes.io/docs/reference/labels-annotations-taints/)."""


def label_change(
    key: str, words: str, *, values: Sequence[str] = (), removes: bool = False
) -> Change | None:
    """Return what a label of a node would have to become; None if it states a fact.

    Another name or zone in a label moves no machine: volumes, and pods that are spread, would end
    up in the wrong place.
    """
    if key in _GIVEN_LABELS or key.startswith(_GIVEN_PREFIXES):
        return None
    return Change(
        kind=ChangeKind.LABEL_NODE, what=key, words=words, values=tuple(values), removes=removes
    )


def uncordon() -> Change:
    """Return what a cordoned node needs, which has the field set and, soon after, the taint."""
    return Change(
        kind=ChangeKind.UNCORDON,
        what="spec.unschedulable",
        words=f"uncordon it, or tolerate {UNSCHEDULABLE_TAINT.key}",
    )


NAMED: Final = 3
"""How many things a clause names before it counts the others."""


def listed(names: Sequence[str]) -> str:
    """Write "a, b and c", or "a, b, c and 4 more"."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted(count: int, thing: str) -> str:
    """Write "1 node" or "2 nodes"."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


_BINARY_UNITS = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def amount_in_words(resource: str, amount: int, *, round_up: bool = False) -> str:
    """Write *amount*, in the units of the table, as people do: ``500m``, ``1.5Gi``, ``2``.

    Bytes are rounded to a tenth of their unit, down unless *round_up*: with what is there rounded
    down and what is needed rounded up, a shortage never looks like enough.
    """
    if resource == "cpu":
        return f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for unit, power in _BINARY_UNITS:
            if abs(amount) >= 1 << power:
                tenths = -(-amount * 10 >> power) if round_up else amount * 10 >> power
                return f"{tenths / 10:g}{unit}"
    return str(amount)
