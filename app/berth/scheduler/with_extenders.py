"""Scheduling cycles for pods that extenders have a say in: the cluster moves on while they answer.

What the table said before a question may be wrong when the answer comes. So results are kept by
name, and the filters run again on the table as it is then; that and what follows from it (reserving
the node, ordering evictions) happens without waiting. Cycles stay one at a time meanwhile::

    find the nodes that fit                -> candidates
    ask which of them, and their scores       ... watches, bindings, other pods' events ...
    find the nodes that fit once more, leave to them what extenders left, select one or preempt
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.extender.result import EXTENDER, ExtenderResult
from berth.scheduler.find_nodes_that_fit import NO_ROWS, FeasibleNodes, find_nodes_that_fit_pod
from berth.scheduler.framework.interface import PostFilterResult
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.framework.preemption.select_candidate import select_candidate
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import KEEP, Failed, Outcome, To, Unschedulable
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.nominator import Nominator
from berth.scheduler.sampling import Sampling
from berth.scheduler.schedule_pod import Select, place_on_a_candidate

MAX_ROUNDS: Final = 3
"""How often extenders are asked in one attempt, if their answer is out of date each time."""

OUT_OF_DATE: Final = Status.error("the nodes have changed each time that extenders were asked")
NO_CANDIDATE: Final = "preemption: no candidate node for preemption"


class Attempt(msgspec.Struct, frozen=True):
    """An outcome with the cycle that it was found in."""

    cycle: Cycle
    outcome: Outcome
    is_out_of_date: bool = False
    """Whether the cluster has moved on too far to act on it."""


class ExtenderRound:
    """Schedules pods with extenders, as :func:`~berth.scheduler.schedule_pod.schedule_pod` without.

    PostFilter included, since extenders have a say in preemption, too.
    """

    def __init__(
        self,
        extenders: Extenders,
        *,
        sampling: Sampling,
        select: Select,
        cache: Cache,
        nominator: Nominator,
        pods: Mapping[str, Pod],
        rng: random.Random,
    ) -> None:
        """*pods* is the informer's store, by namespace/name: what the API says now."""
        self._extenders = extenders
        self._sampling = sampling
        self._select = select
        self._cache = cache
        self._nominator = nominator
        self._pods = pods
        self._rng = rng

    def is_due(self, pod: PodInfo) -> bool:
        """Whether *pod* cannot be decided about without asking.

        Guess (1.37 spec N12.2): of a pod that runs, and waits to be resized, they are not asked.
        """
        return not pod.pod.spec.node_name and self._extenders.have_a_say(pod.pod)

    async def schedule_pod(self, profile: Profile, queued: QueuedPodInfo) -> Attempt | None:
        """Decide about a pod; *queued* may hold a newer version of it afterwards.

        None if it is not waiting for a node any more. The outcome is true of this moment: act on
        it before anything is awaited.
        """
        attempt = await self._round(profile, queued)
        rounds = 1
        while attempt is not None and attempt.is_out_of_date:
            if rounds == MAX_ROUNDS:
                pod, feasible_nodes = attempt.cycle.pod, attempt.outcome.found
                return replace(
                    attempt, outcome=Failed(pod, profile.name, feasible_nodes, OUT_OF_DATE, KEEP)
                )
            attempt = await self._round(profile, queued)
            rounds += 1
        return attempt

    async def _round(self, profile: Profile, queued: QueuedPodInfo) -> Attempt | None:
        """Make one attempt, asking each extender once about filters and scores."""
        cycle = self._begin(profile, queued)
        feasible_nodes = find_nodes_that_fit_pod(cycle, self._sampling)
        if not len(feasible_nodes.candidates):
            outcome = place_on_a_candidate(cycle, feasible_nodes, select=self._select)
            return await self._run_post_filter_plugins(queued, Attempt(cycle, outcome))
        result = await self._ask(cycle, feasible_nodes)
        if not self.is_waiting(queued):
            return None
        cycle = self._begin(profile, queued)
        attempt = Attempt(cycle, self.decide(cycle, result))
        if isinstance(attempt.outcome, Unschedulable) and result.nodes:
            return replace(attempt, is_out_of_date=True)
        return await self._run_post_filter_plugins(queued, attempt)

    async def answer_for(
        self, profile: Profile, queued: QueuedPodInfo, *, gone: Iterable[PodInfo] = ()
    ) -> ExtenderResult:
        """Ask about a pod that is decided about later, with its group; see :meth:`decide`.

        The nodes in question are those that would have room if the pods *gone* were.
        """
        with self._cache.without_all(gone):
            cycle = self._begin(profile, queued)
            feasible_nodes = find_nodes_that_fit_pod(cycle, nominated_first=False)
        if not len(feasible_nodes.candidates):
            return ExtenderResult(frozenset())
        return await self._ask(cycle, feasible_nodes)

    def decide(self, cycle: Cycle, result: ExtenderResult) -> Outcome:
        """Find a node for the pod of *cycle* among those that extenders left; no PostFilter."""
        # Not sampled: the nodes that the extenders were asked about are the sample.
        nominated_first = cycle.pod.pod.status.nominated_node_name in result.nodes
        feasible_nodes = find_nodes_that_fit_pod(cycle, nominated_first=nominated_first)
        feasible_nodes = apply_extender_result(cycle, feasible_nodes, result)
        return place_on_a_candidate(
            cycle, feasible_nodes, select=self._select, extender_scores=result.scores
        )

    def may_preempt(self, pod: PodInfo) -> bool:
        """Whether no extender has to be asked about the victims of *pod*."""
        return not self._extenders.preempting(pod.pod)

    def _begin(self, profile: Profile, queued: QueuedPodInfo) -> Cycle:
        return Cycle.begin(profile, queued.pod_info, cache=self._cache, nominator=self._nominator)

    async def _ask(self, cycle: Cycle, feasible_nodes: FeasibleNodes) -> ExtenderResult:
        """Ask which of the candidates may take the pod, and for their scores.

        If the only candidate is the pod's nominated node, and they reject it or fail, they are
        asked about all nodes (spec §2.4).
        """
        pod = cycle.pod
        nodes = _candidates(cycle, feasible_nodes)
        result = await self._extenders.filter(pod, nodes)
        if feasible_nodes.is_nominated and not result.nodes:
            cycle = Cycle.begin(cycle.profile, pod, cache=self._cache, nominator=self._nominator)
            feasible_nodes = find_nodes_that_fit_pod(cycle, self._sampling, nominated_first=False)
            nodes = _candidates(cycle, feasible_nodes)
            result = await self._extenders.filter(pod, nodes)
        if len(result.nodes) < 2:
            return result
        left = frozenset(result.nodes)
        nodes = [node for node in nodes if node.metadata.name in left]
        return replace(result, scores=await self._extenders.prioritize(pod, nodes))

    async def _run_post_filter_plugins(
        self, queued: QueuedPodInfo, attempt: Attempt
    ) -> Attempt | None:
        """Run PostFilter for a pod that fits nowhere; extenders say whom it may evict (§6.5)."""
        if not isinstance(attempt.outcome, Unschedulable):
            return attempt
        outcome = run_post_filter_plugins(attempt.cycle, attempt.outcome)
        attempt = replace(attempt, outcome=outcome)
        if not isinstance(outcome, Unschedulable):
            return attempt
        result = outcome.post_filter
        if result is None or result.status is not None or result.preemption is None:
            return attempt
        if not self._extenders.preempting(queued.pod):
            return attempt
        nodes = attempt.cycle.nodes
        asked_at = nodes.last_generation
        candidates: Sequence[Candidate] = ()
        refused: Status | None = None
        try:
            candidates = await self._extenders.preempt(
                queued.pod_info, result.preemption.candidates, nodes
            )
        except ExtenderError as exc:
            refused = Status.error(f"preemption: {exc}")
        else:
            if not candidates:
                refused = Status.unschedulable(*result.reasons_before, NO_CANDIDATE)
        if not self.is_waiting(queued):
            return None
        if refused is not None:
            kept = replace(outcome, post_filter=PostFilterResult(refused), nomination=KEEP)
            return replace(attempt, outcome=kept)
        # What was found out about a node holds as long as nothing on it changed.
        candidates = tuple(c for c in candidates if nodes.generation[c.row] <= asked_at)
        if not candidates:
            return replace(attempt, is_out_of_date=True)
        found = select_candidate(replace(result.preemption, candidates=candidates), self._rng)
        assert found.chosen is not None
        told = result.tells_placement
        helped = PostFilterResult(None, found.chosen.node, found, tells_placement=told)
        nominated = replace(outcome, post_filter=helped, nomination=To(found.chosen.node))
        return replace(attempt, outcome=nominated)

    def is_waiting(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod still waits for a node; *queued* gets its newest version."""
        current = self._pods.get(queued.key)
        if (
            current is None
            or current.metadata.uid != queued.uid
            or current.metadata.deletion_timestamp is not None
            or current.spec.node_name
        ):
            return False
        if current is not queued.pod:
            queued.pod_info = PodInfo(current)
        return True


def apply_extender_result(
    cycle: Cycle, feasible_nodes: FeasibleNodes, result: ExtenderResult
) -> FeasibleNodes:
    """Leave out the nodes that extenders do not want, and those that they were not asked about.

    The latter fit only since the extenders were asked. They have no status: nothing is known
    against them. Of a node that does not fit any more, our own filters say why. A nominated node
    that is found to fit is one that they left.
    """
    nodes, diagnosis = cycle.nodes, feasible_nodes.diagnosis
    if (
        feasible_nodes.is_nominated
        or feasible_nodes.pre_filter.status is not None
        or not len(nodes)
    ):
        return feasible_nodes
    statuses = {
        row: status
        for name, status in result.statuses.items()
        if (row := nodes.row_of.get(name)) is not None and feasible_nodes.feasible[row]
    }
    rejectors = {EXTENDER} if result.has_rejected or statuses else set()
    feasible = cycle.state.feasible = feasible_nodes.feasible & nodes.rows_named(result.nodes)
    error = feasible_nodes.error or result.error
    return replace(
        feasible_nodes,
        diagnosis=replace(
            diagnosis,
            statuses=diagnosis.statuses | statuses,
            unschedulable_plugins=diagnosis.unschedulable_plugins | rejectors,
        ),
        feasible=feasible,
        sample=np.flatnonzero(feasible) if error is None else NO_ROWS,
        error=error,
    )


def _candidates(cycle: Cycle, feasible_nodes: FeasibleNodes) -> list[Node]:
    return [
        node for row in feasible_nodes.candidates if (node := cycle.nodes.nodes[row]) is not None
    ]
