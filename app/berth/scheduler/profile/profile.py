"""One profile: its plugins by extension point, and what their answers mean together."""

import logging
from collections.abc import Awaitable, Callable, Container, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.cached_rows import CachedRows
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis, PluginVerdict
from berth.scheduler.framework.events import ALL_EVENTS, ClusterEventWithHint
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    EXTENSION_POINTS,
    MAX_NODE_SCORE,
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    FilterRunner,
    Input,
    PermitPlugin,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PodGroupAttempt,
    PodGroupPostFilterPlugin,
    PodGroupPostFilterResult,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import PlacementProgress
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_signature import decide_by_signature
from berth.scheduler.framework.scoring import normalizes
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.template_cache import TemplateCache
from berth.scheduler.framework.verdict import Ints, Rows, Verdict, is_everywhere
from berth.scheduler.profile.failures import first_failure
from berth.scheduler.profile.guard import is_in_tree
from berth.scheduler.profile.pre_bind_groups import parallel_groups
from berth.scheduler.profile.results import Columns, PermitWait, PreFilterOutcome, ScoreTable
from berth.scheduler.profile.statuses import (
    bug_in,
    failed,
    failed_rows,
    filter_failed,
    invalid_score,
    no_common_nodes,
    refused,
    score_failed,
    with_worded_errors,
    worst_score,
)

log = logging.getLogger(__name__)
P = TypeVar("P", bound=Plugin)
T = TypeVar("T")


