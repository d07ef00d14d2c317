"""Topology spread constraints, compiled from what users write, and what they count (spec §5.12)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from berth.framework.node_table import NodeTable
from berth.framework.pod_counters import PodMatcher
from berth.framework.pod_info import PodTemplate
from berth.framework.verdict import Ints, Mask
from berth.objects.pod import TopologySpreadConstraint
from berth.objects.selectors import Selector, compile_selector, selector_from_map
from berth_plugins.shared.node_rows import rows_repelling, rows_required

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """How evenly the pods of a selector are to be spread over the values of a node label."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    """Whether only nodes that the pod's nodeSelector and node affinity allow are looked at."""
    honors_taints: bool
    """Whether only nodes whose taints the pod tolerates are looked at."""
    counted: PodMatcher
    """The pods to spread: in the pod's namespace, not terminating."""
    matches_itself: bool
    """Whether the pod that has the constraint is one of those to spread."""

    def is_about(self, template: PodTemplate) -> bool:
        """Whether pods of *template* are to be spread, as long as they do not terminate."""
        meta = template.pod.metadata
        return self.counted.matches(meta.namespace, meta.labels)

    def counts(self, nodes: NodeTable) -> Ints:
        """Return, per row, how many pods there are to spread.

        A selector that matches everything finds none, as in kube-scheduler.
        """
        if self.counted.selector.is_empty:
            return np.zeros(nodes.size, np.int64)
        return nodes.pod_counters.counts(self.counted)


@dataclass(frozen=True, slots=True)
class SpreadConstraints:
    """The constraints of one pod, in the order in which they are written."""

    hard: tuple[SpreadConstraint, ...] = ()
    """Those with DoNotSchedule."""
    soft: tuple[SpreadConstraint, ...] = ()
    """Those with ScheduleAnyway."""
    error: str = ""
    """What is wrong with a constraint as written; there are no others then."""


NONE = SpreadConstraints()


def own_constraints(template: PodTemplate) -> SpreadConstraints:
    """Return the constraints that pods of *template* are written with."""
    return template.memo(
        "own spread constraints",
        lambda: compile_constraints(template.pod.spec.topology_spread_constraints, template),
    )


def compile_constraints(
    written: Iterable[TopologySpreadConstraint],
    template: PodTemplate,
    *,
    selector: Selector | None = None,
) -> SpreadConstraints:
    """Compile constraints for pods of *template*; *selector* takes the place of theirs.

    As in kube-scheduler, one that says neither DoNotSchedule nor ScheduleAnyway is passed over.
    """
    hard: list[SpreadConstraint] = []
    soft: list[SpreadConstraint] = []
    lists = {DO_NOT_SCHEDULE: hard, SCHEDULE_ANYWAY: soft}
    for constraint in written:
        if constraint.when_unsatisfiable not in lists:
            continue
        try:
            compiled = _compile(constraint, template, selector)
        except ValueError as exc:
            key = constraint.topology_key
            return SpreadConstraints(error=f"topology spread constraint on {key!r}: {exc}")
        lists[constraint.when_unsatisfiable].append(compiled)
    return SpreadConstraints(tuple(hard), tuple(soft))


def _compile(
    written: TopologySpreadConstraint, template: PodTemplate, selector: Selector | None
) -> SpreadConstraint:
    namespace, labels = template.pod.metadata.namespace, template.pod.metadata.labels
    if selector is None:
        selector = compile_selector(written.label_selector)
        same = {key: labels[key] for key in written.match_label_keys if key in labels}
        if same:
            selector = selector.and_also(selector_from_map(same))
    return SpreadConstraint(
        topology_key=written.topology_key,
        max_skew=written.max_skew,
        min_domains=1 if written.min_domains is None else written.min_domains,
        honors_affinity=(written.node_affinity_policy or HONOR) == HONOR,
        honors_taints=written.node_taints_policy == HONOR,
        counted=PodMatcher(frozenset({namespace}), selector, skip_terminating=True),
        matches_itself=selector.matches(labels),
    )


def rows_with_labels(nodes: NodeTable, keys: Iterable[str]) -> Mask:
    """Return the rows that have all labels *keys*."""
    found = nodes.exists
    for key in keys:
        found = found & nodes.labels.has(key)
    return found


def included_rows(
    nodes: NodeTable,
    template: PodTemplate,
    constraint: SpreadConstraint,
    *,
    among: Mask,
    comparisons: bool = False,
) -> Mask:
    """Return the rows *among* some that *constraint* looks at, by its inclusion policies.

    *comparisons* as in :func:`berth.objects.taints.tolerates`.
    """
    required = template.required_node_affinity
    if constraint.honors_affinity and required is not None:
        among = among & rows_required(nodes, required)
    if constraint.honors_taints:
        repelling = rows_repelling(nodes, template, comparisons=comparisons)
        if repelling is not None:
            among = among & ~repelling
    return among
