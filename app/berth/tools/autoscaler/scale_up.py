"""Scale-up: groups that grow, and for whom."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from berth.cluster.times import seconds_of
from berth.insight.whatif.question import (
    MOST_NODES,
    AddedNodes,
    FindNodes,
    NodeChoice,
    PodChoice,
    Question,
)
from berth.kube.objects.pod import Pod
from berth.kube.objects.resources import incoming_requested
from berth.tools.autoscaler.actions import Action, NotTriggered, ScaleUp
from berth.tools.autoscaler.backoff import Backoff
from berth.tools.autoscaler.cluster_view import ClusterView
from berth.tools.autoscaler.expanders import Option, best_option
from berth.tools.autoscaler.node_groups import NodeGroup, is_of_daemon_set
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.simulation import Simulation

MAX_SIZE_REACHED: Final = "max node group size reached"
IN_BACKOFF: Final = "in backoff after failed scale-up"
MAX_TOTAL_REACHED: Final = "max total nodes in cluster reached"


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group at the moment of a scan."""

    group: NodeGroup
    target_size: int
    upcoming: int = 0
    """Machines that were asked for and are no nodes yet."""
    backoff: Backoff | None = None


@dataclass(frozen=True, slots=True)
class ScaleUpPlan:
    """What came of it."""

    actions: Sequence[Action] = ()
    pending: Sequence[str] = ()
    """Pods that no node has room for, those included that upcoming nodes are for."""
    unhelped: Sequence[str] = ()
    """Of them, those that a scale-up was looked for."""


