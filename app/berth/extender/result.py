"""What extenders said of nodes, in a form that outlives the table it was asked about."""

from dataclasses import dataclass, field
from typing import Final

from berth.framework.status import Status

EXTENDER: Final = "Extender"
"""Whom a rejection by any extender is charged to."""


@dataclass(frozen=True, slots=True)
class ExtenderResult:
    """What extenders said about the nodes that plugins left for a pod."""

    asked: frozenset[str]
    nodes: list[str] = field(default_factory=list)
    """Those of them that are left, by name."""
    statuses: dict[str, Status] = field(default_factory=dict)
    """Why others are not; those dropped without a word have no status (spec §9.3)."""
    scores: dict[str, int] = field(default_factory=dict)
    """What to add to the nodes' totals."""
    error: Status | None = None
    """Why no decision can be made."""

    @property
    def has_rejected(self) -> bool:
        return len(self.nodes) != len(self.asked)
