"""InterPodAffinity: a pod goes near the pods it likes and keeps away from those it does not."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final, TypeAlias

import msgspec
import numpy as np
from pydantic import Field

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.release import Behaviour
from berth.scheduler.framework.affinity_terms import (
    NO_TERMS,
    AffinityTerm,
    HeldTerm,
    TermKind,
    compile_terms,
    terms_of,
)
from berth.scheduler.framework.change import Change, ChangeKind, Detail, label_change
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.explanation import Move, MovesPods
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    MAX_NODE_SCORE,
    EnqueueExtensions,
    FilterPlugin,
    Input,
    PluginArgs,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.key_index import NOWHERE, Choices
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_counters import PodMatcher
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import Mask, Rejection, Rows, Verdict
from berth.scheduler.framework.words import counted
from berth_plugins.inter_pod_affinity.domain_counts import DomainCounts, WeightedPods
from berth_plugins.inter_pod_affinity.terms import NO_REQUIRED, RequiredTerms, TermReader
from berth_plugins.shared.pod_keys import choices_for, has_place, keys_of

AFFINITY: Final = Status.unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY: Final = Status.unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY: Final = Status.unschedulable(
    "node(s) didn't satisfy existing pods anti-affinity rules"
)

FREED_BY_ANY_TERM: Final = Behaviour(
    "1.37",
    "N3.10",
    "A pod that InterPodAffinity rejected is tried again when a pod is gone that one of its"
    " anti-affinity terms matched, not only one that all of them matched.",
)
HOSTNAME: Final = "kubernetes.io/hostname"
HOSTNAME_FAST_PATH: Final = "InterPodAffinityHostnameFastPath"
"""The feature gate by which each node is a domain of its own in required terms for HOSTNAME."""

Quantifier: TypeAlias = Callable[[Iterable[object]], bool]
"""``any`` or ``all``: how many anti-affinity terms a pod must match to be in the way."""

_NONE_ABOUT: Final = tuple(() for _ in TermKind), False
"""What a pod follows from where running pods have no terms."""


class InterPodAffinityArgs(PluginArgs):
    """How much the terms of running pods count when a pod is scored."""

    hard_pod_affinity_weight: int = Field(default=1, ge=0, le=100)
    """What the *required* affinity of a running pod for this one is worth; 0: nothing."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether a pod without preferences of its own is left unscored."""


class Required(msgspec.Struct, frozen=True):
    """The pods that decide, per domain: the three counters of PreFilter (spec §5.11)."""

    terms: RequiredTerms
    affinity: DomainCounts
    """Pods that all affinity terms of the pod match."""
    anti_affinity: DomainCounts
    """Pods that an anti-affinity term of the pod matches."""
    existing_anti_affinity: DomainCounts
    """Pods with an anti-affinity term that matches the pod."""

    def clone(self) -> "Required":
        return Required(
            self.terms,
            self.affinity.clone(),
            self.anti_affinity.clone(),
            self.existing_anti_affinity.clone(),
        )

    def take_rows(self, rows: Rows) -> "Required":
        return Required(
            self.terms,
            self.affinity.take_rows(rows),
            self.anti_affinity.take_rows(rows),
            self.existing_anti_affinity.take_rows(rows),
        )


