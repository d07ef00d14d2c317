"""Running pods that no selector can tell apart, counted together."""

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from berth.framework.affinity_terms import HeldTerm, terms_of
from berth.framework.pod_info import PodInfo, PodTemplate
from berth.framework.verdict import Ints
from berth.objects.selectors import Operator, Selector

K = TypeVar("K", bound=Hashable)


class PodTraits:
    """What selectors and terms see of a pod; equal content is equal."""

    __slots__ = ("_content", "_hash", "held", "labels", "namespace")

    def __init__(self, template: PodTemplate) -> None:
        meta = template.pod.metadata
        self.namespace = meta.namespace
        self.labels: Mapping[str, str] = meta.labels
        self.held = terms_of(template).held
        """The terms of (anti)affinity that the pod has itself."""
        self._content = (self.namespace, frozenset(self.labels.items()), self.held)
        self._hash = hash(self._content)

    @classmethod
    def of(cls, pod: PodInfo) -> "PodTraits":
        return pod.template.memo("pod_traits", lambda: cls(pod.template))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodTraits) and self._content == other._content


class Column:
    """How many pods of some kind are on each row."""

    __slots__ = ("_counts",)

    def __init__(self, counts: Ints) -> None:
        self._counts = counts

    def change(self, row: int, by: int) -> None:
        self._reach(row + 1)
        self._counts[row] += by

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


class PodGroup:
    """Pods with equal traits, all terminating or none of them."""

    __slots__ = ("columns", "rows", "terminating", "traits")

    def __init__(self, traits: PodTraits, *, terminating: bool) -> None:
        self.traits = traits
        self.terminating = terminating
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


class PodGroups:
    """All groups, and the ways to find some: by namespace, by label, by held term.

    Thousands of replicas are one group, so that a selector is tried once for all of them; the
    indexes spare it the groups that it cannot match.
    """

    __slots__ = ("_by_label", "_by_namespace", "_by_term", "_groups")

    def __init__(self) -> None:
        self._groups: dict[tuple[PodTraits, bool], PodGroup] = {}
        self._by_namespace: dict[str, set[PodGroup]] = {}
        self._by_label: dict[tuple[str, str], set[PodGroup]] = {}
        self._by_term: dict[HeldTerm, set[PodGroup]] = {}

    def __iter__(self) -> Iterator[PodGroup]:
        return iter(self._groups.values())

    def get(self, pod: PodInfo) -> PodGroup | None:
        """Return the group of *pod*, if it has one yet."""
        return self._groups.get((PodTraits.of(pod), _is_terminating(pod)))

    def open(self, pod: PodInfo) -> PodGroup:
        """Make a group, empty as yet, for *pod*, which has none."""
        traits = PodTraits.of(pod)
        group = PodGroup(traits, terminating=_is_terminating(pod))
        self._groups[traits, group.terminating] = group
        _file(self._by_namespace, traits.namespace, group)
        for label in traits.labels.items():
            _file(self._by_label, label, group)
        for held in traits.held:
            _file(self._by_term, held, group)
        return group

    def close(self, group: PodGroup) -> None:
        """Forget *group*."""
        traits = group.traits
        del self._groups[traits, group.terminating]
        _unfile(self._by_namespace, traits.namespace, group)
        for label in traits.labels.items():
            _unfile(self._by_label, label, group)
        for held in traits.held:
            _unfile(self._by_term, held, group)

    def holding(self, held: HeldTerm) -> Iterator[PodGroup]:
        """Yield the groups whose pods have the term."""
        return iter(self._by_term.get(held, ()))

    def selected(
        self, selector: Selector, *, namespaces: frozenset[str] | None
    ) -> Iterator[PodGroup]:
        """Yield the groups in *namespaces*, None being all, that *selector* matches."""
        for group in self._candidates(selector, namespaces):
            traits = group.traits
            if (namespaces is None or traits.namespace in namespaces) and selector.matches(
                traits.labels
            ):
                yield group

    def _candidates(
        self, selector: Selector, namespaces: frozenset[str] | None
    ) -> Iterator[PodGroup]:
        """Yield the groups of the shortest of the lists that have all groups in question."""
        lists = [
            [self._by_label.get((requirement.key, value), set()) for value in requirement.values]
            for requirement in selector.requirements
            if requirement.operator is Operator.IN
        ]
        if namespaces is not None:
            lists.append([self._by_namespace.get(name, set()) for name in namespaces])
        if not lists:
            yield from self._groups.values()
            return
        for groups in min(lists, key=lambda sets: sum(map(len, sets))):
            yield from groups

    def check_invariants(self) -> None:
        """Raise AssertionError if an index has groups that are closed, or lacks some."""
        known = set(self)
        for index in (self._by_namespace, self._by_label, self._by_term):
            filed = [group for groups in index.values() for group in groups]
            assert known.issuperset(filed)
        assert known == {group for groups in self._by_namespace.values() for group in groups}


def _is_terminating(pod: PodInfo) -> bool:
    return pod.pod.metadata.deletion_timestamp is not None


def _file(index: dict[K, set[PodGroup]], key: K, group: PodGroup) -> None:
    index.setdefault(key, set()).add(group)


def _unfile(index: dict[K, set[PodGroup]], key: K, group: PodGroup) -> None:
    index[key].discard(group)
    if not index[key]:
        del index[key]
