"""CycleState: what plugins of one attempt remember between extension points."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.pod import NodeAllocatableResourceClaimStatus, Pod
from berth.scheduler.framework.status import Status

_NO_ROWS: Final = np.empty(0, bool)


class Gang(msgspec.Struct, frozen=True):
    """Pods that get nodes in one step: all of them, or none."""

    name: str
    """For messages, as in ``gang train``."""
    pods: tuple[str, ...]
    """``namespace/name`` of all that wait; the pod that is tried may be among them."""
    plugin: str
    """Who says so. Its events let the pods be tried again if one of them was not to be had."""


class CycleState:
    """Per-attempt memory, written by plugins of this attempt only.

    Keys are chosen by plugins (by convention their NAME). Values that PreFilter extensions change
    must offer ``clone()``, which :meth:`clone` calls; those that hold something per row of an
    overlay also ``take_rows(rows)``, which :meth:`take_rows` calls.
    """

    __slots__ = (
        "_data",
        "_of_rows",
        "claim_statuses",
        "feasible",
        "gang",
        "is_sampled",
        "on_trial",
        "out_of_time",
        "placement",
        "pods_to_activate",
        "skip_filter",
        "skip_score",
    )

    def __init__(self, feasible: NDArray[np.bool_] | None = None) -> None:
        self._data: dict[str, Any] = {}
        self._of_rows: dict[int, CycleState] = {}
        self.skip_filter: set[str] = set()
        """Plugins whose PreFilter said Skip: their Filter and AddPod/RemovePod are not called."""
        self.skip_score: set[str] = set()
        """Plugins whose PreScore said Skip: their Score is not called."""
        self.feasible: NDArray[np.bool_] = _NO_ROWS if feasible is None else feasible
        """One flag per table row: nobody has rejected it yet. Scalar adapters evaluate only these;
        at PreScore and Score it marks the nodes that passed all filters. Kept by the runtime."""
        self.pods_to_activate: dict[str, Pod] = {}
        """By ``namespace/name``, pods that plugins want to be tried at once should this pod find a
        node: looked at when it has one, and again when it is bound (kube-scheduler's
        ``PodsToActivate``)."""
        self.gang: Gang | None = None
        """Set by PreFilter if the pod must not get a node unless others do in the same step, which
        the scheduler then tries at once, before anything else happens. Preemption is not asked."""
        self.claim_statuses: Mapping[str, Sequence[NodeAllocatableResourceClaimStatus]] = {}
        """By name of the node, what the devices of the pod's claims would take there beside its
        requests. The pod counts with that from Assume on (spec G15.3)."""
        self.on_trial: frozenset[str] = frozenset()
        """UIDs of the pods of a PodGroup that are tried together, this one among them: where they
        have nodes, that may be undone. Empty if the pod is tried alone, and once it counts: then
        Permit plugins are asked again. Until then they activate no pods and let none go."""
        self.placement: CycleState | None = None
        """What plugins remember of the part of the cluster that a group is tried in, for all its
        pods and for PlacementScore (1.37 spec N10); None if the pod is tried alone. Of a group that
        is part of another one, this state has that of the other's placement (N11)."""
        self.out_of_time: list[Status] = []
        """Of Filter plugins, if the time for this attempt was over before they had looked at all
        nodes, be it for a question such as "and if these pods were gone?": copies have it in
        common. The attempt has failed then, whatever was found."""
        self.is_sampled = False
        """Whether each plugin is timed in this cycle (spec §2.1)."""

    def write(self, key: str, value: Any) -> None:
        """Remember *value* under *key* until the attempt ends."""
        self._data[key] = value

    def read(self, key: str) -> Any:
        """Return what was written under *key*; KeyError when this attempt wrote nothing there."""
        return self._data[key]

    def get(self, key: str) -> Any | None:
        """Return what was written under *key*; None if nothing was."""
        return self._data.get(key)

    def start_from(self, other: "CycleState") -> None:
        """Remember what was written in *other*, and skip what is skipped there."""
        self._data = dict(other._data)
        self.skip_filter = set(other.skip_filter)
        self.skip_score = set(other.skip_score)

    def clone(self) -> "CycleState":
        """Return an independent copy, for a question such as "and if these pods were gone?"."""
        twin = self._copy()
        twin._of_rows = {row: own._copy() for row, own in self._of_rows.items()}
        return twin

    def take_rows(self, rows: NDArray[np.intp]) -> "CycleState":
        """Return an independent copy for a part of an overlay, which has *rows* of it only."""
        twin = self._copy()
        for key, value in twin._data.items():
            if hasattr(value, "take_rows"):
                twin._data[key] = value.take_rows(rows)
        own = self._of_rows
        if own:
            twin._of_rows = {
                i: own[row]._copy() for i, row in enumerate(rows.tolist()) if row in own
            }
        return twin

    def _copy(self) -> "CycleState":
        """Return a copy of all but what rows have to themselves."""
        twin = CycleState(self.feasible)
        twin.start_from(self)
        for key, value in self._data.items():
            if hasattr(value, "clone"):
                twin._data[key] = value.clone()
        twin.claim_statuses, twin.gang = self.claim_statuses, self.gang
        twin.is_sampled, twin.on_trial = self.is_sampled, self.on_trial
        twin.out_of_time, twin.placement = self.out_of_time, self.placement
        twin.pods_to_activate = self.pods_to_activate
        return twin

    # For plugins that follow pods node by node.

    def own(self, row: int) -> "CycleState":
        """Return the state that *row* of an overlay has to itself, made when first asked for."""
        state = self._of_rows.get(row)
        if state is None:
            state = self._of_rows[row] = self._copy()
        return state

    def at(self, row: int) -> "CycleState":
        """Return the state that *row* has to itself, if any, else this one."""
        return self._of_rows.get(row, self)
