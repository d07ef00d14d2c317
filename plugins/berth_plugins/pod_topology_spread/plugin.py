"""PodTopologySpread: a pod goes where few of its like are, zone by zone or node by node."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice, product
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from berth.kube.objects.names import is_qualified_name
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod, TopologySpreadConstraint
from berth.kube.objects.taints import COMPARISONS
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
from berth.scheduler.framework.key_index import ANYWHERE, Choices
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pods_by_domain import NO_DOMAIN
from berth.scheduler.framework.status import SKIP, Status
from berth.scheduler.framework.verdict import PASS, Mask, Rows, Verdict
from berth_plugins.pod_topology_spread.constraints import (
    NONE,
    SpreadConstraint,
    SpreadConstraints,
    compile_constraints,
    included_rows,
    own_constraints,
    rows_with_labels,
)
from berth_plugins.pod_topology_spread.costs import HOSTNAME, SoftDomains, rows_lacking, total
from berth_plugins.pod_topology_spread.default_selector import DefaultSelectors
from berth_plugins.pod_topology_spread.domains import HardDomains
from berth_plugins.shared.pod_keys import choices_for, has_place, keys_of

SKEWED: Final = Status.unschedulable("node(s) didn't match pod topology spread constraints")
MISSING_LABEL: Final = Status.unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM: Final = "System"
_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(
        topology_key=HOSTNAME, max_skew=3, when_unsatisfiable="ScheduleAnyway"
    ),
    TopologySpreadConstraint(topology_key=ZONE, max_skew=5, when_unsatisfiable="ScheduleAnyway"),
)

MATCH_LABEL_KEYS: Final = "MatchLabelKeysInPodTopologySpread"
"""The feature gate of ``matchLabelKeys``."""

_IGNORED: Final = -1
"""The score, until it is normalised, of nodes that lack a label; others have 0 or more."""


class DefaultConstraint(BaseModel):
    """A constraint for pods that have none; what it selects follows from each pod."""

    model_config = PluginArgs.model_config

    max_skew: int = Field(ge=1, lt=2**31)
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: tuple[str, ...] = ()

    @field_validator("topology_key")
    @classmethod
    def _check_key(cls, key: str) -> str:
        if not is_qualified_name(key):
            raise ValueError("not a label key")
        return key

    @field_validator("label_selector")
    @classmethod
    def _check_selector(cls, selector: dict[str, Any] | None) -> None:
        if selector is not None:
            raise ValueError("Forbidden: it is deduced for each pod")

    def written(self) -> TopologySpreadConstraint:
        """Return the constraint as a pod would have it."""
        return TopologySpreadConstraint(
            max_skew=self.max_skew,
            topology_key=self.topology_key,
            when_unsatisfiable=self.when_unsatisfiable,
            min_domains=self.min_domains,
            node_affinity_policy=self.node_affinity_policy,
            node_taints_policy=self.node_taints_policy,
        )


class PodTopologySpreadArgs(PluginArgs):
    """The constraints of pods that have none: the system's, or those that are listed."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    """Constraints for pods without their own; only with ``List``."""
    defaulting_type: Literal["System", "List"] = SYSTEM
    """``System`` uses the built-in constraints, ``List`` those in ``defaultConstraints``."""

    @field_validator("default_constraints")
    @classmethod
    def _check_unique(cls, given: tuple[DefaultConstraint, ...]) -> tuple[DefaultConstraint, ...]:
        seen = set()
        for i, constraint in enumerate(given):
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                raise ValueError(f"defaultConstraints[{i}]: Duplicate value: {', '.join(pair)}")
            seen.add(pair)
        return given

    @model_validator(mode="after")
    def _check(self) -> "PodTopologySpreadArgs":
        if self.defaulting_type == SYSTEM and self.default_constraints:
            raise ValueError(
                f"defaultingType: Invalid value: {SYSTEM!r}: there are defaultConstraints"
            )
        return self


class HardSpread(list[HardDomains]):
    """What PreFilter found, by constraint, as pods are added and removed in thought."""

    answer: tuple[NodeTable, Verdict] | None = None
    """What Filter says of the table that PreFilter saw, as long as no pods are; not cloned."""

    def clone(self) -> "HardSpread":
        return HardSpread(domains.clone() for domains in self)

    def take_rows(self, rows: Rows) -> "HardSpread":
        return HardSpread(domains.take_rows(rows) for domains in self)


