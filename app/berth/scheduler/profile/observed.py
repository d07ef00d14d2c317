"""A profile that somebody watches from outside; its plugins know nothing of it."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import (
    FilterRunner,
    Plugin,
    PodGroupAttempt,
    PodGroupPostFilterResult,
    PostFilterResult,
    PreBindPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import PlacementProgress
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Verdict
from berth.scheduler.metrics.plugin_observer import PluginObserver
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.results import PermitWait, PreFilterOutcome, ScoreTable
from berth.scheduler.profile.statuses import bug_in

log = logging.getLogger(__name__)

T = TypeVar("T")

SUCCESS = Code.SUCCESS.label


class ObservedProfile(Profile):
    """Does what a profile does, and tells an observer how long it took.

    Of single plugins only in sampled cycles, which PreFilter begins.
    """

    def __init__(self, *args: Any, observer: PluginObserver, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observer = observer

    def run_pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterOutcome:
        state.is_sampled = self._observer.is_sampled()
        started = self._observer.now()
        outcome = super().run_pre_filter(state, pod, nodes)
        self._observer.ran_point("PreFilter", label_of(outcome.status), started)
        return outcome

    def begin_cached_cycle(self, state: CycleState) -> float:
        state.is_sampled = self._observer.is_sampled()
        return self._observer.now()

    def end_cached_cycle(self, points: Sequence[str], started: float) -> None:
        self._observer.ran_points(points, SUCCESS, started)

    def filtering(self, diagnosis: Diagnosis) -> AbstractContextManager[None]:
        return _Filtering(diagnosis, self._observer)

    def run_post_filters(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        filters: FilterRunner,
    ) -> PostFilterResult | None:
        started = self._observer.now()
        result = super().run_post_filters(state, pod, nodes, diagnosis, filters)
        self._observer.ran_point("PostFilter", label_of(result), started)
        return result

    def run_placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        started = self._observer.now()
        status = super().run_placement_feasible(group, progress)
        self._observer.ran_point("PlacementFeasible", label_of(status), started)
        return status

    async def run_pod_group_post_filters(
        self, group: PodGroup, attempt: PodGroupAttempt
    ) -> PodGroupPostFilterResult | None:
        started = self._observer.now()
        result = await super().run_pod_group_post_filters(group, attempt)
        status = None if result is None else result.status
        self._observer.ran_point("PodGroupPostFilter", label_of(status), started)
        return result

    def run_pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        started = self._observer.now()
        status = super().run_pre_score(state, pod, nodes)
        self._observer.ran_point("PreScore", label_of(status), started)
        return status

    def run_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]
    ) -> ScoreTable | Status:
        started = self._observer.now()
        scores = super().run_score(state, pod, nodes, rows)
        status = label_of(scores) if isinstance(scores, Status) else SUCCESS
        self._observer.ran_point("Score", status, started)
        return scores

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        started = self._observer.now()
        status = super().run_reserve(state, pod, node_name)
        self._observer.ran_point("Reserve", label_of(status), started)
        return status

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        started = self._observer.now()
        super().run_unreserve(state, pod, node_name)
        self._observer.ran_point("Unreserve", SUCCESS, started)

    def run_permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | PermitWait | None:
        started = self._observer.now()
        answer = super().run_permit(state, pod, node_name)
        status = Code.WAIT.label if isinstance(answer, PermitWait) else label_of(answer)
        self._observer.ran_point("Permit", status, started)
        return answer

    def run_pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> list[PreBindPlugin] | Status:
        started = self._observer.now()
        plugins = super().run_pre_bind_pre_flight(state, pod, node_name)
        self._observer.ran_point(
            "PreBindPreFlight", label_of(plugins) if plugins else Code.SKIP.label, started
        )
        return plugins

    async def run_pre_binds(
        self,
        plugins: Sequence[PreBindPlugin],
        state: CycleState,
        pod: PodInfo,
        node_name: str,
        *,
        entered: Callable[[Sequence[PreBindPlugin]], None],
        side_by_side: bool = True,
    ) -> Status | None:
        started = self._observer.now()
        status = await super().run_pre_binds(
            plugins, state, pod, node_name, entered=entered, side_by_side=side_by_side
        )
        self._observer.ran_point("PreBind", label_of(status), started)
        return status

    async def run_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        started = self._observer.now()
        status = await super().run_bind(state, pod, node_name)
        self._observer.ran_point("Bind", label_of(status), started)
        return status

    async def run_post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        started = self._observer.now()
        await super().run_post_bind(state, pod, node_name)
        self._observer.ran_point("PostBind", SUCCESS, started)

    def ask(self, point: str, plugin: Plugin, call: Any, state: CycleState, *args: Any) -> Any:
        started = self._observer.now() if state.is_sampled else None
        try:  # not by way of super(): thirty more calls per decision would cost 5 µs
            answer = call(state, *args)
        except Exception as exc:  # a plugin's bug fails this attempt only
            self._observer.plugin_failed(point, plugin.NAME)
            log.exception("plugin failed", extra={"plugin": plugin.NAME, "extension_point": point})
            answer = bug_in(plugin, exc)
        if started is not None:
            self._observer.ran_plugin(point, plugin.NAME, label_of(answer), started)
        return answer

    def _await(
        self,
        point: str,
        plugin: Plugin,
        call: Callable[..., Awaitable[T]],
        state: CycleState,
        *args: Any,
    ) -> Awaitable[T]:
        if not state.is_sampled:
            return call(state, *args)
        return self._timed(point, plugin, call, state, *args)

    async def _timed(
        self,
        point: str,
        plugin: Plugin,
        call: Callable[..., Awaitable[T]],
        state: CycleState,
        *args: Any,
    ) -> T:
        started = self._observer.now()
        answer = await call(state, *args)
        self._observer.ran_plugin(point, plugin.NAME, label_of(answer), started)
        return answer


class _Filtering(AbstractContextManager[None]):
    """Measures all that is done to find out which nodes fit."""

    __slots__ = ("_diagnosis", "_observer", "_started")

    def __init__(self, diagnosis: Diagnosis, observer: PluginObserver) -> None:
        self._diagnosis = diagnosis
        self._observer = observer
        self._started = observer.now()

    def __exit__(self, *_exc_info: object) -> None:
        status = label_of(self._diagnosis.error())
        self._observer.ran_point("Filter", status, self._started)


def label_of(answer: object) -> str:
    """Name the code of whatever a plugin may answer.

    A verdict that rejects some nodes counts by the first of its rejections.
    """
    match answer:
        case None:
            return SUCCESS
        case Status():
            return answer.code.label
        case PostFilterResult():
            return label_of(answer.status)
        case Verdict() if answer.rejections:
            return answer.rejections[0].code.label
        case (Status() as status, _):  # of Permit
            return status.code.label
        case _:
            return SUCCESS
