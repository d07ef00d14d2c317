"""Counts of pods of a kind on each node, without looking at the pods."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from berth.kube.objects.selectors import Selector
from berth.scheduler.framework.affinity_terms import HeldTerm, TermKind, terms_of
from berth.scheduler.framework.key_index import KeyIndex, label_choices
from berth.scheduler.framework.label_columns import LabelColumns
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.pods_by_domain import PodsByDomain
from berth.scheduler.framework.replicas import Column, ReplicaIndex, Replicas
from berth.scheduler.framework.verdict import Ints, Mask

MOST_ABOUT: Final = 1024
"""Kinds of pods of which it is known which terms are about them."""
MAX_COLUMNS: Final = 256
"""How many columns are kept: at 5,000 nodes 40 KB each, 10 MB in all."""


@dataclass(frozen=True, slots=True)
class PodMatcher:
    """Some pods, by namespace and labels."""

    namespaces: frozenset[str] | None
    """None: every namespace."""
    selector: Selector
    skip_terminating: bool
    """Whether pods with a ``deletionTimestamp`` are left out."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = (self.namespaces, self.selector, self.skip_terminating)
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash

    def matches(
        self, namespace: str, labels: Mapping[str, str], *, terminating: bool = False
    ) -> bool:
        return (
            (self.namespaces is None or namespace in self.namespaces)
            and not (terminating and self.skip_terminating)
            and self.selector.matches(labels)
        )

    def and_also(self, other: "PodMatcher") -> "PodMatcher":
        """Return the matcher of the pods that both match."""
        if self.namespaces is None or other.namespaces is None:
            namespaces = self.namespaces if other.namespaces is None else other.namespaces
        else:
            namespaces = self.namespaces & other.namespaces
        return PodMatcher(
            namespaces,
            self.selector.and_also(other.selector),
            skip_terminating=self.skip_terminating or other.skip_terminating,
        )


_Labels = tuple[tuple[str, str], ...]
_Asked = tuple[TermKind, str, _Labels, _Labels]

Counted = PodMatcher | HeldTerm
"""What a column counts: the pods that are matched, or those that have the term."""


