"""Scale-down: nodes that nobody needs, and which of them go now."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from berth.insight.whatif.question import NodeChoice, Question
from berth.kube.objects.node import Node
from berth.kube.objects.resources import node_allocatable, requested
from berth.tools.autoscaler.actions import Action, MarkUnneeded, RemoveNode, Utilization
from berth.tools.autoscaler.cluster_view import ClusterView, is_ready
from berth.tools.autoscaler.drainability import pods_to_evict, why_not_drained
from berth.tools.autoscaler.node_groups import group_of, is_of_daemon_set
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.scale_up import GroupState
from berth.tools.autoscaler.simulation import Simulation

SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
NEVER: Final = float("-inf")


@dataclass(slots=True)
class Removals:
    """Nodes that are being removed, and when something of this kind last happened (monotonic)."""

    in_progress: dict[str, RemoveNode] = field(default_factory=dict)
    last_scale_up: float = NEVER
    last_delete: float = NEVER
    last_failure: float = NEVER


@dataclass
class ScaleDownPlanner:
    """Keeps since when each node is unneeded. Times are in seconds, monotonic."""

    options: AutoscalingOptions
    simulation: Simulation
    unneeded_since: dict[str, float] = field(default_factory=dict)
    unremovable: dict[str, str] = field(default_factory=dict)
    """Why the others of the groups stay, by node."""
    _recheck_at: dict[str, float] = field(default_factory=dict)
    _last: tuple[object, Set[str], Mapping[str, str]] | None = None
    """What the last question was about, and its answer."""

    def update(
        self,
        view: ClusterView,
        groups: Sequence[GroupState],
        removals: Removals,
        *,
        monotonic: float,
        now: float,
    ) -> None:
        """Find out which nodes are unneeded now. *now* is in seconds since 1970."""
        self._recheck_at = {
            name: at
            for name, at in self._recheck_at.items()
            if at > monotonic and name in view.nodes
        }
        reasons: dict[str, str] = {}
        candidates: list[str] = []
        known = {group.group.name for group in groups}
        for name, node in view.nodes.items():
            if group_of(node.labels) not in known or name in removals.in_progress:
                continue
            if name in self._recheck_at:
                reasons[name] = self.unremovable.get(name, "")
                continue
            why = self._why_ineligible(view, node, now=now)
            if why:
                reasons[name] = why
            else:
                candidates.append(name)
        candidates = self._not_below_min(view, groups, removals, candidates, reasons)
        removable, stays = self._removable(view, removals, candidates)
        recheck = self.options.unremovable_node_recheck_timeout.seconds
        for name, why in stays.items():
            reasons[name] = why
            self._recheck_at[name] = monotonic + recheck
        self.unneeded_since = {
            name: self.unneeded_since.get(name, monotonic) for name in sorted(removable)
        }
        self.unremovable = reasons

    def plan(
        self,
        view: ClusterView,
        groups: Sequence[GroupState],
        removals: Removals,
        *,
        monotonic: float,
        now: float,
    ) -> list[Action]:
        """Return the nodes that go now, and which get or lose their soft taint."""
        actions: list[Action] = []
        if not self._is_cooling_down(removals, monotonic):
            actions += self._removals(view, groups, removals, monotonic=monotonic, now=now)
        going = {action.node for action in actions if isinstance(action, RemoveNode)}
        going |= removals.in_progress.keys()
        return [*actions, *self._soft_taints(view, going)]

    def _why_ineligible(self, view: ClusterView, node: Node, *, now: float) -> str:
        if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
            return "scale down is disabled by annotation"
        if any(taint.key == TO_BE_DELETED for taint in node.spec.taints):
            return "it is being deleted"
        use = utilization_of(view, node, options=self.options)
        threshold = self.options.scale_down_utilization_threshold
        if is_ready(node) and use.share >= threshold:
            share = f"{use.resource} requested ({use.share * 100:.6g}% of allocatable)"
            return f"{share} is above the scale-down utilization threshold"
        for pod in view.pods_on.get(node.name, ()):
            if why := why_not_drained(view, pod, options=self.options, now=now):
                return why
        return ""

    def _not_below_min(
        self,
        view: ClusterView,
        groups: Sequence[GroupState],
        removals: Removals,
        candidates: Sequence[str],
        reasons: dict[str, str],
    ) -> list[str]:
        """Leave out the nodes of groups that are as small as they may be."""
        room = _room(groups, removals)
        left = []
        for name in candidates:
            if room[group_of(view.nodes[name].labels)] > 0:
                left.append(name)
            else:
                reasons[name] = "node group min size reached"
        return left

    def _removable(
        self,
        view: ClusterView,
        removals: Removals,
        candidates: Sequence[str],
    ) -> tuple[Set[str], Mapping[str, str]]:
        """Return which of *candidates* can go, all at once, and why the others stay."""
        if not candidates:
            return set(), {}
        leaving = _leaving(view, removals)
        state = (tuple(candidates), tuple(leaving.names), view.state)
        if self._last is not None and self._last[0] == state:
            return self._last[1:]
        question = Question(
            cordon_nodes=leaving,
            find_removable=NodeChoice(names=list(candidates)),
            group_by=[],
        )
        removable = self.simulation.answer(question, view.snapshot).removable
        assert removable is not None
        stays = {name: stay.why for stay in removable.stays for name in stay.nodes}
        self._last = (state, {node.node for node in removable.nodes}, stays)
        return self._last[1:]

    def _is_cooling_down(self, removals: Removals, now: float) -> bool:
        options = self.options
        return (
            not options.scale_down_enabled
            or now < removals.last_scale_up + options.scale_down_delay_after_add.seconds
            or now < removals.last_delete + options.scale_down_delay_after_delete.seconds
            or now < removals.last_failure + options.scale_down_delay_after_failure.seconds
        )

    def _removals(
        self,
        view: ClusterView,
        groups: Sequence[GroupState],
        removals: Removals,
        *,
        monotonic: float,
        now: float,
    ) -> list[RemoveNode]:
        """Return the nodes that have been unneeded for long enough, as many as may go at once."""
        room = _room(groups, removals)
        empty: list[RemoveNode] = []
        drained: list[RemoveNode] = []
        for name, since in self.unneeded_since.items():
            node = view.nodes[name]
            group = group_of(node.labels)
            if monotonic - since < self._unneeded_time(node) or room[group] <= 0:
                continue
            pods, daemons = pods_to_evict(view, name, now=now)
            evicts_daemons = (
                self.options.daemonset_eviction_for_occupied_nodes
                if pods
                else self.options.daemonset_eviction_for_empty_nodes
            )
            use = utilization_of(view, node, options=self.options)
            removal = RemoveNode(name, group, use, pods, daemons if evicts_daemons else ())
            (drained if pods else empty).append(removal)
            room[group] -= 1
        under_way = removals.in_progress.values()
        at_once = self.options.max_scale_down_parallelism - len(removals.in_progress)
        drains = self.options.max_drain_parallelism - sum(
            not removal.is_empty for removal in under_way
        )
        chosen = empty[: max(at_once, 0)]
        chosen += drained[: max(min(drains, at_once - len(chosen)), 0)]
        return self._confirmed(view, removals, chosen, monotonic)

    def _confirmed(
        self,
        view: ClusterView,
        removals: Removals,
        chosen: Sequence[RemoveNode],
        monotonic: float,
    ) -> list[RemoveNode]:
        """Return *chosen*, or none if the pods do not fit without exactly these nodes."""
        if not any(candidate.pods for candidate in chosen):
            return list(chosen)
        question = Question(
            cordon_nodes=_leaving(view, removals),
            remove_nodes=NodeChoice(names=[candidate.node for candidate in chosen]),
            group_by=[],
        )
        answer = self.simulation.answer(question, view.snapshot)
        moving = {pod.key for candidate in chosen for pod in candidate.pods}
        if moving <= answer.placements.keys():
            return list(chosen)
        at = monotonic + self.options.unremovable_node_recheck_timeout.seconds
        for candidate in chosen:
            if candidate.pods:
                self._recheck_at[candidate.node] = at
                self.unneeded_since.pop(candidate.node, None)
        return [candidate for candidate in chosen if candidate.is_empty]

    def _unneeded_time(self, node: Node) -> float:
        if is_ready(node):
            return self.options.scale_down_unneeded_time.seconds
        return self.options.scale_down_unready_time.seconds

    def _soft_taints(self, view: ClusterView, going: Set[str]) -> list[MarkUnneeded]:
        """Mark unneeded nodes, some with each scan, and unmark those that are needed again."""
        most = self.options.max_bulk_soft_taint_count
        marked = {
            name
            for name, node in view.nodes.items()
            if any(taint.key == DELETION_CANDIDATE for taint in node.spec.taints)
        }
        unneeded = self.unneeded_since.keys() - going
        wanted = sorted(unneeded - marked)[:most]
        needed = sorted(marked - self.unneeded_since.keys() - going)[:most]
        return [
            *(MarkUnneeded(name, unneeded=True) for name in wanted),
            *(MarkUnneeded(name, unneeded=False) for name in needed),
        ]


def utilization_of(view: ClusterView, node: Node, *, options: AutoscalingOptions) -> Utilization:
    """Return which share of *node* its pods request.

    Where those of DaemonSets do not count, what they request is not there for others either.
    """
    pods = view.pods_on.get(node.name, ())
    daemons = [requested(pod) for pod in pods if is_of_daemon_set(pod)]
    others = [requested(pod) for pod in pods if not is_of_daemon_set(pod)]
    has = node_allocatable(node)
    cpu, memory = has.milli_cpu, has.memory
    if options.ignore_daemonsets_utilization:
        cpu -= sum(daemon.milli_cpu for daemon in daemons)
        memory -= sum(daemon.memory for daemon in daemons)
    else:
        others += daemons
    return Utilization(
        _share(sum(other.milli_cpu for other in others), cpu),
        _share(sum(other.memory for other in others), memory),
    )


def _share(wanted: int, has: int) -> float:
    if has <= 0:
        return 1.0 if wanted else 0.0
    return wanted / has


def _room(groups: Iterable[GroupState], removals: Removals) -> dict[str, int]:
    """Return by how many nodes each group may shrink.

    Machines that are to come do not count, nor those that are being removed.
    """
    leaving = Counter(removal.group for removal in removals.in_progress.values())
    return {
        group.group.name: group.target_size
        - group.upcoming
        - leaving[group.group.name]
        - group.group.min_size
        for group in groups
    }


def _leaving(view: ClusterView, removals: Removals) -> NodeChoice:
    return NodeChoice(names=sorted(removals.in_progress.keys() & view.nodes.keys()))
