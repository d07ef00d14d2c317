"""PreBind plugins that run side by side (spec §2.9)."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from berth.scheduler.framework.interface import PreBindPlugin


def parallel_groups(plugins: Iterable[PreBindPlugin]) -> Iterator[list[PreBindPlugin]]:
    """Put those neighbours together that allow it."""
    for together, group in groupby(plugins, key=lambda plugin: plugin.ALLOW_PARALLEL):
        if together:
            yield list(group)
        else:
            yield from ([plugin] for plugin in group)
