"""From which nodes a persistent volume can be used: its node affinity."""

from collections.abc import Mapping
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from berth.kube.objects.selectors import Operator, Requirement, Selector, compile_node_selector
from berth.kube.objects.storage import PersistentVolume
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.volume_binding.label_rows import NO_ROWS, Rows, rows_meeting

Terms = tuple[tuple[Requirement, ...], ...]


class CompiledNodeAffinity:
    """The nodes whose labels meet all requirements of one of ``terms``.

    Made by :func:`with_terms`: equal terms are one object, so that volumes share what follows.
    """

    __slots__ = ("__weakref__", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def matches(self, labels: Mapping[str, str]) -> bool:
        return any(Selector(term).matches(labels) for term in self.terms)

    def rows(self, nodes: NodeTable) -> Rows:
        """Return the rows that are included, ascending. Not to be changed."""
        by_affinity: dict[CompiledNodeAffinity, Rows] = nodes.kept(
            "rows by volume node affinity", dict
        )
        rows = by_affinity.get(self)
        if rows is None:
            rows = by_affinity[self] = self._rows(nodes)
        return rows

    def _rows(self, nodes: NodeTable) -> Rows:
        if not self.terms:
            return NO_ROWS
        if len(self.terms) == 1:
            return rows_meeting(nodes, self.terms[0])
        return np.unique(np.concatenate([rows_meeting(nodes, term) for term in self.terms]))


_affinities: Final[WeakValueDictionary[Terms, CompiledNodeAffinity]] = WeakValueDictionary()


def with_terms(terms: Terms) -> CompiledNodeAffinity:
    """Return the affinity with these *terms*."""
    affinity = _affinities.get(terms)
    if affinity is None:
        affinity = _affinities[terms] = CompiledNodeAffinity(terms)
    return affinity


EVERYWHERE: Final = with_terms(((),))


def node_affinity_of(volume: PersistentVolume) -> CompiledNodeAffinity:
    """Return the required node affinity of *volume*, to be tried on labels alone.

    As kube-scheduler tries it on a node without a name, a field that must be some name rules the
    term out, and one that must not be it never does.
    """
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return EVERYWHERE
    terms = compile_node_selector(affinity.required).terms
    return with_terms(
        tuple(
            term.labels
            for term in terms
            if not term.error and all(field.operator is Operator.NOT_IN for field in term.fields)
        )
    )