class PodCounters:
    """Counts per row of the pods that plugins ask about, kept up to date from then on.

    A column is made on first use from the replicas it concerns; of *limit* columns the one unused
    for longest makes room for another. A pod that comes or goes changes the count of its replicas
    and the columns that count them, so a question costs the same however many pods run.

    Over rows that have pods already nothing is counted until the first question: most overlays
    never ask.
    """

    def __init__(
        self,
        pods: Sequence[Mapping[str, PodInfo]],
        *,
        limit: int = MAX_COLUMNS,
        counted_in: "PodCounters | None" = None,
        is_same: Callable[[], bool] = lambda: False,
    ) -> None:
        """*pods* are those of each row, a live view.

        As long as *is_same* and *pods* do not change, they are also *counted_in* others, whose
        answers are taken over.
        """
        self._pods = pods
        self._limit = limit
        self._counted_in = counted_in
        self._is_same = is_same
        self._is_built = not pods
        self.terms_version = 0
        """Goes up when a pod that has terms of (anti)affinity comes or goes."""
        self._replicas = ReplicaIndex()
        self._columns: OrderedDict[Counted, Column] = OrderedDict()
        self._by_domain: dict[tuple[Counted, str, int], PodsByDomain] = {}
        """By what is counted, label, and identity of the mask of rows; the last used at the end."""
        self._matchers: KeyIndex[PodMatcher] = KeyIndex()
        self._holders: dict[HeldTerm, int] = {}
        self._keys: Counter[tuple[TermKind, str]] = Counter()
        """How many distinct terms of a kind have the topology key."""
        self._terms: defaultdict[TermKind, KeyIndex[HeldTerm]] = defaultdict(KeyIndex)
        self._about: dict[_Asked, tuple[HeldTerm, ...]] = {}
        """What :meth:`terms_about` said since the distinct terms changed."""

    # Questions.

    def counts(self, counted: Counted) -> Ints:
        """Return, per row, how many pods *counted* is about. Valid within the attempt."""
        return self._column(counted).counts(len(self._pods))

    def by_domain(
        self, counted: Counted, labels: LabelColumns, key: str, *, among: Mask
    ) -> PodsByDomain:
        """Return, per domain of the label *key*, how many pods *counted* is about on *among*.

        Cheap if *among* is the same array as the last time (see :meth:`NodeTable.kept`). Valid
        within the attempt.
        """
        column, asked = self._column(counted), (counted, key, id(among))
        counts = self._by_domain.pop(asked, None)
        if counts is not None and counts.counts_for(column, among):
            counts.refresh()
        else:
            counts = PodsByDomain(
                column, labels.ids(key), values=len(labels.values(key)), among=among
            )
            if len(self._by_domain) >= self._limit:
                del self._by_domain[next(iter(self._by_domain))]
        self._by_domain[asked] = counts
        return counts

    def _column(self, counted: Counted) -> Column:
        column = self._columns.get(counted)
        if column is None:
            return self._make(counted)
        self._columns.move_to_end(counted)
        return column

    def terms_about(
        self,
        kind: TermKind,
        *,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str],
    ) -> tuple[HeldTerm, ...]:
        """Return the distinct terms of running pods that match a pod with *labels*."""
        if not self.may_have(kind):
            return ()
        asked = (kind, namespace, tuple(labels.items()), tuple(namespace_labels.items()))
        terms = self._about.get(asked)
        if terms is None:
            others = self._others()
            if others is None:
                self._build()
                terms = tuple(
                    held
                    for held in self._terms[kind].candidates(labels.items())
                    if held.term.matches(namespace, labels, namespace_labels=namespace_labels)
                )
            else:
                terms = others.terms_about(
                    kind, namespace=namespace, labels=labels, namespace_labels=namespace_labels
                )
            if len(self._about) >= MOST_ABOUT:
                self._about.clear()
            self._about[asked] = terms
        return terms

    def may_have(self, kind: TermKind) -> bool:
        """Whether some running pod has terms of that kind, as far as it is known."""
        return not self._is_built or bool(self._terms[kind])

    def has_terms(self, kind: TermKind, key: str) -> bool:
        """Whether some running pod has a term of that kind with the topology key *key*."""
        others = self._others()
        if others is not None:
            return others.has_terms(kind, key)
        self._build()
        return self._keys[kind, key] > 0

    @property
    def may_have_terms(self) -> bool:
        """Whether some running pod has terms of (anti)affinity, as far as it is known."""
        return not self._is_built or bool(self._holders)

    @property
    def is_counting(self) -> bool:
        """Whether changes are of any interest yet."""
        return self._is_built or self._counted_in is not None

    # Changes. Only the table calls these.

    def forget_domains(self) -> None:
        """Start again with domains: a node has come, gone or changed."""
        self._by_domain.clear()

    def add(self, row: int, pod: PodInfo) -> None:
        """Count a pod that came to *row*."""
        if not self._is_built:
            self._forget_others()
            return
        replicas = self._replicas.get(pod)
        if replicas is None:
            replicas = self._open(pod)
        replicas.change(row, 1)
        self.terms_version += bool(replicas.held)

    def add_all(self, rows: Sequence[int], pods: Sequence[PodInfo]) -> None:
        """Count each of *pods* that came to its row, those of a template together."""
        if not self._is_built:
            self._forget_others()
            return
        of_replicas: defaultdict[tuple[PodTemplate, bool], list[int]] = defaultdict(list)
        for place, pod in enumerate(pods):
            terminates = pod.pod.metadata.deletion_timestamp is not None
            of_replicas[pod.template, terminates].append(place)
        for places in of_replicas.values():
            first = pods[places[0]]
            replicas = self._replicas.get(first)
            if replicas is None:
                replicas = self._open(first)
            replicas.add([rows[place] for place in places])
            self.terms_version += bool(replicas.held)

    def remove(self, row: int, pod: PodInfo) -> None:
        """Count a pod that left *row*; it must have been counted there."""
        if not self._is_built:
            self._forget_others()
            return
        replicas = self._replicas.get(pod)
        assert replicas is not None, f"pod {pod.key} was never counted"
        replicas.change(row, -1)
        self.terms_version += bool(replicas.held)
        if not replicas.rows:
            self._close(replicas)

    def _others(self) -> "PodCounters | None":
        """Return those in which the same pods are counted, if that is still true."""
        if self._counted_in is None or not self._is_same():
            return None
        return self._counted_in

    def _forget_others(self) -> None:
        """Forget what was taken over, of which changes would not be counted."""
        if self._counted_in is not None:
            self._counted_in = None
            self._columns.clear()
            self._by_domain.clear()
            self._about.clear()

    def _build(self) -> None:
        if not self._is_built:
            self._forget_others()
            self._is_built = True
            for row, pods in enumerate(self._pods):
                for pod in pods.values():
                    self.add(row, pod)

    def _open(self, pod: PodInfo) -> Replicas:
        """Make the replicas of *pod* and find the columns that they belong to."""
        opened = self._replicas.open(pod)
        for matcher in self._matchers.candidates(opened.labels.items()):
            if matcher.matches(opened.namespace, opened.labels, terminating=opened.terminating):
                opened.columns.append(self._columns[matcher])
        for held in opened.held:
            holders = self._holders[held] = self._holders.get(held, 0) + 1
            if holders == 1:
                self._terms[held.kind].add(held, label_choices(held.term.selector))
                self._keys[held.kind, held.term.topology_key] += 1
                self._about.clear()
            if held in self._columns:
                opened.columns.append(self._columns[held])
        return opened

    def _close(self, replicas: Replicas) -> None:
        self._replicas.close(replicas)
        for held in replicas.held:
            self._holders[held] -= 1
            if not self._holders[held]:
                del self._holders[held]
                self._terms[held.kind].remove(held)
                self._keys[held.kind, held.term.topology_key] -= 1
                self._about.clear()

    def check_invariants(self) -> None:
        """Raise AssertionError unless a recount of all pods gives the same; for tests and debug."""
        for counted, column in self._columns.items():
            recount = [sum(_is_counted(pod, counted) for pod in on.values()) for on in self._pods]
            assert column.counts(len(self._pods)).tolist() == recount, counted
        if self._is_built:
            held = {held for on in self._pods for pod in on.values() for held in _held(pod)}
            assert self._holders.keys() == held
            keys = Counter((one.kind, one.term.topology_key) for one in held)
            assert +self._keys == keys
        kept = set(self._columns.values())
        for replicas in self._replicas:
            assert replicas.rows, replicas.labels
            assert kept.issuperset(replicas.columns), replicas.labels
        self._replicas.check_invariants()

    # Columns.

    def _concerned(self, counted: Counted) -> Iterable[Replicas]:
        if isinstance(counted, HeldTerm):
            return self._replicas.holding(counted)
        return self._matched(counted)

    def _matched(self, matcher: PodMatcher) -> Iterator[Replicas]:
        for replicas in self._replicas.selected(matcher.selector, namespaces=matcher.namespaces):
            if not (replicas.terminating and matcher.skip_terminating):
                yield replicas

    def _make(self, counted: Counted) -> Column:
        others = self._others()
        if others is not None:
            column = self._columns[counted] = Column(others.counts(counted).copy())
            return column
        self._build()
        concerned = list(self._concerned(counted))
        rows: list[int] = []
        amounts: list[int] = []
        for replicas in concerned:
            rows.extend(replicas.rows)
            amounts.extend(replicas.rows.values())
        counts = np.zeros(len(self._pods), np.int64)
        np.add.at(counts, rows, amounts)
        column = Column(counts)
        for replicas in concerned:
            replicas.columns.append(column)
        if len(self._columns) >= self._limit:
            self._drop_oldest()
        self._columns[counted] = column
        if isinstance(counted, PodMatcher):
            self._matchers.add(counted, label_choices(counted.selector))
        return column

    def _drop_oldest(self) -> None:
        counted, column = self._columns.popitem(last=False)
        for replicas in self._concerned(counted):
            replicas.columns.remove(column)
        if isinstance(counted, PodMatcher):
            self._matchers.remove(counted)


def _is_counted(pod: PodInfo, counted: Counted) -> bool:
    if isinstance(counted, HeldTerm):
        return counted in _held(pod)
    terminating = pod.pod.metadata.deletion_timestamp is not None
    return counted.matches(pod.namespace, pod.labels, terminating=terminating)


def _held(pod: PodInfo) -> tuple[HeldTerm, ...]:
    return terms_of(pod.template).held
