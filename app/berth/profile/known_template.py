"""What the plugins of a profile say about pods of one template, kept true as pods come and go.

Of a thousand replicas that are placed one after the other, each changes one row for the next. Most
plugins go by the nodes alone, so their answers stay. Those that go by the load of each node are
asked about all rows with one more pod at once, which answers for the placements to come until a row
gets a second one. Only plugins that count pods in some other way are asked about every pod.

Exact: an answer is used only for the very load that it was given for. Where anything else happens,
all plugins are asked again.
"""

from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.interface import MAX_NODE_SCORE, NOTHING_ELSE, Plugin, ScorePlugin
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code, Status
from berth.framework.verdict import Ints, Mask, Rejection, Rows, Verdict, is_everywhere
from berth.profile.profile import Profile
from berth.profile.statuses import with_worded_errors

FEW: Final = 16
"""When more rows than this have changed, all plugins are asked again; and after so many placements
it is worth asking about all rows at once."""
NOBODY: Final = 127
"""In place of a filter: none has rejected the row."""
NOT_ELIGIBLE: Final = -1
NOT_FEASIBLE: Final = -1
"""The total of rows that are not feasible; others are not negative."""


class NotKnownError(Exception):
    """All plugins have to be asked about the pod."""


class Scored(NamedTuple):
    """A Score plugin that is known."""

    plugin: ScorePlugin
    is_relative: bool
    """Whether the score of a row follows from which others are candidates."""


