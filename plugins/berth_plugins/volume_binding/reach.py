"""From which nodes a persistent volume can be used: its node affinity."""

from collections.abc import Mapping
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from berth.framework.label_rows import NO_ROWS, Rows, rows_meeting
from berth.framework.node_table import NodeTable
from berth.objects.selectors import Operator, Requirement, Selector, compile_node_selector
from berth.objects.storage import PersistentVolume

Terms = tuple[tuple[Requirement, ...], ...]


class Reach:
    """The nodes whose labels meet all requirements of one of ``terms``.

    Made by :func:`reach_by`: equal terms are one object, so that volumes share what follows.
    """

    __slots__ = ("__weakref__", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def includes(self, labels: Mapping[str, str]) -> bool:
        return any(Selector(term).matches(labels) for term in self.terms)

    def rows(self, nodes: NodeTable) -> Rows:
        """Return the rows that are included, ascending. Not to be changed."""
        by_reach: dict[Reach, Rows] = nodes.kept("rows by reach", dict)
        rows = by_reach.get(self)
        if rows is None:
            rows = by_reach[self] = self._rows(nodes)
        return rows

    def _rows(self, nodes: NodeTable) -> Rows:
        if not self.terms:
            return NO_ROWS
        if len(self.terms) == 1:
            return rows_meeting(nodes, self.terms[0])
        return np.unique(np.concatenate([rows_meeting(nodes, term) for term in self.terms]))


_reaches: Final[WeakValueDictionary[Terms, Reach]] = WeakValueDictionary()


def reach_by(terms: Terms) -> Reach:
    """Return the reach with these *terms*."""
    found = _reaches.get(terms)
    if found is None:
        found = _reaches[terms] = Reach(terms)
    return found


EVERYWHERE: Final = reach_by(((),))


def reach_of(volume: PersistentVolume) -> Reach:
    """Return the reach of *volume*: its required node affinity, tried on labels alone.

    As kube-scheduler tries it on a node without a name, a field that must be some name rules the
    term out, and one that must not be it never does.
    """
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return EVERYWHERE
    terms = compile_node_selector(affinity.required).terms
    return reach_by(
        tuple(
            term.labels
            for term in terms
            if not term.error and all(field.operator is Operator.NOT_IN for field in term.fields)
        )
    )
