"""Attempts for pods that extenders have a say in: they are asked, and the cluster moves on.

What the table said before a question may be wrong when the answer comes. So answers are kept by
name, and all is judged again on the table as it is then; that and what follows from it (claiming
the room, ordering evictions) happens without waiting. Attempts stay one at a time meanwhile::

    judge the table                        -> candidates
    ask which of them, and their scores       ... watches, bindings, other pods' events ...
    judge the table again, leave to them what extenders left, choose or make room
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from berth.cache.cache import Cache
from berth.extender.errors import ExtenderError
from berth.extender.extenders import Extenders
from berth.extender.result import ExtenderResult
from berth.framework.cycle_state import CycleState
from berth.framework.interface import PostFilterResult
from berth.framework.pod_info import PodInfo, QueuedPodInfo
from berth.framework.preemption.candidate import Candidate
from berth.framework.preemption.pick_node import choose
from berth.framework.status import Status
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.profile.nominated_pods import NominatedPods
from berth.profile.profile import Profile
from berth.queue.nominator import Nominator
from berth.scheduler.decision import Decision
from berth.scheduler.find_node import NodeFinder

MOST_ROUNDS: Final = 3
"""So often extenders are asked in one attempt, if what they answer is out of date each time."""

OUT_OF_DATE: Final = Status.error("the nodes have changed each time that extenders were asked")
NO_CANDIDATE: Final = "preemption: no candidate node for preemption"


@dataclass(slots=True)
class Attempt:
    """A decision with what it was made from."""

    decision: Decision
    state: CycleState
    nominated: NominatedPods
    is_out_of_date: bool = False
    """Whether the cluster has moved on too far to act on it."""


class ExtenderRound:
    """Decides with extenders, as :class:`NodeFinder` does without."""

    def __init__(
        self,
        extenders: Extenders,
        *,
        finder: NodeFinder,
        cache: Cache,
        nominator: Nominator,
        pods: Mapping[str, Pod],
        rng: random.Random,
    ) -> None:
        """*pods* is the informer's store, by namespace/name: what the API says now."""
        self._extenders = extenders
        self._finder = finder
        self._cache = cache
        self._nominator = nominator
        self._pods = pods
        self._rng = rng

    def is_due(self, pod: PodInfo) -> bool:
        """Whether *pod* cannot be decided about without asking."""
        return self._extenders.have_a_say(pod.pod)

    async def decide(self, profile: Profile, queued: QueuedPodInfo) -> Attempt | None:
        """Decide about a pod, which may be another version of itself afterwards.

        None if it is not waiting for a node any more. To be acted on before anybody else runs.
        """
        attempt = await self._decide(profile, queued)
        for _ in range(1, MOST_ROUNDS):
            if attempt is None or not attempt.is_out_of_date:
                break
            attempt = await self._decide(profile, queued)
        if attempt is not None and attempt.is_out_of_date:
            decision = attempt.decision
            decision.status, decision.post_filter, decision.nominated_node = OUT_OF_DATE, None, None
        return attempt

    async def _decide(self, profile: Profile, queued: QueuedPodInfo) -> Attempt | None:
        attempt = self._judge(profile, queued.pod_info)
        if attempt.decision.status is None:
            extender_result = await self._ask(profile, queued.pod_info, attempt.decision)
            if not self._is_waiting(queued):
                return None
            attempt = self._find(profile, queued.pod_info, extender_result)
            status = attempt.decision.status
            if status is not None and status.is_rejected and extender_result.nodes:
                attempt.is_out_of_date = True
                return attempt
        if attempt.decision.status is None:
            return attempt
        return await self._run_post_filter_plugins(profile, queued, attempt)

    def _judge(self, profile: Profile, pod: PodInfo, *, beyond_nominated: bool = False) -> Attempt:
        state, nominated = CycleState(), self._nominated()
        self._cache.refresh_order()
        decision = self._finder.judge(
            profile, pod, state=state, nominated=nominated, beyond_nominated=beyond_nominated
        )
        return Attempt(decision, state, nominated)

    def _find(self, profile: Profile, pod: PodInfo, extender_result: ExtenderResult) -> Attempt:
        state, nominated = CycleState(), self._nominated()
        self._cache.refresh_order()
        decision = self._finder.find(
            profile, pod, state=state, nominated=nominated, extender_result=extender_result
        )
        return Attempt(decision, state, nominated)

    def _nominated(self) -> NominatedPods:
        nominator = self._nominator
        return nominator.nominated_pods()

    async def _ask(self, profile: Profile, pod: PodInfo, judged: Decision) -> ExtenderResult:
        """Ask what extenders think of the candidates.

        If that was only the pod's nominated node, and they do not want it or fail, they are asked
        about all nodes (spec §2.4).
        """
        nodes = self._candidates(judged)
        extender_result = await self._extenders.filter(pod, nodes)
        if judged.nominated_used and not extender_result.nodes:
            judged = self._judge(profile, pod, beyond_nominated=True).decision
            nodes = self._candidates(judged)
            extender_result = await self._extenders.filter(pod, nodes)
        if len(extender_result.nodes) > 1:
            left = frozenset(extender_result.nodes)
            extender_result.scores = await self._extenders.prioritize(
                pod, [node for node in nodes if node.metadata.name in left]
            )
        return extender_result

    def _candidates(self, judged: Decision) -> list[Node]:
        nodes = self._finder.nodes.nodes
        return [node for row in judged.candidates if (node := nodes[row]) is not None]

    async def _run_post_filter_plugins(
        self, profile: Profile, queued: QueuedPodInfo, attempt: Attempt
    ) -> Attempt | None:
        """Let PostFilter help, and extenders judge whom it wants to evict (spec §6.5)."""
        decision, nodes = attempt.decision, self._finder.nodes
        self._finder.run_post_filter_plugins(
            profile, decision, state=attempt.state, nominated=attempt.nominated
        )
        result = decision.post_filter
        if result is None or result.status is not None or result.preemption is None:
            return attempt
        if not self._extenders.preempting(queued.pod):
            return attempt
        asked_at = nodes.last_generation
        refused: Status | None = None
        candidates: Sequence[Candidate] = ()
        try:
            candidates = await self._extenders.preempt(
                queued.pod_info, result.preemption.candidates, nodes
            )
        except ExtenderError as exc:
            refused = Status.error(f"preemption: {exc}")
        else:
            if not candidates:
                refused = Status.unschedulable(*result.reasons_before, NO_CANDIDATE)
        if not self._is_waiting(queued):
            return None
        if refused is not None:
            decision.post_filter, decision.nominated_node = PostFilterResult(refused), None
            return attempt
        # What was found out about a node holds as long as nothing on it changed.
        candidates = tuple(c for c in candidates if nodes.generation[c.row] <= asked_at)
        if not candidates:
            attempt.is_out_of_date = True
            return attempt
        found = choose(replace(result.preemption, candidates=candidates), self._rng)
        assert found.chosen is not None
        decision.post_filter = PostFilterResult(None, found.chosen.node, found)
        decision.nominated_node = found.chosen.node
        return attempt

    def _is_waiting(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod still is without a node; takes over what was changed of it meanwhile."""
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
