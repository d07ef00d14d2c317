"""DefaultPreemption: a pod that fits nowhere may have pods of lower priority evicted."""

from collections.abc import Sequence
from typing import Final, Self

import numpy as np
from pydantic import Field, model_validator

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup, group_of, group_to_wait_with
from berth.runtime.release import Behaviour
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    EnqueueExtensions,
    FilterRunner,
    PluginArgs,
    PodGroupAttempt,
    PodGroupPostFilterPlugin,
    PodGroupPostFilterResult,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_groups import GROUPS_AS_ENTITIES
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import is_leaving_for_preemption
from berth.scheduler.framework.preemption.disruption_budgets import (
    STOPS_AT_FIRST_VIOLATION,
    DisruptionBudgets,
)
from berth.scheduler.framework.preemption.select_candidate import select_candidate
from berth.scheduler.framework.preemption.victim_units import VictimUnits
from berth.scheduler.framework.status import Code, GatedUntilTold, Status
from berth.scheduler.framework.verdict import Rows
from berth_plugins.default_preemption.cached_selections import KnownPreemptors
from berth_plugins.default_preemption.dry_run import DryRun
from berth_plugins.default_preemption.pod_group import PodGroupPreemption
from berth_plugins.default_preemption.ranked_pods import RankedPods

GENERIC_WORKLOAD: Final = "GenericWorkload"
TOPOLOGY_AWARE: Final = "TopologyAwareWorkloadScheduling"
WORKLOAD_AWARE: Final = "WorkloadAwarePreemption"
STILL_EVICTING: Final = GatedUntilTold.unresolvable(
    "waiting for the preemption for this pod to be finished"
)
"""The scheduler, which evicts the victims, tells the queue when this ends."""
STILL_EVICTING_FOR_GROUP: Final = Status.unresolvable(
    "waiting for the preemption for this pod group to be finished"
)


class DefaultPreemptionArgs(PluginArgs):
    """How many candidates are enough, of the nodes that preemption could help on."""

    min_candidate_nodes_percentage: int = Field(default=10, ge=0, le=100)
    """Minimum share of nodes to examine, in percent."""
    min_candidate_nodes_absolute: int = Field(default=100, ge=0)
    """Minimum number of nodes to examine."""

    @model_validator(mode="after")
    def _check(self) -> "DefaultPreemptionArgs":
        if not self.min_candidate_nodes_percentage and not self.min_candidate_nodes_absolute:
            raise ValueError(
                "minCandidateNodesPercentage and minCandidateNodesAbsolute cannot both be 0"
            )
        return self


TELLS_PLACEMENT: Final = Behaviour(
    "1.37",
    "N3.1",
    "The condition and the event of a pod that preempts others name the node and the number of"
    " victims.",
)


