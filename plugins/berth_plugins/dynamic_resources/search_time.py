"""Time for searches for devices: CPU time of the thread, for each namespace.

A search runs on the event loop, and a claim can be written that takes any search for ever. Time in
which the machine lets the thread wait is nobody's fault, and does not count.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from berth.runtime.clock import Clock

MAX_TIME: Final = 1.0
"""Seconds that the searches of one attempt may take, on all nodes together."""

LEAST_TIME: Final = 0.02
"""Seconds that an attempt has in any case, and for which its namespace is not charged."""

BURST: Final = 3.0
"""Seconds that a namespace may take at once, however long ago it has taken any."""

SHARE: Final = 0.1
"""What a namespace may take of the event loop's time in the long run, however many attempts."""


class _Account(msgspec.Struct):
    """What a namespace has taken and that :data:`SHARE` does not cover yet."""

    taken: float
    at: float
    is_overdrawn: bool = False


class SearchTime:
    """Grants attempts time to search, and keeps account of what they take.

    A namespace that has taken more than :data:`BURST` gets :data:`LEAST_TIME` for each attempt
    until its share covers all of it. So whatever searches take, if it is less than that, they end.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._accounts: dict[str, _Account] = {}

    def for_attempt(self, namespace: str) -> float:
        """Return the seconds that an attempt for a pod of *namespace* may search."""
        account = self._accounts.get(namespace)
        if account is not None:
            self._cover(account)
            if account.taken <= 0:
                del self._accounts[namespace]
            elif account.is_overdrawn:
                return LEAST_TIME
        return MAX_TIME

    def charge(self, namespace: str, *, before: float, after: float) -> None:
        """Note that an attempt that had searched for *before* seconds has now for *after*."""
        taken = max(after - LEAST_TIME, 0.0) - max(before - LEAST_TIME, 0.0)
        if taken <= 0:
            return
        account = self._accounts.get(namespace)
        if account is None:
            self._forget_covered()
            account = self._accounts[namespace] = _Account(0.0, self._clock.monotonic())
        self._cover(account)
        account.taken += taken
        account.is_overdrawn = account.is_overdrawn or account.taken > BURST

    def _cover(self, account: _Account) -> None:
        now = self._clock.monotonic()
        account.taken -= SHARE * (now - account.at)
        account.at = now
        if account.taken <= 0:
            account.taken, account.is_overdrawn = 0.0, False

    def _forget_covered(self) -> None:
        for namespace, account in [*self._accounts.items()]:
            self._cover(account)
            if account.taken <= 0:
                del self._accounts[namespace]


def deadline(clock: Clock, seconds: float) -> Callable[[], bool]:
    """Return what says whether this thread has taken *seconds* of CPU time from now on.

    It is asked for every device. The wall clock, which costs a tenth, is never behind: only when it
    says that time may be up the other one is asked.
    """
    monotonic, cpu_time = clock.monotonic, clock.cpu_time
    end, next_look = cpu_time() + seconds, monotonic() + seconds

    def is_late() -> bool:
        nonlocal next_look
        now = monotonic()
        if now <= next_look:
            return False
        left = end - cpu_time()
        next_look = now + left
        return left < 0

    return is_late