@dataclass
class ScaleUpPlanner:
    """Finds the scale-up that helps. What it found nothing for is not looked at again in vain."""

    options: AutoscalingOptions
    simulation: Simulation
    rng: random.Random
    _last: tuple[object, ScaleUpPlan] | None = field(default=None, init=False)

    def plan(
        self, view: ClusterView, groups: Sequence[GroupState], *, leaving: Iterable[str], now: float
    ) -> ScaleUpPlan:
        """Return the one scale-up of this scan, or why there is none for each pod.

        *leaving* are nodes that are being removed: nobody is placed there. *now* is in seconds
        since 1970. Raises UserError if the what-if question cannot be asked.
        """
        waiting = {pod.key: pod for pod in view.pods.values() if self._counts(pod, now)}
        if not waiting:
            self._last = None
            return ScaleUpPlan()
        gone = frozenset(leaving)
        state = (frozenset(waiting), view.state, tuple(groups), gone)
        if self._last is not None and self._last[0] == state:
            return self._last[1]
        plan = self._search(view, groups, waiting, gone)
        self._last = (state, plan)
        return plan

    def _counts(self, pod: Pod, now: float) -> bool:
        """Whether *pod* is one that more nodes might help."""
        if pod.spec.node_name or pod.metadata.deletion_timestamp or is_of_daemon_set(pod):
            return False
        if pod.status.nominated_node_name:  # preemption makes room for it
            return False
        cutoff = self.options.expendable_pods_priority_cutoff
        if pod.spec.priority is not None and pod.spec.priority < cutoff:
            return False
        created = pod.metadata.creation_timestamp
        delay = self.options.new_pod_scale_up_delay.seconds
        if delay and created is not None and now - seconds_of(created) < delay:
            return False
        return any(
            condition.type == "PodScheduled"
            and condition.status == "False"
            and condition.reason == "Unschedulable"
            for condition in pod.status.conditions
        )

    def _search(
        self,
        view: ClusterView,
        groups: Sequence[GroupState],
        waiting: Mapping[str, Pod],
        leaving: frozenset[str],
    ) -> ScaleUpPlan:
        upcoming = [
            AddedNodes(manifest=group.group.node(), count=group.upcoming)
            for group in groups
            if group.upcoming
        ]
        base = Question(cordon_nodes=NodeChoice(names=sorted(leaving)), add_nodes=upcoming)
        placed = self.simulation.answer(base, view.snapshot).placements
        left = {key: pod for key, pod in waiting.items() if key not in placed}
        if not left:
            return ScaleUpPlan(pending=tuple(waiting))
        nodes = len(view.nodes) + sum(group.upcoming for group in groups)
        total = self.options.max_nodes_total
        if total and nodes >= total:
            return _none(waiting, left, dict.fromkeys(left, MAX_TOTAL_REACHED))
        usable: list[Option] = []
        for group in groups:
            room = self._room(group, nodes=nodes)
            if room and group.backoff is None:
                option = self._option(group.group, min(room, len(left)), base, left, view)
                usable += [option] if option is not None else []
        best = best_option(usable, self.options.expanders, rng=self.rng)
        if best is None:
            return _none(waiting, left, self._why(groups, left, view))
        (grown,) = (group for group in groups if group.group is best.group)
        size = grown.target_size
        up = ScaleUp(best.group.name, size, size + best.nodes, best.group.max_size, best.pods)
        return ScaleUpPlan((up,), tuple(waiting), tuple(left))

    def _room(self, state: GroupState, *, nodes: int) -> int:
        """Return how many nodes a group may grow by now."""
        most = [
            state.group.max_size - state.target_size,
            self.options.max_nodes_per_scaleup,
            MOST_NODES,
        ]
        if self.options.max_nodes_total:
            most.append(self.options.max_nodes_total - nodes)
        return max(min(most), 0)

    def _option(
        self,
        group: NodeGroup,
        most: int,
        base: Question,
        left: Mapping[str, Pod],
        view: ClusterView,
    ) -> Option | None:
        """Return whom nodes of *group* help, and how many it takes; None if they help nobody."""
        manifest = group.node()
        added = [*base.add_nodes, AddedNodes(manifest=manifest, count=most)]
        enlarged = base.model_copy(update={"add_nodes": added})
        placements = self.simulation.answer(enlarged, view.snapshot).placements
        helped = [key for key in left if key in placements]
        if not helped:
            return None
        others = [
            pod.key
            for pod in view.pods.values()
            if not pod.spec.node_name and pod.key not in placements
        ]
        fewest = base.model_copy(
            update={
                "remove_pods": PodChoice(names=others),
                "find_nodes": FindNodes(manifest=manifest, most=most),
            }
        )
        needed = self.simulation.answer(fewest, view.snapshot).nodes_needed
        count = needed.count if needed is not None else None
        if count is None:  # more nodes made it worse: take those that were of use
            count = len({placements[key] for key in helped})
        requests = [incoming_requested(left[key]) for key in helped]
        return Option(
            group,
            max(count, 1),
            helped,
            cpu=sum(request.milli_cpu for request in requests) / 1000,
            memory=sum(request.memory for request in requests),
        )

    def _why(
        self, groups: Sequence[GroupState], left: Mapping[str, Pod], view: ClusterView
    ) -> Mapping[str, str]:
        """Return why no group helps, by pod: reasons with the number of groups that have them."""
        samples: dict[str, list[str]] = {}
        for key, pod in left.items():
            samples.setdefault(_kind_of(pod), []).append(key)
        counts: dict[str, dict[str, int]] = {keys[0]: {} for keys in samples.values()}
        for group in groups:
            if group.target_size >= group.group.max_size:
                against: dict[str, tuple[str, ...]] = dict.fromkeys(counts, (MAX_SIZE_REACHED,))
            elif group.backoff is not None:
                against = dict.fromkeys(counts, (IN_BACKOFF,))
            else:
                node = AddedNodes(manifest=group.group.node())
                refused = self.simulation.refusals(view.snapshot, node, counts)
                against = {key: tuple(reasons) for key, reasons in refused.items()}
            for key, reasons in against.items():
                for reason in dict.fromkeys(reasons):
                    counts[key][reason] = counts[key].get(reason, 0) + 1
        return {
            key: ", ".join(f"{number} {why}" for why, number in sorted(counts[keys[0]].items()))
            for keys in samples.values()
            for key in keys
        }


def _none(
    waiting: Mapping[str, Pod], left: Mapping[str, Pod], why: Mapping[str, str]
) -> ScaleUpPlan:
    actions = [NotTriggered(key, why[key]) for key in left]
    return ScaleUpPlan(actions, tuple(waiting), tuple(left))


def _kind_of(pod: Pod) -> str:
    """Return what pods have in common that are refused alike: their controller."""
    owner = pod.metadata.controller
    return f"{pod.metadata.namespace}/{owner.uid}" if owner is not None else pod.metadata.uid
