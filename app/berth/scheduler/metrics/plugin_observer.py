"""Observers of plugin calls; plugins know nothing of them."""

from collections.abc import Iterable
from typing import Final, Protocol


class PluginObserver(Protocol):
    """Told, of one profile, how long its plugins take.

    *point* is an extension point as kube-scheduler spells it in metrics (spec §8), *status* the
    name of a code, *started* what :meth:`now` returned before.
    """

    def now(self) -> float: ...

    def is_sampled(self) -> bool:
        """Whether to tell of each plugin in the cycle, or way into the queue, that begins."""
        ...

    def ran_point(self, point: str, status: str, started: float) -> None:
        """All plugins of an extension point that had to be asked have been asked."""
        ...

    def ran_points(self, points: Iterable[str], status: str, started: float) -> None:
        """The same of several extension points, whose plugins were asked in one go."""
        ...

    def ran_plugin(self, point: str, plugin: str, status: str, started: float) -> None:
        """One plugin has been asked."""
        ...

    def plugin_took(self, point: str, plugin: str, seconds: float) -> None:
        """A plugin by others was called; told of every call."""
        ...

    def plugin_failed(self, point: str, plugin: str) -> None:
        """A plugin raised, or its answer made no sense."""
        ...


class _Nobody:
    def now(self) -> float:
        return 0.0

    def is_sampled(self) -> bool:
        return False

    def ran_point(self, point: str, status: str, started: float) -> None: ...

    def ran_points(self, points: Iterable[str], status: str, started: float) -> None: ...

    def ran_plugin(self, point: str, plugin: str, status: str, started: float) -> None: ...

    def plugin_took(self, point: str, plugin: str, seconds: float) -> None: ...

    def plugin_failed(self, point: str, plugin: str) -> None: ...


NOBODY: Final[PluginObserver] = _Nobody()
"""Looks on without noticing anything."""
