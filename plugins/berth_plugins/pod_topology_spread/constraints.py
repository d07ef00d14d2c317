"""Topology spread constraints, compiled from what users write, and what they count (spec §5.12)."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from berth.kube.objects.pod import TopologySpreadConstraint
from berth.kube.objects.selectors import NOTHING, Selector, compile_selector, selector_from_map
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_counters import PodMatcher
from berth.scheduler.framework.pod_info import PodTemplate
from berth.scheduler.framework.pods_by_domain import PodsByDomain
from berth.scheduler.framework.verdict import Ints, Mask
from berth_plugins.shared.node_rows import rows_repelling, rows_required

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"


class SpreadConstraint(msgspec.Struct, frozen=True):
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

    def pods(self, nodes: NodeTable) -> Ints:
        """Return, per row, how many pods there are to spread."""
        return nodes.pod_counters.counts(self._found)

    def pods_by_domain(self, nodes: NodeTable, *, among: Mask) -> PodsByDomain:
        """Return, per domain, how many pods there are to spread on the rows *among*."""
        counters = nodes.pod_counters
        return counters.by_domain(self._found, nodes.labels, self.topology_key, among=among)

    @property
    def _found(self) -> PodMatcher:
        """The pods that are found: a selector that matches everything finds none, as upstream."""
        return NO_PODS if self.counted.selector.is_empty else self.counted


class SpreadConstraints(msgspec.Struct, frozen=True):
    """The constraints of one pod, in the order in which they are written."""

    hard: tuple[SpreadConstraint, ...] = ()
    """Those with DoNotSchedule."""
    soft: tuple[SpreadConstraint, ...] = ()
    """Those with ScheduleAnyway."""
    error: str = ""
    """What is wrong with a constraint as written; there are no others then."""


NONE = SpreadConstraints()
NO_PODS: Final = PodMatcher(frozenset(), NOTHING, skip_terminating=True)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[TopologySpreadConstraint, ...]).decode


def own_constraints(template: PodTemplate) -> SpreadConstraints:
    """Return the constraints that pods of *template* are written with."""
    written = template.pod.spec.topology_spread_constraints
    return template.memo("own spread constraints", lambda: compile_constraints(written, template))


def compile_constraints(
    written: Iterable[TopologySpreadConstraint],
    template: PodTemplate,
    *,
    selector: Selector | None = None,
) -> SpreadConstraints:
    """Compile constraints for pods of *template*; *selector* takes the place of theirs.

    What was compiled before is looked up by content. As in kube-scheduler, one that says neither
    DoNotSchedule nor ScheduleAnyway is passed over.
    """
    meta = template.pod.metadata
    return _compile_all(_encode(written), meta.namespace, tuple(meta.labels.items()), selector)


@lru_cache(maxsize=4096)
def _compile_all(
    encoded: bytes,
    namespace: str,
    of_pod: tuple[tuple[str, str], ...],
    selector: Selector | None,
) -> SpreadConstraints:
    """Compile encoded constraints: bytes can be a key, what they encode cannot."""
    labels = dict(of_pod)
    hard: list[SpreadConstraint] = []
    soft: list[SpreadConstraint] = []
    lists = {DO_NOT_SCHEDULE: hard, SCHEDULE_ANYWAY: soft}
    for constraint in _decode(encoded):
        if constraint.when_unsatisfiable not in lists:
            continue
        try:
            compiled = _compile(constraint, namespace, labels, selector)
        except ValueError as exc:
            key = constraint.topology_key
            return SpreadConstraints(error=f"topology spread constraint on {key!r}: {exc}")
        lists[constraint.when_unsatisfiable].append(compiled)
    return SpreadConstraints(tuple(hard), tuple(soft))


def _compile(
    written: TopologySpreadConstraint,
    namespace: str,
    labels: Mapping[str, str],
    selector: Selector | None,
) -> SpreadConstraint:
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


def rows_with_labels(nodes: NodeTable, keys: tuple[str, ...]) -> Mask:
    """Return the rows that have all labels *keys*. Not to be changed."""

    def find() -> Mask:
        rows = nodes.exists.copy()
        for key in keys:
            rows &= nodes.labels.has(key)
        return rows

    return nodes.kept(("rows with labels", keys), find)


def included_rows(
    nodes: NodeTable,
    template: PodTemplate,
    constraint: SpreadConstraint,
    *,
    keys: tuple[str, ...],
    comparisons: bool = False,
) -> Mask:
    """Return the rows with labels *keys* that *constraint*'s inclusion policies leave.

    Not to be changed; the same array until a node changes. *comparisons* as in
    :func:`berth.kube.objects.taints.tolerates`.
    """
    required = template.required_node_affinity if constraint.honors_affinity else None
    tolerations = template.pod.spec.tolerations if constraint.honors_taints else None
    labelled = rows_with_labels(nodes, keys)
    if required is None and tolerations is None:
        return labelled

    def find() -> Mask:
        among = labelled
        if required is not None:
            among = among & rows_required(nodes, required)
        if tolerations is not None:
            repelling = rows_repelling(nodes, template, comparisons=comparisons)
            if repelling is not None:
                among = among & ~repelling
        return among

    return nodes.kept(("included rows", keys, required, tolerations), find)
