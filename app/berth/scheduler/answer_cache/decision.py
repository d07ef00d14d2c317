"""Decisions from cached answers, for one pod after the other."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from berth.scheduler.answer_cache.answers import (
    Asking,
    CachedAnswers,
    are_in_range,
    check_scores,
)
from berth.scheduler.answer_cache.best_rows import IN_FRONT, LEFT_OUT
from berth.scheduler.answer_cache.scores import among
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import TOP_NODES, best_places
from berth.scheduler.find_nodes_that_fit import NO_ROWS, FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis, PluginVerdict
from berth.scheduler.framework.interface import ScorePlugin
from berth.scheduler.framework.scoring import normalizes
from berth.scheduler.framework.status import Code
from berth.scheduler.framework.verdict import Ints, Mask, Rows, Verdict, is_everywhere
from berth.scheduler.outcome import Placed, Unschedulable
from berth.scheduler.profile.results import Columns, ScoreTable
from berth.scheduler.schedule_pod import Select

_POINTS: Final = ("PreFilter", "Filter", "PreScore", "Score")

Charges = list[tuple[int, Verdict, int]]
"""By index of the filter, what it holds against rows, and how many these are."""
Evaluations = list[tuple[dict[str, int], str, int]]
"""What to count: where, by plugin, how often."""


class _Asked:
    """The plugins that have to be asked about each pod of a template, in order."""

    def __init__(self, cached: CachedAnswers) -> None:
        profile, names = cached.profile, cached.asked
        self.pre_filters = [
            pre_filter for pre_filter in profile.pre_filters if pre_filter.NAME in names
        ]
        self.filters = {
            i: plugin for i, plugin in enumerate(profile.filters) if plugin.NAME in names
        }
        """By index of the filter."""
        self.pre_scores = [pre_score for pre_score in profile.pre_scores if pre_score.NAME in names]
        self.scores = [score for score in profile.scores if score.NAME in names]


class Decider:
    """Decides about pods of one template, keeping what is the same for one after the other."""

    def __init__(self, cached: CachedAnswers) -> None:
        self.cached = cached
        self._asked = _Asked(cached)
        self._charges: Charges | None = None
        """Those that what follows is for."""
        self._grounds: tuple[object, ...] = ()
        """The same, where plugins are asked."""
        self._found: FeasibleNodes | None = None
        self._evaluations: tuple[Evaluations, Evaluations] = [], []
        """How often plugins had a say: until Filter, and from PreScore on."""

    def decide(self, cycle: Cycle, select: Select) -> Placed | Unschedulable:
        """Decide where the pod of *cycle* goes; CacheMissError if that takes asking everybody."""
        cached, profile = self.cached, cycle.profile
        cycle.state.start_from(cached.state)
        started = profile.begin_cached_cycle(cycle.state)
        if cached.asked:
            decision = _AskingDecision(cached, self._asked, cycle)
            chosen = decision.make(select)
            if chosen is not None:
                cached.chose(chosen[0], decision.front)
            feasible_nodes = self._found_by(decision)
        else:
            cycle.state.feasible = cached.filters.feasible
            chosen = _select_best(cached, select)
            cached.chose(chosen[0])
            feasible_nodes = self._found_before(cycle)
        filtered, scored = self._evaluations
        for counts, name, number in filtered:
            counts[name] += number
        if chosen is None:
            profile.end_cached_cycle(_POINTS[:2], started)
            return Unschedulable(cycle.pod, profile.name, feasible_nodes)
        row, scores, num_best = chosen
        name = cycle.nodes.name(row)
        if scores is None:
            profile.end_cached_cycle(_POINTS[:2], started)
            return Placed(cycle.pod, profile.name, feasible_nodes, name)
        for counts, plugin, number in scored:
            counts[plugin] += number
        profile.end_cached_cycle(_POINTS, started)
        return Placed(cycle.pod, profile.name, feasible_nodes, name, scores, num_best=num_best)

    def _found_before(self, cycle: Cycle) -> FeasibleNodes:
        """Return the nodes that were found for the last pod, if they are still the same."""
        filters = self.cached.filters
        if self._found is None or self._charges is not filters.charges:
            self._charges = filters.charges
            self._found = _found(cycle, self._charges, filters.feasible)
            self._evaluations = _evaluations(
                cycle,
                self._charges,
                filters.num_eligible,
                self.cached.pre_filtered,
                self.cached.pre_scored,
                len(self.cached.scores.best),
            )
        return self._found

    def _found_by(self, decision: "_AskingDecision") -> FeasibleNodes:
        """Return the nodes that *decision* found; those of the last pod if nothing has changed."""
        grounds, feasible = decision.grounds(), decision.feasible
        if self._found is None or self._grounds != grounds or self._found.feasible is not feasible:
            self._grounds = grounds
            self._found = decision.found()
            self._evaluations = decision.evaluations()
        return self._found


def _select_best(cached: CachedAnswers, select: Select) -> tuple[int, ScoreTable | None, int]:
    """Return a row with the highest total, the scores of the best if there are several rows, and
    how many have the highest total."""
    best = cached.scores.best
    ties = best.ties
    row = ties[0] if len(ties) == 1 else select(ties)
    if len(best) == 1:
        return row, None, 1
    # Those that the record of the decision may name, whether the chosen one is refused or not.
    rows = np.array(sorted({row, *best.first(TOP_NODES)}))
    raw, normal = cached.scores.of(rows)
    return row, _table(cached, rows, raw, normal, best.totals.take(rows)), len(ties)


def _table(
    cached: CachedAnswers,
    rows: Rows,
    raw: Mapping[str, Ints | int],
    normal: Mapping[str, Ints | int],
    total: Ints,
) -> ScoreTable:
    weights, size = cached.profile.weights, len(rows)
    return ScoreTable(rows, Columns(raw, size), Columns(normal, size, weights), total, weights)


def _found(cycle: Cycle, charges: Charges, feasible: Mask) -> FeasibleNodes:
    diagnosis = Diagnosis(cycle.num_nodes)
    for index, verdict, _ in charges:
        name = cycle.profile.filters[index].NAME
        diagnosis.verdicts.append(PluginVerdict(name, verdict))
        pending = any(r.code is Code.PENDING for r in verdict.rejections)
        (diagnosis.pending_plugins if pending else diagnosis.unschedulable_plugins).add(name)
    return FeasibleNodes(diagnosis, feasible)


def _evaluations(
    cycle: Cycle,
    charges: Charges,
    num_eligible: int,
    pre_filtered: Iterable[str],
    pre_scored: Iterable[str],
    num_candidates: int,
) -> tuple[Evaluations, Evaluations]:
    """Return who had a say, as in the plugins' runs (spec §8, ``plugin_evaluation_total``)."""
    profile, state = cycle.profile, cycle.state
    counts = profile.evaluations
    filtered = [(counts["PreFilter"], name, 1) for name in pre_filtered]
    rejected, left = {index: count for index, _, count in charges}, num_eligible
    for index, plugin in enumerate(profile.filters):
        if plugin.NAME not in state.skip_filter:
            filtered.append((counts["Filter"], plugin.NAME, left))
            left -= rejected.get(index, 0)
            if not left:
                break
    scorers = [score.NAME for score in profile.scores if score.NAME not in state.skip_score]
    scored = [(counts["PreScore"], name, 1) for name in pre_scored]
    scored += [(counts["Score"], name, num_candidates) for name in scorers]
    return filtered, scored


