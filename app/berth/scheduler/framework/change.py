"""What a plugin holds against a node, and what would help: values, of which commands know, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from berth.kube.objects.taints import UNSCHEDULABLE_TAINT
from berth.runtime.field_docstrings import DescribedFields


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
class Change(DescribedFields):
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
class Detail(DescribedFields):
    """One objection to a node, with numbers: "needs cpu 500m, free 320m of 4000m".

    Its change is one that an operator can make: what a node is, where it is, and the hardware in it
    cannot be changed.
    """

    message: str
    change: Change | None = None
    """None: nothing short of another node or another pod would do."""


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
