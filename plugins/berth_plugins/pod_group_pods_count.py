"""PodGroupPodsCount: a group rather goes where more of its pods get nodes (spec G10.5)."""

from collections.abc import Sequence

from berth.scheduler.framework.interface import MAX_NODE_SCORE, PlacementScorePlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import PodGroupPlacement
from berth.scheduler.framework.status import Status

NOBODY = Status.error("no pods from pod group are assigned to any of the candidate placements")


class PodGroupPodsCount(PlacementScorePlugin):
    """Scores a placement by the number of pods there, in proportion to the largest number."""

    NAME = "PodGroupPodsCount"
    PREFERRED_PLACEMENT = "the one with more pods of the group"

    def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int:
        return candidate.scheduled + len(candidate.proposed)

    def normalize_placement_scores(self, scores: Sequence[int]) -> Sequence[int] | Status:
        most = max(scores, default=0)
        return [score * MAX_NODE_SCORE // most for score in scores] if most else NOBODY