class _AskingDecision:
    """A decision for which some plugins are asked. Nothing is counted before it is certain."""

    def __init__(self, cached: CachedAnswers, asked: _Asked, cycle: Cycle) -> None:
        self._cached = cached
        self._asked = asked
        self._cycle = cycle
        self._profile = cycle.profile
        self._state = cycle.state
        self._asking = Asking(cycle.profile, cycle.pod, cycle.nodes)
        self._pre_filtered = cached.pre_filtered
        self._pre_scored = cached.pre_scored
        self.feasible = cached.filters.feasible
        """The rows that have passed so far."""
        self._num_candidates = len(cached.scores.best)
        self._charges: Charges = []
        self._totals: Ints | None = None
        """By row, if they are others than those that are cached."""

    def make(self, select: Select) -> tuple[int, ScoreTable | None, int] | None:
        """Return the row to take, the best rows if there are several, and how many are equal.

        None if the pod fits nowhere.
        """
        self._run_pre_filter()
        self._run_filters()
        self._state.feasible = self.feasible
        if not self._num_candidates:
            return None
        if self._num_candidates == 1:
            return int(self.feasible.argmax()), None, 1
        return self._select_host(select)

    def front(self) -> Rows:
        """Return the best rows, and all that are as good as the last of them."""
        if self._totals is None:
            rows = self._cached.scores.best.front()
            return rows[self.feasible.take(rows)]
        least = 0
        if self._num_candidates > IN_FRONT:
            least = np.partition(self._totals, -IN_FRONT)[-IN_FRONT]
        return np.flatnonzero(self._totals >= least)

    def grounds(self) -> tuple[object, ...]:
        """Return what :meth:`found` and :meth:`evaluations` follow from beside ``feasible``."""
        state = self._state
        skipped = state.skip_filter, state.skip_score
        return self._charges, self._pre_filtered, self._pre_scored, *skipped

    def found(self) -> FeasibleNodes:
        """Return which rows are feasible, and why the others are not."""
        return _found(self._cycle, self._charges, self.feasible)

    def evaluations(self) -> tuple[Evaluations, Evaluations]:
        """Return how often plugins had a say: until Filter, and from PreScore on."""
        return _evaluations(
            self._cycle,
            self._charges,
            self._cached.filters.num_eligible,
            self._pre_filtered,
            self._pre_scored,
            self._num_candidates,
        )

    # Filter.

    def _run_pre_filter(self) -> None:
        state = self._state
        state.feasible = self._cycle.nodes.exists
        had_say = self._asking.pre_filter(self._asked.pre_filters, state)
        if had_say:
            self._pre_filtered = [*self._pre_filtered, *had_say]

    def _run_filters(self) -> None:
        """Ask the filters that have to be asked about the rows that come to them."""
        cached, state = self._cached, self._state
        asked = self._asked.filters
        if cached.asked <= state.skip_filter:
            self._charges = cached.filters.charges
            return
        charges = {index: (verdict, count) for index, verdict, count in cached.filters.charges}
        gone: Mask | None = None
        for index in sorted({*charges, *asked}):
            plugin = asked.get(index)
            if plugin is None:
                verdict, count = charges[index]
                if gone is not None:
                    verdict = verdict.within(~gone)
                    count = verdict.num_rejected
                if verdict:
                    self._charges.append((index, verdict, count))
            elif plugin.NAME not in state.skip_filter:
                is_last = index > max(charges, default=-1)
                before = cached.filters.feasible if is_last else cached.filters.left_for(index)
                state.feasible = before if gone is None else before & ~gone
                verdict = self._asking.filter(plugin, state)
                rejected = verdict.rejected()
                if rejected is not None:
                    self._charges.append((index, verdict, verdict.num_rejected))
                    gone = rejected if gone is None else gone | rejected
        if gone is not None:
            self.feasible = self.feasible & ~gone
            self._num_candidates = int(np.count_nonzero(self.feasible))

    # Score.

    def _select_host(self, select: Select) -> tuple[int, ScoreTable | None, int]:
        cached, scores = self._cached, self._cached.scores
        asked = [*self._run_scores()]
        are_all = self.feasible is cached.filters.feasible
        if are_all and not asked:
            return _select_best(cached, select)
        is_same = are_all or not scores.are_relative
        total = scores.best.totals if is_same else scores.totals_among(self.feasible)
        wanted, found = min(TOP_NODES, self._num_candidates), None
        if is_same and not asked:
            found = scores.best.first_among(self.feasible, wanted)
        of_all = 0
        if found is None:
            if is_same and not are_all:
                total = np.where(self.feasible, total, LEFT_OUT)
            for _, weight, _, normal in asked:
                if isinstance(normal, int):
                    of_all += normal * weight
                else:
                    total = total + (normal if weight == 1 else normal * weight)
            if total is not scores.best.totals:
                self._totals = total
            (best,) = (total == total[total.argmax()]).nonzero()
            found = best, best_places(total, best, NO_ROWS, at_most=wanted).tolist()
        best, first = found
        row = best.item(0) if len(best) == 1 else select(best.data)
        rows = np.array(sorted({row, *first}))
        raw, normals = scores.of(rows)
        if not is_same:
            normals |= scores.normal_among(self.feasible, rows)
        for plugin, _, column, normal in asked:
            raw[plugin.NAME] = _at(column, rows)
            normals[plugin.NAME] = _at(normal, rows)
        return row, _table(cached, rows, raw, normals, total[rows] + of_all), len(best)

    def _run_scores(self) -> Iterator[tuple[ScorePlugin, int, Ints | int, Ints | int]]:
        """Yield what the plugins that have to be asked give the candidates."""
        state, profile, asking = self._state, self._profile, self._asking
        had_say = asking.pre_score(self._asked.pre_scores, state)
        if had_say:
            self._pre_scored = [*self._pre_scored, *had_say]
        for plugin in self._asked.scores:
            if plugin.NAME in state.skip_score:
                continue
            raw = asking.score(plugin, state)
            weight = profile.weights[plugin.NAME]
            is_one = is_everywhere(raw)
            of_rows = normal = raw[:1] if is_one else raw
            if normalizes(plugin):
                of_rows = of_rows if is_one else among(raw, self.feasible)
                normal = asking.normalize(plugin, of_rows, state)
            if not are_in_range(normal):
                check_scores(normal[:1] if is_one else normal[self.feasible])
            if is_one:
                yield plugin, weight, int(raw[0]), int(normal[0])
            else:
                yield plugin, weight, raw, normal


def _at(column: Ints | int, rows: Rows) -> Ints | int:
    return column if isinstance(column, int) else column[rows]
