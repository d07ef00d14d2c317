"""Normalization of scores into the range that they must lie in."""

import numpy as np

from berth.scheduler.framework.interface import MAX_NODE_SCORE, ScorePlugin
from berth.scheduler.framework.verdict import Ints, everywhere


def default_normalize(scores: Ints, *, reverse: bool = False) -> Ints:
    """Stretch *scores*, none negative, so that the highest becomes 100 (spec §5).

    ``100 * score / highest``; *reverse* then takes it from 100. When all are 0 they stay 0, or
    become 100.
    """
    if len(scores) == 1:  # of all nodes, or of the only one
        return everywhere(MAX_NODE_SCORE if bool(scores[0]) is not reverse else 0, 1)
    highest = scores.max(initial=0)
    if highest == 0:  # the common case: nobody has a preference
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    stretched: Ints = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - stretched if reverse else stretched


def normalizes(plugin: ScorePlugin) -> bool:
    """Whether *plugin* has a NormalizeScore of its own."""
    return type(plugin).normalize is not ScorePlugin.normalize
