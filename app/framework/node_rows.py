"""Which rows of a table a pod's own demands on nodes leave: node affinity and tolerations."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from app.framework.node_table import NodeTable, TaintSet
from app.framework.pod_info import PodTemplate
from app.framework.verdict import Ints, Mask
from app.objects.pod import Toleration
from app.objects.selectors import (
    CompiledTerm,
    NodeSelectorMatcher,
    Operator,
    RequiredNodeAffinity,
    Requirement,
)
from app.objects.taints import NO_EXECUTE, NO_SCHEDULE, untolerated

_REPELLING: Final = (NO_SCHEDULE, NO_EXECUTE)

# Node affinity.


def rows_required(nodes: NodeTable, required: RequiredNodeAffinity) -> Mask:
    """Return the rows that satisfy nodeSelector and required affinity."""
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


class TaintAnswers:
    """What one pod template makes of each distinct taint set of a table, asked once per set."""

    __slots__ = ("_answers", "_ask", "_taint_sets", "_tolerations")

    def __init__(
        self, template: PodTemplate, ask: Callable[[TaintSet, Sequence[Toleration]], int]
    ) -> None:
        """*ask* is given a taint set and the tolerations of *template*."""
        self._tolerations = template.pod.spec.tolerations
        self._ask = ask
        self._taint_sets: Sequence[TaintSet] = ()
        self._answers: Ints = np.empty(0, np.int64)

    def over(self, nodes: NodeTable) -> Ints:
        """Return the answers by index into ``nodes.taint_sets``."""
        taint_sets = nodes.taint_sets
        if self._taint_sets is not taint_sets:  # another cluster, such as a simulated one
            self._taint_sets, self._answers = taint_sets, np.empty(0, np.int64)
        known = len(self._answers)
        if known < len(taint_sets):
            more = [self._ask(taints, self._tolerations) for taints in taint_sets[known:]]
            self._answers = np.concatenate([self._answers, np.array(more, np.int64)])
        return self._answers


def rows_repelling(nodes: NodeTable, template: PodTemplate) -> Mask | None:
    """Return the rows with a NoSchedule or NoExecute taint that *template* does not tolerate.

    None: no taint set of the table has one.
    """
    answers = template.memo(
        "repelling taints", lambda: TaintAnswers(template, has_untolerated)
    ).over(nodes)
    if not answers.any():
        return None
    repelling: Mask = answers.take(nodes.taint_set) != 0
    return repelling


def has_untolerated(taints: TaintSet, tolerations: Sequence[Toleration]) -> bool:
    """Whether *taints* keep a pod with *tolerations* off a node (spec §5.5)."""
    return untolerated(taints, tolerations, effects=_REPELLING) is not None
