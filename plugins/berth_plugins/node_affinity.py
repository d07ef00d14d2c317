"""NodeAffinity: a pod goes where its nodeSelector and node affinity say, or would like."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
from pydantic import PlainSerializer, PlainValidator

from berth.kube.objects.node import Node
from berth.kube.objects.pod import NodeAffinity as Affinity
from berth.kube.objects.pod import NodeSelectorTerm, Pod, PodSpec, PreferredSchedulingTerm
from berth.kube.objects.selectors import (
    NAME_FIELD,
    CompiledTerm,
    NodeSelectorMatcher,
    Operator,
    Requirement,
    compile_node_selector,
    compile_node_selector_term,
    parse_int64,
    required_node_affinity,
)
from berth.scheduler.framework.change import Detail, label_change
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
)
from berth.scheduler.framework.explanation import ExplainsColumns, Objection, SummingUp, SumsUp
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EnqueueExtensions,
    FilterPlugin,
    PluginArgs,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.key_index import ANYWHERE, Choices, label_choices
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scoring import default_normalize
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import PASS, Mask, Verdict
from berth_plugins.shared.node_rows import rows_of_any_term, rows_of_term, rows_required

NOT_MATCHING: Final = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_MATCHING_ADDED: Final = Status.unresolvable(
    "node(s) didn't match scheduler-enforced node affinity"
)
TERMS_CONFLICT: Final = Status.unresolvable("pod affinity terms conflict")


def _added_affinity(written: object) -> Affinity:
    """Decode and check ``addedAffinity``; ``ValueError`` names the part that cannot be."""
    try:
        affinity = msgspec.convert(written, Affinity)
    except msgspec.ValidationError as exc:
        raise ValueError(f"addedAffinity: {exc}") from None
    required = affinity.required.node_selector_terms if affinity.required else ()
    paths = [
        (f"requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{i}]", term)
        for i, term in enumerate(required)
    ] + [
        (f"preferredDuringSchedulingIgnoredDuringExecution[{i}].preference", term.preference)
        for i, term in enumerate(affinity.preferred)
    ]
    for path, term in paths:
        compiled = compile_node_selector_term(term)
        if compiled is not None and compiled.error:
            raise ValueError(f"addedAffinity.{path}: {compiled.error}")
    return affinity


class NodeAffinityArgs(PluginArgs):
    """Node affinity that every pod of the profile has on top of its own."""

    added_affinity: (
        Annotated[Affinity, PlainValidator(_added_affinity), PlainSerializer(msgspec.to_builtins)]
        | None
    ) = None
    """Node affinity that applies to every pod, in addition to its own."""


class Preference(NamedTuple):
    """A preferred term, compiled."""

    weight: int
    term: CompiledTerm


class NodeAffinity(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    EnqueueExtensions,
    ExplainsColumns,
    SumsUp,
):
    """Rejects nodes that ``nodeSelector`` or required node affinity rule out (spec §5.6).

    The score is the sum of the weights of the preferred terms that match, normalised so that the
    best node gets 100.
    """

    NAME = "NodeAffinity"
    DECIDES_BY_SIGNATURE = True
    ARGS = NodeAffinityArgs

    def __init__(self, args: NodeAffinityArgs | None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        added = (args and args.added_affinity) or Affinity()
        self._added = None if added.required is None else compile_node_selector(added.required)
        preferences = compile_preferences(added.preferred)
        assert not isinstance(preferences, Status), "checked with the args"
        self._added_preferences = preferences

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        return EMPTY_FRAGMENT

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> Status | PreFilterResult | None:
        if self._added is None and pod.template.required_node_affinity is None:
            return SKIP
        return pod.template.memo("NodeAffinity.pre_filter", lambda: narrowed(pod.pod.spec))

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        required = pod.template.required_node_affinity
        matching = None if required is None else rows_required(nodes, required)
        if self._added is None:
            if matching is None:
                return PASS
            return Verdict.reject(NOT_MATCHING, where=~matching)
        added = rows_of_any_term(nodes, self._added)
        rejections = Verdict.reject(NOT_MATCHING_ADDED, where=~added).rejections
        if matching is not None:
            rejections += Verdict.reject(NOT_MATCHING, where=added & ~matching).rejections
        return Verdict(rejections)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        node = nodes.nodes[row]
        assert node is not None, f"row {row} is empty"
        required = pod.template.required_node_affinity
        demands: list[Requirement] = []
        others: list[Detail] = []
        if required is not None:
            demands += required.selector.requirements
        for matcher in (self._added, None if required is None else required.affinity):
            if matcher is not None:
                labels, problems = _nearest_term(matcher, node)
                demands += labels
                others += problems
        yield from _unmet(demands, node)
        yield from others

    def objections(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Iterator[Objection]:
        """Tell of labels that every node must have; of several terms, each node has its nearest."""
        required = pod.template.required_node_affinity
        if self._added is not None or required is None:
            return
        demands = [*required.selector.requirements]
        if required.affinity is not None:
            terms = required.affinity.terms
            if len(terms) != 1 or terms[0].fields or terms[0].error:
                return
            demands += terms[0].labels
        for key, asked in _by_key(demands).items():
            change = label_change(key, "") if _label(key, asked) is not None else None
            met = [nodes.labels.where(key, demand.matches) for demand in asked]
            unmet = ~np.logical_and.reduce(met)
            yield Objection(unmet, None if change is None else change.kind)

    def sum_up(self, state: CycleState, pod: PodInfo, nodes: NodeTable, where: Mask) -> SummingUp:
        """Tell which demands no node meets."""
        required = pod.template.required_node_affinity
        demands = [] if required is None else [*required.selector.requirements]
        if required is not None and required.affinity is not None:
            terms = required.affinity.terms
            demands += terms[0].labels if len(terms) == 1 else ()
        clauses = []
        for demand in dict.fromkeys(demands):
            if not (nodes.exists & nodes.labels.where(demand.key, demand.matches)).any():
                clauses.append(_met_nowhere(demand))
            yield
        return "; ".join(clauses)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        affinity = pod.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None:
            return None if self._added_preferences else SKIP
        preferences = _preferences_of(pod)
        if isinstance(preferences, Status):
            return preferences
        written = affinity.node_affinity.preferred
        return None if written or self._added_preferences else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores | Status:
        preferences = _preferences_of(pod)
        if isinstance(preferences, Status):
            return preferences
        everything = (*self._added_preferences, *preferences)
        return nodes.kept(("preferred", everything), lambda: _sum_of_weights(nodes, everything))

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [ClusterEventWithHint(node, self.after_node_change, (LABEL_INDEX,))]

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> QueueingHint:
        """Queue if the node matches now, and did not match before or was not there."""
        required = required_node_affinity(pod.spec)

        def matches(node: Node) -> bool:
            labels, name = node.metadata.labels, node.metadata.name
            return (self._added is None or self._added.matches(labels, name)) and (
                required is None or required.matches(labels, name)
            )

        changed = matches(new) and (old is None or not matches(old))
        return QueueingHint.QUEUE if changed else QueueingHint.SKIP


# Finding the waiting pods that a node may be for.


def _labels_asked(pod: PodInfo) -> Choices:
    """Return the labels of which a node must have one; those of any pair ``In`` will do."""
    required = pod.template.required_node_affinity
    if required is None:  # it is the added affinity that no node matched
        return ANYWHERE
    choices: list[tuple[Hashable, ...]] = [*label_choices(required.selector)]
    if required.affinity is not None:
        of_terms = [_asked_by(term) for term in required.affinity.terms if not term.error]
        if all(of_terms):
            choices.append(tuple(chain.from_iterable(of_terms)))
    return choices


def _asked_by(term: CompiledTerm) -> Sequence[tuple[str, str]]:
    """Return labels, or names, of which a node that *term* matches has one; none: it may have any.

    No requirement ``In`` is without values (spec §5.6).
    """
    asked = (one for one in (*term.fields, *term.labels) if one.operator is Operator.IN)
    demand = next(asked, None)
    return () if demand is None else [(demand.key, value) for value in demand.values]


def _labels_of(_old: Node | None, new: Node) -> Iterable[Hashable]:
    return (*new.metadata.labels.items(), (NAME_FIELD, new.metadata.name))


LABEL_INDEX: Final = HintIndex(_labels_asked, _labels_of)


# Which nodes a pod names.


def narrowed(spec: PodSpec) -> PreFilterResult | Status | None:
    """Return the only nodes that can match, if the required terms name nodes (spec §5.6).

    Each term must name some by ``metadata.name``; TERMS_CONFLICT if no name satisfies any term.
    """
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    if node_affinity is None or node_affinity.required is None:
        return None
    names: set[str] = set()
    terms = node_affinity.required.node_selector_terms
    for term in terms:
        of_term = _names_in(term)
        if of_term is None:
            return None
        names |= of_term
    if not terms:
        return None
    return PreFilterResult(frozenset(names)) if names else TERMS_CONFLICT


def _names_in(term: NodeSelectorTerm) -> set[str] | None:
    """Return the node names that all name requirements of *term* allow; None if it has none."""
    named = [
        set(field.values)
        for field in term.match_fields
        if field.key == NAME_FIELD and field.operator == Operator.IN
    ]
    return set.intersection(*named) if named else None


# What a node lacks.


def _nearest_term(
    matcher: NodeSelectorMatcher, node: Node
) -> tuple[Sequence[Requirement], Sequence[Detail]]:
    """Return what the term that is nearest to matching asks of labels, and other objections."""
    terms = [term for term in matcher.terms if not term.error]
    if not terms:
        wrong = [Detail(f"a term is wrong: {term.error}") for term in matcher.terms]
        return (), wrong or [Detail("there is no term that could match")]

    def distance(term: CompiledTerm) -> int:
        return len([*_unmet(term.labels, node), *_misnamed(term, node)])

    nearest = min(terms, key=distance)
    return nearest.labels, [*_misnamed(nearest, node)]


def _unmet(requirements: Iterable[Requirement], node: Node) -> Iterator[Detail]:
    """Tell which labels the node lacks; all that is asked of one label is met by one value."""
    for key, demands in _by_key(requirements).items():
        value = node.labels.get(key)
        unmet = [demand for demand in demands if not demand.matches(value)]
        if not unmet:
            continue
        has = f"has no label {key}" if value is None else f"label {key} is {value!r}"
        must = " and ".join(_must(requirement) for requirement in unmet)
        change = _label(key, demands)
        if change is None:
            yield Detail(f"{has}, {must}, which its other demands on {key} rule out")
        else:
            words, values, removes = change
            yield Detail(f"{has}, {must}", label_change(key, words, values=values, removes=removes))


def _by_key(requirements: Iterable[Requirement]) -> Mapping[str, Sequence[Requirement]]:
    by_key: dict[str, list[Requirement]] = {}
    for requirement in dict.fromkeys(requirements):
        by_key.setdefault(requirement.key, []).append(requirement)
    return by_key


def _label(key: str, demands: Sequence[Requirement]) -> tuple[str, Sequence[str], bool] | None:
    """Return in words what meets all *demands* on a label, the values that do, or that it must go.

    None: nothing does.
    """

    def meets(value: str | None) -> bool:
        return all(demand.matches(value) for demand in demands)

    listed = [demand.values for demand in demands if demand.operator is Operator.IN]
    if listed:
        values = [value for value in listed[0] if meets(value)]
        return (f"label it {key}={' or '.join(values)}", values, False) if values else None
    if meets(None):
        asks_for_others = all(demand.operator is Operator.NOT_IN for demand in demands)
        names = [value for demand in demands for value in demand.values]
        other = f", or give it another value than {' or '.join(names)}" if asks_for_others else ""
        return f"remove label {key}{other}", (), True
    bounds = [
        parse_int64(demand.values[0]) or 0
        for demand in demands
        if demand.operator in (Operator.GT, Operator.LT)
    ]
    tried = [str(bound + step) for bound in bounds for step in (1, -1)]
    tried += ["true", *(f"value-{number}" for number in range(len(demands)))]
    values = [value for value in tried if meets(value)][:1]
    if not values:
        return None
    if len(demands) > 1:
        return f"label it {key}={values[0]}", values, False
    match demands[0].operator:
        case Operator.GT:
            return f"give label {key} a value above {demands[0].values[0]}", values, False
        case Operator.LT:
            return f"give label {key} a value below {demands[0].values[0]}", values, False
    return f"label it {key}", (), False


def _met_nowhere(requirement: Requirement) -> str:
    key, values = requirement.key, " or ".join(requirement.values)
    match requirement.operator:
        case Operator.IN:
            return f"no node has {key}={values}"
        case Operator.EXISTS:
            return f"no node has label {key}"
        case Operator.NOT_IN:
            return f"every node has {key}={values}"
        case Operator.DOES_NOT_EXIST:
            return f"every node has label {key}"
        case Operator.GT:
            return f"no node has {key} above {values}"
        case Operator.LT:
            return f"no node has {key} below {values}"


def _must(requirement: Requirement) -> str:
    """Say what must be."""
    values = " or ".join(requirement.values)
    match requirement.operator:
        case Operator.IN:
            return f"must be {values}"
        case Operator.NOT_IN:
            return f"must not be {values}"
        case Operator.EXISTS:
            return "must have it"
        case Operator.DOES_NOT_EXIST:
            return "must not have it"
        case Operator.GT:
            return f"must be above {values}"
        case Operator.LT:
            return f"must be below {values}"


def _misnamed(term: CompiledTerm, node: Node) -> Iterator[Detail]:
    for field in term.fields:
        if not field.matches(node.name):
            must = "must be" if field.operator is Operator.IN else "must not be"
            yield Detail(f"is named {node.name}, {must} {field.values[0]}")


# What a pod prefers.


def _sum_of_weights(nodes: NodeTable, preferences: Sequence[Preference]) -> Scores:
    scores = np.zeros(nodes.size, np.int64)
    for weight, term in preferences:
        scores += rows_of_term(nodes, term) * np.int64(weight)
    return scores


def compile_preferences(
    terms: Iterable[PreferredSchedulingTerm],
) -> tuple[Preference, ...] | Status:
    """Compile preferred terms, without those that weigh nothing or prefer nothing.

    A term that cannot be compiled is an error of the attempt.
    """
    preferences = []
    for written in terms:
        term = compile_node_selector_term(written.preference) if written.weight else None
        if term is None:
            continue
        if term.error:
            return Status.error(term.error)
        preferences.append(Preference(written.weight, term))
    return tuple(preferences)


def _preferences_of(pod: PodInfo) -> tuple[Preference, ...] | Status:
    def build() -> tuple[Preference, ...] | Status:
        affinity = pod.pod.spec.affinity
        node_affinity = affinity.node_affinity if affinity else None
        return compile_preferences(node_affinity.preferred if node_affinity else ())

    return pod.template.memo("NodeAffinity.preferences", build)
