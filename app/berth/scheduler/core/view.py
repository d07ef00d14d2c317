"""A running scheduler as those see it who only look: explanations, dumps, the page.

The protocols have what can be read of the parts, so that mypy refuses what would change them. The
objects behind them are the scheduler's own: to be looked at on its event loop, between attempts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey, PodGroup
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.binding import Binding
from berth.scheduler.cache.view import CacheView
from berth.scheduler.core.scheduler_core import SchedulerCore
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.group_hierarchy import GroupHierarchy
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.nominations import Nominations
from berth.scheduler.framework.pod_groups import PodGroupState
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.pod_group.placement_search import PlacementSearch
from berth.scheduler.pod_group.tree_trial import TreeTrials
from berth.scheduler.pod_group.trial import PodGroupTrial
from berth.scheduler.profile.nominated_pods import NominatedPods
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.sub_queues import SubQueues


class NominatorView(Protocol):
    """A :class:`~berth.scheduler.queue.nominator.Nominator` that nominates nobody."""

    @property
    def nominations(self) -> NominatedPods: ...
    def nominated_node(self, uid: str) -> str | None: ...
    def nominated_pods_for_node(self, node_name: str) -> tuple[PodInfo, ...]: ...
    def nominated_pods(self) -> Nominations: ...


class QueueView(Protocol):
    """A :class:`~berth.scheduler.queue.scheduling_queue.SchedulingQueue` that moves no pod."""

    @property
    def sub_queues(self) -> SubQueues: ...
    @property
    def nominator(self) -> NominatorView: ...
    def is_in_flight(self, uid: str) -> bool: ...
    def in_flight(self) -> dict[str, int]: ...
    def in_flight_counts(self) -> Counter[str]: ...


class DecisionsView(Protocol):
    """The :class:`~berth.scheduler.decisions.Decisions` that were made, and none to come."""

    def of(self, pod_key: str) -> list[DecisionRecord]: ...
    def messages(self) -> dict[str, str]: ...
    def begun(self) -> dict[str, float]: ...
    def newest_first(self) -> Iterator[DecisionRecord]: ...


class BindingsView(Protocol):
    """The :class:`~berth.scheduler.binding.Bindings` under way."""

    def get(self, uid: str) -> Binding | None: ...
    def __iter__(self) -> Iterator[Binding]: ...
    def __len__(self) -> int: ...


class PodGroupsView(Protocol):
    """:class:`~berth.scheduler.framework.pod_groups.PodGroups`, by the pods that name them."""

    @property
    def hierarchy(self) -> GroupHierarchy: ...
    def get(self, key: GroupKey) -> PodGroupState | None: ...
    def all_pods_count(self, key: GroupKey) -> int: ...
    def scheduled_pods_count(self, key: GroupKey) -> int: ...
    def __iter__(self) -> Iterator[tuple[GroupKey, PodGroupState]]: ...


class GroupsView(Protocol):
    """What there is to read of :class:`~berth.scheduler.pod_group.reports.GroupParts`."""

    @property
    def pod_groups(self) -> PodGroupsView: ...
    @property
    def groups(self) -> Lister[PodGroup]: ...
    @property
    def is_topology_aware(self) -> bool: ...
    @property
    def are_entities(self) -> bool: ...
    @property
    def have_preemption_policy(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class SchedulerView:
    """A scheduler to be looked at."""

    schedules: bool
    """If not, it is there to be asked only, and its queue stays empty."""
    clock: Clock
    pods: Mapping[str, Pod]
    """All pods as the API has them, by namespace/name."""
    profiles: Mapping[str, Profile]
    cache: CacheView
    queue: QueueView
    decisions: DecisionsView
    bindings: BindingsView
    groups: GroupsView | None
    """None: pods of a PodGroup are not scheduled together."""
    asks_extenders: Callable[[PodInfo], bool]
    """Whether an extender has a say in a pod."""
    new_trial: Callable[[SchedulerMetrics], PodGroupTrial]
    """Makes a trial of a pod group, which is to be undone at once and counts in these metrics."""
    new_tree_trials: Callable[[SchedulerMetrics], TreeTrials]
    """Makes the same of a group with all groups below it."""
    decided_by: Callable[[Pod], str]
    """Says which replica decides about a waiting pod; "" if it is this one."""

    def begin_cycle(self, profile: Profile, pod: PodInfo) -> Cycle:
        """Begin a cycle on the nodes as they are now, as :meth:`Cycle.begin` does."""
        self.cache.refresh_order()
        return Cycle(profile, pod, self.cache.table, self.queue.nominator.nominations)

    def leaving(self, node: str) -> tuple[str, ...]:
        """Return the names of the pods on *node* that are being deleted."""
        table = self.cache.table
        row = table.row_of.get(node)
        pods = () if row is None else table.pods[row].values()
        return tuple(sorted(pod.key for pod in pods if pod.is_terminating))

    def age(self, monotonic: float) -> float:
        """Return how many seconds ago a time of the scheduler's monotonic clock was."""
        return self.clock.monotonic() - monotonic

    def at(self, monotonic: float) -> str:
        """Return a time of the monotonic clock in UTC."""
        return rfc3339(self.clock.now() - self.age(monotonic))


def view_of(
    core: SchedulerCore,
    *,
    decided_by: Callable[[Pod], str] = lambda _pod: "",
    pods: Mapping[str, Pod] | None = None,
) -> SchedulerView:
    """Return what shows *core* as it is whenever it is looked at.

    *pods* are shown in place of those that the core knows, if it may be behind.
    """
    scheduler = core.scheduler

    def new_tree_trials(metrics: SchedulerMetrics) -> TreeTrials:
        steps = scheduler.for_trials(metrics)
        search = PlacementSearch(steps, metrics.placements)
        return TreeTrials(steps, search, core.handle.pod_groups)

    return SchedulerView(
        schedules=core.schedules,
        clock=core.outside.clock,
        pods=core.outside.pods if pods is None else pods,
        profiles=core.live.profiles,
        cache=core.cache,
        queue=core.queue,
        decisions=scheduler.decisions,
        bindings=scheduler.bindings,
        groups=scheduler.groups,
        asks_extenders=scheduler.extender_round.is_due,
        new_trial=lambda metrics: PodGroupTrial(scheduler.for_trials(metrics)),
        new_tree_trials=new_tree_trials,
        decided_by=decided_by,
    )
