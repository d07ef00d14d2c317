"""What one scheduling attempt found: the record that messages, explain and tests read."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.framework.diagnosis import NO_NODES, Diagnosis
from berth.framework.interface import PostFilterResult
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code, Status
from berth.framework.verdict import Ints, Mask
from berth.profile.profile import PreFilterOutcome, ScoreTable


@dataclass(slots=True)
class Decision:
    """One attempt for one pod. Rows are those of the table it was made on."""

    pod: PodInfo
    profile: str
    diagnosis: Diagnosis
    pre_filter: PreFilterOutcome = field(default_factory=PreFilterOutcome)
    feasible: Mask = field(default_factory=lambda: np.empty(0, bool))
    """The rows that passed everything."""
    nominated_used: bool = False
    """The pod's nominated node passed, and no other was looked at (spec §2.4)."""
    candidates: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    """The rows to choose from, in the order of the search; fewer than feasible if sampled."""
    scores: ScoreTable | None = None
    extender_scores: Ints | None = None
    """What of the totals comes from extenders; None if they were not asked."""
    best: Sequence[int] = ()
    """The rows with the highest total; the chosen one is among them."""
    node_name: str = ""
    """Where the pod goes; empty if nowhere."""
    status: Status | None = None
    """Why it goes nowhere."""
    post_filter: PostFilterResult | None = None
    """What PostFilter plugins achieved; None if they were not asked or there are none."""
    nominated_node: str | None = None
    """What becomes of the pod's nomination: a node, "" to clear it, None to keep it."""
    gang: str = ""
    """The name of the gang that the pod was tried with; empty if alone."""
    gang_message: str = ""
    """Why that gang got no nodes, which is what is told of each pod in it; empty if it did."""

    @property
    def is_no_nodes(self) -> bool:
        return self.diagnosis.num_all_nodes == 0

    @property
    def message(self) -> str:
        """The text of the PodScheduled condition and the FailedScheduling event (spec §2.8)."""
        if self.status is None:
            return ""
        if self.gang_message:
            return self.gang_message
        if self.status.code is Code.ERROR:
            return self.status.message
        if self.is_no_nodes:
            return NO_NODES
        return self.diagnosis.message(self.post_filter_message)

    @property
    def post_filter_message(self) -> str:
        """Why PostFilter could not help; empty if it could, or was not asked."""
        if self.post_filter is None or self.post_filter.status is None:
            return ""
        return self.post_filter.status.message

    def verdict_on(self, nodes: NodeTable, row: int) -> Status | None:
        """Return why the node in *row* cannot take the pod; None if it can."""
        if self.feasible[row]:
            return None
        return self.diagnosis.status_of(row) or self.diagnosis.absent or self.pre_filter.status
