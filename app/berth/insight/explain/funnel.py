"""The funnel of filters: how many nodes each plugin takes out, counted on columns.

Nothing is said about single nodes, so that it costs a few passes over columns however many nodes
there are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from berth.insight.explain.explanation import FilterStep
from berth.insight.explain.obstacles import Obstacles
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.verdict import Mask

PRE_FILTER: Final = ""
"""Stands for PreFilter plugins that left nodes out together, where plugins are named."""


@dataclass(slots=True)
class _Charge:
    """The nodes that one plugin took out."""

    rows: Mask
    reasons: Counter[str] = field(default_factory=Counter)


def funnel(
    cycle: Cycle, feasible_nodes: FeasibleNodes, obstacles: Obstacles
) -> tuple[FilterStep, ...]:
    """Return what each plugin took out of the nodes in question, in the order of the plugins.

    What PreFilter left out comes first, what extenders did last. Plugins that no node is charged
    to and that object to none are left out.
    """
    charges = dict(_charges(cycle, feasible_nodes))
    rejected = obstacles.rejected_by_plugin()
    objections = {name: where for name, where in rejected.items() if where.any()}
    nothing = _Charge(cycle.nodes.no_rows())
    names = _in_order(cycle, feasible_nodes, charges, objections)
    masks = {
        name: charges.get(name, nothing).rows | objections.get(name, nothing.rows) for name in names
    }
    held = sum((mask.astype(np.int64) for mask in masks.values()), np.zeros(cycle.nodes.size, int))
    left, steps = cycle.num_nodes, []
    for name in names:
        charge = charges.get(name, nothing)
        num_rejected = int(charge.rows.sum())
        left -= num_rejected
        steps.append(
            FilterStep(
                plugin=name,
                num_rejected=num_rejected,
                num_left=left,
                num_against=int(masks[name].sum()),
                num_only=int((masks[name] & (held == 1)).sum()),
                reasons=dict(charge.reasons),
            )
        )
    return tuple(steps)


def _charges(cycle: Cycle, feasible_nodes: FeasibleNodes) -> Iterator[tuple[str, _Charge]]:
    """Yield by plugin the nodes that are charged to it, and for which reasons."""
    nodes, diagnosis = cycle.nodes, feasible_nodes.diagnosis
    in_question = cycle.placement.rows_of(nodes)
    charges: dict[str, _Charge] = {}

    def charge_of(plugin: str) -> _Charge:
        return charges.setdefault(plugin, _Charge(nodes.no_rows()))

    taken = ~in_question | feasible_nodes.feasible
    for row, status in diagnosis.statuses.items():
        if not taken[row]:
            taken[row] = True
            charge = charge_of(status.plugin)
            charge.rows[row] = True
            charge.reasons.update(status.reasons)
    for plugin, verdict in diagnosis.verdicts:
        rejected = verdict.rejected()
        if rejected is None:
            continue
        charge = charge_of(plugin)
        for rejection in verdict.rejections:
            charge.reasons[rejection.reason] += int((rejection.where & ~taken).sum())
        charge.rows |= rejected & ~taken
        taken = taken | rejected
    absent = diagnosis.absent or feasible_nodes.pre_filter.status
    if absent is not None and not taken.all():
        charge = charge_of(_left_out_by(feasible_nodes))
        charge.rows |= ~taken
        for reason in absent.reasons:
            charge.reasons[reason] += int((~taken).sum())
    for plugin, charge in charges.items():
        charge.reasons = +charge.reasons
        if charge.rows.any():
            yield plugin, charge


def _left_out_by(feasible_nodes: FeasibleNodes) -> str:
    """Return the plugin that nodes are charged to which PreFilter left out."""
    authors = feasible_nodes.pre_filter.authors
    return authors[0] if len(authors) == 1 else PRE_FILTER


def _in_order(
    cycle: Cycle,
    feasible_nodes: FeasibleNodes,
    charges: Mapping[str, _Charge],
    objections: Mapping[str, Mask],
) -> Sequence[str]:
    filters = [plugin.NAME for plugin in cycle.profile.filters]
    order = dict.fromkeys([*feasible_nodes.pre_filter.authors, PRE_FILTER, *filters, *charges])
    return [name for name in order if name in charges or name in objections]
