"""One scan: what is seen, and what is to be done. Synchronous, without an API.

It may be made in a thread: what it is given does not change, and what it keeps is its own.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from berth.tools.autoscaler.actions import Action, MarkUnneeded, ScaleUp
from berth.tools.autoscaler.cluster_view import ClusterView
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.scale_down import Removals, ScaleDownPlanner
from berth.tools.autoscaler.scale_up import GroupState, ScaleUpPlan, ScaleUpPlanner
from berth.tools.autoscaler.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan comes to."""

    actions: Sequence[Action]
    scale_up: ScaleUpPlan = field(default_factory=ScaleUpPlan)


class Planner:
    """Plans scan after scan. It decides; what was done it is told by *removals*."""

    def __init__(
        self, options: AutoscalingOptions, simulation: Simulation, *, rng: random.Random
    ) -> None:
        self.removals = Removals()
        self.scale_up = ScaleUpPlanner(options, simulation, rng)
        self.scale_down = ScaleDownPlanner(options, simulation)

    def plan(
        self, view: ClusterView, groups: Sequence[GroupState], *, monotonic: float, now: float
    ) -> Plan:
        """Return what is to be done: nodes are added, or else those nobody needs are removed.

        *now* is in seconds since 1970. Raises UserError if a what-if question cannot be asked.
        """
        # They go on meanwhile; a dictionary is copied in one go.
        removals = replace(self.removals, in_progress=dict(self.removals.in_progress))
        leaving = removals.in_progress.keys() & view.nodes.keys()
        up = self.scale_up.plan(view, groups, leaving=leaving, now=now)
        self.scale_down.update(view, groups, removals, monotonic=monotonic, now=now)
        down = self.scale_down.plan(view, groups, removals, monotonic=monotonic, now=now)
        if any(isinstance(action, ScaleUp) for action in up.actions):
            down = [action for action in down if isinstance(action, MarkUnneeded)]
        return Plan([*up.actions, *down], up)
