"""How long the extension points and plugins of a profile take."""

import random
from typing import Final

from berth.clock import Clock
from berth.metrics.family import Counters, Histograms

SAMPLED: Final = 0.1
"""Of the cycles, the share in which each plugin is timed (spec §2.1)."""


class PluginMetrics:
    """Told by one profile what its plugins were asked and when they began (spec §8)."""

    def __init__(
        self,
        profile: str,
        points: Histograms,
        plugins: Histograms,
        *,
        seconds: Counters,
        errors: Counters,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._profile = profile
        self._observe_point = points.observe
        self._observe_plugin = plugins.observe
        self._seconds = seconds
        self._errors = errors
        self._rng = rng
        self.now = clock.monotonic

    def is_sampled(self) -> bool:
        """Whether to time each plugin in the cycle, or on the way into the queue, that begins."""
        return self._rng.random() < SAMPLED

    def ran_point(self, point: str, status: str, started: float) -> None:
        """An extension point's plugins have been asked since *started*, to end with *status*."""
        self._observe_point(self.now() - started, point, self._profile, status)

    def ran_plugin(self, point: str, plugin: str, status: str, started: float) -> None:
        """One plugin has been asked since *started*."""
        self._observe_plugin(self.now() - started, point, plugin, status)

    def plugin_took(self, point: str, plugin: str, seconds: float) -> None:
        """A plugin by others was called."""
        self._seconds.add(plugin, point, self._profile, amount=seconds)

    def plugin_failed(self, point: str, plugin: str) -> None:
        """A plugin raised, or its answer made no sense."""
        self._errors.add(plugin, point, self._profile)