class SoftSpread(NamedTuple):
    """What PreScore found."""

    of_constraints: Sequence[SoftDomains]
    keys_required: tuple[str, ...]
    """Nodes that lack one of these labels are ignored."""


class PodTopologySpread(
    PreFilterPlugin,
    PreFilterExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    EnqueueExtensions,
    MovesPods,
):
    """Keeps the skew of topology spread constraints within bounds (spec §5.12).

    Rejects nodes of domains that would have ``maxSkew`` more pods than the domain with fewest, and
    prefers domains with few pods. Pods without constraints get default ones for the pods that
    their services and owner select.

    No pod is looked at: ``nodes.pod_counters`` knows how many are where.
    """

    NAME = "PodTopologySpread"
    WITHOUT_PRE_FILTER = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    WITHOUT_PRE_SCORE = 'error reading "PreScorePodTopologySpread" from cycleState: not found'
    DECIDES_BY_SIGNATURE = True
    INPUTS = Input.LABELS
    ARGS = PodTopologySpreadArgs

    def __init__(
        self, args: PodTopologySpreadArgs | None = None, handle: Handle | None = None
    ) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("PodTopologySpread: needs a handle to look up services and owners")
        args = args or PodTopologySpreadArgs()
        self._system_defaulted = args.defaulting_type == SYSTEM
        listed = tuple(constraint.written() for constraint in args.default_constraints)
        if MATCH_LABEL_KEYS not in handle.features:  # those of pods are gone already
            listed = tuple(
                msgspec.structs.replace(constraint, match_label_keys=()) for constraint in listed
            )
        self._defaults = _SYSTEM_DEFAULTS if self._system_defaulted else listed
        self._selectors = DefaultSelectors(handle.listers)
        self._comparisons = COMPARISONS in handle.features

    def _constraints(self, pod: PodInfo) -> SpreadConstraints:
        """Return the pod's own constraints, even if all are of one kind, or else the defaults."""
        template = pod.template
        if pod.pod.spec.topology_spread_constraints:
            return own_constraints(template)
        selector = self._selectors.of(pod)
        if selector.is_empty:
            return NONE
        return template.memo(
            (self, selector),
            lambda: compile_constraints(self._defaults, template, selector=selector),
        )

    def _included(
        self, nodes: NodeTable, pod: PodInfo, constraint: SpreadConstraint, keys: tuple[str, ...]
    ) -> Mask:
        return included_rows(
            nodes, pod.template, constraint, keys=keys, comparisons=self._comparisons
        )

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        constraints = self._constraints(pod)
        return constraints if constraints is NONE else None

    # Filtering.

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        constraints = self._constraints(pod)
        if constraints.error:
            return Status.error(constraints.error)
        if not constraints.hard:
            return SKIP
        keys = _keys(constraints.hard)
        spread, skewed = HardSpread(), []
        for hard in constraints.hard:
            pods = hard.pods_by_domain(nodes, among=self._included(nodes, pod, hard, keys))
            domains = HardDomains.of(hard, pods)
            spread.append(domains)
            skewed.append(pods.rows_over(domains.limit))
        spread.answer = nodes, _verdict(nodes, keys, skewed)
        state.write(self.NAME, spread)
        return None

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
        """Count *pods*, terminating or not, once more or less on those of *rows* that count."""
        spread: HardSpread = state.read(self.NAME)
        spread.answer = None
        keys = _keys(domains.constraint for domains in spread)
        for domains in spread:
            constraint = domains.constraint
            included = self._included(nodes, pod, constraint, keys)
            counted = pods.per_template(constraint.is_about)
            domains.change(nodes, rows, by=by * counted * included[rows])

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        spread: HardSpread = state.read(self.NAME)
        if spread.answer is not None and spread.answer[0] is nodes:
            return spread.answer[1]
        keys = _keys(domains.constraint for domains in spread)
        skewed = [domains.skews(nodes) > domains.constraint.max_skew for domains in spread]
        return _verdict(nodes, keys, skewed)

    def explain(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Detail]:
        spread: HardSpread = state.read(self.NAME)
        for domains in spread:
            yield from _objections(domains, nodes, row)

    def moves(
        self, change: Change, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> Iterator[Move]:
        """Name pods of the domain that count, as many as are too many."""
        spread: HardSpread = state.read(self.NAME)
        keys = _keys(domains.constraint for domains in spread)
        for domains in spread:
            constraint = domains.constraint
            key = constraint.topology_key
            ids = nodes.labels.ids(key)
            if change.what != f"{key}={nodes.labels.values(key)[ids[row]]}":
                continue
            counts = self._included(nodes, pod, constraint, keys) & (ids == ids[row])
            over = int(domains.skews(nodes, slice(row, row + 1))[0]) - constraint.max_skew
            counted = (
                Move(other_row, info)
                for other_row in np.flatnonzero(counts & nodes.exists).tolist()
                for info in nodes.pods[other_row].values()
                if not info.is_terminating and constraint.is_about(info.template)
            )
            yield from islice(counted, max(over, 0))

    # Scoring.

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        constraints = self._constraints(pod)
        if constraints.error:
            return Status.error(constraints.error)
        if not constraints.soft:
            return SKIP
        # System defaults suit any node; other constraints mean nodes that have all the labels.
        by_system = self._system_defaulted and not pod.pod.spec.topology_spread_constraints
        keys = () if by_system else _keys(constraints.soft)
        scored = state.feasible & rows_with_labels(nodes, keys)
        domains = [
            SoftDomains.over(
                nodes, soft, included=self._included(nodes, pod, soft, keys), scored=scored
            )
            for soft in constraints.soft
        ]
        state.write(f"{self.NAME}.score", SoftSpread(domains, keys))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        spread: SoftSpread = state.read(f"{self.NAME}.score")
        scores = total(nodes, spread.of_constraints)
        ignored = rows_lacking(nodes, spread.keys_required)
        if ignored is not None:
            scores[ignored] = _IGNORED
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Turn costs around: ``100 * (highest + lowest - cost) / highest``; ignored nodes get 0."""
        highest = int(scores.max(initial=0))
        if not highest:
            return np.where(scores == _IGNORED, 0, MAX_NODE_SCORE)
        lowest, ignored = int(scores.min()), None
        if lowest == _IGNORED:
            ignored = scores == _IGNORED
            lowest = int(scores.min(where=~ignored, initial=highest))
        normal: Scores = MAX_NODE_SCORE * (highest + lowest - scores) // highest
        return normal if ignored is None else np.where(ignored, 0, normal)

    # Events.

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        on_pod = (
            ActionType.ADD
            | ActionType.UPDATE_POD_LABEL
            | ActionType.UPDATE_POD_TOLERATION
            | ActionType.DELETE
        )
        on_node = (
            ActionType.ADD
            | ActionType.DELETE
            | ActionType.UPDATE_NODE_LABEL
            | ActionType.UPDATE_NODE_TAINT
        )
        return [
            ClusterEventWithHint(
                ClusterEvent(EventResource.POD, on_pod),
                self.after_pod_change,
                (POD_INDEX,),
            ),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, on_node), self.after_node_change),
        ]

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue if a pod with a place came to be, or ceased to be, one of those to spread.

        Of the waiting pod itself new tolerations count too, if a constraint looks at taints.
        """
        changed = [version for version in (old, new) if version is not None]
        if not all(_is_involved(version, pod) for version in changed):
            return QueueingHint.SKIP
        constraints = self._constraints(PodInfo(pod))
        if constraints.error:
            return QueueingHint.QUEUE
        if old is None or new is None:
            (other,) = changed
            labels = other.metadata.labels
            is_counted = any(c.counted.selector.matches(labels) for c in constraints.hard)
            return QueueingHint.QUEUE if is_counted else QueueingHint.SKIP
        if (
            new.metadata.uid == pod.metadata.uid
            and new.spec.tolerations != old.spec.tolerations
            and any(constraint.honors_taints for constraint in constraints.hard)
        ):
            return QueueingHint.QUEUE
        before, after = old.metadata.labels, new.metadata.labels
        selectors = [constraint.counted.selector for constraint in constraints.hard]
        flipped = any(s.matches(before) != s.matches(after) for s in selectors)
        return QueueingHint.QUEUE if flipped else QueueingHint.SKIP

    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue if a domain got or lost a node, or the taints of one of its nodes changed."""
        constraints = self._constraints(PodInfo(pod))
        if constraints.error:
            return QueueingHint.QUEUE
        keys = _keys(constraints.hard)
        before, after = _domains_of(old, keys), _domains_of(new, keys)
        if before != after:
            return QueueingHint.QUEUE
        retainted = old is not None and new is not None and old.spec.taints != new.spec.taints
        return QueueingHint.QUEUE if after is not None and retainted else QueueingHint.SKIP


def _verdict(nodes: NodeTable, keys: tuple[str, ...], skewed: Sequence[Mask]) -> Verdict:
    """Return what constraints hold against rows that lack their labels or would be *skewed*.

    A node is told the first reason only.
    """
    lacking = rows_lacking(nodes, keys)
    if lacking is None:
        where = skewed[0] if len(skewed) == 1 else np.logical_or.reduce(skewed)
        return Verdict.reject(SKEWED, where=where) if np.count_nonzero(where) else PASS
    missing, where = nodes.no_rows(), nodes.no_rows()
    for key, of_constraint in zip(keys, skewed, strict=True):
        missing |= ~nodes.labels.has(key) & ~where
        where |= of_constraint & ~missing
    of_labels = Verdict.reject(MISSING_LABEL, where=missing)
    return Verdict(of_labels.rejections + Verdict.reject(SKEWED, where=where).rejections)


def _objections(domains: HardDomains, nodes: NodeTable, row: int) -> Iterator[Detail]:
    """Tell what one constraint holds against *row*: it has no domain, or too many pods there."""
    constraint = domains.constraint
    key, ids = constraint.topology_key, nodes.labels.ids(constraint.topology_key)
    domain = int(ids[row])
    if domain == NO_DOMAIN:
        change = label_change(key, f"label it {key}")
        yield Detail(f"has no label {key} to spread by", change)
        return
    at = slice(row, row + 1)
    skew = int(domains.skews(nodes, at)[0])
    if skew <= constraint.max_skew:
        return
    name = f"{key}={nodes.labels.values(key)[domain]}"
    count = int(domains.counts_of(nodes, at)[0])
    fewest, least = domains.fewest(nodes, row)
    elsewhere = f"{key}={nodes.labels.values(key)[least]} has {fewest}"
    if domains.domains < constraint.min_domains:
        elsewhere = f"there are {domains.domains} of {constraint.min_domains} minDomains"
    over = skew - constraint.max_skew
    change = Change(
        kind=ChangeKind.MOVE_PODS,
        what=name,
        amount=over,
        shortfall=over / skew,
        words=f"take {over} of the pods to spread out of {name}",
    )
    yield Detail(
        f"{name} has {count} of the pods to spread, {elsewhere},"
        f" with this one skew {skew}: maxSkew is {constraint.max_skew}",
        change,
    )


def _keys(constraints: Iterable[SpreadConstraint]) -> tuple[str, ...]:
    return tuple(constraint.topology_key for constraint in constraints)


def _is_involved(changed: Pod, pod: Pod) -> bool:
    """Whether *changed* is the waiting *pod*, or one of its namespace that has a place."""
    same_namespace = changed.metadata.namespace == pod.metadata.namespace
    return changed.metadata.uid == pod.metadata.uid or (has_place(changed) and same_namespace)


def _domains_of(node: Node | None, keys: Iterable[str]) -> tuple[str, ...] | None:
    """Return the domain of *node* for each of *keys*; None if it is in none of some."""
    labels = node.metadata.labels if node is not None else {}
    if node is None or any(key not in labels for key in keys):
        return None
    return tuple(labels[key] for key in keys)


# Finding the waiting pods that spread a pod which came, changed or went.


def _spread(pod: PodInfo) -> Choices:
    """Return how to file what looks for a pod that any hard constraint of *pod* itself spreads.

    Default constraints go by services and controllers, which may change.
    """
    if not pod.pod.spec.topology_spread_constraints:
        return ANYWHERE
    constraints = own_constraints(pod.template)
    if constraints.error:
        return ANYWHERE
    spread = dict.fromkeys(constraint.counted for constraint in constraints.hard)
    choices = [choices_for(counted.namespaces, counted.selector) for counted in spread]
    return [tuple(chain.from_iterable(one_of_each)) for one_of_each in product(*choices)]


def _before_and_after(old: Pod | None, new: Pod | None) -> Iterable[Hashable]:
    versions = [version for version in (old, new) if version is not None]
    return chain.from_iterable(map(keys_of, versions)) if all(map(has_place, versions)) else ()


POD_INDEX: Final = HintIndex(_spread, _before_and_after)
