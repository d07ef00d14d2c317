"""Rules between pods of different nodes: required anti-affinity and required spread.

Templates are numbered; what they match is found by their labels.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from berth.insight.certificate.problem import NO_DOMAIN, Exclusion, Spread
from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.selectors import Selector, compile_selector
from berth.scheduler.framework.affinity_terms import AffinityTerm, terms_of
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
HONOR: Final = "Honor"
AFFINITY: Final = "InterPodAffinity"
SPREAD: Final = "PodTopologySpread"


@dataclass(frozen=True, slots=True)
class RequiredSpread:
    """A required constraint of a template."""

    namespace: str
    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    nodes: tuple[int, ...]
    """Where pods count: the nodes that have the labels of all constraints of the template, and, if
    that is honored, that its node affinity allows."""

    def is_about(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace == self.namespace and self.selector.matches(labels)


@dataclass(slots=True)
class Rules:
    """The rules between nodes of some templates."""

    exclusions: list[Exclusion] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    topologies: list[tuple[int, ...]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def has_required_spread(template: PodTemplate) -> bool:
    written = template.pod.spec.topology_spread_constraints
    return any(constraint.when_unsatisfiable == DO_NOT_SCHEDULE for constraint in written)


def lacks_label(template: PodTemplate, labels: Mapping[str, str]) -> bool:
    """Whether a node with *labels* is in no domain of a required constraint."""
    return any(
        constraint.when_unsatisfiable == DO_NOT_SCHEDULE and constraint.topology_key not in labels
        for constraint in template.pod.spec.topology_spread_constraints
    )


class RuleReader:
    """Reads the rules of *templates* on nodes with these *labels*; *fixed* are the pods that stay,
    by node.
    """

    def __init__(
        self,
        templates: Sequence[PodTemplate],
        names: Sequence[str],
        labels: Sequence[Mapping[str, str]],
        fixed: Sequence[Iterable[PodInfo]],
        listers: Listers,
    ) -> None:
        self._templates, self._names, self._labels = templates, names, labels
        self._fixed, self._listers = fixed, listers
        self._topologies: dict[str, int] = {}
        self._rules = Rules()

    def read(self, *, affinity: bool, spread: bool) -> Rules:
        """Return the rules, of those plugins that are applied."""
        if affinity:
            self._rules.exclusions += self._exclusions()
        if spread:
            self._rules.spreads += self._spreads()
        return self._rules

    def _topology(self, key: str) -> int:
        if key not in self._topologies:
            values: dict[str, int] = {}
            self._rules.topologies.append(
                tuple(
                    values.setdefault(labels[key], len(values)) if key in labels else NO_DOMAIN
                    for labels in self._labels
                )
            )
            self._topologies[key] = len(self._topologies)
        return self._topologies[key]

    def _exclusions(self) -> Iterator[Exclusion]:
        holders: dict[AffinityTerm, list[int]] = defaultdict(list)
        for number, template in enumerate(self._templates):
            for term in dict.fromkeys(terms_of(template).required_anti_affinity):
                holders[term].append(number)
        for term, of_term in holders.items():
            targets = tuple(
                number
                for number, template in enumerate(self._templates)
                if term.matches(
                    template.pod.metadata.namespace,
                    template.pod.metadata.labels,
                    namespace_labels=self._namespace_labels(template.pod.metadata.namespace),
                )
            )
            if targets:
                yield Exclusion(self._topology(term.topology_key), tuple(of_term), targets)

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self._listers.namespaces.get("", name)
        return {} if namespace is None else namespace.metadata.labels

    def _spreads(self) -> Iterator[Spread]:
        holders: dict[RequiredSpread, list[int]] = defaultdict(list)
        for number, template in enumerate(self._templates):
            for constraint in self._required(template):
                holders[constraint].append(number)
        for constraint, of_constraint in holders.items():
            members = [
                number
                for number, template in enumerate(self._templates)
                if constraint.is_about(
                    template.pod.metadata.namespace, template.pod.metadata.labels
                )
            ]
            if members != of_constraint:
                # Others may come later, whom it does not bind: then it need not hold in the end.
                self._rules.left_out.append(
                    f"a spread over {constraint.topology_key} in {constraint.namespace}, which not"
                    " all pods have that count"
                )
                continue
            yield Spread(
                self._topology(constraint.topology_key),
                tuple(members),
                constraint.max_skew,
                constraint.min_domains,
                constraint.nodes,
                self._fixed_counts(constraint),
            )

    def _fixed_counts(self, constraint: RequiredSpread) -> dict[int, int]:
        counts = Counter(
            node
            for node in constraint.nodes
            for pod in self._fixed[node]
            if not pod.is_terminating and constraint.is_about(pod.namespace, pod.labels)
        )
        return dict(counts)

    def _required(self, template: PodTemplate) -> Iterator[RequiredSpread]:
        meta, spec = template.pod.metadata, template.pod.spec
        affinity = template.required_node_affinity
        for written in spec.topology_spread_constraints:
            if written.when_unsatisfiable != DO_NOT_SCHEDULE or written.label_selector is None:
                continue
            same = {key: meta.labels[key] for key in written.match_label_keys if key in meta.labels}
            labels = {**written.label_selector.match_labels, **same}
            selector = compile_selector(
                LabelSelector(labels, written.label_selector.match_expressions)
            )
            if selector.is_empty:  # it finds no pods, as in kube-scheduler
                continue
            if written.node_taints_policy == HONOR:
                self._rules.left_out.append(
                    f"a spread over {written.topology_key} in {meta.namespace} that honors taints"
                )
                continue
            honors = (written.node_affinity_policy or HONOR) == HONOR and affinity is not None
            nodes = tuple(
                node
                for node, name in enumerate(self._names)
                if not lacks_label(template, self._labels[node])
                and (not honors or affinity is None or affinity.matches(self._labels[node], name))
            )
            yield RequiredSpread(
                meta.namespace,
                written.topology_key,
                written.max_skew,
                1 if written.min_domains is None else written.min_domains,
                selector,
                nodes,
            )
