"""All that stands between a pod and each node, which one goes first and which is nearest."""

import logging
from collections.abc import Iterable, Iterator
from operator import itemgetter

import numpy as np

from app.explain.explanation import NearestMiss, Obstacle
from app.framework.cycle_state import CycleState
from app.framework.diagnosis import PluginVerdict
from app.framework.explanation import Detail, Explains
from app.framework.interface import FilterPlugin
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.framework.status import Code
from app.framework.verdict import Ints
from app.profile.attempt_filters import NominatedPods
from app.profile.profile import Profile
from app.scheduler.decision import Decision
from app.tasks import Steps

log = logging.getLogger(__name__)

UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE.label


class Obstacles:
    """Asks every filter about every node that was rejected, where an attempt asks until the first.

    A plugin that cannot answer after others have said no is left out.
    """

    def __init__(
        self,
        decision: Decision,
        profile: Profile,
        *,
        state: CycleState,
        nodes: NodeTable,
        nominated: NominatedPods,
    ) -> None:
        """*decision* was made on *nodes* with *state*, looking at all."""
        self._decision = decision
        self._profile = profile
        self._nodes = nodes
        self._nominated = nominated
        self._filters = {plugin.NAME: plugin for plugin in profile.filters}
        self._state = state.clone()
        self._were_filtered = decision.pre_filter.status is None and len(nodes) > 0
        self._verdicts: list[PluginVerdict] = []
        if self._were_filtered:
            self._state.feasible = nodes.exists.copy()
            self._verdicts = list(_all_verdicts(profile, self._state, decision.pod, nodes))

    def of(self, row: int) -> tuple[Obstacle, ...]:
        """Return what is held against the node in *row*, what it is charged to first."""
        charged = self._decision.verdict_on(self._nodes, row)
        if charged is None:
            return ()
        if row in self._decision.diagnosis.statuses:
            found = list(self._beside_nominated(row))
        else:
            found = list(self._on_row(self._verdicts, self._state, self._nodes, row))
        if not any(obstacle.plugin == charged.plugin for obstacle in found):
            found.insert(
                0,
                Obstacle(plugin=charged.plugin, code=charged.code.label, reasons=charged.reasons),
            )
        return tuple(found)

    def nearest(self, count: int) -> Steps[list[tuple[int, tuple[Obstacle, ...]]]]:
        """Return the *count* rejected rows that miss by least, nearest first, with obstacles.

        A step for each row whose details are asked for: only where they can matter, which may be
        everywhere.
        """
        nodes, decision = self._nodes, self._decision
        rejected = np.flatnonzero(nodes.exists & ~decision.feasible)
        if not len(rejected) or count < 1:
            return []
        ranks = yield from self._coarse_ranks()
        coarse = ranks[rejected]
        worst = np.partition(coarse, min(count, len(coarse)) - 1)[min(count, len(coarse)) - 1]
        found = []
        for row in rejected[coarse <= worst].tolist():
            obstacles = self.of(row)
            found.append((*_distance(obstacles), nodes.name(row), row, obstacles))
            yield
        found.sort(key=itemgetter(0, 1, 2, 3))
        return [(row, obstacles) for *_, row, obstacles in found[:count]]

    def miss(self, row: int, obstacles: tuple[Obstacle, ...]) -> NearestMiss | None:
        """Say what the nearest node would need; None if no change of a node would help."""
        if not self._were_filtered or self._decision.diagnosis.error() is not None:
            return None
        return _miss(self._nodes.name(row), obstacles, beside=self.beside(row))

    def beside(self, row: int) -> tuple[str, ...]:
        """Return the nominated pods that room is left for on *row*, which they keep this pod off.

        Obstacles and what would help count them as if they were there.
        """
        if row not in self._decision.diagnosis.statuses:
            return ()
        return tuple(other.key for other in self._nominated_to(self._nodes.name(row)))

    @property
    def _pod(self) -> PodInfo:
        return self._decision.pod

    def _coarse_ranks(self) -> Steps[Ints]:
        """Return, by row, twice the number of reasons, one more if some are unresolvable.

        The same order as :func:`_distance` up to its last part, without a word being said.
        """
        nodes, diagnosis = self._nodes, self._decision.diagnosis
        reasons = np.zeros(nodes.size, np.int64)
        unresolvable = nodes.no_rows()
        for _, verdict in self._verdicts:
            for rejection in verdict.rejections:
                reasons += rejection.where
                if rejection.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    unresolvable |= rejection.where
        ranks = 2 * reasons + unresolvable
        absent = nodes.exists & ~self._decision.feasible & ~diagnosis.rejected(nodes)
        for row in (*diagnosis.statuses, *np.flatnonzero(absent).tolist()):
            number, is_unresolvable, _ = _distance(self.of(row))
            ranks[row] = 2 * number + is_unresolvable
            yield
        return ranks

    def _beside_nominated(self, row: int) -> Iterator[Obstacle]:
        """Yield what is in the way on *row* beside the pods nominated there (spec §2.5)."""
        name = self._nodes.name(row)
        part, state = self._nodes.take([row]), self._state.clone()
        for other in self._nominated_to(name):
            part.add_pod(0, other.on_node(name))
            self._profile.run_add_pod(state, self._pod, other.on_node(name), part)
        state.feasible = np.ones(1, bool)
        verdicts = list(_all_verdicts(self._profile, state, self._pod, part))
        return self._on_row(verdicts, state, part, 0)

    def _nominated_to(self, name: str) -> Iterator[PodInfo]:
        for other in self._nominated.get(name, ()):
            if other.uid != self._pod.uid and other.priority >= self._pod.priority:
                yield other

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


