"""Answers of a profile's plugins about pods of one template, kept true as pods come and go.

Of a thousand replicas that are placed one after the other, each changes one row for the next. Most
plugins go by the nodes alone, so their answers stay. Those that go by the load of each node are
asked about the best rows with one more pod at once, which answers for the placements to come, and
about rows on which something else has happened. Only plugins that count pods in some other way are
asked about every pod.

Exact: an answer is used only for the very load that it was given for. Where nodes change, all
plugins are asked again.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from berth.scheduler.answer_cache.filters import NOBODY, CachedFilters
from berth.scheduler.answer_cache.look_ahead import LookAhead
from berth.scheduler.answer_cache.scores import CachedScore, CachedScores, ScoreOfAll
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    EMPTY_FRAGMENT,
    MAX_NODE_SCORE,
    FilterPlugin,
    Input,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.scoring import normalizes
from berth.scheduler.framework.single_rows import FiltersRows, ScoresRows
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Ints, Mask, Rows, Verdict, is_everywhere
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.statuses import with_worded_errors

FEW: Final = 16
"""It takes so many placements, or more if many rows are equally good, to be worth asking about all
of the best rows at once. Before, it is one row that gets pod after pod."""
MANY: Final = 8
"""When more than one row in so many has changed, all plugins are asked again."""
_FRONTS: Final = 4
"""The answers about the best rows that are kept. Those of a zone come back when it is its turn."""
_WORTH: Final = 64
"""For each placement since the last time, plugins may be asked about so many rows at once."""


class CacheMissError(Exception):
    """All plugins have to be asked about the pod."""


class CachedAnswers:
    """Feasible rows and their totals for the next pod of a template, as far as they are cached;
    or of other templates that differ in namespace and labels alone.

    Plugins in ``asked`` have to be asked about every pod; they may rule out more rows, and add to
    the totals. None of them changes anything by that.

    Or for the next of pods that differ in containers and labels, and have ``node_facts`` in common
    and what plugins that go by labels follow from. Then plugins that go by containers are asked.

    In either case the pods have in common what plugins that go by volumes follow from.
    """

    def __init__(
        self,
        profile: Profile,
        pod: PodInfo,
        nodes: NodeTable,
        eligible: Mask,
        *,
        differ: bool = False,
    ) -> None:
        """Ask about *pod*; CacheMissError if the answers are of a kind that cannot be kept.

        *differ*: pods may have other containers and labels.
        """
        assert len(profile.filters) < NOBODY
        self.profile = profile
        self.state = CycleState()
        """What plugins remember of the pod, and which of them skip it."""
        self.asked = frozenset(
            name
            for name, plugin in profile.deciding.items()
            if (differ and Input.CONTAINERS in plugin.INPUTS) or plugin.sign_pod(pod, nodes) is None
        )
        if any(p.NAME in self.asked and Input.VOLUMES not in p.INPUTS for p in profile.reserves):
            raise CacheMissError  # what it finds out is for this pod alone
        self.pod = pod
        self._nodes = nodes
        self._asking = Asking(profile, pod, nodes)
        self._epoch = nodes.kept(CachedAnswers, object)
        self.state.feasible = nodes.exists
        self.pre_filtered = self._asking.pre_filter(
            [p for p in profile.pre_filters if p.NAME not in self.asked], self.state
        )
        """The plugins that had a say in PreFilter."""
        self.filters = CachedFilters(eligible)
        self._filters_by_load: list[tuple[int, FilterPlugin]] = []
        self._run_filters()
        if not self.filters.feasible.any():
            raise CacheMissError
        self.state.feasible = self.filters.not_ruled_out()
        self.pre_scored = self._asking.pre_score(
            [p for p in profile.pre_scores if p.NAME not in self.asked], self.state
        )
        self._scores_by_load: list[ScorePlugin] = []
        self.scores = self._run_scores()
        self._best_ahead: deque[LookAhead] = deque(maxlen=_FRONTS)
        self._row_ahead: dict[int, LookAhead] = {}
        self._since_ahead = FEW
        self._row_filters = [p for _, p in self._filters_by_load if isinstance(p, FiltersRows)]
        self._row_scores = [p for p in self._scores_by_load if isinstance(p, ScoresRows)]
        self._goes_by_row = len(self._row_filters) == len(self._filters_by_load) and len(
            self._row_scores
        ) == len(self._scores_by_load)
        """Whether plugins that go by load can tell about single rows, as far as it is cached."""
        self._chosen: int | None = None
        self._front: Callable[[], Rows] = self.scores.best.front
        self._follows = [*self._values(differ=differ)]
        self._generation = nodes.last_generation

    def chose(self, row: int, front: Callable[[], Rows] | None = None) -> None:
        """Expect a pod of this template on *row*.

        *front* gives the rows that come next, if what others say makes them other than those with
        the best cached totals.
        """
        self._chosen, self._front = row, front or self.scores.best.front

    # Asking about all rows.

    def _values(self, *, differ: bool) -> Iterator[tuple[Plugin, Hashable]]:
        """Yield what answers follow from, where it is not the nodes alone and may change."""
        for name, plugin in self.profile.deciding.items():
            is_in_common = Input.VOLUMES in plugin.INPUTS or (
                differ and Input.LABELS in plugin.INPUTS
            )
            if name not in self.asked and not is_in_common:
                value = plugin.sign_pod(self.pod, self._nodes)
                if value is not EMPTY_FRAGMENT:
                    yield plugin, value

    def _run_filters(self) -> None:
        for index, plugin in enumerate(self.profile.filters):
            if plugin.NAME in self.asked or plugin.NAME in self.state.skip_filter:
                continue
            if Input.LOAD in plugin.INPUTS:
                self._filters_by_load.append((index, plugin))
            self.state.feasible = self.filters.not_ruled_out()
            verdict = self._asking.filter(plugin, self.state)
            self.filters.add(index, verdict, lasts=Input.LOAD not in plugin.INPUTS)

    def _run_scores(self) -> CachedScores:
        scores, of_all = [], []
        for plugin in self.profile.scores:
            if plugin.NAME in self.asked or plugin.NAME in self.state.skip_score:
                continue
            raw = self._asking.score(plugin, self.state)
            if Input.LOAD in plugin.INPUTS and normalizes(plugin):
                raise CacheMissError
            weight = self.profile.weights[plugin.NAME]
            if Input.LOAD in plugin.INPUTS:
                self._scores_by_load.append(plugin)
                raw = np.array(raw)
            elif is_everywhere(raw):
                normal = self._normalized(plugin, raw[:1]) if normalizes(plugin) else raw[:1]
                check_scores(normal)
                of_all.append(ScoreOfAll(plugin.NAME, weight, int(raw[0]), int(normal[0])))
                continue
            is_relative = normalizes(plugin)
            if not is_relative:
                check_scores(raw[self.state.feasible])
            normal = raw.copy() if is_relative else raw
            scores.append(CachedScore(plugin, weight, raw, normal, is_relative))
        return CachedScores(
            scores,
            of_all,
            self.filters.feasible,
            # As Profile.run_score has it.
            least_total=0 if self.profile.scores else 1,
            normalize=self._normalized,
        )

    def _normalized(self, plugin: ScorePlugin, raw: Ints) -> Ints:
        normal = self._asking.normalize(plugin, raw, self.state)
        check_scores(normal)
        return normal

    # Keeping up.

    def refresh(self, pod: PodInfo) -> None:
        """Take in what has happened to rows since; CacheMissError if all must be asked again for
        *pod*, which may differ from the others in namespace and labels."""
        nodes = self._nodes
        if nodes.kept(CachedAnswers, object) is not self._epoch:
            raise CacheMissError
        for plugin, value in self._follows:
            if plugin.sign_pod(pod, nodes) != value:
                raise CacheMissError  # for this pod; others may go on
        if not (self._filters_by_load or self._scores_by_load):
            return
        if nodes.last_generation != self._generation:
            try:
                self._take_in_rows(nodes.rows_loaded_since(self._generation))
            except CacheMissError:
                self._epoch = object()  # a part may have been taken in: nobody goes on
                raise

    def _take_in_rows(self, changed: Sequence[int]) -> None:
        nodes = self._nodes
        if len(changed) > FEW + nodes.size // MANY:
            raise CacheMissError
        self._generation = nodes.last_generation
        unforeseen = []
        for row in changed:
            if self.filters.is_ruled_out(row) or (self._goes_by_row and self._look_at_row(row)):
                continue
            foreseen = self._foreseen(row) if row == self._chosen else None
            if foreseen is None:
                unforeseen.append(row)
            else:
                self._since_ahead += 1
                self._take_in(row, *foreseen)
        if unforeseen:
            self._look_at(unforeseen)

    def _foreseen(self, row: int) -> tuple[LookAhead, int] | None:
        count, load = self._nodes.pod_count.item(row), self._nodes.load(row)
        of_row = self._row_ahead.get(row)
        for ahead in self._best_ahead if of_row is None else (*self._best_ahead, of_row):
            place = ahead.place_of(row, count, load)
            if place is not None:
                return ahead, place
        return None

    def _take_in(self, row: int, ahead: LookAhead, place: int) -> None:
        """Follow *row*, whose load is new, by the answers of *ahead*."""
        was_feasible = bool(self.filters.feasible[row])
        is_feasible = self.filters.change(row, ahead.rejections(place))
        if is_feasible:
            scores = ahead.scores_at(place)
            if any(not 0 <= score <= MAX_NODE_SCORE for score in scores.values()):
                raise CacheMissError
            self.scores.change(row, scores, self.filters.feasible, is_new=not was_feasible)
        elif was_feasible:
            if len(self.scores.best) == 1:
                raise CacheMissError  # no row is left
            self.scores.drop(row, self.filters.feasible)

    def _look_at(self, changed: list[int]) -> None:
        """Ask about rows as they are; if the chosen one is among them, about what comes next, too.

        That is one more pod on each of the best rows or, if that was asked not long ago and the
        chosen one was among them, more pods on that. Where plugins can tell about single rows,
        there is no need to ask ahead.
        """
        chosen = None if self._goes_by_row else self._chosen
        rows, pods = np.array(changed), np.zeros(len(changed), np.int64)
        is_about_best = self._since_ahead >= max(FEW, self.scores.best.num_in_front // _WORTH) or (
            chosen is not None and not any(ahead.is_about(chosen) for ahead in self._best_ahead)
        )
        if chosen in changed:
            if is_about_best:
                more = np.setdiff1d(self._front(), rows, assume_unique=True)
                more_pods = np.ones(len(more), np.int64)
            else:
                more, more_pods = np.full(FEW, chosen), np.arange(1, FEW + 1)
            rows, pods = np.concatenate((rows, more)), np.concatenate((pods, more_pods))
            in_order = rows.argsort(kind="stable")
            rows, pods = rows[in_order], pods[in_order]
        ahead = self._ask_ahead(rows, pods)
        if chosen in changed and is_about_best:
            self._best_ahead.append(ahead)
            self._since_ahead = 0
        elif chosen in changed:
            if len(self._row_ahead) >= FEW:
                self._row_ahead.clear()
            self._row_ahead[chosen] = ahead
            self._since_ahead += 1
        places = [ahead.first_of(row) for row in changed]
        if ahead.rejects_none and self.filters.feasible[changed].all():
            self._score_anew(changed, ahead, places)
        else:
            for row, place in zip(changed, places, strict=True):
                self._take_in(row, ahead, place)

    def _look_at_row(self, row: int) -> bool:
        """Follow *row* if it stays feasible and all plugins can tell by itself."""
        nodes, scores = self._nodes, {}
        if not self.filters.feasible.item(row):
            return False
        for plugin in self._row_filters:
            passes = plugin.passes_row(self.pod, nodes, row)
            if not passes:
                self._goes_by_row = passes is not None
                return False
        for scorer in self._row_scores:
            score = scorer.score_row(self.pod, nodes, row)
            if score is None or not 0 <= score <= MAX_NODE_SCORE:
                self._goes_by_row = False
                return False
            scores[scorer.NAME] = score
        self.scores.change(row, scores, self.filters.feasible, is_new=False)
        return True

    def _score_anew(self, rows: list[int], ahead: LookAhead, places: list[int]) -> None:
        """Follow *rows*, which stay feasible, all at once."""
        scores = {name: column[places] for name, column in ahead.scores.items()}
        for column in scores.values():
            check_scores(column)
        self.scores.change_all(rows, scores)

    def _ask_ahead(self, rows: Rows, pods: Ints) -> LookAhead:
        """Ask those that go by load about *rows*, each with so many more *pods*."""
        loads = self._nodes.with_replicas(self.pod.template, rows, pods)
        state = CycleState(np.ones(len(rows), bool))
        state.start_from(self.state)
        asking = Asking(self.profile, self.pod, loads)
        verdicts = {index: asking.filter(plugin, state) for index, plugin in self._filters_by_load}
        scores = {scorer.NAME: asking.score(scorer, state) for scorer in self._scores_by_load}
        return LookAhead(rows, loads, verdicts, scores)


class Asking:
    """Asks plugins about *pod* and the rows of *nodes*.

    Raises CacheMissError for every answer that only the whole pass knows what to do with.
    """

    def __init__(self, profile: Profile, pod: PodInfo, nodes: NodeTable) -> None:
        self._ask = profile.ask
        self._pod = pod
        self._nodes = nodes

    def pre_filter(self, plugins: Iterable[PreFilterPlugin], state: CycleState) -> list[str]:
        """Return who had a say; who has none is in ``state.skip_filter`` then."""
        calls = [(plugin, plugin.pre_filter) for plugin in plugins]
        return self._pre("PreFilter", calls, state, state.skip_filter)

    def pre_score(self, plugins: Iterable[PreScorePlugin], state: CycleState) -> list[str]:
        """Return who had a say; who has none is in ``state.skip_score`` then."""
        calls = [(plugin, plugin.pre_score) for plugin in plugins]
        return self._pre("PreScore", calls, state, state.skip_score)

    def _pre(
        self, point: str, calls: Iterable[tuple[Plugin, Any]], state: CycleState, skip: set[str]
    ) -> list[str]:
        had_say = []
        for plugin, call in calls:
            answer = self._ask(point, plugin, call, state, self._pod, self._nodes)
            if answer is None:
                had_say.append(plugin.NAME)
            elif isinstance(answer, Status) and answer.code is Code.SKIP:
                skip.add(plugin.NAME)
            else:
                raise CacheMissError
        return had_say

    def filter(self, plugin: FilterPlugin, state: CycleState) -> Verdict:
        """Return what *plugin* holds against rows in ``state.feasible``."""
        answer = self._ask("Filter", plugin, plugin.filter, state, self._pod, self._nodes)
        if not isinstance(answer, Verdict):
            raise CacheMissError
        charged = with_worded_errors(answer.within(state.feasible), plugin) if answer else answer
        if any(rejection.code is Code.ERROR for rejection in charged.rejections):
            raise CacheMissError
        return charged

    def score(self, plugin: ScorePlugin, state: CycleState) -> Ints:
        """Return the raw scores of all rows."""
        raw = self._ask("Score", plugin, plugin.score, state, self._pod, self._nodes)
        if not isinstance(raw, np.ndarray):
            raise CacheMissError
        return raw

    def normalize(self, plugin: ScorePlugin, raw: Ints, state: CycleState) -> Ints:
        """Return *raw* scores as normalized by *plugin*."""
        point = "ScoreExtensionNormalize"
        normal = self._ask(point, plugin, plugin.normalize, state, self._pod, raw)
        if not isinstance(normal, np.ndarray):
            raise CacheMissError
        return normal


def check_scores(scores: Ints) -> None:
    """CacheMissError if any is not in 0..100."""
    if not are_in_range(scores):
        raise CacheMissError


def are_in_range(scores: Ints) -> bool:
    """Whether all, one at least, are in 0..100."""
    # As unsigned numbers the negative ones are large: one look finds both.
    unsigned = scores.view(np.uint64)
    return unsigned.item(unsigned.argmax()) <= MAX_NODE_SCORE
