"""Sampling of nodes: how many feasible ones are enough, and where to begin (spec §2.5)."""

from collections.abc import Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Mask
from berth.scheduler.profile.profile import Profile

MIN_FEASIBLE_NODES_TO_FIND: Final = 100
"""A sample is never smaller than this."""


def num_feasible_nodes_to_find(percentage: int, num_nodes: int) -> int:
    """Return how many feasible nodes are enough (spec §2.5).

    *percentage* is percentageOfNodesToScore; 0 means all of them. kube-scheduler then takes a share
    that shrinks as the cluster grows, from 50 to 5 percent, because filtering more nodes takes it
    too long.
    """
    if percentage == 0 or num_nodes < MIN_FEASIBLE_NODES_TO_FIND:
        return num_nodes
    return max(num_nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


def sample_size(percentage: int, num_nodes: int) -> int:
    """Return how many feasible nodes are enough for kube-scheduler.

    *percentage* is percentageOfNodesToScore; with 0, kube-scheduler's own default, it takes 50
    percent of small clusters and 5 of large ones (spec §2.5).
    """
    if percentage == 0:
        percentage = max(50 - num_nodes // 125, 5)
    return num_feasible_nodes_to_find(percentage, num_nodes)


class Sampling:
    """Cuts feasible nodes to kube-scheduler's sample; keeps where the rotation stands.

    All profiles share one rotation. A profile with ``percentage_of_nodes_to_score`` 0 is not
    sampled: with columns, filtering every node costs less than kube-scheduler's sample.
    """

    def __init__(self, *, extenders_decide: bool = False) -> None:
        """*extenders_decide*: some filter or prioritize, so that a sample of one is too small."""
        self._extenders_decide = extenders_decide
        self.next_start_node_index = 0

    def sample(
        self,
        nodes: NodeTable,
        feasible: Mask,
        *,
        profile: Profile,
        eligible: Set[str] | None,
    ) -> NDArray[np.intp]:
        """Return as many *feasible* rows as are wanted, in the order of the rotation; move it on.

        *eligible* names the nodes that PreFilter left; None: all.
        """
        order = nodes.order
        if eligible is not None:
            order = order[nodes.rows_named(eligible)[order]]
        if not len(order):
            return order
        start = self.next_start_node_index % len(order)
        order = np.concatenate([order[start:], order[:start]])
        passed = feasible[order]
        rows = order[passed]
        wanted = 1
        if profile.scores or self._extenders_decide:
            wanted = num_feasible_nodes_to_find(profile.percentage_of_nodes_to_score, len(order))
        processed = len(order)
        if len(rows) > wanted:
            # kube-scheduler stops at the first feasible node too many.
            processed = int(np.flatnonzero(passed)[wanted])
            rows = rows[:wanted]
        self.next_start_node_index = (self.next_start_node_index + processed) % len(nodes)
        return rows
