"""Findings of a shadow about another scheduler."""

from dataclasses import dataclass

from berth.insight.explain.comparison import Agreement
from berth.insight.shadow.comparisons import Shadowed
from berth.insight.shadow.shadow import Shadow
from berth.service.server.scheduler.debug.models import ShadowedPods
from berth.service.server.scheduler.debug.pagination import ordered


@dataclass(frozen=True, slots=True)
class ShadowFilter:
    """Which comparisons are asked for; what is empty does not matter."""

    pod: str = ""
    """As in namespace/name."""
    node: str = ""
    """The best here, or the chosen one."""
    result: Agreement | None = None
    plugin: str = ""
    """That made the difference."""
    profile: str = ""
    only_differing: bool = False

    def matches(self, found: Shadowed) -> bool:
        return (
            self.pod in ("", found.pod)
            and self.node in ("", found.node, found.chosen)
            and self.result in (None, found.result)
            and self.plugin in ("", found.plugin)
            and self.profile in ("", found.profile)
        )


def shadowed_pods(
    shadow: Shadow, wanted: ShadowFilter, *, after: int | None, limit: int
) -> ShadowedPods:
    """Return the comparisons that *wanted* describes, those before number *after*, newest first."""
    older = (
        found
        for found in shadow.comparisons.newest_first(agreements=not wanted.only_differing)
        if (after is None or found.number < after) and wanted.matches(found)
    )
    items, token = ordered(older, key=lambda found: found.number, limit=limit)
    return ShadowedPods(summary=shadow.summary(), items=tuple(items), continue_=token)
