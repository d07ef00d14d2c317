"""PodTopologySpread: a pod goes where few of its like are, zone by zone or node by node."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, field_validator, model_validator

from app.framework.cycle_state import CycleState
from app.framework.default_selector import DefaultSelectors
from app.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    Hint,
)
from app.framework.handle import Handle
from app.framework.interface import (
    MAX_NODE_SCORE,
    EnqueueExtensions,
    FilterPlugin,
    PluginArgs,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Scores,
)
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.framework.spread_constraints import (
    HONOR,
    NONE,
    IncludedRows,
    SpreadConstraint,
    SpreadConstraints,
    compile_constraints,
    own_constraints,
)
from app.framework.status import SKIP, Status
from app.framework.verdict import Ints, Verdict
from app.objects.names import is_qualified_name
from app.objects.node import Node
from app.objects.pod import Pod, TopologySpreadConstraint

SKEWED: Final = Status.unschedulable("node(s) didn't match pod topology spread constraints")
MISSING_LABEL: Final = Status.unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

SYSTEM: Final = "System"
_SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(
        topology_key=HOSTNAME, max_skew=3, when_unsatisfiable="ScheduleAnyway"
    ),
    TopologySpreadConstraint(topology_key=ZONE, max_skew=5, when_unsatisfiable="ScheduleAnyway"),
)

_NO_DOMAIN: Final = 0
"""The id of the value of nodes that lack the label."""
_NO_COUNT: Final = 2**31 - 1
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
    defaulting_type: Literal["System", "List"] = SYSTEM

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


class Path(NamedTuple):
    """A domain with few pods."""

    count: int
    domain: int


@dataclass(slots=True)
class HardDomains:
    """How many pods there are to spread in each domain of a constraint, and where fewest.

    Domains are ids of label values. As in kube-scheduler only the two domains with fewest pods are
    followed when pods come and go in thought. They are enough: such a question is about one node,
    so one domain changes, and what is fewest is then that one or the better of the other two.
    """

    constraint: SpreadConstraint
    counts: Ints
    """By domain, as PreFilter found them; shared between clones."""
    domains: int
    """How many domains there are, those without pods included."""
    fewest: list[Path]
    changes: dict[int, int] = field(default_factory=dict)
    """By domain, how many pods were added in thought."""

    @classmethod
    def count(
        cls, nodes: NodeTable, constraint: SpreadConstraint, included: IncludedRows
    ) -> "HardDomains":
        ids = np.where(included.of(constraint), nodes.labels.ids(constraint.topology_key), 0)
        ids = ids.astype(np.intp)
        values = len(nodes.labels.values(constraint.topology_key))
        exists = np.bincount(ids, minlength=values) > 0
        exists[_NO_DOMAIN] = False
        counts = _sums(ids, constraint.counts(nodes), values)
        counts[_NO_DOMAIN] = 0
        left, fewest = np.where(exists, counts, _NO_COUNT), []
        for _ in range(2):
            domain = int(left.argmin())
            fewest.append(Path(int(left[domain]), domain))
            left[domain] = _NO_COUNT
        return cls(constraint, counts, int(exists.sum()), fewest)

    def change(self, domain: int, *, by: int) -> None:
        """Count pods that are added to, or with a negative *by* taken from, one domain."""
        self.changes[domain] = self.changes.get(domain, 0) + by
        changed = Path(int(self.counts[domain]) + self.changes[domain], domain)
        others = [path for path in self.fewest if path.domain != domain]
        self.fewest = sorted([changed, *others])[:2]

    def skews(self, ids: NDArray[np.int32]) -> Ints:
        """Return what the skew of each of the domains *ids* would be, with the pod in it."""
        counts = self.counts.take(ids)
        for domain, by in self.changes.items():
            counts[ids == domain] += by
        enough = self.domains >= self.constraint.min_domains
        fewest = self.fewest[0].count if enough else 0
        return counts + (self.constraint.matches_itself - fewest)

    def clone(self) -> "HardDomains":
        return HardDomains(
            self.constraint, self.counts, self.domains, list(self.fewest), dict(self.changes)
        )


class HardSpread(list[HardDomains]):
    """What PreFilter found, by constraint, as pods are added and removed in thought."""

    def clone(self) -> "HardSpread":
        return HardSpread(domains.clone() for domains in self)


class SoftDomains(NamedTuple):
    """What PreScore found about a constraint."""

    constraint: SpreadConstraint
    weight: float
    """What a pod counts: more where there are many domains, for there are few pods in each."""
    counts: Ints
    """Pods to spread per row: in the row's domain, for host names on the node itself."""


