"""All that stands between a pod and each node, which one goes first and which is nearest."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from typing import Final

import numpy as np

from berth.insight.explain.distances import Columns, Distance, Hold, distance_of
from berth.insight.explain.explanation import Obstacle
from berth.runtime.tasks import Steps
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.change import Change, Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import PluginVerdict
from berth.scheduler.framework.explanation import Explains, ExplainsColumns, Move, MovesPods, SumsUp
from berth.scheduler.framework.interface import FilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.overlay import Overlay
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import Ints, Mask, Verdict
from berth.scheduler.profile.profile import Profile

log = logging.getLogger(__name__)

MOST_MOVED: Final = 200
"""Pods that are moved to try out a change; nobody moves more to make room for one."""
MORE_KEPT: Final = 256
"""Rows that are kept beside twice the number of nearest ones, before others are forgotten."""


class Obstacles:
    """Asks every filter about every node that was rejected, where an attempt asks until the first.

    A plugin that cannot answer after others have said no is left out.
    """

    def __init__(self, cycle: Cycle, feasible_nodes: FeasibleNodes) -> None:
        """*feasible_nodes* is about all nodes of *cycle*."""
        self._found = feasible_nodes
        self._singular = feasible_nodes.diagnosis.statuses.keys() | feasible_nodes.diagnosis.beside
        """Rows that were not evaluated together with all others."""
        self._pod = cycle.pod
        self._profile = cycle.profile
        self._nodes = nodes = cycle.nodes
        self._in_question = cycle.placement.rows_of(nodes)
        self._runner = cycle.filters
        self._nominated_to = cycle.filters.nominated_to(cycle.pod, nodes)
        self._filters = {plugin.NAME: plugin for plugin in cycle.profile.filters}
        self._state = cycle.state.clone()
        self._were_filtered = feasible_nodes.pre_filter.status is None and len(nodes) > 0
        self._verdicts: list[PluginVerdict] = []
        if self._were_filtered:
            self._state.feasible = self._in_question.copy()
            self._verdicts = list(_all_verdicts(cycle.profile, self._state, cycle.pod, nodes))

    def charged(self, row: int) -> Status | None:
        """Return what the node in *row* is charged to; None if it was not evaluated.

        An error that ends the attempt counts for a node only where the plugin failed on it.
        """
        charged = self._found.status_of(row)
        if charged is None or charged.code is not Code.ERROR:
            return charged
        of_columns = (verdict.status_of(row) for _, verdict in self._found.diagnosis.verdicts)
        return charged if any(of_columns) or self.beside(row) else None

    def of(self, row: int) -> tuple[Obstacle, ...]:
        """Return what is held against the node in *row*, what it is charged to first."""
        charged = self.charged(row)
        if charged is None:
            return ()
        if row in self._singular:
            obstacles = list(self._beside_nominated(row))
        else:
            obstacles = list(self._on_row(self._verdicts, self._state, self._nodes, row))
        if not any(obstacle.plugin == charged.plugin for obstacle in obstacles):
            obstacles.insert(
                0,
                Obstacle(plugin=charged.plugin, code=charged.code.label, reasons=charged.reasons),
            )
        return tuple(obstacles)

    def rejected_by_plugin(self) -> dict[str, Mask]:
        """Return the rows that each plugin rejects; of the others those that reject none.

        Rows that no filter rejects, but PreFilter left out, count for the plugins that did so.
        """
        rejected = {plugin: self._nodes.no_rows() for plugin in self._filters}
        for name, verdict in self._verdicts:
            rejected[name] |= _where(verdict, self._nodes)
        if self._singular and self._were_filtered:
            overlay, verdicts, number = self._with_nominated_pods
            rows = [*number]
            for mask in rejected.values():
                mask[rows] = False
            for name, verdict in verdicts:
                rejected[name][rows] |= _where(verdict, overlay.nodes)
        left = self._in_question & ~self._found.feasible
        for mask in rejected.values():
            left &= ~mask
        for name, verdict in self._found.diagnosis.verdicts:  # of a plugin that fails when asked
            mask = left & _where(verdict, self._nodes)
            rejected[name] |= mask
            left &= ~mask
        for row, status in self._found.diagnosis.statuses.items():
            if left[row] and status.plugin in rejected:
                rejected[status.plugin][row] = True
                left[row] = False
        for name in self._found.pre_filter.authors if left.any() else ():
            rejected[name] = rejected.get(name, self._nodes.no_rows()) | left
        return rejected

    def nearest(self, count: int) -> Steps[list[tuple[int, tuple[Obstacle, ...]]]]:
        """Return the *count* rejected rows that miss by least, nearest first, with obstacles.

        A step for each row whose details are asked for: only where they can matter, which may be
        everywhere that a plugin objects that does not explain columns. Rows with few reasons come
        first, until enough are found that could be changed.
        """
        nodes = self._nodes
        rejected = np.flatnonzero(self._in_question & ~self._found.feasible)
        if not len(rejected) or count < 1:
            return []
        ranks = yield from self._coarse_ranks()
        columns = self._columns()
        yield
        coarse = ranks[rejected]
        misses: list[tuple[Distance, str, int, tuple[Obstacle, ...]]] = []
        enough = 0
        for rank in sorted(set(coarse.tolist())):
            rows = rejected[coarse == rank]
            known = rows[columns.known[rows]]
            enough += columns.num_changeable(known)
            unknown = rows[~columns.known[rows]].tolist()
            for row in columns.nearest(known, count) + unknown:
                obstacles = self.of(row)
                distance = distance_of(obstacles)
                enough += distance.hold is Hold.CHANGEABLE and not columns.known[row]
                misses.append((distance, nodes.name(row), row, obstacles))
                if len(misses) > 2 * count + MORE_KEPT:
                    misses = nsmallest(count, misses, key=itemgetter(0, 1))
                yield
            if enough >= count:
                break
        nearest = nsmallest(count, misses, key=itemgetter(0, 1))
        return [(row, obstacles) for *_, row, obstacles in nearest]

    @property
    def can_be_met(self) -> bool:
        """Whether filters were asked and none failed, so that all objections are known."""
        return self._were_filtered and self._found.diagnosis.error() is None

    def moves(self, plugin: str, change: Change, row: int) -> Sequence[Move] | None:
        """Return the pods that would have to move for *change*, which *plugin* tells of *row*.

        None if it cannot say, or they are too many to be moved.
        """
        moving: object = self._filters.get(plugin)
        if not isinstance(moving, MovesPods):
            return None
        try:
            moves = moving.moves(change, self._state, self._pod, self._nodes, row)
            first = None if moves is None else list(islice(moves, MOST_MOVED + 1))
            return None if first is None or len(first) > MOST_MOVED else first
        except Exception:  # a plugin's bug costs the verification only
            log.exception("a plugin cannot say which pods to move", extra={"plugin": plugin})
            return None

    def beside(self, row: int) -> tuple[str, ...]:
        """Return the nominated pods that room is left for on *row*, which they keep this pod off.

        Obstacles and what would help count them as if they were there.
        """
        if row not in self._singular:
            return ()
        return tuple(other.key for other in self._nominated_to.get(row, ()))

    def _coarse_ranks(self) -> Steps[Ints]:
        """Return, by row, twice the number of reasons, one more if some are unresolvable.

        The order of :class:`Distance` among rows of which all could be changed, up to its details,
        without a word being said.
        """
        nodes, diagnosis = self._nodes, self._found.diagnosis
        reasons = np.zeros(nodes.size, np.int64)
        unresolvable = nodes.no_rows()
        for _, verdict in self._verdicts:
            for rejection in verdict.rejections:
                reasons += rejection.where
                if rejection.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    unresolvable |= rejection.where
        ranks = 2 * reasons + unresolvable
        absent = self._in_question & ~self._found.feasible & ~diagnosis.rejected(nodes)
        for row in (*self._singular, *np.flatnonzero(absent).tolist()):
            distance = distance_of(self.of(row))
            ranks[row] = 2 * distance.reasons + distance.is_unresolvable
            yield
        return ranks

    def _columns(self) -> Columns:
        """Return the distances of the rows that plugins reject which explain columns."""
        columns = Columns(self._nodes)
        if self._found.diagnosis.error() is not None:
            return columns
        for name, verdict in self._verdicts:
            plugin, where = self._filters[name], _where(verdict, self._nodes)
            if isinstance(plugin, ExplainsColumns):
                columns.add(plugin.objections(self._state, self._pod, self._nodes), where)
            else:
                columns.leave_out(where)
        columns.leave_out([*self._singular])
        return columns

    def sums(self) -> Steps[tuple[str, ...]]:
        """Return what plugins say of all the nodes together that they keep the pod off."""
        sums = []
        for name, verdict in self._verdicts:
            plugin, where = self._filters[name], verdict.rejected()
            if where is None or not isinstance(plugin, SumsUp):
                continue
            try:
                sums.append((yield from plugin.sum_up(self._state, self._pod, self._nodes, where)))
            except Exception:  # a plugin's bug costs the clause only
                log.exception("a plugin cannot sum up", extra={"plugin": name})
        return tuple(filter(None, sums))

    def _beside_nominated(self, row: int) -> Iterator[Obstacle]:
        """Yield what is in the way on *row* beside the pods nominated there (spec §2.5)."""
        overlay, verdicts, number = self._with_nominated_pods
        return self._on_row(verdicts, overlay.state, overlay.nodes, number[row])

    @cached_property
    def _with_nominated_pods(self) -> tuple[Overlay, list[PluginVerdict], dict[int, int]]:
        """The rows with statuses of their own as if nominated pods were there, by number."""
        rows = [*self._singular]
        overlay = self._runner.overlay(self._state, self._pod, self._nodes, rows)
        overlay.add_nominated_pods()
        overlay.state.feasible = overlay.nodes.exists.copy()
        verdicts = _all_verdicts(self._profile, overlay.state, self._pod, overlay.nodes)
        return overlay, list(verdicts), {row: i for i, row in enumerate(rows)}

    def _on_row(
        self, verdicts: Iterable[PluginVerdict], state: CycleState, nodes: NodeTable, row: int
    ) -> Iterator[Obstacle]:
        for name, verdict in verdicts:
            status = verdict.status_of(row)
            if status is not None:
                yield Obstacle(
                    plugin=name,
                    code=status.code.label,
                    reasons=status.reasons,
                    details=_details(self._filters[name], state, self._pod, nodes, row),
                )


def _where(verdict: Verdict, nodes: NodeTable) -> Mask:
    where = verdict.rejected()
    return nodes.no_rows() if where is None else where


def _all_verdicts(
    profile: Profile, state: CycleState, pod: PodInfo, nodes: NodeTable
) -> Iterator[PluginVerdict]:
    for plugin in profile.filters:
        if plugin.NAME in state.skip_filter:
            continue
        try:
            answer: Verdict | Status = plugin.filter(state, pod, nodes)
        except Exception:  # a plugin's bug must not keep the others from explaining
            log.exception("a filter cannot explain", extra={"plugin": plugin.NAME, "pod": pod.key})
            continue
        if isinstance(answer, Status):  # the same bug, caught by the guard, which has logged it
            continue
        verdict = answer.within(state.feasible)
        if verdict:
            yield PluginVerdict(plugin.NAME, verdict)


def _details(
    plugin: FilterPlugin, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
) -> tuple[Detail, ...]:
    if not isinstance(plugin, Explains):
        return ()
    try:
        given: tuple[object, ...] = tuple(plugin.explain(state, pod, nodes, row))
        details = tuple(detail for detail in given if isinstance(detail, Detail))
        if len(details) < len(given):
            raise TypeError("a Detail is needed")
        return details
    except Exception:  # a plugin's bug costs the details only
        log.exception("a plugin cannot explain", extra={"plugin": plugin.NAME, "pod": pod.key})
        return ()