class DefaultPreemption(
    PostFilterPlugin, PodGroupPostFilterPlugin, PreEnqueuePlugin, EnqueueExtensions
):
    """Nominates a pod to the node where evictions make room for it at the least cost (spec §6).

    While its victims are being evicted the pod is kept out of the queue.
    """

    NAME = "DefaultPreemption"
    DECIDES_BY_SIGNATURE = True
    ARGS = DefaultPreemptionArgs

    def for_deferred_resizes(self) -> Self:
        return self

    def __init__(
        self, args: DefaultPreemptionArgs | None = None, handle: Handle | None = None
    ) -> None:
        super().__init__(args, handle)
        if handle is None:
            raise TypeError("DefaultPreemption: needs a handle to look up pods and budgets")
        args = args or DefaultPreemptionArgs()
        self._percentage = args.min_candidate_nodes_percentage
        self._absolute = args.min_candidate_nodes_absolute
        self._handle = handle
        self._tells = TELLS_PLACEMENT in handle.features
        self._budgets = DisruptionBudgets(
            handle.listers.pod_disruption_budgets,
            stops_at_first_violation=STOPS_AT_FIRST_VIOLATION in handle.features,
        )
        self._ranked_pods = RankedPods()
        self._known = KnownPreemptors()
        self._of_groups = PodGroupPreemption(handle, self._budgets)
        self._units: VictimUnits | None = None
        if GENERIC_WORKLOAD in handle.features and GROUPS_AS_ENTITIES in handle.features:
            self._units = self._of_groups.units

    def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        filters: FilterRunner,
    ) -> PostFilterResult:
        current = self._handle.pod(pod.key)
        if current is None:
            return PostFilterResult(Status.error(f'preemption: pod "{pod.name}" not found'))
        if current is not pod.pod:
            pod = PodInfo(current)
        refusal = self._refusal_of_group(pod.pod)
        if refusal:
            return PostFilterResult(Status.unschedulable(f"preemption: {refusal}"))
        # A pod that runs waits for victims on its node, and is nominated to none. Guess (1.37 spec
        # N12.2): KEP-5836 says so of the next stage of the gate.
        nominated = pod.pod.spec.node_name or self._handle.nominated_node(pod.uid)
        is_eligible, reason = pod_eligible_to_preempt_others(
            pod, nodes, diagnosis, nominated=nominated
        )
        if not is_eligible:
            return PostFilterResult(Status.unschedulable(f"preemption: {reason}"))
        started = self._handle.clock.monotonic()
        result = self._select(pod, nodes, state, diagnosis, filters, nominated=nominated)
        code = Code.SUCCESS if result.status is None else result.status.code
        seconds = self._handle.clock.monotonic() - started
        self._handle.outcomes.evaluated_preemption(code.label, seconds=seconds)
        return result

    def _select(
        self,
        pod: PodInfo,
        nodes: NodeTable,
        state: CycleState,
        diagnosis: Diagnosis,
        filters: FilterRunner,
        *,
        nominated: str,
    ) -> PostFilterResult:
        """Choose the node where evictions for *pod* cost least."""
        dry_run = DryRun(
            pod,
            nodes,
            state,
            filters,
            self._ranked_pods,
            self._budgets,
            self._known,
            self._units if len(self._handle.pod_groups) else None,
        )
        rows = self._nodes_where_preemption_might_help(nodes, diagnosis)
        preemption = dry_run.dry_run_preemption(
            rows, num_candidates=self._num_candidates(len(rows))
        )
        if preemption.candidates:
            node = pod.pod.status.nominated_node_name or nominated
            preemption = select_candidate(preemption, self._handle.rng, nominated=node)
            assert preemption.chosen is not None
            chosen = preemption.chosen.node
            return PostFilterResult(None, chosen, preemption, tells_placement=self._tells)
        errors = [s for s in preemption.rejected.statuses.values() if s.code is Code.ERROR]
        if errors:
            status = Status.error(f"preemption: {aggregated(errors)}")
            return PostFilterResult(status, preemption=preemption)
        status = Status.unschedulable(f"preemption: {preemption.rejected.message()}")
        return PostFilterResult(status, nominated_node="", preemption=preemption)

    async def pod_group_post_filter(
        self, group: PodGroup, attempt: PodGroupAttempt
    ) -> PodGroupPostFilterResult:
        return await self._of_groups.run(group, attempt)

    def _refusal_of_group(self, pod: Pod) -> str:
        """Return why a pod of a group may not preempt by itself; empty if it may (spec G8)."""
        features = self._handle.features
        if group_to_wait_with(pod) is None:
            return ""
        if TOPOLOGY_AWARE in features and GROUPS_AS_ENTITIES not in features:
            group = self._group_of(pod)
            if group is None:
                return "pod group for pod not found"
            if group.spec.scheduling_constraints is not None:
                return "not eligible due to placement-based pod group scheduling limitation"
        if WORKLOAD_AWARE in features:
            return "not eligible due to workload aware preemption enabled"
        return ""

    def _group_of(self, pod: Pod) -> PodGroup | None:
        key = group_of(pod)
        groups = self._handle.listers.pod_groups
        return None if key is None else groups.get(key.namespace, key.name)

    def _root_of(self, pod: Pod) -> PodGroup | None:
        """Return the group that preempts for *pod*: the root of its tree (1.37 spec N11)."""
        key = group_of(pod)
        return None if key is None else self._handle.pod_groups.hierarchy.root(key)

    def _nodes_where_preemption_might_help(self, nodes: NodeTable, diagnosis: Diagnosis) -> Rows:
        """Return the rows that evictions could help on, starting somewhere among them."""
        rows: Rows = nodes.order[diagnosis.rows_with(Code.UNSCHEDULABLE, nodes)[nodes.order]]
        offset = self._handle.rng.randrange(len(rows)) if len(rows) else 0
        return np.concatenate((rows[offset:], rows[:offset]))

    def _num_candidates(self, num_nodes: int) -> int:
        """Return how many candidates are enough among *num_nodes* (spec §6.2)."""
        wanted = max(num_nodes * self._percentage // 100, self._absolute)
        return min(num_nodes, wanted)

    # While victims are leaving.

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if WORKLOAD_AWARE in self._handle.features and group_to_wait_with(pod.pod) is not None:
            group = self._root_of(pod.pod)
            is_preempting = group is not None and self._handle.is_preempting(group.metadata.uid)
            return STILL_EVICTING_FOR_GROUP if is_preempting else None
        return STILL_EVICTING if self._handle.is_preempting(pod.uid) else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return [ClusterEventWithHint(pod_gone, after_pod_deletion)]


def after_pod_deletion(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    """Skip: the event is registered only so that gated pods are looked at again."""
    return QueueingHint.SKIP


def aggregated(errors: Sequence[Status]) -> str:
    """Return each text once, in brackets if there are several."""
    texts = list(dict.fromkeys(status.message for status in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


# Eligibility to preempt others now (spec §6.1).


def pod_eligible_to_preempt_others(
    pod: PodInfo, nodes: NodeTable, diagnosis: Diagnosis, *, nominated: str = ""
) -> tuple[bool, str]:
    """Say whether *pod* may preempt, and if not, why.

    Victims that are still leaving the pod's nominated node will make room by themselves, unless
    the pod cannot run there any more whoever leaves. That is the node its status tells, else
    *nominated*: a nomination may not have come to the API server yet, or have been lost.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return False, "not eligible due to preemptionPolicy=Never."
    row = nodes.row_of.get(pod.pod.status.nominated_node_name or nominated)
    if row is None:
        return True, ""
    status = diagnosis.status_of(row) or diagnosis.absent
    if status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return True, ""
    for other in nodes.pods[row].values():
        if other.priority < pod.priority and is_leaving_for_preemption(other.pod):
            return False, "not eligible due to a terminating pod on the nominated node."
    return True, ""
