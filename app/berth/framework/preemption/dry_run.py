"""Whose eviction would let a pod in, node by node (spec §6.3, §6.4).

What is asked of a node: would the pod fit if all pods of lower priority were gone? If so, they are
put back one after the other, the important ones first, and those beside which the pod does not fit
any more are the victims.

Decision (2026-11): where no plugin follows single pods, hundreds of nodes are asked at once: one
part of the table holds all of them, and the k-th pods of all nodes are put back together. That is
the same question, for filters judge each row by itself; it costs a few microseconds per node
instead of hundreds. Plugins that do follow single pods (spreading, affinity between pods) keep one
state for the whole cluster, so they are asked about one node at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis, PluginVerdict
from berth.framework.interface import FilterRunner
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.preemption.candidate import Candidate, Preemption
from berth.framework.preemption.disruption_budgets import DisruptionBudgets
from berth.framework.preemption.importance import importance
from berth.framework.preemption.ranks import Ranks
from berth.framework.status import Code, Status
from berth.framework.verdict import Verdict

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL: Final = Status.unresolvable("Preemption is not helpful for scheduling")

Rows = NDArray[np.intp]
Telling = Callable[[CycleState, PodInfo, PodInfo, NodeTable], Status | None]
Fate = Candidate | Status
"""What came of a node: how the pod gets in, or why it cannot."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """Preemption for *pod* in thought; nothing but clones and parts is changed."""

    pod: PodInfo
    nodes: NodeTable
    state: CycleState
    filters: FilterRunner
    ranks: Ranks
    budgets: DisruptionBudgets

    def try_nodes(self, rows: Rows, *, enough: int) -> Preemption:
        """Try *rows* in their order, until a candidate breaks no budget and there are *enough*."""
        has_victims = self.ranks.lowest_priorities(self.nodes) < self.pod.priority
        rejected = Diagnosis(len(self.nodes), absent=NOT_HELPFUL)
        keeping: list[Candidate] = []
        breaking: list[Candidate] = []
        worth_trying = np.flatnonzero(has_victims[rows])
        tried = len(rows)
        fates = self._fates(rows[worth_trying], at_once=enough)
        for position, fate in zip(worth_trying.tolist(), fates, strict=False):
            if isinstance(fate, Status):
                rejected.statuses[int(rows[position])] = fate
                continue
            found = breaking if fate.pdb_violations else keeping
            if len(found) < enough:
                found.append(fate)
            if keeping and len(keeping) + len(breaking) >= enough:
                tried = position + 1
                break
        in_vain = self.nodes.no_rows()
        in_vain[rows[:tried]] = True
        in_vain &= ~has_victims
        if in_vain.any():
            rejected.verdicts.append(PluginVerdict("", Verdict.reject(NO_VICTIMS, where=in_vain)))
        return Preemption((*keeping, *breaking), rejected)

    def _fates(self, rows: Rows, *, at_once: int) -> Iterator[Fate]:
        """Yield what comes of each of *rows*, in their order; as few as are asked for."""
        if self.filters.is_per_node(self.state):
            at_once = 1
        at_once = max(at_once, 1)
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once].tolist()
            try:
                yield from _Question(self, some).fates()
            except _UnclearError:
                for row in some:
                    yield from _Question(self, [row]).fates()


class _UnclearError(Exception):
    """A filter failed on many nodes at once; on which one shows when they are asked alone."""


class _Question:
    """Would the pod fit some nodes if others left? The nodes are in a table of their own."""

    def __init__(self, run: DryRun, rows: list[int]) -> None:
        self._run = run
        self._rows = rows
        self._part = run.nodes.take(rows)
        self._state = run.state.clone()
        self._is_per_node = run.filters.is_per_node(self._state)

    def fates(self) -> list[Fate]:
        """Return what comes of each node."""
        run = self._run
        victims = [run.ranks.below(run.pod.priority, run.nodes, row) for row in self._rows]
        everybody = [pod for pods in victims for pod in pods]
        refusal = self._take_off([i for i, pods in enumerate(victims) for _ in pods], everybody)
        if refusal is not None:
            return [refusal]
        judged = self._judge()
        statuses = [judged.status_of(i) for i in range(len(self._rows))]
        # Those whose eviction breaks a budget are put back first.
        orders: list[Sequence[PodInfo]] = []
        broken: list[list[PodInfo]] = []
        for pods, status in zip(victims, statuses, strict=True):
            breaking = run.budgets.violated_by(pods) if status is None else []
            keeping = [pod for pod in pods if pod not in breaking] if breaking else pods
            orders.append([*breaking, *keeping] if status is None else ())
            broken.append(breaking)
        evicted = self._reprieve(orders)
        if isinstance(evicted, Status):
            return [evicted]
        return [
            status or self._fate(row, evicted[i], broken[i])
            for i, (row, status) in enumerate(zip(self._rows, statuses, strict=True))
        ]

    def _fate(self, row: int, evicted: list[PodInfo], broken: list[PodInfo]) -> Fate:
        name = self._run.nodes.name(row)
        if not evicted:
            return Status.error(f'expected at least one victim pod on node "{name}"')
        violations = 0
        if broken:
            violations = sum(pod in broken for pod in evicted)
            evicted = sorted(evicted, key=importance)
        return Candidate(row, name, tuple(evicted), violations)

    def _reprieve(self, orders: list[Sequence[PodInfo]]) -> list[list[PodInfo]] | Status:
        """Put back, node by node in the order given, whom the pod can do with; return the rest."""
        evicted: list[list[PodInfo]] = [[] for _ in orders]
        for k in range(max(map(len, orders))):
            rows = [i for i, order in enumerate(orders) if k < len(order)]
            refusal = self._put_back(rows, [orders[i][k] for i in rows])
            if refusal is not None:
                return refusal
            rejected = self._judge().rejected(self._part).tolist()
            rows = [i for i in rows if rejected[i]]
            for i in rows:
                evicted[i].append(orders[i][k])
            refusal = self._take_off(rows, [orders[i][k] for i in rows])
            if refusal is not None:
                return refusal
        return evicted

    def _judge(self) -> Diagnosis:
        judged = self._run.filters.judge(self._state, self._run.pod, self._part)
        if len(self._rows) > 1 and judged.error() is not None:
            raise _UnclearError
        return judged

    def _take_off(self, rows: list[int], pods: list[PodInfo]) -> Status | None:
        """Remove pods from their nodes; return why a plugin could not follow."""
        self._part.remove_pods(rows, pods)
        return self._tell(self._run.filters.remove_pod, pods)

    def _put_back(self, rows: list[int], pods: list[PodInfo]) -> Status | None:
        self._part.add_pods(rows, pods)
        return self._tell(self._run.filters.add_pod, pods)

    def _tell(self, told: Telling, pods: list[PodInfo]) -> Status | None:
        if self._is_per_node:
            for pod in pods:
                status = told(self._state, self._run.pod, pod, self._part)
                if status is not None:
                    return Status(Code.ERROR, status.reasons, status.plugin)
        return None
