"""Taints and tolerations: which pods a node turns away (spec §5.4, §5.5)."""

from collections.abc import Collection, Iterable
from typing import Final

from berth.kube.objects.node import Taint
from berth.kube.objects.pod import Toleration
from berth.kube.objects.selectors import parse_canonical_int64

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What a pod must tolerate to run on a node with ``spec.unschedulable``."""


COMPARISONS: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators ``Lt`` and ``Gt`` (spec G11)."""


def written(taint: Taint) -> str:
    """Write *taint* as kubectl does: ``key=value:effect``."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def tolerates(toleration: Toleration, taint: Taint, *, comparisons: bool = False) -> bool:
    """Whether *toleration* puts up with *taint* (spec §5.5).

    *comparisons*: whether the gate :data:`COMPARISONS` is on; without it ``Lt`` and ``Gt`` tolerate
    nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparisons:
            return _compares(toleration, taint)
        case _:
            return False


def untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    *,
    effects: Collection[str],
    comparisons: bool = False,
) -> Taint | None:
    """Return the first taint with one of *effects* that none of *tolerations* puts up with."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparisons=comparisons) for toleration in tolerations
        ):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound = parse_canonical_int64(toleration.value)
    number = parse_canonical_int64(taint.value)
    if bound is None or number is None:
        return False
    return number < bound if toleration.operator == "Lt" else number > bound
