"""The outside of a scheduler: an API to write to, what was watched, time and chance."""

from collections.abc import Mapping
from random import Random
from typing import Protocol

import msgspec

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.background import Background
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.writes import PluginWrites
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.preemption import Evictor
from berth.scheduler.reporter import BindingReporter, PodGroupReporter, UrgentReporter


class ApiWrites(UrgentReporter, BindingReporter, PodGroupReporter, PluginWrites, Evictor, Protocol):
    """All that a scheduler and its plugins write."""

    background: Background
    """Where work is kept that plugins start; the core runs it."""


class RandomSources(msgspec.Struct, frozen=True):
    """Chance, with a source for each use, so that one use does not change another."""

    ties: Random = msgspec.field(default_factory=Random)
    """Picks one of several best nodes."""
    plugins: Random = msgspec.field(default_factory=Random)
    extenders: Random = msgspec.field(default_factory=Random)
    """Picks between candidates of preemption that extenders were asked about."""
    sampling: Random = msgspec.field(default_factory=Random)
    """Picks the cycles in which plugins are timed; decides nothing."""

    @classmethod
    def of(cls, rng: Random) -> "RandomSources":
        """Derive all sources from *rng*."""
        sources = cls()
        sources.seed(rng.getrandbits(63))
        return sources

    def seed(self, seed: int) -> None:
        """Begin again: what is drawn from now on follows from *seed*."""
        rng = Random(seed)
        for source in self.__struct_fields__:
            getattr(self, source).seed(rng.getrandbits(64))


class Outside(msgspec.Struct, frozen=True):
    """The world of one scheduler."""

    api: ApiWrites
    pods: Mapping[str, Pod]
    """By ``namespace/name``, as the watch last told."""
    listers: Listers
    """All other kinds but nodes, as the watches last told."""
    clock: Clock
    rng: RandomSources
    metrics: SchedulerMetrics
    extenders: Extenders = msgspec.field(default_factory=Extenders)
    """Whoever made them closes them."""
