"""One scheduling cycle of a PodGroup that is an entity of the queue (1.37 spec N8).

::

    pop the group --> validation --> trial: PlacementFeasible says when enough pods have nodes
      enough ------> those that fit are bound, the others go back to be tried at once
      too few -----> undo all; PodGroupPostFilter plugins may have pods evicted
                     the group waits for events that help it
      an error ----> undo all; the group waits for its backoff

As in :mod:`.cycle` the pods are placed on the live table, which nobody sees before it is decided.

Of groups that are parts of others the topmost is the entity: what it comes to decides, and each
PodGroup below it is told what it has come to itself (N11).

While a place is searched others have turns. If they change the group, it is searched anew, without.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import compress

from msgspec.structs import replace

from berth.kube.objects.pod_group import CompositePodGroup, GroupKey, PodGroup, group_of
from berth.runtime.tasks import Steps, at_once, step_by_step
from berth.scheduler.binding import Binding
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PodGroupPostFilterResult
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import QueuedPodGroupInfo, QueuedPodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.outcome import CLEAR, KEEP, Failed, Nomination, Placed, To, Unschedulable
from berth.scheduler.pod_group.attempt import GroupAttempt
from berth.scheduler.pod_group.cycle import PodGroupCycle, failed, forget_scores
from berth.scheduler.pod_group.look_back import PLACEMENTS, LookBack, attempts_for
from berth.scheduler.pod_group.reports import GroupParts
from berth.scheduler.pod_group.tree_trial import TreeTrials, status_below
from berth.scheduler.pod_group.trial import (
    GroupStatus,
    Member,
    Result,
    importance,
    undo,
)
from berth.scheduler.pod_group.validation import change_of, problem_of
from berth.scheduler.profile.placements import run_placement_generate
from berth.scheduler.queue.entities import EntityQueue
from berth.scheduler.scheduling_steps import SchedulingSteps


class GroupChangedError(Exception):
    """While others had their turn, the group or one of its pods has changed, or is gone."""


class PodGroupEntityCycle(PodGroupCycle):
    """Schedules groups; between two cycles it keeps nothing."""

    def __init__(self, steps: SchedulingSteps, parts: GroupParts) -> None:
        super().__init__(steps, parts)
        assert isinstance(steps.queue, EntityQueue)
        self._queue = steps.queue
        self._hierarchy = parts.pod_groups.hierarchy
        self._trials = TreeTrials(steps, self._search, parts.pod_groups)
        self._has_preemption_policy = parts.have_preemption_policy
        self._preemption_metrics = parts.preemption_metrics
        self._looks_back = parts.look_back
        self._sleep = parts.sleep

    async def run(self, popped: QueuedPodInfo, key: GroupKey) -> tuple[Binding, ...]:
        assert isinstance(popped, QueuedPodGroupInfo)
        started = self._steps.clock.monotonic()
        queued = sorted(popped.pods, key=importance)
        key = popped.group_key
        group = self._hierarchy.get(key)
        if group is None:  # no condition: there is nobody to tell
            self._fail_untried(popped, queued, key.not_found)
            return ()
        tree = tuple(self._hierarchy.tree(group))
        problem = problem_of(
            group,
            (waiting.pod for waiting in queued),
            (pod.pod for pod in self._pod_groups.scheduled(group)),
            profiles=self._steps.profiles,
            has_preemption_policy=self._has_preemption_policy,
        )
        if problem:
            self._fail_all(popped, queued, problem)
            return ()
        members = await self._ask_extenders([*self._without_skipped(queued)])
        has_turns = True
        while members:
            group = self._hierarchy.get(key)  # others may have had their turn
            if group is None:
                self._fail_untried(popped, [member.queued for member in members], key.not_found)
                return ()
            if problem := change_of(tree, self._hierarchy):
                self._fail_all(popped, [member.queued for member in members], problem)
                return ()
            pause = self._pause(members, group, tree) if has_turns else None
            try:
                return await self._schedule_group(popped, members, group, pause, started=started)
            except GroupChangedError:
                members, has_turns = self._waiting(members), False
        self._queue.add_attempted_pod_group_if_needed(popped, is_scheduled=True)
        return ()

    def _pause(
        self, members: Sequence[Member], group: PodGroup, tree: Sequence[PodGroup]
    ) -> Callable[[], Awaitable[None]]:
        """Return what lets others have a turn while *members* of *group* are searched a place.

        It raises GroupChangedError.
        """
        scheduled = self._pod_groups.scheduled(group)

        async def pause() -> None:
            await self._sleep(0.0)
            if (
                not self._is_unchanged(members, group)
                or change_of(tree, self._hierarchy)
                or self._pod_groups.scheduled(group) != scheduled
            ):
                raise GroupChangedError(str(group.key))

        return pause

    def _without_skipped(self, queued: Sequence[QueuedPodInfo]) -> Iterator[Member]:
        for waiting in queued:
            profile = self._steps.profile_for_pod(waiting)
            if profile is not None:
                yield Member(waiting, profile, self._steps.clock.monotonic())

    def _fail_all(
        self, entity: QueuedPodGroupInfo, queued: Sequence[QueuedPodInfo], text: str
    ) -> None:
        """Have a group fail with the error *text*, and tell it."""
        for leaf in dict.fromkeys(group_of(waiting.pod) for waiting in queued):
            assert leaf is not None
            self._reports.tell(leaf, result=Result.ERROR.value, message=text)
        self._fail_untried(entity, queued, text)

    def _fail_untried(
        self, entity: QueuedPodGroupInfo, queued: Sequence[QueuedPodInfo], text: str
    ) -> None:
        """Have all pods of a group fail with the error *text*, without a trial."""
        for waiting in queued:
            profile = self._steps.profiles.get(waiting.pod.spec.scheduler_name)
            if profile is None:
                self._queue.done(waiting.uid)
                continue
            member = Member(waiting, profile, self._steps.clock.monotonic())
            self._fail(member, failed(member, Status.error(text)))
        self._queue.add_attempted_pod_group_if_needed(entity, is_scheduled=False)

    async def _schedule_group(
        self,
        entity: QueuedPodGroupInfo,
        members: Sequence[Member],
        group: PodGroup,
        pause: Callable[[], Awaitable[None]] | None,
        *,
        started: float,
    ) -> tuple[Binding, ...]:
        """Try *members*, and do what follows from it. Raises what *pause* does, before that.

        Without *pause* the search for a place is one step.
        """
        began = self._steps.clock.monotonic()
        profile = members[0].profile.name
        nominations = ExitStack()
        search = self._search_place(members, group, nominations)
        if pause is None:
            members, status = at_once(search)
        else:
            members, status = await step_by_step(search, per_turn=1, pause=pause)
        self._reports.algorithm_took(self._steps.clock.monotonic() - began)
        bindings: tuple[Binding, ...] = ()
        if status.result is Result.SCHEDULED:
            of_child = [status_below(status, member.of_child) for member in members]
            fits = [own.result is Result.SCHEDULED for own in of_child]
            bindings = tuple(self._submit([*compress(members, fits)]))
            for member, own in zip(members, of_child, strict=True):
                if own.result is not Result.SCHEDULED:
                    self._return(member, own, None)
        else:
            nominated: Mapping[str, str] = {}
            if status.result is Result.UNSCHEDULABLE and status.may_be_resolved:
                status, nominated = await self._run_post_filter(members, group, status)
            for member in members:
                node = nominated.get(member.queued.uid)
                own = status_below(status, member.of_child)
                self._return(member, own, None if node is None else To(node))
        self._reports.attempted(
            profile,
            result=status.result.value,
            seconds=self._steps.clock.monotonic() - started,
        )
        # Conditions of CompositePodGroups are not written (1.37 spec N7.4).
        for leaf, first in {group_of(each.queued.pod): each for each in reversed(members)}.items():
            assert leaf is not None
            own = status_below(status, first.of_child)
            self._reports.tell(leaf, result=own.result.value, message=own.message)
        unschedulable, pending = _rejectors(members, status)
        # Guess (1.37 spec N8.1): where Reserve or Permit has refused all of them, the group backs
        # off. At once it would be tried for ever.
        self._queue.add_attempted_pod_group_if_needed(
            entity,
            is_scheduled=bool(bindings),
            unschedulable_plugins=unschedulable,
            pending_plugins=pending,
        )
        return bindings

    def try_group(
        self, members: Sequence[Member], group: PodGroup, nominations: ExitStack
    ) -> tuple[Sequence[Member], GroupStatus]:
        """Place *members* where they may be placed; return those that hold what they got."""
        return at_once(self._trials.run(group, members, nominations))

    def _search_place(
        self, members: Sequence[Member], group: PodGroup, nominations: ExitStack
    ) -> Steps[tuple[Sequence[Member], GroupStatus]]:
        """Do the same, and look back; a group that cannot start holds nothing in the end."""
        members, status = yield from self._trials.run(group, members, nominations)
        if status.result is not Result.SCHEDULED:
            undo(members)
            nominations.close()
        # A group of groups is not searched again: LookBack puts pods on nodes, not groups.
        is_tree = isinstance(group, CompositePodGroup)
        if self._looks_back and status.result is Result.UNSCHEDULABLE and not is_tree:
            found = yield from self._look_back(members, group, nominations)
            members, status = found or (members, status)
        return members, status

    def _look_back(
        self, members: Sequence[Member], group: PodGroup, nominations: ExitStack
    ) -> Steps[tuple[Sequence[Member], GroupStatus] | None]:
        """Search once more where greed has found no place; None if there is none to be found.

        Each placement is searched in one step, on the cluster as it is by then.
        """
        scheduled, nodes = self._pod_groups.scheduled(group), self._steps.cache.table
        trial = self._trials.trial_of(group, members)
        attempts = attempts_for(len(members))
        search = LookBack(trial, nodes, attempts * PLACEMENTS)
        names: list[str] | None = None
        while names is None or names:
            placements: Sequence[Placement] | Status = [EVERYWHERE]
            if self._search is not None:
                profile = members[0].profile
                placements = run_placement_generate(profile, group, scheduled, nodes)
            if isinstance(placements, Status):
                return None
            if names is None:
                names = [placement.name for placement in reversed(placements)]
            name = names.pop()
            for placement in placements:
                if placement.name == name:
                    found = search.run(members, nominations, placement, attempts=attempts)
                    if found is not None:
                        return found
            yield
        return None

    async def _run_post_filter(
        self, members: Sequence[Member], group: PodGroup, status: GroupStatus
    ) -> tuple[GroupStatus, Mapping[str, str]]:
        """Have plugins make room for a group that came to *status* and holds nothing.

        Return what it comes to then, and the nodes that pods are nominated to, by UID.
        """
        nodes, profile = dict(self._steps.cache.table.row_of), members[0].profile
        began = self._steps.clock.monotonic()
        attempt = GroupAttempt(self._steps, self.try_group, members, group)
        result = await profile.run_pod_group_post_filters(group, attempt)
        if self._steps.cache.table.row_of != nodes:
            forget_scores(members)
        if result is None:
            return status, {}
        code = Code.SUCCESS if result.status is None else result.status.code
        seconds = self._steps.clock.monotonic() - began
        self._preemption_metrics.attempted(code.label)
        self._preemption_metrics.evaluated("podgroup", code.label, seconds=seconds)
        if result.status is not None:
            if not result.status.is_rejected:
                return GroupStatus(Result.ERROR, result.status.message), {}
            return _with_reasons(status, *result.status.reasons), {}
        if not self._is_unchanged(members, group):
            return status, {}
        self._evict(members, group, result)
        waiting = replace(_with_reasons(status, result.message), result=Result.WAITING)
        return waiting, result.nominations

    def _is_unchanged(self, members: Sequence[Member], group: PodGroup) -> bool:
        """Whether group and pods are still there after all that was awaited."""
        current = self._hierarchy.get(group.key)
        return (
            current is not None
            and current.metadata.uid == group.metadata.uid
            and all(self._steps.extender_round.is_waiting(member.queued) for member in members)
        )

    def _evict(
        self, members: Sequence[Member], group: PodGroup, result: PodGroupPostFilterResult
    ) -> None:
        if not result.victims:
            return
        self._steps.preemptions.prepare_group_async(
            group,
            [member.queued.pod_info for member in members],
            profile=members[0].profile.name,
            victims=result.victims,
        )
        self._preemption_metrics.chosen(
            "podgroup",
            victims=len(result.victims),
            groups=result.disruptions,
            pdb_violations=result.pdb_violations,
        )

    def _return(self, member: Member, status: GroupStatus, nomination: Nomination | None) -> None:
        """Let *member* fail with its group (1.37 spec N8.4).

        *nomination* is what evictions make room for; None: nothing for this pod.
        """
        outcome = member.outcome
        if status.result is Result.ERROR:
            if not isinstance(outcome, Failed):
                outcome = failed(member, Status.error(status.message))
            self._fail(member, outcome)
            return
        assert not isinstance(outcome, Failed)
        if isinstance(outcome, Unschedulable):
            if nomination is not None:
                outcome = replace(outcome, nomination=nomination)
            self._fail(member, outcome)
            return
        waits = status.result is Result.WAITING
        self._fail(
            member,
            Unschedulable(
                member.queued.pod_info,
                member.profile.name,
                FeasibleNodes.nowhere(_of_group(status)),
                nomination or (KEEP if waits or outcome is None else CLEAR),
                refused=outcome if isinstance(outcome, Placed) else None,
                words=status.message,
            ),
        )


def _of_group(status: GroupStatus) -> Diagnosis:
    """Return the diagnosis of a pod that fails because its group does."""
    diagnosis = Diagnosis(1)
    diagnosis.unschedulable_plugins.update(status.plugins)
    return diagnosis


def _with_reasons(status: GroupStatus, *reasons: str) -> GroupStatus:
    return replace(status, message=", ".join((status.message, *filter(None, reasons))))


def _rejectors(
    members: Sequence[Member], status: GroupStatus
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the plugins whose answer must change for the group, and the pending ones of these."""
    if status.result is Result.ERROR:
        return frozenset(), frozenset()
    refused = [member.outcome for member in members if isinstance(member.outcome, Unschedulable)]
    unschedulable = (outcome.diagnosis.unschedulable_plugins for outcome in refused)
    pending = (outcome.diagnosis.pending_plugins for outcome in refused)
    return status.plugins.union(*unschedulable), frozenset().union(*pending)