class Profile:
    """The plugins of one schedulerName, sorted by extension point once, at start.

    *points* gives, per extension point of ``EXTENSION_POINTS``, its plugins in order; *weights*
    the weight of each score plugin.
    """

    def __init__(
        self,
        name: str,
        points: Mapping[str, Sequence[Plugin]],
        *,
        weights: Mapping[str, int],
        placement_weights: Mapping[str, int] = {},
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        self.name = name
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.weights, self.placement_weights = dict(weights), placement_weights
        self.known_beside: TemplateCache[CachedRows] = TemplateCache()

        def at(point: str, kind: type[P]) -> list[P]:
            assert EXTENSION_POINTS[point] is kind
            return cast("list[P]", list(points.get(point, ())))

        self.pre_enqueue = at("pre_enqueue", PreEnqueuePlugin)
        (self.queue_sort,) = at("queue_sort", QueueSortPlugin)
        self.pre_filters = at("pre_filter", PreFilterPlugin)
        self.filters = at("filter", FilterPlugin)
        self.post_filters = at("post_filter", PostFilterPlugin)
        self.pre_scores = at("pre_score", PreScorePlugin)
        self.scores = at("score", ScorePlugin)
        self.reserves = at("reserve", ReservePlugin)
        self.permits = at("permit", PermitPlugin)
        self.pre_binds = at("pre_bind", PreBindPlugin)
        self.binds = at("bind", BindPlugin)
        self.post_binds = at("post_bind", PostBindPlugin)
        self.placement_generates = at("placement_generate", PlacementGeneratePlugin)
        self.placement_scores = at("placement_score", PlacementScorePlugin)
        self.pod_group_post_filters = at("pod_group_post_filter", PodGroupPostFilterPlugin)
        self._extensions = [p for p in self.pre_filters if isinstance(p, PreFilterExtensions)]
        self.evaluations = {
            point: dict.fromkeys((p.NAME for p in plugins), 0)
            for point, plugins in (
                ("PreFilter", self.pre_filters),
                ("Filter", self.filters),
                ("PostFilter", self.post_filters),
                ("PreScore", self.pre_scores),
                ("Score", self.scores),
            )
        }
        """How often each plugin had a say; PreFilter and PreScore that said Skip had none, Filter
        and Score have one for each node (spec §8, ``plugin_evaluation_total``)."""
        self.plugins = list({id(p): p for group in points.values() for p in group}.values())
        self.placement_feasibles = [
            p for p in self.plugins if isinstance(p, PlacementFeasiblePlugin)
        ]
        asked = (*self.pre_filters, *self.filters, *self.pre_scores, *self.scores)
        self.deciding = {plugin.NAME: plugin for plugin in asked}
        """The plugins that are asked for a decision."""
        self._asked_for_fit = dict.fromkeys((*self.pre_filters, *self.filters))
        self.by_labels = [p for p in self.deciding.values() if Input.LABELS in p.INPUTS]
        self.by_volumes = [p for p in self.deciding.values() if Input.VOLUMES in p.INPUTS]
        self.plugins_by_others = frozenset(p.NAME for p in self.plugins if not is_in_tree(type(p)))
        self._filters_by_nodes = [
            p
            for p in self.filters
            if Input.LOAD not in p.INPUTS and p.NAME not in self.plugins_by_others
        ]
        self.for_deferred_resizes: Profile | None = None
        """What decides about pods that run and wait to be resized; None: they are left alone."""

    def decide_resizes_by(self, other: "Profile") -> None:
        """Have *other* decide about deferred resizes; what its plugins do counts as done here."""
        for point, counts in other.evaluations.items():
            self.evaluations[point].update(dict.fromkeys(counts, 0))
        other.evaluations = self.evaluations
        self.for_deferred_resizes = other

    @cached_property
    def decides_by_signature(self) -> bool:
        """Whether plugins say the same about all pods of one signature."""
        return decide_by_signature(self.plugins)

    def queueing_hints(self) -> list[tuple[str, ClusterEventWithHint]]:
        """List, per plugin that can reject a pod, the events that may change its mind."""
        rejecting = (
            PreEnqueuePlugin,
            PreFilterPlugin,
            FilterPlugin,
            ReservePlugin,
            PermitPlugin,
            PlacementGeneratePlugin,
            PlacementFeasiblePlugin,
        )
        hints: list[tuple[str, ClusterEventWithHint]] = []
        for plugin in self.plugins:
            if not isinstance(plugin, EnqueueExtensions):
                if isinstance(plugin, rejecting):
                    hints.append((plugin.NAME, ClusterEventWithHint(ALL_EVENTS)))
                continue
            hints.extend((plugin.NAME, r) for r in plugin.events_to_register())
        return hints

    # Filtering.

    def run_pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterOutcome:
        """Run PreFilter plugins in order; what their answers mean is told in spec §2.3."""
        outcome = PreFilterOutcome()
        remembered: Status | None = None
        evaluations = self.evaluations["PreFilter"]
        for plugin in self.pre_filters:
            answer = self.ask("PreFilter", plugin, plugin.pre_filter, state, pod, nodes)
            if isinstance(answer, Status) and answer.code is Code.SKIP:
                state.skip_filter.add(plugin.NAME)
                continue
            evaluations[plugin.NAME] += 1
            if answer is None:
                continue
            if isinstance(answer, PreFilterResult):
                outcome.plugins_with_nodes.append(plugin.NAME)
                names, known = answer.node_names, outcome.node_names
                outcome.node_names = names if known is None else known & names
                if not outcome.node_names:
                    outcome.status = no_common_nodes(outcome.plugins_with_nodes)
                    return outcome
            elif answer.code is Code.UNSCHEDULABLE:
                remembered = answer.of(plugin.NAME)
            elif answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                outcome.status = answer.of(plugin.NAME)
                return outcome
            else:
                outcome.status = failed(answer, "PreFilter", plugin)
                return outcome
        outcome.status = remembered
        return outcome

    def run_filters(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        *,
        passed: Container[str] = (),
    ) -> None:
        """Evaluate the rows in ``state.feasible``, leaving there those that pass.

        Each row is charged in *diagnosis* to the first plugin, in order, that rejects it. Of the
        plugins *passed* it is known that they reject none.
        """
        evaluations = self.evaluations["Filter"]
        left = int(np.count_nonzero(state.feasible))
        for plugin in self.filters:
            if plugin.NAME in state.skip_filter:
                continue
            evaluations[plugin.NAME] += left
            if plugin.NAME in passed:
                continue
            verdict = self.ask("Filter", plugin, plugin.filter, state, pod, nodes)
            if isinstance(verdict, Status):
                row = int(np.argmax(state.feasible))
                diagnosis.statuses[row] = filter_failed(plugin.NAME, verdict.message)
                return
            if not verdict:
                continue
            charged = with_worded_errors(verdict.within(state.feasible), plugin)
            rejected = charged.rejected()
            if rejected is None:
                continue
            diagnosis.verdicts.append(PluginVerdict(plugin.NAME, charged))
            state.feasible = state.feasible & ~rejected
            left = int(np.count_nonzero(state.feasible))
            if not left:
                return

    def filters_by_nodes_alone(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> frozenset[str]:
        """Return the filters whose answers about *pod* do not depend on the pods on nodes."""
        return frozenset(
            plugin.NAME
            for plugin in self._filters_by_nodes
            if plugin.NAME not in state.skip_filter
            and plugin.sign_pod(pod, nodes) is EMPTY_FRAGMENT
        )

    def fit_follows_from(self, pod: PodInfo, nodes: NodeTable) -> tuple[Hashable, ...] | None:
        """Return what the answers of all filters follow from beside rows; None: more than that."""
        values = []
        for plugin in self._asked_for_fit:
            value = plugin.sign_pod(pod, nodes)
            if value is None or plugin.NAME in self.plugins_by_others:
                return None
            values.append(value)
        return tuple(values)

    def filtering(self, _diagnosis: Diagnosis) -> AbstractContextManager[None]:
        """Enclose all that is done in one attempt to find out which nodes fit, for who looks on."""
        return nullcontext()

    def run_pre_filter_extension_add_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> dict[int, Status]:
        """Tell the PreFilter extensions of *pods* added to *rows*; return by row who failed."""
        return self._run_extensions("AddPod", "add_pods", state, pod, rows, pods, nodes)

    def run_pre_filter_extension_remove_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> dict[int, Status]:
        """Tell the PreFilter extensions of *pods* removed from *rows*; return by row who failed."""
        return self._run_extensions("RemovePod", "remove_pods", state, pod, rows, pods, nodes)

    def _run_extensions(
        self,
        point: str,
        method: str,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        pods: PodBatch,
        nodes: NodeTable,
    ) -> dict[int, Status]:
        failures: dict[int, Status] = {}
        for plugin in self._extensions:
            if plugin.NAME in state.skip_filter:
                continue
            answer: Verdict | Status | None = self.ask(
                f"PreFilterExtension{point}",
                plugin,
                getattr(plugin, method),
                state,
                pod,
                rows,
                pods,
                nodes,
            )
            if answer is not None:
                for row, status in failed_rows(answer, rows).items():
                    failures.setdefault(row, status.of(plugin.NAME))
        return failures

    def run_post_filters(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        filters: FilterRunner,
    ) -> PostFilterResult | None:
        """Run PostFilter plugins in order (spec §2.8); None when the profile has none."""
        reasons: list[str] = []
        last = PostFilterResult(None)
        for plugin in self.post_filters:
            self.evaluations["PostFilter"][plugin.NAME] += 1
            result = self.ask(
                "PostFilter", plugin, plugin.post_filter, state, pod, nodes, diagnosis, filters
            )
            if isinstance(result, Status):
                return PostFilterResult(result)
            status = result.status
            if status is None or status.code is not Code.UNSCHEDULABLE:
                result.reasons_before = tuple(reasons)
                return cast("PostFilterResult", result)
            reasons.extend(status.reasons)
            if result.nominated_node is not None:
                last.nominated_node = result.nominated_node
            if result.preemption is not None:
                last.preemption = result.preemption
        if not self.post_filters:
            return None
        last.status = Status.unschedulable(*reasons)
        return last

    # Groups.

    def run_placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        """Say whether *group* may start; a refusal counts before WAIT, and that before None."""
        waits: Status | None = None
        for plugin in self.placement_feasibles:
            status: Status | None
            try:
                status = plugin.placement_feasible(group, progress)
            except Exception as exc:  # noqa: BLE001 - a plugin's bug fails this attempt only
                status = bug_in(plugin, exc)
            if status is not None and status.code is Code.WAIT:
                waits = waits or status.of(plugin.NAME)
            elif status is not None:
                return status.of(plugin.NAME)
        return waits

    async def run_pod_group_post_filters(
        self, group: PodGroup, attempt: PodGroupAttempt
    ) -> PodGroupPostFilterResult | None:
        """Run PodGroupPostFilter plugins in order (1.37 spec N9); None when the profile has none.

        The first success, UNSCHEDULABLE_AND_UNRESOLVABLE or error ends it.
        """
        reasons: list[str] = []
        for plugin in self.pod_group_post_filters:
            result: PodGroupPostFilterResult | Status
            try:
                result = await plugin.pod_group_post_filter(group, attempt)
            except Exception as exc:  # noqa: BLE001 - a plugin's bug fails this attempt only
                result = bug_in(plugin, exc)
            if isinstance(result, Status):
                return PodGroupPostFilterResult(result)
            if result.status is None or result.status.code is not Code.UNSCHEDULABLE:
                return result
            reasons += result.status.reasons
        if not self.pod_group_post_filters:
            return None
        return PodGroupPostFilterResult(Status.unschedulable(*reasons))

    # Scoring.

    def run_scores(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]
    ) -> ScoreTable | Status:
        """Score *rows*, which ``state.feasible`` marks, with every plugin (spec §2.6).

        Without score plugins every node gets 1.
        """
        return self.run_pre_score(state, pod, nodes) or self.run_score(state, pod, nodes, rows)

    def run_pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Run PreScore plugins; return the error of the first that fails."""
        evaluations = self.evaluations["PreScore"]
        for plugin in self.pre_scores:
            status: Status | None = self.ask(
                "PreScore", plugin, plugin.pre_score, state, pod, nodes
            )
            if status is not None and status.code is Code.SKIP:
                state.skip_score.add(plugin.NAME)
                continue
            evaluations[plugin.NAME] += 1
            if status is not None:
                return failed(status, "PreScore", plugin)
        return None

    def run_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: NDArray[np.intp]
    ) -> ScoreTable | Status:
        """Run those Score plugins whose PreScore did not say Skip."""
        evaluations = self.evaluations["Score"]
        raw_scores: dict[str, Ints | int] = {}
        normal_scores: dict[str, Ints | int] = {}
        count = len(rows)
        differing: list[Ints] = []
        of_all = 0 if self.scores else 1
        for plugin in self.scores:
            name = plugin.NAME
            if name in state.skip_score:
                continue
            evaluations[name] += count
            raw = self.ask("Score", plugin, plugin.score, state, pod, nodes)
            if isinstance(raw, Status):
                return score_failed(raw, "running", plugin)
            is_one = is_everywhere(raw)
            normal = of_rows = raw[:1] if is_one else raw.take(rows)
            if normalizes(plugin):
                normal = self.ask(
                    "ScoreExtensionNormalize", plugin, plugin.normalize, state, pod, of_rows
                )
                if isinstance(normal, Status):
                    return score_failed(normal, "running Normalize on", plugin)
            worst = int(normal[0]) if is_one else worst_score(normal)
            if not 0 <= worst <= MAX_NODE_SCORE:
                return invalid_score(plugin, worst)
            weight = self.weights[name]
            if is_one:
                raw_scores[name], normal_scores[name] = int(of_rows[0]), worst
                of_all += worst * weight
            else:
                raw_scores[name], normal_scores[name] = of_rows, normal
                differing.append(normal if weight == 1 else normal * weight)
        total = np.full(count, of_all, np.int64)
        for column in differing:
            total += column
        weighted = Columns(normal_scores, count, self.weights)
        return ScoreTable(rows, Columns(raw_scores, count), weighted, total, self.weights)

    # Claiming.

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Run Reserve plugins in order; the caller unreserves all of them on failure."""
        for plugin in self.reserves:
            status = self.ask("Reserve", plugin, plugin.reserve, state, pod, node_name)
            if status is not None:
                return refused(status, "Reserve", plugin)
        return None

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo Reserve, last plugin first; one that fails does not keep the others from it."""
        for plugin in reversed(self.reserves):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception:  # the pod has failed already, and others need its room
                log.exception("Unreserve failed", extra={"plugin": plugin.NAME, "pod": pod.key})

    def run_permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | PermitWait | None:
        """Return a refusal, what to wait for, or None."""
        waits, message = {}, ""
        for plugin in self.permits:
            answer = self.ask("Permit", plugin, plugin.permit, state, pod, node_name)
            status, timeout = (answer, 0.0) if isinstance(answer, Status) else answer
            if status is None:
                continue
            if status.code is Code.WAIT:
                waits[plugin.NAME], message = timeout, status.message
            else:
                return refused(status, "Permit", plugin)
        return PermitWait(waits, message) if waits else None

    # Binding.

    def run_pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> list[PreBindPlugin] | Status:
        """Return the PreBind plugins that have work to do, or the error of the first that fails.

        Any answer but None and SKIP is an error (spec §2.9).
        """
        plugins = []
        for plugin in self.pre_binds:
            status: Status | None = self.ask(
                "PreBindPreFlight", plugin, plugin.pre_bind_pre_flight, state, pod, node_name
            )
            if status is None:
                plugins.append(plugin)
            elif status.code is not Code.SKIP:
                return failed(status, "PreBindPreFlight", plugin)
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
        """Run *plugins*, which have work to do, in order; return the first failure.

        Neighbours that allow it run *side_by_side*; when one of them fails the others are
        cancelled. *entered* is told which plugins are about to run.
        """

        async def run(plugin: PreBindPlugin) -> Status | None:
            status = await self._await("PreBind", plugin, plugin.pre_bind, state, pod, node_name)
            return None if status is None else refused(status, "PreBind", plugin)

        groups = parallel_groups(plugins) if side_by_side else ([plugin] for plugin in plugins)
        for group in groups:
            entered(group)
            status = await first_failure([partial(run, plugin) for plugin in group])
            if status is not None:
                return status
        return None

    async def run_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Run Bind plugins until one takes the pod (spec §2.9)."""
        for plugin in self.binds:
            status = await self._await("Bind", plugin, plugin.bind, state, pod, node_name)
            if status is None:
                return None
            if status.code is not Code.SKIP:
                return refused(status, "Bind", plugin)
        return Status.error(f"no Bind plugin of profile {self.name!r} took the pod")

    async def run_post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        for plugin in self.post_binds:
            await self._await("PostBind", plugin, plugin.post_bind, state, pod, node_name)

    # For who knows the answers of plugins and calls none, so that a subclass can look on.

    def begin_cached_cycle(self, _state: CycleState) -> float:
        """Note that a cycle begins without PreFilter plugins; return the time."""
        return 0.0

    def end_cached_cycle(self, _points: Sequence[str], _started: float) -> None:
        """Note that all plugins of *points* had their say, though few were called."""

    # Plugins are called here only, so that a subclass can look on.

    def ask(self, _point: str, plugin: Plugin, call: Any, state: CycleState, *args: Any) -> Any:
        """Call a plugin; its bug becomes an error of this attempt, naming the plugin."""
        try:
            return call(state, *args)
        except Exception as exc:  # noqa: BLE001 - a plugin's bug fails this attempt only
            return bug_in(plugin, exc)

    def _await(
        self,
        _point: str,
        _plugin: Plugin,
        call: Callable[..., Awaitable[T]],
        state: CycleState,
        *args: Any,
    ) -> Awaitable[T]:
        """Call a plugin that waits; what it raises is for whoever runs the binding."""
        return call(state, *args)
