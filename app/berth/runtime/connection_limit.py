"""The limit of connected clients, and who has to go when there are more. No I/O.

::

    most reached?  no --> a seat
                   yes -> somebody waits for its client: the one that does so longest goes, a seat
                   yes -> somebody has many long answers: the oldest of who has most goes, a seat
                   yes -> all have work: a reserved seat, for health checks and those who go first
                   reserved ones taken, too: refused

Whoever opens connections and sends nothing, or half of a request, is thus displaced by whoever
comes after, and so is who watches a thousand times; and however many requests are under way, health
checks are still answered.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

log = logging.getLogger(__name__)

MOST: Final = 1_000
"""Connections of one port: probes, Prometheus, a few people, and schedulers, which keep theirs."""

RESERVED: Final = 32
"""More connections, for health checks and those who go first."""

GREEDY: Final = 8
"""Whoever has more than one in so many of all connections in long answers makes room for others."""

LOG_SECONDS: Final = 10.0
"""What is refused is counted, and logged so often at most."""


def nothing() -> None:
    """Hang up on nobody."""


class ConnectionCounts(msgspec.Struct):
    """What became of connections since the start, and how many there are."""

    open: int = 0
    displaced: int = 0
    """Closed to make room, while they waited for their client or were one of many long answers."""
    refused: int = 0
    """Closed at once, or answered with 503, for want of room."""
    failed_handshakes: int = 0
    """Closed because TLS did not come about, or not in time."""
    failed_accepts: int = 0
    """How often the system would not let one in; most often for want of file descriptors."""


class Seat:
    """A connection that was let in."""

    __slots__ = ("_limit", "hang_up", "is_reserved", "owner")

    def __init__(self, limit: "ConnectionLimit", *, is_reserved: bool) -> None:
        self._limit = limit
        self.is_reserved = is_reserved
        """Whether only health checks and those who go first are to be answered."""
        self.owner = ""
        """Whose long answer it has; "" if none."""
        self.hang_up: Callable[[], object] = nothing
        """Called when the connection has to go."""

    def waits(self) -> None:
        """It is the client's turn: to greet, to ask, to go on sending or taking."""
        self._limit.waits(self)

    def works(self) -> None:
        """It is our turn to answer."""
        self._limit.works(self)

    def lasts(self, owner: str) -> None:
        """The answer lasts as long as the client of *owner* likes: a watch."""
        self._limit.lasts(self, owner)

    def refuse(self) -> None:
        """Its client asks for more than is left."""
        self._limit.refused()

    def answered(self, *, has_more: bool = False) -> None:
        """The answer is sent, long or not; it is the client's turn unless it *has_more* work."""
        self._limit.ends(self)
        if not has_more:
            self._limit.waits(self)

    def leave(self) -> None:
        """The connection is closed. May be said again."""
        self._limit.leave(self)


class ConnectionLimit:
    """Lets *most* connections in, and *reserved* more for health checks."""

    def __init__(
        self,
        most: int = MOST,
        *,
        reserved: int = RESERVED,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most = most
        self.reserved = reserved
        self.counts = ConnectionCounts()
        self._monotonic = monotonic
        self._seats: set[Seat] = set()
        self._waiting: OrderedDict[Seat, None] = OrderedDict()
        self._lasting: dict[str, OrderedDict[Seat, None]] = {}
        """Those with long answers, by owner."""
        self._next_line = float("-inf")

    def enter(self) -> Seat | None:
        """Return a seat for a new connection, another may have gone for it; None: it is refused."""
        if self.counts.open >= self.most:
            self.displace()
        if self.counts.open >= self.most + self.reserved:
            self.refused()
            return None
        seat = Seat(self, is_reserved=self.counts.open >= self.most)
        self._seats.add(seat)
        self.counts.open += 1
        return seat

    def displace(self) -> bool:
        """Hang up on one that can go; return False if there is none."""
        seat = next(iter(self._waiting), None) or self._greediest()
        if seat is None:
            return False
        self.leave(seat)
        self.counts.displaced += 1
        self._tell("HTTP connections displaced, the limit is reached")
        seat.hang_up()
        return True

    def _greediest(self) -> Seat | None:
        """Return the oldest long answer of who has most of them, if that is too many."""
        none: OrderedDict[Seat, None] = OrderedDict()
        seats = max(self._lasting.values(), key=len, default=none)
        return next(iter(seats)) if len(seats) > max(self.most // GREEDY, 1) else None

    def refused(self) -> None:
        """A connection or a request was refused."""
        self.counts.refused += 1
        self._tell("HTTP connections refused, all that may be open have work")

    def not_accepted(self, exc: OSError) -> None:
        """The system would not let a connection in."""
        self.counts.failed_accepts += 1
        self._tell("HTTP connections cannot be accepted", error=exc.strerror or str(exc))

    def waits(self, seat: Seat) -> None:
        if seat in self._seats:
            self._waiting[seat] = None
            self._waiting.move_to_end(seat)

    def works(self, seat: Seat) -> None:
        self._waiting.pop(seat, None)

    def lasts(self, seat: Seat, owner: str) -> None:
        if seat in self._seats:
            self.ends(seat)
            seat.owner = owner
            self._lasting.setdefault(owner, OrderedDict())[seat] = None

    def ends(self, seat: Seat) -> None:
        """The long answer of *seat*, if it has one, is sent."""
        if seat.owner:
            of_owner = self._lasting[seat.owner]
            del of_owner[seat]
            if not of_owner:
                del self._lasting[seat.owner]
            seat.owner = ""

    def leave(self, seat: Seat) -> None:
        if seat in self._seats:
            self._seats.remove(seat)
            self.ends(seat)
            self._waiting.pop(seat, None)
            self.counts.open -= 1

    def _tell(self, line: str, **more: str) -> None:
        """Log *line* with the totals so far, unless there was a line not long ago."""
        if self._monotonic() < self._next_line:
            return
        self._next_line = self._monotonic() + LOG_SECONDS
        counts = self.counts
        log.warning(
            line,
            extra={
                **more,
                "open": counts.open,
                "most": self.most,
                "displaced": counts.displaced,
                "refused": counts.refused,
                "not_accepted": counts.failed_accepts,
            },
        )
