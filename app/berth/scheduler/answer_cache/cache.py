"""The cache of plugins' answers: pods that are signed alike share them, with equal decisions.

Decision (2026-11): pods of one template share the answers of plugins, as far as
:mod:`berth.scheduler.answer_cache.answers` can keep them true; so do pods that differ in namespace
and labels alone, as long as plugins that go by labels sign them alike. Pods that differ in
containers and labels share the answers of plugins that look at neither. Node, ties, order and
metrics are those of :func:`berth.scheduler.schedule_pod.schedule_pod`, which decides whatever this
leaves to it: pods with a nominated node or beside nominated pods of no lower priority, pods of a
kind that fits nowhere, profiles that sample nodes or have plugins by others, and every error.
"""

from collections.abc import Hashable
from contextlib import suppress
from typing import Final

from berth.scheduler.answer_cache.answers import CachedAnswers, CacheMissError
from berth.scheduler.answer_cache.decision import Decider
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.placement import Placement
from berth.scheduler.outcome import Placed, Unschedulable
from berth.scheduler.profile.profile import Profile
from berth.scheduler.schedule_pod import Select

KEPT: Final = 16
"""Kinds of pods with answers; at 5,000 nodes each takes a fifth of a megabyte."""
SEEN: Final = KEPT
"""Kinds of pods that are remembered to have been tried. If more come in turns than can be kept,
none is worth caching."""

_NOTHING: Final = CycleState()

_Key = tuple[Profile, Hashable, Placement]
"""Who is asked, what the pods have in common, and which nodes are in question."""


class AnswerCache:
    """Decides about replicas, and about pods that differ in containers and labels."""

    def __init__(self) -> None:
        self._replicas = _Entries()
        self._others = _Entries()

    def schedule(
        self, cycle: Cycle, *, select: Select, is_one_of_many: bool
    ) -> Placed | Unschedulable | None:
        """Decide where the pod of *cycle* goes; None if that takes asking everybody.

        From the second pod of a kind on, or from the first of a template if it *is_one_of_many*.
        """
        placed = self._schedule(cycle, select, is_one_of_many=is_one_of_many)
        if placed is None:
            cycle.state.start_from(_NOTHING)  # nor do plugins know of the pod
        return placed

    def _schedule(
        self, cycle: Cycle, select: Select, *, is_one_of_many: bool
    ) -> Placed | Unschedulable | None:
        profile, pod, nodes = cycle.profile, cycle.pod, cycle.nodes
        if (
            (profile.plugins_by_others and profile.plugins_by_others & profile.deciding.keys())
            or profile.percentage_of_nodes_to_score
            or pod.pod.status.nominated_node_name
            or (cycle.nominated_pods and cycle.filters.nominated_to(pod, nodes))
        ):
            return None
        by_volumes: tuple[Hashable | None, ...] = ()
        if pod.template.volumes:
            by_volumes = tuple(plugin.sign_pod(pod, nodes) for plugin in profile.by_volumes)
        key: _Key = (profile, (pod.template, *by_volumes), cycle.placement)
        alike: _Key | None = None
        if (but_labels := pod.template.facts_but_labels) is not None:
            alike = (profile, (but_labels, *by_volumes), cycle.placement)
        decider = self._replicas.get(key, cycle, alike=alike, at_once=is_one_of_many)
        if decider is not None:
            try:
                return decider.decide(cycle, select)
            except CacheMissError:
                if None not in by_volumes:  # else the others may fit, with volumes of their own
                    self._replicas.drop(key, nodes.last_generation)
                return None
        facts = pod.template.node_facts
        if facts is None:
            return None
        by_labels = [plugin.sign_pod(pod, nodes) for plugin in profile.by_labels]
        key = (profile, (facts, *by_volumes, *by_labels), cycle.placement)
        decider = self._others.get(key, cycle, differ=True)
        if decider is not None:
            with suppress(CacheMissError):  # others like it may fit
                return decider.decide(cycle, select)
        return None


class _Entries:
    """Cached answers about the pods that were tried last, by what they have in common."""

    def __init__(self) -> None:
        self._cached: dict[_Key, Decider] = {}
        self._alike: dict[_Key, Decider] = {}
        """The last answers about pods that are alike but for namespace and labels."""
        self._seen: dict[_Key, int] = {}
        """When pods were tried last that are not cached: the generation of the table if they cannot
        be cached before it changes, else -1."""

    def get(
        self,
        key: _Key,
        cycle: Cycle,
        *,
        alike: _Key | None = None,
        at_once: bool = False,
        differ: bool = False,
    ) -> Decider | None:
        """Return cached answers about pods like that of *cycle*; None if none are worth caching.

        They are from the second on, or *at_once*; or from the first, if there are answers about
        pods that are *alike*: that differ in namespace and labels alone, as those of two Jobs do.
        *differ* as for :class:`CachedAnswers`.
        """
        nodes = cycle.nodes
        known = self._cached.pop(key, None)
        decider = _still_true(known, cycle)
        if decider is None and alike is not None:
            decider = _still_true(self._alike.get(alike), cycle)
        if decider is None:
            is_worth_it = known is not None or self._is_worth_caching(
                key, nodes.last_generation, at_once=at_once
            )
            if not is_worth_it:
                return None
            eligible = cycle.placement.rows_of(nodes)
            try:
                cached = CachedAnswers(cycle.profile, cycle.pod, nodes, eligible, differ=differ)
            except CacheMissError:
                self._saw(key, nodes.last_generation)
                return None
            decider = Decider(cached)
            if alike is not None:
                _keep(self._alike, alike, decider)
        _keep(self._cached, key, decider)
        return decider

    def drop(self, key: _Key, generation: int) -> None:
        """Forget about pods that cannot be decided about before the table changes."""
        del self._cached[key]
        self._saw(key, generation)

    def _is_worth_caching(self, key: _Key, generation: int, *, at_once: bool) -> bool:
        """Whether pods that are not cached were tried not long ago."""
        seen = self._seen.pop(key, None)
        if seen == generation or (seen is None and not at_once):
            self._saw(key, -1 if seen is None else generation)
            return False
        return True

    def _saw(self, key: _Key, generation: int) -> None:
        if len(self._seen) >= SEEN:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = generation


def _still_true(decider: Decider | None, cycle: Cycle) -> Decider | None:
    """Return *decider* if it can go on, and with the pod of *cycle*."""
    if decider is not None:
        with suppress(CacheMissError):
            decider.cached.refresh(cycle.pod)
            return decider
    return None


def _keep(entries: dict[_Key, Decider], key: _Key, decider: Decider) -> None:
    entries.pop(key, None)
    if len(entries) >= KEPT:
        del entries[next(iter(entries))]
    entries[key] = decider
