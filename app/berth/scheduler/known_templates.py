"""The next of many replicas: the same decision as for any pod, from what is known of the others.

Decision (2026-11): pods of one template that are tried one after the other share the answers of
plugins, as far as :mod:`berth.profile.known_template` can keep them true. Node, ties, order and
metrics are those of :func:`berth.scheduler.schedule_pod.schedule_pod`, which decides whatever this
leaves to it: pods with a nominated node or beside nominated pods, pods that fit nowhere, profiles
that sample nodes, and every error.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from berth.framework.diagnosis import Diagnosis, PluginVerdict
from berth.framework.interface import Plugin, ScorePlugin
from berth.framework.placement import Placement
from berth.framework.pod_info import PodTemplate
from berth.framework.status import Code, Status
from berth.framework.verdict import Ints, Mask, Rows, Verdict, everywhere, is_everywhere
from berth.profile.known_template import (
    KnownTemplate,
    NotKnownError,
    check_scores,
    checked_verdict,
    normalizes,
    skips,
)
from berth.profile.profile import Profile
from berth.profile.results import PreFilterOutcome, ScoreTable
from berth.scheduler.cycle import Cycle
from berth.scheduler.decisions import best_places
from berth.scheduler.find_nodes_that_fit import NO_ROWS, FeasibleNodes
from berth.scheduler.outcome import Placed
from berth.scheduler.schedule_pod import Select

KEPT: Final = 8
"""Templates that are known at once; at 5,000 nodes each takes half a megabyte."""

_Key = tuple[Profile, PodTemplate, Placement]


class KnownTemplates:
    """Decides about replicas; keeps what is known of the templates that were tried last."""

    def __init__(self) -> None:
        self._known: dict[_Key, KnownTemplate] = {}
        self._last: _Key | None = None
        self._not_before = 0
        """The generation of the table at which the last one could not be known."""

    def schedule(self, cycle: Cycle, *, select: Select, is_one_of_many: bool) -> Placed | None:
        """Decide where the pod of *cycle* goes; None if that takes asking everybody.

        From the second pod of a template in a row on, or from the first if it *is_one_of_many*.
        """
        profile, pod, nodes = cycle.profile, cycle.pod, cycle.nodes
        if (
            profile.percentage_of_nodes_to_score
            or cycle.nominated_pods
            or pod.pod.status.nominated_node_name
        ):
            return None
        key = (profile, pod.template, cycle.placement)
        known = self._known.pop(key, None)
        try:
            if known is not None:
                try:
                    known.catch_up()
                except NotKnownError:
                    known = None
            if known is None:
                if self._last != key and not is_one_of_many:
                    return None
                if self._last == key and self._not_before == nodes.last_generation:
                    return None
                eligible = cycle.placement.rows_of(nodes)
                known = KnownTemplate(profile, pod, nodes, eligible)
            placed = _Decision(known, cycle).make(select)
        except NotKnownError:
            self._not_before = nodes.last_generation
            return None
        finally:
            self._last = key
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        self._known[key] = known
        return placed


class _Decision:
    """One decision. Nothing is counted before it is certain."""

    def __init__(self, known: KnownTemplate, cycle: Cycle) -> None:
        self._known = known
        self._cycle = cycle
        self._profile = cycle.profile
        self._state = cycle.state
        self._pre_filtered = known.pre_filtered
        self._pre_scored = known.pre_scored
        self._feasible = known.feasible
        self._candidates = known.candidates
        self._charged: list[tuple[int, Verdict, int]] = []
        """By index of the filter, what it holds against rows, and how many."""

    def make(self, select: Select) -> Placed:
        cycle, known, profile = self._cycle, self._known, self._profile
        cycle.state.start_from(known.state)
        started = profile.begin_known_cycle(cycle.state)
        self._run_pre_filter()
        self._run_filters()
        cycle.state.feasible = self._feasible
        candidates = self._candidates
        scores, num_best = None, None
        if len(candidates) == 1:
            row = int(candidates[0])
        else:
            row, scores, num_best = self._select_host(select)
        found = self._found()
        self._count(is_scored=scores is not None)
        points = _POINTS if scores is not None else _POINTS[:2]
        profile.end_known_cycle(points, started)
        name = cycle.nodes.name(row)
        if scores is None:
            return Placed(cycle.pod, profile.name, found, name)
        (best,) = (scores.total == scores.total.max()).nonzero()
        return Placed(cycle.pod, profile.name, found, name, scores, best, num_best)

    # Filter.

    def _run_pre_filter(self) -> None:
        known, state = self._known, self._state
        state.feasible = self._cycle.nodes.exists
        had_say = []
        for plugin in self._profile.pre_filters:
            if plugin.NAME in known.asked:
                answer = self._ask("PreFilter", plugin, plugin.pre_filter)
                if skips(answer):
                    state.skip_filter.add(plugin.NAME)
                elif answer is None:
                    had_say.append(plugin.NAME)
                else:
                    raise NotKnownError
        if had_say:
            self._pre_filtered = [*self._pre_filtered, *had_say]

    def _run_filters(self) -> None:
        """Ask the filters that have to be asked about the rows that come to them."""
        known, state = self._known, self._state
        if known.asked <= state.skip_filter:
            self._charged = known.charges
            return
        gone: Mask | None = None
        for index, plugin in enumerate(self._profile.filters):
            if plugin.NAME in state.skip_filter:
                continue
            if plugin.NAME not in known.asked:
                verdict, count = known.verdict(index), known.num_rejected(index)
                if verdict is not None and gone is not None:
                    verdict = verdict.within(~gone)
                    count = _count(verdict)
                if verdict:
                    self._charged.append((index, verdict, count))
                continue
            before = known.left_for(index)
            state.feasible = before if gone is None else before & ~gone
            answer = self._ask("Filter", plugin, plugin.filter)
            verdict = checked_verdict(answer, plugin, state.feasible)
            rejected = verdict.rejected()
            if rejected is not None:
                self._charged.append((index, verdict, int(np.count_nonzero(rejected))))
                gone = rejected if gone is None else gone | rejected
        if gone is not None:
            self._feasible = self._feasible & ~gone
            self._candidates = np.flatnonzero(self._feasible)
            if not len(self._candidates):
                raise NotKnownError

    def _found(self) -> FeasibleNodes:
        diagnosis = Diagnosis(self._cycle.num_nodes)
        for index, verdict, _ in self._charged:
            name = self._profile.filters[index].NAME
            diagnosis.verdicts.append(PluginVerdict(name, verdict))
            pending = any(r.code is Code.PENDING for r in verdict.rejections)
            (diagnosis.pending_plugins if pending else diagnosis.unschedulable_plugins).add(name)
        return FeasibleNodes(diagnosis, self._feasible, self._candidates, PreFilterOutcome())

    # Score.

    def _select_host(self, select: Select) -> tuple[int, ScoreTable, int]:
        """Score the candidates; return the row to take, the best rows, and how many are equal."""
        known, candidates = self._known, self._candidates
        asked = [*self._run_scores()]
        rows: Rows | None = candidates
        normal_of_known: Ints | None = None
        if candidates is known.candidates and not asked:
            total, rows = known.total, None  # by row of the table
        elif candidates is known.candidates:
            total = known.total[candidates]
        else:
            normal_of_known = known.normal_among(candidates)
            total = known.weights @ normal_of_known + known.least_total
        for _, weight, _, normal in asked:
            total += normal * weight
        (best,) = (total == total.max()).nonzero()
        best_rows = best if rows is None else rows[best]
        row = int(best_rows[0]) if len(best) == 1 else select(best_rows.data)
        # Those that the record of the decision may name, whether the chosen one is refused or not.
        top = best_places(total, best, NO_ROWS, at_most=len(candidates))
        if row not in (top if rows is None else rows[top]).tolist():
            top = np.concatenate((top, best[best_rows == row]))
        top.sort()
        top_rows = top if rows is None else rows[top]
        normals = (
            known.normal.take(top_rows, axis=1)
            if normal_of_known is None
            else normal_of_known.take(top, axis=1)
        )
        raws = dict(zip(known.names, known.raw.take(top_rows, axis=1), strict=True))
        weighted = dict(zip(known.names, normals * known.weights_column, strict=True))
        for plugin, weight, raw, normal in asked:
            raws[plugin.NAME] = _at(raw, top)
            weighted[plugin.NAME] = _at(normal, top) * weight
        table = ScoreTable(top_rows, raws, weighted, total[top], self._profile.weights)
        return row, table, len(best)

    def _run_scores(self) -> "Iterator[tuple[ScorePlugin, int, Ints | int, Ints | int]]":
        """Yield what the plugins that have to be asked give the candidates."""
        known, state, profile = self._known, self._state, self._profile
        had_say = []
        for pre_score in profile.pre_scores:
            if pre_score.NAME in known.asked:
                answer = self._ask("PreScore", pre_score, pre_score.pre_score)
                if skips(answer):
                    state.skip_score.add(pre_score.NAME)
                elif answer is None:
                    had_say.append(pre_score.NAME)
                else:
                    raise NotKnownError
        if had_say:
            self._pre_scored = [*self._pre_scored, *had_say]
        for plugin in profile.scores:
            if plugin.NAME not in known.asked or plugin.NAME in state.skip_score:
                continue
            raw = self._ask("Score", plugin, plugin.score)
            if isinstance(raw, Status):
                raise NotKnownError
            is_one = is_everywhere(raw)
            of_rows = raw[:1] if is_one else raw[self._candidates]
            normal = of_rows
            if normalizes(plugin):
                normal = profile.ask(
                    "ScoreExtensionNormalize",
                    plugin,
                    plugin.normalize,
                    state,
                    self._cycle.pod,
                    of_rows,
                )
                if isinstance(normal, Status):
                    raise NotKnownError
            check_scores(normal)
            weight = profile.weights[plugin.NAME]
            if is_one:
                yield plugin, weight, int(of_rows[0]), int(normal[0])
            else:
                yield plugin, weight, of_rows, normal

    # Counting.

    def _count(self, *, is_scored: bool) -> None:
        """Count who had a say, as the plugins' runs do (spec §8, ``plugin_evaluation_total``)."""
        profile, state = self._profile, self._state
        for name in self._pre_filtered:
            profile.evaluations["PreFilter"][name] += 1
        rejected = {index: count for index, _, count in self._charged}
        evaluations, left = profile.evaluations["Filter"], self._known.num_eligible
        for index, plugin in enumerate(profile.filters):
            if plugin.NAME not in state.skip_filter:
                evaluations[plugin.NAME] += left
                left -= rejected.get(index, 0)
        if not is_scored:
            return
        for name in self._pre_scored:
            profile.evaluations["PreScore"][name] += 1
        evaluations, size = profile.evaluations["Score"], len(self._candidates)
        for scorer in profile.scores:
            if scorer.NAME not in state.skip_score:
                evaluations[scorer.NAME] += size

    def _ask(self, point: str, plugin: Plugin, call: Any) -> Any:
        cycle = self._cycle
        return self._profile.ask(point, plugin, call, cycle.state, cycle.pod, cycle.nodes)


_POINTS: Final = ("PreFilter", "Filter", "PreScore", "Score")


def _count(verdict: Verdict) -> int:
    rejected = verdict.rejected()
    return 0 if rejected is None else int(np.count_nonzero(rejected))


def _at(column: Ints | int, rows: Rows) -> Ints:
    return everywhere(column, len(rows)) if isinstance(column, int) else column[rows]