class InterPodAffinity(
    PreFilterPlugin,
    PreFilterExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    EnqueueExtensions,
    MovesPods,
):
    """Rejects nodes by required (anti)affinity, of the pod and of running pods (spec §5.11).

    The score of a node is the sum of the weights of all preferences, of the pod and of running
    pods, that are for or against its domains; normalised so that the best node gets 100 and the
    worst 0.

    No pod is looked at: ``nodes.pod_counters`` knows how many of which kind are where.
    """

    NAME = "InterPodAffinity"
    WITHOUT_PRE_FILTER = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    WITHOUT_PRE_SCORE = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    DECIDES_BY_SIGNATURE = True
    INPUTS = Input.LABELS
    ARGS = InterPodAffinityArgs

    def __init__(
        self, args: InterPodAffinityArgs | None = None, handle: Handle | None = None
    ) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("InterPodAffinity: needs a handle to look up namespaces")
        args = args or InterPodAffinityArgs()
        self._hard_weight = args.hard_pod_affinity_weight
        self._scores_preferring_pods_only = args.ignore_preferred_terms_of_existing_pods
        self._terms = TermReader(handle.listers.namespaces)
        self._to_repel: Quantifier = any if FREED_BY_ANY_TERM in handle.features else all
        fast = HOSTNAME_FAST_PATH in handle.features
        self._by_node = frozenset({HOSTNAME} if fast else ())

    # Filtering.

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        """Return which terms of running pods are about *pod* and, if any, how often these change.

        And the nodes, whose labels say how far terms reach. A pod with terms of its own counts
        pods by their labels, which is too much to tell.
        """
        if terms_of(pod.template) is not NO_TERMS:
            return None
        if not nodes.pod_counters.may_have_terms:
            return _NONE_ABOUT
        about = tuple(self._terms_about(pod, kind, nodes) for kind in TermKind)
        if not any(about):
            return about, self._looks_at_nodes(nodes)
        return about, (nodes.pod_counters.terms_version, nodes.node_generation)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        written = terms_of(pod.template)
        if written.error:
            return Status.unresolvable(f"parsing pod: {written.error}")
        terms = self._terms.read(written).required
        repelling = self._terms_about(pod, TermKind.REQUIRED_ANTI_AFFINITY, nodes)
        may_skip = terms is NO_REQUIRED and not self._looks_at_nodes(nodes)
        if may_skip and not repelling:
            return SKIP
        affinity = terms.affinity
        # Affinity goes by nodes only if all of it does: one pod must match all terms.
        affinity_by_node = self._by_node if terms.affinity_keys == self._by_node else ()
        required = Required(
            terms,
            affinity=DomainCounts.of_pods(
                nodes,
                () if affinity is None else ((key, affinity) for key in terms.affinity_keys),
                by_node=affinity_by_node,
            ),
            anti_affinity=DomainCounts.of_pods(nodes, terms.anti_affinity, by_node=self._by_node),
            existing_anti_affinity=DomainCounts.of_pods(
                nodes,
                ((held.term.topology_key, held) for held in repelling),
                by_node=self._by_node,
            ),
        )
        if may_skip and not required.existing_anti_affinity:
            return SKIP
        state.write(self.NAME, required)
        return None

    def _looks_at_nodes(self, nodes: NodeTable) -> bool:
        """Whether Filter looks at the pods of nodes: some keep others off their own node.

        Whom they keep away does not matter (1.37 spec N12.3).
        """
        kind = TermKind.REQUIRED_ANTI_AFFINITY
        return any(nodes.pod_counters.has_terms(kind, key) for key in self._by_node)

    def add_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> None:
        self._change(state, pod, rows, pods, nodes, by=1)

    def remove_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> None:
        self._change(state, pod, rows, pods, nodes, by=-1)

    def _change(
        self,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        pods: PodBatch,
        nodes: NodeTable,
        *,
        by: int,
    ) -> None:
        """Count *pods* once more or less on *rows*."""
        required: Required = state.read(self.NAME)
        terms = required.terms
        if terms.affinity is not None:
            matched = pods.per_template(partial(_matches, terms.affinity))
            for key in terms.affinity_keys:
                required.affinity.change(nodes, key, rows, by=by * matched)
        for key, matcher in terms.anti_affinity:
            matched = pods.per_template(partial(_matches, matcher))
            required.anti_affinity.change(nodes, key, rows, by=by * matched)
        for key in {term.topology_key for t in pods.templates for term in self._repelling(t, pod)}:
            matched = pods.per_template(partial(self._num_repelling, pod, key))
            required.existing_anti_affinity.change(nodes, key, rows, by=by * matched)

    def _num_repelling(self, pod: PodInfo, key: str, template: PodTemplate) -> int:
        return sum(term.topology_key == key for term in self._repelling(template, pod))

    def _repelling(self, template: PodTemplate, pod: PodInfo) -> list[AffinityTerm]:
        """Return the anti-affinity terms of the pods of *template* that keep *pod* away."""
        terms = terms_of(template).required_anti_affinity
        return [term for term in terms if self._terms.is_about(term, pod.pod)]

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        required: Required = state.read(self.NAME)
        unmet: list[tuple[Status, Mask]] = []
        if required.terms.affinity is not None:
            unmet.append((AFFINITY, ~satisfy_pod_affinity(required, pod, nodes)))
        if required.anti_affinity:
            unmet.append((ANTI_AFFINITY, required.anti_affinity.rows_with_any(nodes)))
        if required.existing_anti_affinity:
            where = required.existing_anti_affinity.rows_with_any(nodes)
            unmet.append((EXISTING_ANTI_AFFINITY, where))
        rejections: list[Rejection] = []
        evaluated: Mask | None = None
        for status, where in unmet:  # a node is told the first reason only
            first = where if evaluated is None else where & ~evaluated
            if np.count_nonzero(first):
                (reason,) = status.reasons
                rejections.append(Rejection(reason, status.code, first))
            evaluated = where if evaluated is None else evaluated | where
        return Verdict(tuple(rejections))

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        required: Required = state.read(self.NAME)
        if required.terms.affinity is not None:
            yield from _too_far(required, pod, nodes, row)
        yield from _too_near(required.anti_affinity, "to keep away from", nodes, row)
        whom = "with anti-affinity to this one"
        yield from _too_near(required.existing_anti_affinity, whom, nodes, row)

    def moves(
        self, change: Change, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterable[Move] | None:
        """Name a pod that it may be near, and the pods of the domain that keep it away."""
        required: Required = state.read(self.NAME)
        terms = required.terms
        key = change.what.partition("=")[0]
        near: list[Move] = []
        if key in terms.affinity_keys and required.affinity.of_rows(nodes, key)[row] <= 0:
            copy = _to_be_near(terms, nodes)
            if copy is None:
                return None
            near.append(Move(row, copy, comes=True))
        avoided = [matcher for of_key, matcher in terms.anti_affinity if of_key == key]
        ids = nodes.labels.node_ids() if key in self._by_node else nodes.labels.ids(key)
        inside = np.flatnonzero((ids == ids[row]) & nodes.exists)
        in_the_way = (
            Move(other_row, info)
            for other_row in inside.tolist()
            for info in nodes.pods[other_row].values()
            if self._num_repelling(pod, key, info.template)
            or any(_matches(matcher, info.template) for matcher in avoided)
        )
        return chain(near, in_the_way)

    # Scoring.

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        written = terms_of(pod.template)
        if written.error:
            return Status.error(f"parsing pod: {written.error}")
        if self._scores_preferring_pods_only and not written.preferred:
            return SKIP
        weights = WeightedPods()
        for weight, key, matcher in self._terms.read(written).preferred:
            weights.add(nodes, key, matcher, weight=weight)
        for kind, factor in (
            (TermKind.PREFERRED, 1),
            (TermKind.REQUIRED_AFFINITY, self._hard_weight),
        ):
            if factor:
                for held in self._terms_about(pod, kind, nodes):
                    weights.add(nodes, held.term.topology_key, held, weight=factor * held.weight)
        if not weights:
            return SKIP
        state.write(f"{self.NAME}.scores", weights)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        weights: WeightedPods = state.read(f"{self.NAME}.scores")
        return weights.of_rows(nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return stretched(scores)

    def _terms_about(self, pod: PodInfo, kind: TermKind, nodes: NodeTable) -> Sequence[HeldTerm]:
        """Return the terms of running pods that match *pod*."""
        if not nodes.pod_counters.may_have(kind):
            return ()
        return nodes.pod_counters.terms_about(
            kind,
            namespace=pod.namespace,
            labels=pod.labels,
            namespace_labels=self._terms.labels_of(pod.namespace),
        )

    # Events.

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        on_pod = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        on_node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(
                ClusterEvent(EventResource.POD, on_pod),
                self.after_pod_change,
                (
                    HintIndex(_affinity, _came),
                    HintIndex(partial(_anti_affinity, self._to_repel), _went),
                    HintIndex(_own_keys, partial(_kept_off, self._to_repel)),
                ),
            ),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, on_node), after_node_change),
        ]

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue if a pod with a place came to match all affinity terms, or ceased to be in the way.

        In the way is, as in kube-scheduler, a pod that an anti-affinity term matches, or one of
        whose own anti-affinity terms matches the waiting pod (spec §3.9, 1.37 spec N3.10). Before
        FREED_BY_ANY_TERM, all terms had to.
        """
        changed = new if new is not None else old
        assert changed is not None, "an event is about some pod"
        if new is not None and new.metadata.uid == pod.metadata.uid:
            return QueueingHint.QUEUE
        if not has_place(changed):
            return QueueingHint.SKIP
        required = self._terms.read(compile_terms(pod)).required
        if new is None:
            theirs = compile_terms(changed).required_anti_affinity
            freed = self._is_in_the_way(required, changed) or (
                bool(theirs) and self._to_repel(self._terms.is_about(term, pod) for term in theirs)
            )
            return QueueingHint.QUEUE if freed else QueueingHint.SKIP
        attracts = _attracts(required, new)
        if old is None:
            return QueueingHint.QUEUE if attracts else QueueingHint.SKIP
        helps = (attracts and not _attracts(required, old)) or (
            self._is_in_the_way(required, old) and not self._is_in_the_way(required, new)
        )
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _is_in_the_way(self, required: RequiredTerms, pod: Pod) -> bool:
        """Whether there is anti-affinity, and as much of it is to *pod* as it takes."""
        terms, meta = required.anti_affinity, pod.metadata
        return bool(terms) and self._to_repel(
            about.matches(meta.namespace, meta.labels) for _, about in terms
        )


def satisfy_pod_affinity(required: Required, pod: PodInfo, nodes: NodeTable) -> Mask:
    """Return the rows that have, in their domain of every key, a pod that all terms match."""
    # Where the node lacks the topology label, no pod counts.
    rows_of_keys = [required.affinity.rows_with(nodes, key) for key in required.terms.affinity_keys]
    pods_exist: Mask = (
        rows_of_keys[0] if len(rows_of_keys) == 1 else np.logical_and.reduce(rows_of_keys)
    )
    # The pod may be the first in a series with affinity to each other. Without an exception it
    # could never be scheduled. All topology labels must exist on the node nevertheless.
    is_first_pod = _is_first_pod(required, pod, nodes)
    if is_first_pod is None:
        return pods_exist
    for key in required.terms.affinity_keys:
        is_first_pod &= nodes.labels.has(key)
    return pods_exist | is_first_pod


def _is_first_pod(required: Required, pod: PodInfo, nodes: NodeTable) -> Mask | None:
    """Return the rows in whose eyes no pod in any domain matches all terms, but *pod* itself does.

    None: there are none.
    """
    affinity = required.terms.affinity
    if affinity is None or not affinity.matches(pod.namespace, pod.labels):
        return None
    return required.affinity.rows_that_see_none(nodes)


def _too_far(required: Required, pod: PodInfo, nodes: NodeTable, row: int) -> Iterator[Detail]:
    """Tell of which keys the domain of *row* has none of the pods that *pod* must be near."""
    first = _is_first_pod(required, pod, nodes)
    is_first = first is not None and first[row]
    for key in sorted(required.terms.affinity_keys):
        value = nodes.labels.values(key)[nodes.labels.ids(key)[row]]
        if value is None:
            change = label_change(key, f"label it {key}")
            yield Detail(f"has no label {key} that pods could be near by", change)
        elif not is_first and required.affinity.of_rows(nodes, key)[row] <= 0:
            change = Change(
                kind=ChangeKind.MOVE_PODS,
                what=f"{key}={value}",
                amount=1,
                words=f"have a pod to be near in {key}={value}",
            )
            yield Detail(f"{key}={value} has none of the pods to be near", change)


def _to_be_near(terms: RequiredTerms, nodes: NodeTable) -> PodInfo | None:
    """Return another pod like one to be near, which takes no room; None: there is none to copy."""
    wanted = terms.affinity
    assert wanted is not None, "there are affinity keys"
    for row in np.flatnonzero(nodes.exists).tolist():
        for info in nodes.pods[row].values():
            if wanted.matches(info.namespace, info.labels):
                return _as_another(info.pod)
    return None


def _as_another(model: Pod) -> PodInfo:
    meta = msgspec.structs.replace(model.metadata, uid=f"{model.metadata.uid}:another")
    spec = msgspec.structs.replace(
        model.spec, containers=(), init_containers=(), overhead={}, resources=None
    )
    return PodInfo(msgspec.structs.replace(model, metadata=meta, spec=spec))


def _too_near(counts: DomainCounts, whom: str, nodes: NodeTable, row: int) -> Iterator[Detail]:
    """Tell in which domains of *row* there are pods that must not be near."""
    for key in counts.keys:
        count = int(counts.of_rows(nodes, key)[row])
        if count > 0:
            domain = f"{key}={nodes.labels.values(key)[nodes.labels.ids(key)[row]]}"
            change = Change(
                kind=ChangeKind.MOVE_PODS,
                what=domain,
                amount=count,
                words=f"take what keeps it away ({count}) out of {domain}",
            )
            yield Detail(f"{domain} has {counted(count, 'pod')} {whom}", change)


def stretched(scores: Scores) -> Scores:
    """Spread *scores* over 0..100: ``int(100 * ((score - lowest) / (highest - lowest)))``.

    In floats and in this order, as kube-scheduler; all 0 when all are equal (spec §5.11).
    """
    if not len(scores):
        return scores
    lowest = scores.item(scores.argmin())
    spread = scores.item(scores.argmax()) - lowest
    if not spread:
        return np.zeros_like(scores)
    above = scores - lowest
    # Rows of few domains have few different scores.
    different = np.arange(spread + 1) if spread < len(scores) else above
    stretched: Scores = (MAX_NODE_SCORE * (different / spread)).astype(np.int64)
    return stretched if different is above else stretched.take(above)


def _matches(matcher: PodMatcher, template: PodTemplate) -> bool:
    meta = template.pod.metadata
    return matcher.matches(meta.namespace, meta.labels)


def _attracts(required: RequiredTerms, pod: Pod) -> bool:
    """Whether there is affinity, and all of it is to *pod*."""
    meta = pod.metadata
    return required.affinity is not None and required.affinity.matches(meta.namespace, meta.labels)


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    """Queue if the node came into a domain that affinity wants, or out of one to keep away from."""
    written = compile_terms(pod)
    after = new.metadata.labels
    if old is None:
        wanted = any(term.topology_key in after for term in written.required_affinity)
        return QueueingHint.QUEUE if wanted or written.required_anti_affinity else QueueingHint.SKIP
    before = old.metadata.labels

    def moved(term: AffinityTerm) -> bool:
        return before.get(term.topology_key) != after.get(term.topology_key)

    helps = any(
        term.topology_key in after and moved(term) for term in written.required_affinity
    ) or any(term.topology_key in before and moved(term) for term in written.required_anti_affinity)
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


# Finding the waiting pods that a pod which came, changed or went may help.


def _of_all(terms: Sequence[AffinityTerm]) -> Choices:
    """Return how to file what looks for pods that all *terms* match; nothing does if none are."""
    choices = [
        keys
        for term in terms
        for keys in choices_for(
            term.namespaces if term.namespace_selector.is_nothing else None, term.selector
        )
    ]
    return choices if terms else NOWHERE


def _of_any(terms: Sequence[AffinityTerm]) -> Choices:
    """Return how to file what looks for pods that one of *terms* matches, likewise."""
    of_each = [_of_all([term]) for term in terms]
    if not all(of_each):
        return []
    return [tuple(key for choices in of_each for key in choices[0])] if terms else NOWHERE


def _affinity(pod: PodInfo) -> Choices:
    return _of_all(terms_of(pod.template).required_affinity)


def _anti_affinity(to_repel: Quantifier, pod: PodInfo) -> Choices:
    terms = terms_of(pod.template).required_anti_affinity
    return _of_any(terms) if to_repel is any else _of_all(terms)


def _came(_old: Pod | None, new: Pod | None) -> Iterable[Hashable]:
    return keys_of(new) if new is not None and has_place(new) else ()


def _went(old: Pod | None, new: Pod | None) -> Iterable[Hashable]:
    """Return the keys of the pod as it was; whether it has a place is asked of it as it is."""
    changed = new if new is not None else old
    return keys_of(old) if old is not None and changed is not None and has_place(changed) else ()


def _own_keys(pod: PodInfo) -> Choices:
    return [tuple(keys_of(pod.pod))]


def _kept_off(to_repel: Quantifier, old: Pod | None, new: Pod | None) -> Iterable[Hashable] | None:
    """Return where pods are that the anti-affinity of a deleted pod may have kept off."""
    if new is not None or old is None or not has_place(old):
        return ()
    terms = compile_terms(old).required_anti_affinity
    choices = _of_any(terms) if to_repel is any else _of_all(terms)
    return choices[0] if choices else None


"""Finds the pods that look for one that came, that keep off one that went, and that one kept off
that is deleted (spec §3.9)."""
