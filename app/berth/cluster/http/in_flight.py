"""How many requests may be in progress at once: ``--max-requests-inflight`` and its sibling.

What waits for its client or a webhook is in progress, and holds memory. Long-running requests do
not count, nor do those of users that a cluster cannot do without: the flow schemas ``exempt``,
``system-nodes`` and ``kube-controller-manager`` of the API server's priority and fairness.
"""

from dataclasses import dataclass
from typing import Final

from berth.cluster.access.users import CONTROLLER_MANAGER, MASTERS, NODES, SCHEDULER, User

MOST: Final = 400
MOST_MUTATING: Final = 200
"""The API server's defaults."""

READ_ONLY: Final = "readOnly"
MUTATING: Final = "mutating"

READING_METHODS: Final = frozenset({"GET", "HEAD"})
EXEMPT_USERS: Final = frozenset({CONTROLLER_MANAGER.name, SCHEDULER.name})


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
        self._latest = {READ_ONLY: 0, MUTATING: 0}
        self._before = {READ_ONLY: 0, MUTATING: 0}

    def enter(self, method: str, user: User) -> str:
        """Return the kind of a request that may go on, to be given to :meth:`leave`; else ""."""
        kind = READ_ONLY if method in READING_METHODS else MUTATING
        counts = self._counts
        count = counts[kind] + 1
        if count > self._limits[kind] and not is_exempt(user):
            return ""
        counts[kind] = count
        if count > self._latest[kind]:
            self._latest[kind] = count
        return kind

    def leave(self, kind: str) -> None:
        """Count a request of *kind* no longer."""
        self._counts[kind] -= 1

    def tick(self) -> None:
        """Begin a new second."""
        self._before, self._latest = self._latest, dict(self._counts)

    def peaks(self) -> dict[str, int]:
        """Return how many there were at most, in this second and the one before."""
        return {kind: max(self._before[kind], self._latest[kind]) for kind in self._counts}


def is_exempt(user: User) -> bool:
    """Tell whether *user* is served however many requests are in progress."""
    groups = user.groups
    return MASTERS in groups or NODES in groups or user.name in EXEMPT_USERS
