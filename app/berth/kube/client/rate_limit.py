"""The rate limit of requests, ``clientConnection.qps`` and ``.burst`` (spec §7.1)."""

from berth.runtime.clock import Clock


class TokenBucket:
    """Lets *burst* requests go at once and *qps* a second after that; no limit when qps <= 0.

    Requests that must wait are served in the order in which they asked.
    """

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._clock = clock
        self._tokens = float(self._burst)
        self._filled_at = clock.monotonic()
        self.waits = 0
        self.waited_seconds = 0.0

    def reserve(self) -> float:
        """Take one token and return how many seconds to wait before using it."""
        if self._qps <= 0:
            return 0.0
        self._refill()
        self._tokens -= 1.0
        return -self._tokens / self._qps if self._tokens < 0 else 0.0

    def take_spare(self, most: int) -> int:
        """Take up to *most* tokens, but leave half of the burst to others; return how many."""
        if self._qps <= 0:
            return most
        self._refill()
        count = max(min(most, int(self._tokens - self._burst / 2)), 0)
        self._tokens -= count
        return count

    def _refill(self) -> None:
        now = self._clock.monotonic()
        tokens = self._tokens + (now - self._filled_at) * self._qps
        self._tokens = tokens if tokens < self._burst else float(self._burst)
        self._filled_at = now

    async def take(self) -> float:
        """Return when a request may leave, with the seconds that it waited.

        ``waits`` and ``waited_seconds`` count the delays.
        """
        delay = self.reserve()
        if delay <= 0:
            return 0.0
        self.waits += 1
        self.waited_seconds += delay
        asked = self._clock.monotonic()
        await self._clock.sleep(delay)
        return self._clock.monotonic() - asked
