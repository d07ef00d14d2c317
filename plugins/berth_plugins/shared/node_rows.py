"""Rows of a table that a pod's own demands on nodes leave: node affinity and tolerations."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np

from berth.kube.objects.pod import Toleration
from berth.kube.objects.selectors import (
    CompiledTerm,
    NodeSelectorMatcher,
    Operator,
    RequiredNodeAffinity,
    Requirement,
)
from berth.kube.objects.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from berth.scheduler.framework.node_table import NodeTable, TaintSet
from berth.scheduler.framework.pod_info import PodTemplate
from berth.scheduler.framework.verdict import Ints, Mask, everywhere

_REPELLING: Final = (NO_SCHEDULE, NO_EXECUTE)

# Node affinity.


def rows_required(nodes: NodeTable, required: RequiredNodeAffinity) -> Mask:
    """Return the rows that satisfy nodeSelector and required affinity. Not to be changed."""
    return nodes.kept(("required", required), lambda: _rows_required(nodes, required))


def _rows_required(nodes: NodeTable, required: RequiredNodeAffinity) -> Mask:
    matching = _rows_of_labels(nodes, required.selector.requirements)
    if required.affinity is not None:
        matching = matching & rows_of_any_term(nodes, required.affinity)
    return matching


def rows_of_any_term(nodes: NodeTable, matcher: NodeSelectorMatcher) -> Mask:
    matching = nodes.no_rows()
    for term in matcher.terms:
        matching |= rows_of_term(nodes, term)
    return matching


def rows_of_term(nodes: NodeTable, term: CompiledTerm) -> Mask:
    if term.error:
        return nodes.no_rows()
    matching = _rows_of_labels(nodes, term.labels)
    for field in term.fields:
        named = nodes.rows_named(field.values)
        matching = matching & (named if field.operator is Operator.IN else ~named)
    return matching


def _rows_of_labels(nodes: NodeTable, requirements: Iterable[Requirement]) -> Mask:
    matching: Mask | None = None
    for requirement in requirements:
        rows = _rows_of_label(nodes, requirement)
        matching = rows if matching is None else matching & rows
    return np.ones(nodes.size, bool) if matching is None else matching


def _rows_of_label(nodes: NodeTable, requirement: Requirement) -> Mask:
    """Return the rows whose label will do, as ``Requirement.matches`` says.

    Only numeric comparisons look at every distinct value: a label may have one per node.
    """
    labels, key = nodes.labels, requirement.key
    match requirement.operator:
        case Operator.IN:
            return labels.is_any_of(key, requirement.values)
        case Operator.NOT_IN:
            return ~labels.is_any_of(key, requirement.values)
        case Operator.EXISTS:
            return labels.has(key)
        case Operator.DOES_NOT_EXIST:
            return ~labels.has(key)
        case _:
            return labels.where(key, requirement.matches)


# Taints.


def rows_repelling(
    nodes: NodeTable, template: PodTemplate, *, comparisons: bool = False
) -> Mask | None:
    """Return the rows with a NoSchedule or NoExecute taint that *template* does not tolerate.

    None: there are none. Not to be changed. *comparisons* as in :func:`tolerates`.
    """
    tolerations = template.pod.spec.tolerations

    def repelling() -> Mask | None:
        ask = partial(has_untolerated, comparisons=comparisons)
        rows = taint_answers(nodes, ask, tolerations) != 0
        return rows if rows.any() else None

    return nodes.kept(("repelling", tolerations), repelling)


def taint_answers(
    nodes: NodeTable,
    ask: Callable[[TaintSet, Sequence[Toleration]], int],
    tolerations: Sequence[Toleration],
) -> Ints:
    """Return what *ask* says of each row's taints and *tolerations*, asked once per taint set."""
    answers = np.array([ask(taints, tolerations) for taints in nodes.taint_sets], np.int64)
    if (answers == answers[0]).all():
        return everywhere(int(answers[0]), nodes.size)
    of_rows: Ints = answers.take(nodes.taint_set)
    return of_rows


def has_untolerated(
    taints: TaintSet, tolerations: Sequence[Toleration], *, comparisons: bool = False
) -> bool:
    """Whether *taints* keep a pod with *tolerations* off a node (spec §5.5)."""
    taint = untolerated(taints, tolerations, effects=_REPELLING, comparisons=comparisons)
    return taint is not None
