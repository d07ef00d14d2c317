"""Results of extenders for nodes, in a form that outlives the table it was asked about."""

from typing import Final

import msgspec

from berth.scheduler.framework.status import Status

EXTENDER: Final = "Extender"
"""Whom a rejection by any extender is charged to."""


class ExtenderResult(msgspec.Struct, frozen=True):
    """What extenders said about the nodes that plugins left for a pod."""

    asked: frozenset[str]
    nodes: list[str] = msgspec.field(default_factory=list)
    """Those of them that are left, by name."""
    statuses: dict[str, Status] = msgspec.field(default_factory=dict)
    """Why others are not; those dropped without a word have no status (spec §9.3)."""
    scores: dict[str, int] = msgspec.field(default_factory=dict)
    """What to add to the nodes' totals."""
    error: Status | None = None
    """Why no decision can be made."""

    @property
    def has_rejected(self) -> bool:
        return len(self.nodes) != len(self.asked)
