"""What a plugin tells of one node when somebody asks why: the numbers, and what would help."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.framework.cycle_state import CycleState
from app.framework.interface import Plugin
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo


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
    """Of resources in the units of :class:`~app.framework.node_table.NodeTable`."""
    shortfall: float = 1.0
    """How far off the node is: what is missing, as a part of what is needed; 1: all of it."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One objection to a node, with numbers: "needs cpu 500m, free 320m of 4000m"."""

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
        of the same question has written. As in Filter, the table that is given is judged.
        """


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
