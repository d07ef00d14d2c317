"""Runs InterPodAffinity as a cycle does, and by the letter: loops over all pods and all nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from berth.runtime.release import RELEASE
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Lister, Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.inter_pod_affinity.plugin import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    HOSTNAME_FAST_PATH,
    InterPodAffinity,
    InterPodAffinityArgs,
)
from tests.builders import HOSTNAME, namespace

Labels = Mapping[str, str]


def plugin(
    args: InterPodAffinityArgs | None = None,
    *,
    namespaces: Mapping[str, Labels] = {},
    release: str = RELEASE,
    fast: bool = False,
) -> InterPodAffinity:
    """Return the plugin in a cluster with *namespaces*, by name with their labels.

    *fast*: with the feature gate HOSTNAME_FAST_PATH.
    """
    known = Lister([namespace(name, labels=labels) for name, labels in namespaces.items()])
    listers, features = (
        Listers(namespaces=known),
        Features.of(*[HOSTNAME_FAST_PATH][:fast], release=release),
    )
    return InterPodAffinity(args, Handle(NodeTable(), listers=listers, features=features))


def verdicts(
    affinity: InterPodAffinity, pod: Pod, nodes: NodeTable
) -> dict[str, Status | None] | None:
    """Return what PreFilter and Filter say of each node; None: PreFilter skips."""
    state, pod_info = CycleState(nodes.exists.copy()), PodInfo(pod)
    status = affinity.pre_filter(state, pod_info, nodes)
    if status is not None:
        assert status is SKIP
        return None
    verdict = affinity.filter(state, pod_info, nodes)
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


def raw_scores(affinity: InterPodAffinity, pod: Pod, nodes: NodeTable) -> dict[str, int] | None:
    """Return what PreScore and Score give each node; None: PreScore skips."""
    state, pod_info = CycleState(nodes.exists.copy()), PodInfo(pod)
    status = affinity.pre_score(state, pod_info, nodes)
    if status is not None:
        assert status is SKIP
        return None
    scores = affinity.score(state, pod_info, nodes)
    return {name: int(scores[row]) for name, row in nodes.row_of.items()}


@dataclass
class Rule:
    """Spec §5.11 over plain objects; *fast*: with 1.37 spec N12.3.

    Shares nothing with the plugin under test.
    """

    pod: Pod
    nodes: Sequence[Node]
    running: Sequence[Pod]
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    args: InterPodAffinityArgs = field(default_factory=InterPodAffinityArgs)
    fast: bool = False

    def skips(self) -> bool:
        """Whether PreFilter has nothing to do."""
        towards, away = _parts(self.pod)
        if towards.required or away.required:
            return False
        theirs = [(other, term) for other in self.running for term in _parts(other)[1].required]
        if self.fast and any(term.topology_key == HOSTNAME for _, term in theirs):
            return False
        return not any(
            term.topology_key in self._labels_under(other) and self._existing_matches(term, other)
            for other, term in theirs
        )

    def verdict(self, node: Node) -> Status | None:
        towards, away = _parts(self.pod)
        labels = node.metadata.labels

        def near(other: Pod, term: PodAffinityTerm, *, by_node: bool = self.fast) -> bool:
            key = term.topology_key
            if by_node and key == HOSTNAME:
                return key in labels and other.spec.node_name == node.name
            return key in labels and self._labels_under(other).get(key) == labels[key]

        wanted = [
            other
            for other in self.running
            if all(self._incoming_matches(term, other) for term in towards.required)
        ]
        if towards.required:
            if any(term.topology_key not in labels for term in towards.required):
                return AFFINITY
            by_node = self.fast and all(term.topology_key == HOSTNAME for term in towards.required)
            lonely = not any(
                by_node or term.topology_key in self._labels_under(other)
                for other in wanted
                for term in towards.required
            )
            first = lonely and all(
                self._incoming_matches(term, self.pod) for term in towards.required
            )
            if not first and not all(
                any(near(other, term, by_node=by_node) for other in wanted)
                for term in towards.required
            ):
                return AFFINITY
        for term in away.required:
            if any(near(o, term) and self._incoming_matches(term, o) for o in self.running):
                return ANTI_AFFINITY
        for other in self.running:
            for term in _parts(other)[1].required:
                if near(other, term) and self._existing_matches(term, other):
                    return EXISTING_ANTI_AFFINITY
        return None

    def scores(self) -> dict[str, int] | None:
        """Return the raw score of each node; None: nothing to score by."""
        towards, away = _parts(self.pod)
        if self.args.ignore_preferred_terms_of_existing_pods and not (
            towards.preferred or away.preferred
        ):
            return None
        recorded: dict[tuple[str, str], int] = {}

        def record(term: PodAffinityTerm, other: Pod, weight: int) -> None:
            value = self._labels_under(other).get(term.topology_key)
            if value is not None:
                domain = (term.topology_key, value)
                recorded[domain] = recorded.get(domain, 0) + weight

        for other in self.running:
            their_towards, their_away = _parts(other)
            for sign, ours in ((1, towards), (-1, away)):
                for wanted in ours.preferred:
                    if self._incoming_matches(wanted.pod_affinity_term, other):
                        record(wanted.pod_affinity_term, other, sign * wanted.weight)
            for sign, theirs in ((1, their_towards), (-1, their_away)):
                for wanted in theirs.preferred:
                    if self._existing_matches(wanted.pod_affinity_term, other):
                        record(wanted.pod_affinity_term, other, sign * wanted.weight)
            if self.args.hard_pod_affinity_weight:
                for term in their_towards.required:
                    if self._existing_matches(term, other):
                        record(term, other, self.args.hard_pod_affinity_weight)
        if not recorded:
            return None
        return {
            node.name: sum(
                weight for (key, value), weight in recorded.items() if node.labels.get(key) == value
            )
            for node in self.nodes
        }

    def _labels_under(self, other: Pod) -> Labels:
        return next(n.labels for n in self.nodes if n.name == other.spec.node_name)

    def _incoming_matches(self, term: PodAffinityTerm, other: Pod) -> bool:
        """Whether a term of the pod is about *other*, with kube-scheduler's slip."""
        selector, ns = term.namespace_selector, other.metadata.namespace
        return _selects(term.label_selector, other.metadata.labels) and (
            ns in _names(term, self.pod)
            or (ns in self.namespaces and _selects(selector, self._namespace_labels(ns)))
            or _selects(selector, {})
        )

    def _existing_matches(self, term: PodAffinityTerm, holder: Pod) -> bool:
        """Whether a term of *holder* is about the pod."""
        ns = self.pod.metadata.namespace
        return _selects(term.label_selector, self.pod.metadata.labels) and (
            ns in _names(term, holder)
            or _selects(term.namespace_selector, self._namespace_labels(ns))
        )

    def _namespace_labels(self, name: str) -> Labels:
        if name not in self.namespaces:
            return {}
        return namespace(name, labels=self.namespaces[name]).metadata.labels


def _names(term: PodAffinityTerm, holder: Pod) -> Iterable[str]:
    if not term.namespaces and term.namespace_selector is None:
        return [holder.metadata.namespace]
    return term.namespaces


def _parts(pod: Pod) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.spec.affinity or Affinity()
    return affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()


def _selects(selector: LabelSelector | None, labels: Labels) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    for expression in selector.match_expressions:
        value = labels.get(expression.key)
        if expression.operator in ("In", "NotIn"):
            holds = (value in expression.values) == (expression.operator == "In")
        else:
            holds = (value is not None) == (expression.operator == "Exists")
        if not holds:
            return False
    return True
