"""Limits of requests in progress: ``--max-requests-inflight`` and its sibling.

What waits for a webhook is in progress, and holds memory; what waits for its client to send a body,
or for a share of the loop, is not yet. Long-running requests have a limit of their own, and exempt
users have none. One flow may have a part of all, so that no tenant shuts the others out.
"""

from dataclasses import dataclass
from typing import Final

from berth.cluster.access.flows import flow_of, is_exempt
from berth.cluster.access.users import User
from berth.runtime.connection_limit import MOST as MOST_CONNECTIONS

MOST: Final = 400
MOST_MUTATING: Final = 200
"""The API server's defaults."""

MOST_LASTING: Final = MOST_CONNECTIONS // 4
"""Long-running requests of one flow: watches, logs. A real server has no such limit, and no limit
of connections."""

READ_ONLY: Final = "readOnly"
MUTATING: Final = "mutating"

READING_METHODS: Final = frozenset({"GET", "HEAD"})
FLOWS: Final = 2
"""A flow may have one in so many of either kind."""


@dataclass(frozen=True, slots=True)
class InFlightLimits:
    """How many requests, of users that are not exempt."""

    read_only: int = MOST
    mutating: int = MOST_MUTATING


DEFAULT: Final = InFlightLimits()


class InFlight:
    """Counts the requests in progress by kind, and lets no more in than there may be."""

    def __init__(self, limits: InFlightLimits) -> None:
        self._limits = {READ_ONLY: limits.read_only, MUTATING: limits.mutating}
        self._counts = {READ_ONLY: 0, MUTATING: 0}
        self._flows: dict[tuple[str, str], int] = {}
        """Those in progress, by kind and flow."""
        self._lasting: dict[str, int] = {}
        """Long-running requests, by flow."""
        self._latest = {READ_ONLY: 0, MUTATING: 0}
        self._before = {READ_ONLY: 0, MUTATING: 0}

    def enter(self, method: str, user: User) -> str:
        """Return the kind of a request that may go on, to be given to :meth:`leave`; else ""."""
        kind = READ_ONLY if method in READING_METHODS else MUTATING
        counts, key = self._counts, (kind, flow_of(user))
        count, of_flow = counts[kind] + 1, self._flows.get(key, 0) + 1
        limit = self._limits[kind]
        if (count > limit or of_flow > max(limit // FLOWS, 1)) and not is_exempt(user):
            return ""
        counts[kind] = count
        self._flows[key] = of_flow
        if count > self._latest[kind]:
            self._latest[kind] = count
        return kind

    def leave(self, kind: str, user: User) -> None:
        """Count a request of *kind* no longer."""
        self._counts[kind] -= 1
        key = kind, flow_of(user)
        self._flows[key] -= 1
        if not self._flows[key]:
            del self._flows[key]

    def enter_lasting(self, user: User) -> bool:
        """Count a long-running request; return False when it may not go on."""
        flow = flow_of(user)
        count = self._lasting.get(flow, 0) + 1
        if count > MOST_LASTING and not is_exempt(user):
            return False
        self._lasting[flow] = count
        return True

    def leave_lasting(self, user: User) -> None:
        """Count a long-running request no longer."""
        flow = flow_of(user)
        self._lasting[flow] -= 1
        if not self._lasting[flow]:
            del self._lasting[flow]

    def tick(self) -> None:
        """Begin a new second."""
        self._before, self._latest = self._latest, dict(self._counts)

    def peaks(self) -> dict[str, int]:
        """Return how many there were at most, in this second and the one before."""
        return {kind: max(self._before[kind], self._latest[kind]) for kind in self._counts}