class KnownTemplate:
    """Feasible rows and their totals for the next pod of a template, as far as they are known.

    Plugins in ``asked`` have to be asked about every pod; they may rule out more rows, and add to
    the totals. None of them changes anything by that.
    """

    def __init__(self, profile: Profile, pod: PodInfo, nodes: NodeTable, eligible: Mask) -> None:
        """Ask about *pod*; NotKnownError if the answers are of a kind that cannot be kept."""
        assert len(profile.filters) < NOBODY
        self.profile = profile
        self.state = CycleState()
        """What plugins remember of the pod, and which of them skip it."""
        self.least_total = 0 if profile.scores else 1
        """What all nodes get, as :meth:`Profile.run_score` gives it."""
        self.num_eligible = int(np.count_nonzero(eligible))
        if any(plugin.NAME in profile.plugins_by_others for plugin in deciding(profile)):
            raise NotKnownError
        self.asked = frozenset(
            plugin.NAME for plugin in deciding(profile) if plugin.follows_from(pod, nodes) is None
        )
        if any(plugin.NAME in self.asked for plugin in profile.reserves):
            raise NotKnownError  # what it finds out is for this pod alone
        self.pod = pod
        self._nodes = nodes
        self._candidates: Rows | None = None
        self._charges: list[tuple[int, Verdict, int]] | None = None
        self._epoch = nodes.kept(KnownTemplate, object)
        self._loads = nodes.with_replicas(pod.template, np.zeros(nodes.size, np.int64))
        """The loads that the answers are for, but for those in ``_load_of``."""
        self._load_of: dict[int, bytes] = {}
        self._run_pre_filter()
        self._run_filters(eligible)
        self._run_scores()
        self._ahead: _Ahead | None = None
        self._ahead_of: dict[int, _Ahead] = {}
        self._since_ahead = FEW
        self._follows = [*self._values()]
        self._generation = nodes.last_generation

    # What there is to know.

    @property
    def candidates(self) -> Rows:
        """The feasible rows, in ascending order."""
        if self._candidates is None:
            self._candidates = np.flatnonzero(self.feasible)
        return self._candidates

    def left_for(self, index: int) -> Mask:
        """Return the rows that no known filter before *index* rejects."""
        return self.charged >= index

    def verdict(self, index: int) -> Verdict | None:
        """Return what the filter at *index* holds against rows; None if nothing."""
        rejections = self._rejections.get(index)
        return Verdict(tuple(rejections)) if rejections else None

    def num_rejected(self, index: int) -> int:
        """Return how many rows the filter at *index* rejects."""
        return self._num_rejected.get(index, 0)

    @property
    def charges(self) -> list[tuple[int, Verdict, int]]:
        """By index of the filter, what it holds against rows, and how many these are."""
        if self._charges is None:
            self._charges = [
                (index, Verdict(tuple(found)), self._num_rejected[index])
                for index, found in sorted(self._rejections.items())
            ]
        return self._charges

    def normal_among(self, candidates: Rows) -> Ints:
        """Return ``normal`` as it were if only some of the feasible rows were candidates.

        Shape (plugins, candidates).
        """
        normal = self.normal[:, candidates]
        for place, scored in enumerate(self.scored):
            if scored.is_relative:
                normal[place] = self._normalized(scored.plugin, self.raw[place, candidates])
        return normal

    # Asking all.

    def _values(self) -> Iterator[tuple[Plugin, Hashable]]:
        """Yield what answers follow from, where it is not the nodes alone."""
        for plugin in deciding(self.profile):
            if plugin.NAME not in self.asked:
                value = plugin.follows_from(self.pod, self._nodes)
                if value is not NOTHING_ELSE:
                    yield plugin, value

    def _run_pre_filter(self) -> None:
        self.state.feasible = self._nodes.exists
        self.pre_filtered: list[str] = []
        """The plugins that had a say in PreFilter."""
        for plugin in self.profile.pre_filters:
            if plugin.NAME not in self.asked:
                answer = self._ask("PreFilter", plugin, plugin.pre_filter)
                if skips(answer):
                    self.state.skip_filter.add(plugin.NAME)
                elif answer is None:
                    self.pre_filtered.append(plugin.NAME)
                else:
                    raise NotKnownError

    def _run_filters(self, eligible: Mask) -> None:
        self.charged = np.where(eligible, NOBODY, NOT_ELIGIBLE).astype(np.int8)
        """By row, the index of the first filter that rejects it."""
        self._rejections: dict[int, list[Rejection]] = {}
        self._num_rejected: dict[int, int] = {}
        self._by_load: list[int] = []
        for index, plugin in enumerate(self.profile.filters):
            if plugin.NAME in self.asked or plugin.NAME in self.state.skip_filter:
                continue
            if plugin.GOES_BY_LOAD:
                self._by_load.append(index)
            self.state.feasible = self.charged == NOBODY
            charged = checked_verdict(
                self._ask("Filter", plugin, plugin.filter), plugin, self.state.feasible
            )
            rejected = charged.rejected()
            if rejected is not None:
                self._rejections[index] = list(charged.rejections)
                self._num_rejected[index] = int(np.count_nonzero(rejected))
                self.charged[rejected] = index
        self.feasible: Mask = self.charged == NOBODY
        if not self.feasible.any():
            raise NotKnownError
        self._candidates = None

    def _run_scores(self) -> None:
        self.state.feasible = self.feasible
        self.pre_scored: list[str] = []
        for pre_score in self.profile.pre_scores:
            if pre_score.NAME not in self.asked:
                answer = self._ask("PreScore", pre_score, pre_score.pre_score)
                if skips(answer):
                    self.state.skip_score.add(pre_score.NAME)
                elif answer is None:
                    self.pre_scored.append(pre_score.NAME)
                else:
                    raise NotKnownError
        self.scored: list[Scored] = []
        columns = []
        for plugin in self.profile.scores:
            if plugin.NAME in self.asked or plugin.NAME in self.state.skip_score:
                continue
            answer = self._ask("Score", plugin, plugin.score)
            if not isinstance(answer, np.ndarray) or (plugin.GOES_BY_LOAD and normalizes(plugin)):
                raise NotKnownError
            self.scored.append(Scored(plugin, normalizes(plugin) and not is_everywhere(answer)))
            columns.append(answer)
        self.names = [each.plugin.NAME for each in self.scored]
        self.weights = np.array([self.profile.weights[name] for name in self.names], np.int64)
        self.weights_column = self.weights[:, np.newaxis]
        shape = (len(columns), self._nodes.size)
        self.raw = np.array(columns, np.int64).reshape(shape)
        """What each of ``scored`` gives each row; shape (plugins, rows)."""
        self.normal = self.raw.copy()
        """The same, normalised; only candidates count."""
        rows = self.candidates
        for place, (plugin, is_relative) in enumerate(self.scored):
            if normalizes(plugin) and not is_relative:
                self.normal[place] = self._normalized(plugin, self.raw[place, :1])
            elif not is_relative:
                check_scores(self.raw[place, rows])
        self._add_up()

    def _add_up(self) -> None:
        """Normalise the scores of all candidates as far as they depend on each other; add all."""
        rows = self.candidates
        for place, (plugin, is_relative) in enumerate(self.scored):
            if is_relative:
                self.normal[place, rows] = self._normalized(plugin, self.raw[place, rows])
        total = np.full(self._nodes.size, self.least_total, np.int64)
        for normal, weight in zip(self.normal, self.weights, strict=True):
            total += normal if weight == 1 else normal * weight
        self.total = np.where(self.feasible, total, NOT_FEASIBLE)
        """By row, what known plugins give it; ``NOT_FEASIBLE`` for those that are not."""

    def _normalized(self, plugin: ScorePlugin, raw: Ints) -> Ints:
        point = "ScoreExtensionNormalize"
        normal = self.profile.ask(point, plugin, plugin.normalize, self.state, self.pod, raw)
        if not isinstance(normal, np.ndarray):
            raise NotKnownError
        check_scores(normal)
        return normal

    def _ask(self, point: str, plugin: Plugin, call: Any) -> object:
        return self.profile.ask(point, plugin, call, self.state, self.pod, self._nodes)

    # Keeping up.

    def catch_up(self) -> None:
        """Take in what has happened to rows since; NotKnownError if all must be asked again."""
        nodes = self._nodes
        if nodes.kept(KnownTemplate, object) is not self._epoch:
            raise NotKnownError
        for plugin, value in self._follows:
            if plugin.follows_from(self.pod, nodes) != value:
                raise NotKnownError
        if nodes.last_generation == self._generation:
            return
        changed = nodes.rows_changed_since(self._generation)
        if len(changed) > FEW:
            raise NotKnownError
        was_feasible = self._candidates
        is_foreseen = True
        for row in changed:
            load = nodes.load(row)
            if load != (self._load_of.get(row) or self._loads.load(row)):
                is_foreseen = self._take_in(row, load, may_ask=is_foreseen) and is_foreseen
                self._load_of[row] = load
        self._generation = nodes.last_generation
        if was_feasible is self._candidates:
            return
        if not len(self.candidates):
            raise NotKnownError
        if any(each.is_relative for each in self.scored):
            self._add_up()

    def _take_in(self, row: int, load: bytes, *, may_ask: bool) -> bool:
        """Follow a row whose load is new; False: that was not foreseen, so plugins were asked."""
        charged = int(self.charged[row])
        if charged != NOBODY:
            if self._by_load and charged >= self._by_load[0]:
                raise NotKnownError  # it may be feasible now, and others have not looked at it
            return True
        found = self._foreseen(row, load)
        if found is None and not may_ask:
            raise NotKnownError
        ahead, at = found or self._look_ahead(row)
        self._since_ahead += 1
        index = ahead.rejected_by(at)
        if index is not None:
            self._reject(row, index, ahead.rejections(index, at))
            return found is not None
        for place, column in ahead.scores.items():
            new = column[at]
            if not 0 <= new <= MAX_NODE_SCORE:
                raise NotKnownError
            self.total[row] += self.weights[place] * (new - self.raw[place, row])
            self.raw[place, row] = self.normal[place, row] = new
        return found is not None

    def _foreseen(self, row: int, load: bytes) -> "tuple[_Ahead, int] | None":
        ahead = self._ahead
        if ahead is not None and ahead.loads.load(row) == load:
            return ahead, row
        ahead = self._ahead_of.get(row)
        if ahead is not None:
            at = int(self._nodes.pod_count[row]) - ahead.first_count
            if 0 <= at < ahead.loads.size and ahead.loads.load(at) == load:
                return ahead, at
        return None

    def _look_ahead(self, row: int) -> "tuple[_Ahead, int]":
        """Ask about *row* as it is, and about what comes next.

        That is one more pod on every other row or, if that was asked not long ago, more pods on
        this one.
        """
        nodes, template = self._nodes, self.pod.template
        if self._since_ahead >= FEW:
            counts = np.ones(nodes.size, np.int64)
            counts[row] = 0
            self._ahead = _Ahead(self, nodes.with_replicas(template, counts))
            self._since_ahead = 0
            return self._ahead, row
        if len(self._ahead_of) >= FEW:
            self._ahead_of.clear()
        part = nodes.take([row] * FEW).with_replicas(template, np.arange(FEW))
        ahead = self._ahead_of[row] = _Ahead(self, part)
        return ahead, 0

    def _reject(self, row: int, index: int, found: list[Rejection]) -> None:
        """Let the filter at *index* reject *row*. Masks that others may have are left alone."""
        self.charged[row] = index
        self._num_rejected[index] = self._num_rejected.get(index, 0) + 1
        self.feasible = self.feasible.copy()
        self.feasible[row] = False
        self.total[row] = NOT_FEASIBLE
        self._candidates = self._charges = None
        rejections = self._rejections.setdefault(index, [])
        for reason, code, _ in found:
            at = next((i for i, r in enumerate(rejections) if r[:2] == (reason, code)), None)
            where = self._nodes.no_rows() if at is None else rejections[at].where.copy()
            where[row] = True
            if at is None:
                rejections.append(Rejection(reason, code, where))
            else:
                rejections[at] = Rejection(reason, code, where)

    @property
    def filters_by_load(self) -> list[int]:
        """The filters that go by load, by index."""
        return self._by_load


