"""Attempts and bindings of a replica that shares the cluster with others."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from msgspec.structs import replace

from berth.scheduler.binding import Binding
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.outcome import CLEAR, Failed, Outcome, Placed, Unschedulable, refused_placement
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.profile import Profile
from berth.scheduler.reservation import Reservation, assume, assumed_on
from berth.scheduler.schedule_one import Attempt, Scheduler
from berth.scheduler.schedule_pod import schedule_pod
from berth.scheduler.shards.offers import Offers
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import offered_to, why_not


@dataclass(kw_only=True, eq=False)
class ShardedScheduler(Scheduler):
    """Decides over its own nodes first, then over all; and about one node for other replicas."""

    ownership: Ownership
    offers: Offers
    listers: Listers
    catch_up: Callable[[], None]
    """Has all be told that was heard of others' pods and nodes."""

    def begin_cycle(
        self, profile: Profile, queued: QueuedPodInfo, placement: Placement = EVERYWHERE
    ) -> Cycle:
        """Begin a cycle on the own nodes; pods of a group go nowhere else."""
        own = self.ownership.among(placement, self.cache.table)
        return super().begin_cycle(profile, queued, own)

    def profile_for_pod(self, queued: QueuedPodInfo) -> Profile | None:
        """Return whose plugins decide; None also if another replica decides by now."""
        if queued.uid not in self.ownership.ours:
            self.queue.done(queued.uid)
            return None
        return super().profile_for_pod(queued)

    def attempt(self, queued: QueuedPodInfo) -> Attempt | None:
        """Decide where a popped pod goes; None if it is not tried."""
        profile = self.profile_for_pod(queued)
        if profile is None:
            return None
        started = self.clock.monotonic()
        if node := offered_to(queued.pod):
            self.catch_up()
            cycle = self._cycle_of_offer(profile, queued, node)
            outcome: Outcome = schedule_pod(cycle, select=self.select)
            return Attempt(queued, cycle, outcome, started)
        cycle = self.begin_cycle(profile, queued)
        reason = why_not(queued.pod_info, self.listers.resource_slices)
        if reason is not None:
            return Attempt(queued, cycle, _not_shared(cycle, *reason), started)
        outcome = self.decide(cycle)
        if isinstance(outcome, Unschedulable):
            self.catch_up()
            cycle = super().begin_cycle(profile, queued, self.ownership.open(self.cache.table))
            outcome = self.decide(cycle)
        if isinstance(outcome, Unschedulable):
            outcome = run_post_filter_plugins(cycle, outcome)
        return Attempt(queued, cycle, outcome, started)

    def _cycle_of_offer(self, profile: Profile, queued: QueuedPodInfo, node: str) -> Cycle:
        """Begin a cycle on the one node that the pod is offered for; it is asked about alone."""
        pod = queued.pod
        nominated = replace(pod, status=replace(pod.status, nominated_node_name=node))
        return Cycle.begin(
            profile,
            PodInfo(nominated),
            cache=self.cache,
            nominator=self.queue.nominator,
            placement=Placement(node, self.cache.table.rows_named([node])),
        )

    def apply_cached_failure(self, queued: QueuedPodInfo) -> bool:
        """Let a pod fail like those of its signature; not one that is offered for one node."""
        return not offered_to(queued.pod) and super().apply_cached_failure(queued)

    def prepare_for_binding_cycle(
        self, queued: QueuedPodInfo, cycle: Cycle, placed: Placed, started: float
    ) -> Reservation | Unschedulable | Failed:
        """Assume the pod on its node; all else is for the writer of the node, if that is another.

        What Reserve keeps (volumes, devices) is written by who binds, and the API server refuses
        the second of two such writes.
        """
        if self.ownership.is_active(placed.node_name):
            return super().prepare_for_binding_cycle(queued, cycle, placed, started)
        assumed = assumed_on(queued.pod_info, placed.node_name, cycle.state)
        with ExitStack() as undo:
            status = assume(assumed, self.cache, undo)
            if status is not None:
                return refused_placement(placed, status)
            self.queue.assumed(assumed)
            self.offers.pods.add(assumed.uid)
            kept = undo.pop_all()
        return Reservation(queued, cycle.profile, cycle.state, assumed, started, kept)

    def _finish(self, attempt: Attempt) -> tuple[Binding, ...]:
        """Reserve the node; if an offered pod does not fit on it, refuse the pod."""
        queued, outcome = attempt.queued, attempt.outcome
        node = offered_to(queued.pod)
        if not node or isinstance(outcome, Placed):
            return super()._finish(attempt)
        self.measure(outcome, attempt.started)
        why = f"{node}: {outcome.message}"
        # The pod leaves the queue when the watch tells that it is refused; else it is tried again.
        queued.unschedulable_plugins = queued.pending_plugins = set()
        self.queue.add_unschedulable_if_not_present(queued)
        self.offers.refuse(queued.pod, why)
        return ()


def _not_shared(cycle: Cycle, plugin: str, why: str) -> Unschedulable:
    diagnosis = Diagnosis(cycle.num_nodes or 1)
    diagnosis.unschedulable_plugins.add(plugin)
    nowhere = FeasibleNodes.nowhere(diagnosis)
    return Unschedulable(cycle.pod, cycle.profile.name, nowhere, CLEAR, words=why)