def _all_verdicts(
    profile: Profile, state: CycleState, pod: PodInfo, nodes: NodeTable
) -> Iterator[PluginVerdict]:
    for plugin in profile.filters:
        if plugin.NAME in state.skip_filter:
            continue
        try:
            verdict = plugin.filter(state, pod, nodes).within(nodes.exists)
        except Exception:  # a plugin's bug must not keep the others from explaining
            log.exception("a filter cannot explain", extra={"plugin": plugin.NAME, "pod": pod.key})
            continue
        if verdict:
            yield PluginVerdict(plugin.NAME, verdict)


def _details(
    plugin: FilterPlugin, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
) -> tuple[Detail, ...]:
    if not isinstance(plugin, Explains):
        return ()
    try:
        return tuple(plugin.explain(state, pod, nodes, row))
    except Exception:  # a plugin's bug costs the details only
        log.exception("a plugin cannot explain", extra={"plugin": plugin.NAME, "pod": pod.key})
        return ()


def _distance(obstacles: tuple[Obstacle, ...]) -> tuple[int, bool, float]:
    """Return how far a node is from fitting, to be compared: see the package's docstring.

    An objection without details counts as if all of something were missing.
    """
    shortfall = 0.0
    for obstacle in obstacles:
        for detail in obstacle.details:
            shortfall += detail.change.shortfall if detail.change else 1.0
        if not obstacle.details:
            shortfall += len(obstacle.reasons)
    return (
        sum(len(obstacle.reasons) for obstacle in obstacles),
        any(obstacle.code == UNRESOLVABLE for obstacle in obstacles),
        shortfall,
    )


def _miss(node: str, obstacles: tuple[Obstacle, ...], *, beside: tuple[str, ...]) -> NearestMiss:
    changes = []
    words = []
    is_complete = True
    for obstacle in obstacles:
        for detail in obstacle.details:
            if detail.change is not None:
                changes.append(detail.change)
                words.append(detail.change.words)
            else:
                is_complete = False
                words.append(detail.message)
        if not obstacle.details:
            is_complete = False
            words.append(f"{obstacle.plugin or 'PreFilter'} says {', '.join(obstacle.reasons)!r}")
    return NearestMiss(
        node=node,
        changes=tuple(changes),
        is_complete=is_complete,
        words=f"{node}{_beside_in_words(beside)}: {'; '.join(words)}",
    )


def _beside_in_words(pods: tuple[str, ...]) -> str:
    return f", beside {', '.join(pods)} nominated there" if pods else ""
