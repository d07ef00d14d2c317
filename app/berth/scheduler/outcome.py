"""Outcomes of scheduling attempts: placed, unschedulable or failed, each with its evidence."""

from functools import cached_property
from typing import ClassVar, Final

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.scheduler.find_nodes_that_fit import NO_ROWS, FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PostFilterResult
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.results import ScoreTable


class Keep(msgspec.Struct, frozen=True):
    """The pod's nomination stays what its status says."""

    override: ClassVar[None] = None


class Clear(msgspec.Struct, frozen=True):
    """The pod is not nominated to any node any more."""

    override: ClassVar[str] = ""


class To(msgspec.Struct, frozen=True):
    """The pod is nominated to a node, which preemption makes room on."""

    node: str

    @property
    def override(self) -> str:
        return self.node


Nomination = Keep | Clear | To
"""What becomes of the pod's nomination (spec §2.10, ``nominatingInfo``).

``override`` is what to write: the name of a node, "" to clear it, None to leave it alone.
"""

KEEP: Final = Keep()
CLEAR: Final = Clear()


def nomination_of(node: str | None) -> Nomination:
    """Read what a PostFilter plugin wants: a node, "" to clear the nomination, None to keep it."""
    if node is None:
        return KEEP
    return To(node) if node else CLEAR


class Placed(msgspec.Struct, frozen=True, dict=True):
    """The pod goes to a node."""

    pod: PodInfo
    profile: str
    found: FeasibleNodes
    node_name: str
    scores: ScoreTable | None = None
    """None if there was a single candidate: it is not scored."""
    highest: NDArray[np.intp] | None = None
    """Where in ``scores`` the highest totals are, if that has been looked up."""
    num_best: int | None = None
    """How many nodes have the highest total, if ``scores`` has only some of them."""
    gang: str = ""
    """The name of the gang that the pod was tried with; empty if alone."""

    @cached_property
    def best(self) -> NDArray[np.intp]:
        """Where in ``scores`` the nodes with the highest total are, the chosen one among them."""
        if self.scores is None:
            return NO_ROWS
        total = self.scores.total
        return np.flatnonzero(total == total.max()) if self.highest is None else self.highest

    @property
    def equals(self) -> int:
        """How many other nodes have the same total as the chosen one."""
        return max((len(self.best) if self.num_best is None else self.num_best) - 1, 0)


class Unschedulable(msgspec.Struct, frozen=True, dict=True):
    """The pod does not fit as things are; an event that the rejecting plugins wait for may help."""

    pod: PodInfo
    profile: str
    found: FeasibleNodes
    nomination: Nomination = KEEP
    post_filter: PostFilterResult | None = None
    """What PostFilter plugins achieved; None if they were not run, or the profile has none."""
    refused: Placed | None = None
    """What had been decided before Reserve, Permit or the binding refused it."""
    gang: str = ""
    words: str = ""
    """What to report in place of the diagnosis, as for all pods of a gang."""

    @property
    def diagnosis(self) -> Diagnosis:
        return self.found.diagnosis

    @property
    def post_filter_message(self) -> str:
        """Why PostFilter could not help, or how it could; empty if it was not run."""
        return "" if self.post_filter is None else self.post_filter.message

    @cached_property
    def message(self) -> str:
        """The text of the PodScheduled condition and the FailedScheduling event (spec §2.8)."""
        return self.words or self.diagnosis.message(self.post_filter_message)


class Failed(msgspec.Struct, frozen=True):
    """The attempt ended in an error: the pod is tried again after its backoff."""

    pod: PodInfo
    profile: str
    found: FeasibleNodes
    status: Status
    nomination: Nomination = CLEAR
    refused: Placed | None = None
    """What had been decided before Reserve, Permit or the binding failed."""
    gang: str = ""

    @property
    def diagnosis(self) -> Diagnosis:
        return self.found.diagnosis

    @property
    def message(self) -> str:
        return self.status.message


Outcome = Placed | Unschedulable | Failed


def rejected_on_node(status: Status) -> Diagnosis:
    """Return the diagnosis of a pod whose own node is refused: the cluster is one node (§2.7)."""
    diagnosis = Diagnosis(1, statuses={0: status})
    diagnosis.unschedulable_plugins.add(status.plugin)
    return diagnosis


def refused_placement(placed: Placed, status: Status) -> Unschedulable | Failed:
    """Return the outcome where Reserve or Permit refuses the node with *status* (spec §2.7)."""
    pod, profile, feasible_nodes, gang = placed.pod, placed.profile, placed.found, placed.gang
    if not status.is_rejected:
        return Failed(pod, profile, feasible_nodes, status, refused=placed, gang=gang)
    feasible_nodes = replace(feasible_nodes, diagnosis=rejected_on_node(status))
    return Unschedulable(pod, profile, feasible_nodes, CLEAR, refused=placed, gang=gang)
