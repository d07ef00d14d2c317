"""By which filters a pod is rejected on each node, for all nodes at once."""

from dataclasses import dataclass

import numpy as np

from berth.insight.explain.obstacles import Obstacles
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import evaluate_all_nodes
from berth.scheduler.framework.verdict import Ints


@dataclass(frozen=True, slots=True)
class Rejections:
    """What all filters said of all nodes."""

    message: str
    """The FitError (spec §2.8), or the error that ended the attempt; empty if a node fits."""
    num_feasible: int
    plugin_sets: list[tuple[str, ...]]
    """The sets of plugins that reject the pod together."""
    plugin_set: Ints
    """By row, the index in ``plugin_sets``; rows without a node count as those that fit."""


def rejections_of(cycle: Cycle) -> Rejections:
    """Ask all filters about the pod of *cycle* on every node, changing nothing.

    Costs what an attempt costs that fails, and each filter a second time. Takes what PreFilter
    leaves out to be rejected by the plugins that left it out.
    """
    found = evaluate_all_nodes(cycle)
    by_plugin = {
        plugin: where
        for plugin, where in Obstacles(cycle, found).rejected_by_plugin().items()
        if where.any()
    }
    sets = np.zeros(cycle.nodes.size, np.int64)
    for bit, where in enumerate(by_plugin.values()):
        sets |= where.astype(np.int64) << bit
    distinct, plugin_set = np.unique(sets, return_inverse=True)
    num_feasible = int((found.feasible & cycle.nodes.exists).sum())
    if found.error is not None:
        message = found.error.message
    else:
        message = "" if num_feasible else found.diagnosis.message()
    return Rejections(
        message=message,
        num_feasible=num_feasible,
        plugin_sets=[
            tuple(name for bit, name in enumerate(by_plugin) if bits >> bit & 1)
            for bits in distinct.tolist()
        ],
        plugin_set=plugin_set,
    )
