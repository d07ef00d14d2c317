"""Answers questions about the pods of a running scheduler."""

from collections.abc import Mapping
from typing import Final

from app.clock import Clock, rfc3339
from app.explain.choice import choose, node_score
from app.explain.explanation import Explanation, Judgement, PastDecision, Whereabouts
from app.explain.judge import judge
from app.explain.pod_state import pod_state
from app.explain.summary import summarize
from app.explain.unplaced import AS_IF_UNPLACED, as_if_unplaced
from app.framework.pod_info import PodInfo
from app.objects.pod import Pod
from app.profile.profile import Profile
from app.scheduler.decisions import DecisionRecord
from app.scheduler.scheduler import Scheduler

HISTORY_TOLD: Final = 10
"""Attempts of one pod; there may be more among all decisions."""
AS_IF_UNGATED = "judged as if it were not gated"
WITHOUT_EXTENDERS = "judged without the extenders, which have a say, too"


class Explainer:
    """Looks at a scheduler between two attempts.

    Every answer is made in one go, without awaiting, so it is true of one moment; it is linear in
    the number of nodes. To be used on the scheduler's event loop only.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        pods: Mapping[str, Pod],
        clock: Clock,
        schedules: bool = True,
    ) -> None:
        """*pods* is the informer's store, by namespace/name.

        Without *schedules* the scheduler is there to be asked only, and its queue stays empty.
        """
        self._scheduler = scheduler
        self._pods = pods
        self._clock = clock
        self._schedules = schedules

    def explain(self, key: str, *, limit: int | None) -> Explanation | None:
        """Tell everything about the pod ``namespace/name``, with the *limit* nearest nodes.

        None if there is no such pod, or it has finished.
        """
        pod = self._pods.get(key)
        if pod is None:
            return None
        state = pod_state(
            pod, scheduler=self._scheduler, clock=self._clock, schedules=self._schedules
        )
        profile = self._scheduler.profiles.get(pod.spec.scheduler_name)
        will_be_tried = pod.metadata.deletion_timestamp is None or bool(state.node)
        judgement = (
            self._judge(profile, pod, state.where, limit) if profile and will_be_tried else None
        )
        history = self.decisions(key, limit=HISTORY_TOLD)
        return Explanation(
            pod=key,
            uid=pod.metadata.uid,
            profile=pod.spec.scheduler_name,
            summary=summarize(state, judgement, history),
            state=state,
            judgement=judgement,
            history=tuple(history),
        )

    def decisions(self, pod: str | None = None, *, limit: int | None = None) -> list[PastDecision]:
        """Return recorded attempts, of *pod* or of all, the newest first."""
        kept = self._scheduler.decisions
        records = kept.all() if pod is None else kept.of(pod)
        return [self.told(record) for record in records[::-1][:limit]]

    def _judge(
        self, profile: Profile, pod: Pod, where: Whereabouts, limit: int | None
    ) -> Judgement:
        cache, nominator = self._scheduler.cache, self._scheduler.queue.nominator
        cache.refresh_order()
        nodes, notes = cache.table, []
        asked = PodInfo(pod)
        placed = cache.pod(asked.uid)
        if placed is not None:
            notes.append(AS_IF_UNPLACED)
            asked, nodes = as_if_unplaced(pod, placed, nodes)
        elif where is Whereabouts.GATED:
            notes.append(AS_IF_UNGATED)
        if self._scheduler.asks_extenders_about(asked):
            notes.append(WITHOUT_EXTENDERS)
        return judge(
            profile,
            asked,
            nodes,
            nominated={node: nominator.nominated_pods(node) for node in nominator.nodes()},
            limit=limit,
            notes=notes,
        )

    def told(self, record: DecisionRecord) -> PastDecision:
        """Put a record into words."""
        ago = self._clock.monotonic() - record.at
        best = tuple(node_score(ranked, weights=record.weights) for ranked in record.top)
        return PastDecision(
            pod=record.pod,
            uid=record.uid,
            number=record.number,
            result=record.result,
            at=rfc3339(self._clock.now() - ago),
            profile=record.profile,
            attempt=record.attempt,
            seconds_ago=ago,
            took_seconds=record.took,
            node=record.node,
            message=record.message,
            reasons=record.reasons,
            plugins=record.plugins,
            nominated_node=record.nominated_node,
            gang=record.gang,
            answered_by=record.answered_by,
            num_nodes=record.num_nodes,
            num_feasible=record.num_feasible,
            choice=choose(record.node, best, equals=record.equals) if record.node else None,
            best=best,
        )