class _Ahead:
    """What plugins that go by load say of loads that rows may have later."""

    def __init__(self, known: KnownTemplate, loads: NodeTable) -> None:
        """*loads* has one row for each of them; only its columns count."""
        self.loads = loads
        self.first_count = int(loads.pod_count[0])
        state = CycleState(np.ones(loads.size, bool))
        state.start_from(known.state)
        profile, pod = known.profile, known.pod
        self._verdicts: list[tuple[int, Verdict]] = []
        self._rejected: list[tuple[int, Mask]] = []
        for index in known.filters_by_load:
            plugin = profile.filters[index]
            answer = profile.ask("Filter", plugin, plugin.filter, state, pod, loads)
            verdict = checked_verdict(answer, plugin, state.feasible)
            rejected = verdict.rejected()
            if rejected is not None:
                self._verdicts.append((index, verdict))
                self._rejected.append((index, rejected))
        self.scores: dict[int, Ints] = {}
        """By place among the scored."""
        for place, scored in enumerate(known.scored):
            if scored.plugin.GOES_BY_LOAD:
                scorer = scored.plugin
                answer = profile.ask("Score", scorer, scorer.score, state, pod, loads)
                if not isinstance(answer, np.ndarray):
                    raise NotKnownError
                self.scores[place] = answer

    def rejected_by(self, at: int) -> int | None:
        """Return the index of the first filter that rejects the row *at*."""
        return next((index for index, where in self._rejected if where[at]), None)

    def rejections(self, index: int, at: int) -> list[Rejection]:
        """Return what the filter at *index* holds against the row *at*."""
        (verdict,) = (each for i, each in self._verdicts if i == index)
        return [rejection for rejection in verdict.rejections if rejection.where[at]]


def deciding(profile: Profile) -> list[Plugin]:
    """Return the plugins of *profile* that are asked for a decision, each once."""
    plugins = (*profile.pre_filters, *profile.filters, *profile.pre_scores, *profile.scores)
    return list({id(plugin): plugin for plugin in plugins}.values())


def skips(answer: object) -> bool:
    return isinstance(answer, Status) and answer.code is Code.SKIP


def normalizes(plugin: ScorePlugin) -> bool:
    return type(plugin).normalize is not ScorePlugin.normalize


def checked_verdict(answer: object, plugin: Plugin, rows: Mask) -> Verdict:
    """Return what a filter holds against *rows*; NotKnownError if it failed."""
    if not isinstance(answer, Verdict):
        raise NotKnownError
    charged = with_worded_errors(answer.within(rows), plugin) if answer else answer
    if any(rejection.code is Code.ERROR for rejection in charged.rejections):
        raise NotKnownError
    return charged


def check_scores(scores: Ints) -> None:
    """NotKnownError if any is not in 0..100."""
    if int(scores.view(np.uint64).max(initial=0)) > MAX_NODE_SCORE:
        raise NotKnownError