class SoftSpread(NamedTuple):
    """What PreScore found."""

    of_constraints: Sequence[SoftDomains]
    keys_required: Sequence[str]
    """Nodes that lack one of these labels are ignored."""


class PodTopologySpread(
    PreFilterPlugin,
    PreFilterExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    EnqueueExtensions,
):
    """Keeps the skew of topology spread constraints within bounds (spec §5.12).

    Rejects nodes of domains that would have ``maxSkew`` more pods than the domain with fewest, and
    prefers domains with few pods. Pods without constraints get default ones for the pods that
    their services and owner select.

    No pod is looked at: ``nodes.pod_counters`` knows how many are where.
    """

    NAME = "PodTopologySpread"
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
        self._defaults = _SYSTEM_DEFAULTS if self._system_defaulted else listed
        self._selectors = DefaultSelectors(handle.listers)

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

    # Filtering.

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        constraints = self._constraints(pod)
        if constraints.error:
            return Status.error(constraints.error)
        if not constraints.hard:
            return SKIP
        included = IncludedRows(nodes, pod.template, _keys(constraints.hard))
        found = (HardDomains.count(nodes, hard, included) for hard in constraints.hard)
        state.write(self.NAME, HardSpread(found))
        return None

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, nodes: NodeTable
    ) -> Status | None:
        self._change(state, pod, added, nodes, by=1)
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, nodes: NodeTable
    ) -> Status | None:
        self._change(state, pod, removed, nodes, by=-1)
        return None

    def _change(
        self, state: CycleState, pod: PodInfo, other: PodInfo, nodes: NodeTable, *, by: int
    ) -> None:
        """Count *other*, terminating or not, once more or less on the one row of *nodes*."""
        spread: HardSpread = state.read(self.NAME)
        keys = _keys(domains.constraint for domains in spread)
        included = IncludedRows(nodes, pod.template, keys)
        for domains in spread:
            constraint = domains.constraint
            is_counted = constraint.counted.matches(other.namespace, other.labels)
            if is_counted and included.of(constraint)[0]:
                domains.change(int(nodes.labels.ids(constraint.topology_key)[0]), by=by)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        spread: HardSpread = state.read(self.NAME)
        missing, skewed = nodes.no_rows(), nodes.no_rows()
        for domains in spread:  # a node is told the first reason only
            ids = nodes.labels.ids(domains.constraint.topology_key)
            missing |= (ids == _NO_DOMAIN) & ~skewed
            skewed |= (domains.skews(ids) > domains.constraint.max_skew) & ~missing
        of_labels = Verdict.reject(MISSING_LABEL, where=missing)
        return Verdict(of_labels.rejections + Verdict.reject(SKEWED, where=skewed).rejections)

    # Scoring.

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        constraints = self._constraints(pod)
        if constraints.error:
            return Status.error(constraints.error)
        if not constraints.soft:
            return SKIP
        # System defaults are for all nodes; whoever writes constraints means labelled nodes only.
        by_system = self._system_defaulted and not pod.pod.spec.topology_spread_constraints
        keys = () if by_system else tuple(_keys(constraints.soft))
        included = IncludedRows(nodes, pod.template, keys)
        scored = state.feasible & included.with_keys
        found = [_soft_domains(nodes, soft, included, scored=scored) for soft in constraints.soft]
        state.write(f"{self.NAME}.score", SoftSpread(found, keys))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        spread: SoftSpread = state.read(f"{self.NAME}.score")
        total = np.zeros(nodes.size)
        for constraint, weight, counts in spread.of_constraints:
            cost = counts * weight + float(constraint.max_skew - 1)
            total += np.where(nodes.labels.has(constraint.topology_key), cost, 0.0)
        scores = rounded(total)
        for key in spread.keys_required:
            scores[~nodes.labels.has(key)] = _IGNORED
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Turn costs around: ``100 * (highest + lowest - cost) / highest``; ignored nodes get 0."""
        costs = scores[scores != _IGNORED]
        highest = costs.max(initial=0)
        if highest:
            normal = MAX_NODE_SCORE * (highest + costs.min() - scores) // highest
        else:
            normal = np.full_like(scores, MAX_NODE_SCORE)
        return np.where(scores == _IGNORED, 0, normal)

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
            ClusterEventWithHint(ClusterEvent(EventResource.POD, on_pod), self.after_pod_change),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, on_node), self.after_node_change),
        ]
