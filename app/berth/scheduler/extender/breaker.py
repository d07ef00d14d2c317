"""Leaving a service alone that does not answer."""

from enum import IntEnum
from typing import Final

from berth.runtime.clock import Clock

TRIP_AFTER: Final = 5
"""So many failures in a row, and the service is left alone for a while."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""Seconds to leave it alone, doubled each time that it fails again after a pause."""


class BreakerState(IntEnum):
    """The values are what the metric shows."""

    CLOSED = 0
    """Calls go through."""
    HALF_OPEN = 1
    """The pause is over: one call goes through, and its outcome decides."""
    OPEN = 2
    """No call goes through."""


class CircuitBreaker:
    """Says which calls may go through. Whoever was admitted must tell how it went."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._closes_at = 0.0
        self._is_probing = False

    @property
    def state(self) -> BreakerState:
        if self._failures < TRIP_AFTER:
            return BreakerState.CLOSED
        if self._is_probing or self._clock.monotonic() >= self._closes_at:
            return BreakerState.HALF_OPEN
        return BreakerState.OPEN

    @property
    def failures(self) -> int:
        """How many calls failed in a row."""
        return self._failures

    def admit(self) -> bool:
        """Say whether a call may go through now."""
        state = self.state
        if state is BreakerState.CLOSED:
            return True
        if state is BreakerState.OPEN or self._is_probing:
            return False
        self._is_probing = True
        return True

    def succeeded(self) -> None:
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._is_probing = False

    def failed(self) -> None:
        was_open = self.state is BreakerState.OPEN
        self._is_probing = False
        self._failures += 1
        if self._failures >= TRIP_AFTER and not was_open:  # else it was sent before the pause
            self._closes_at = self._clock.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def abandoned(self) -> None:
        """The call was cancelled, so nothing is known."""
        self._is_probing = False
