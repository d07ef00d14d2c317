"""Running replicas, counted together by node, and found by what selectors ask for."""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

import numpy as np

from berth.kube.objects.selectors import Operator, Selector
from berth.scheduler.framework.affinity_terms import HeldTerm, terms_of
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.verdict import Ints

K = TypeVar("K", bound=Hashable)


CHANGES_KEPT: Final = 32
"""How many changes of a column are remembered."""


class Column:
    """How many pods of some kind are on each row."""

    __slots__ = ("_changes", "_counts", "version")

    def __init__(self, counts: Ints) -> None:
        self._counts = counts
        self._changes: deque[tuple[int, int]] = deque(maxlen=CHANGES_KEPT)
        self.version = 0
        """How often a count has changed."""

    def change(self, row: int, by: int) -> None:
        self._reach(row + 1)
        self._counts[row] += by
        self._changes.append((row, by))
        self.version += 1

    def changes_since(self, version: int) -> Sequence[tuple[int, int]] | None:
        """Return the rows that changed after *version*, last first, and by how much.

        None: too many to tell.
        """
        count = self.version - version
        if not count:
            return ()
        if count > len(self._changes):
            return None
        return [*islice(reversed(self._changes), count)]

    def counts(self, size: int) -> Ints:
        """Return the counts of the first *size* rows, not to be written."""
        self._reach(size)
        view = self._counts[:size]
        view.flags.writeable = False
        return view

    def _reach(self, size: int) -> None:
        missing = size - len(self._counts)
        if missing > 0:
            room = np.zeros(max(missing, len(self._counts)), np.int64)
            self._counts = np.concatenate([self._counts, room])


class Replicas:
    """The running pods of one template that are terminating, or those that are not."""

    __slots__ = ("columns", "held", "labels", "namespace", "rows", "template", "terminating")

    def __init__(self, template: PodTemplate, *, terminating: bool) -> None:
        self.template = template
        self.terminating = terminating
        meta = template.pod.metadata
        self.namespace = meta.namespace
        self.labels: Mapping[str, str] = meta.labels
        self.held = terms_of(template).held
        """The terms of (anti)affinity that the pods have themselves."""
        self.rows: dict[int, int] = {}
        """Row to the number of pods there, never 0."""
        self.columns: list[Column] = []
        """The columns that these pods are counted in."""

    def change(self, row: int, by: int) -> None:
        """Count one pod more (*by* 1) or less (-1) on *row*, in the columns too."""
        count = self.rows.get(row, 0) + by
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        for column in self.columns:
            column.change(row, by)

    def add(self, rows: Sequence[int]) -> None:
        """Count one pod more on each of *rows*, of which some may be the same."""
        counts = self.rows
        for row in rows:
            counts[row] = counts.get(row, 0) + 1
        for column in self.columns:
            for row in rows:
                column.change(row, 1)


class ReplicaIndex:
    """All replicas, and the ways to find some: by namespace, by label, by held term.

    A selector is tried once for all pods of a template; the indexes spare it the templates that it
    cannot match.
    """

    __slots__ = ("_all", "_by_label", "_by_namespace", "_by_term")

    def __init__(self) -> None:
        self._all: dict[tuple[PodTemplate, bool], Replicas] = {}
        self._by_namespace: dict[str, set[Replicas]] = {}
        self._by_label: dict[tuple[str, str], set[Replicas]] = {}
        self._by_term: dict[HeldTerm, set[Replicas]] = {}

    def __iter__(self) -> Iterator[Replicas]:
        return iter(self._all.values())

    def get(self, pod: PodInfo) -> Replicas | None:
        """Return those that *pod* belongs to, if there are any yet."""
        return self._all.get((pod.template, pod.pod.metadata.deletion_timestamp is not None))

    def open(self, pod: PodInfo) -> Replicas:
        """Make replicas, none as yet, for *pod*, which has none."""
        opened = Replicas(pod.template, terminating=pod.is_terminating)
        self._all[opened.template, opened.terminating] = opened
        _file(self._by_namespace, opened.namespace, opened)
        for label in opened.labels.items():
            _file(self._by_label, label, opened)
        for held in opened.held:
            _file(self._by_term, held, opened)
        return opened

    def close(self, closed: Replicas) -> None:
        """Forget *closed*."""
        del self._all[closed.template, closed.terminating]
        _unfile(self._by_namespace, closed.namespace, closed)
        for label in closed.labels.items():
            _unfile(self._by_label, label, closed)
        for held in closed.held:
            _unfile(self._by_term, held, closed)

    def holding(self, held: HeldTerm) -> Iterator[Replicas]:
        """Yield the replicas whose pods have the term."""
        return iter(self._by_term.get(held, ()))

    def selected(
        self, selector: Selector, *, namespaces: frozenset[str] | None
    ) -> Iterator[Replicas]:
        """Yield the replicas in *namespaces*, None being all, that *selector* matches."""
        for replicas in self._candidates(selector, namespaces):
            if (namespaces is None or replicas.namespace in namespaces) and selector.matches(
                replicas.labels
            ):
                yield replicas

    def _candidates(
        self, selector: Selector, namespaces: frozenset[str] | None
    ) -> Iterator[Replicas]:
        """Yield from the shortest of the lists that have all replicas in question."""
        lists = [
            [self._by_label.get((requirement.key, value), set()) for value in requirement.values]
            for requirement in selector.requirements
            if requirement.operator is Operator.IN
        ]
        if namespaces is not None:
            lists.append([self._by_namespace.get(name, set()) for name in namespaces])
        if not lists:
            yield from self._all.values()
            return
        for found in min(lists, key=lambda sets: sum(map(len, sets))):
            yield from found

    def check_invariants(self) -> None:
        """Raise AssertionError if an index has replicas that are closed, or lacks some."""
        known = set(self)
        for index in (self._by_namespace, self._by_label, self._by_term):
            filed = [replicas for filed_sets in index.values() for replicas in filed_sets]
            assert known.issuperset(filed)
        assert known == {
            replicas for of_namespace in self._by_namespace.values() for replicas in of_namespace
        }


def _file(index: dict[K, set[Replicas]], key: K, replicas: Replicas) -> None:
    index.setdefault(key, set()).add(replicas)


def _unfile(index: dict[K, set[Replicas]], key: K, replicas: Replicas) -> None:
    index[key].discard(replicas)
    if not index[key]:
        del index[key]
