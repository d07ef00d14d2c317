"""Staleness: whether what is scheduled on is what the API server has."""

import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

PATIENCE: Final = 30.0
"""Seconds that a watch may be cut off before the caches count as stale: connections end all the
time, and one that is made anew goes on where the last one ended."""
LOOK_INTERVAL: Final = 5.0


class Watch(Protocol):
    """A reflector, as far as it matters here."""

    @property
    def cut_off_since(self) -> float | None: ...


class Staleness:
    """Looks which of *watches*, by path, have been cut off for long. Somebody must own :meth:`run`.

    *is_leading* says whether anything is decided on what is known.
    """

    def __init__(
        self, watches: Mapping[str, Watch], *, is_leading: Callable[[], bool], clock: Clock
    ) -> None:
        self._watches = watches
        self._is_leading = is_leading
        self._clock = clock
        self._was_stale = False

    def __call__(self) -> str:
        """Return what is wrong, "" if nothing is; a check of health."""
        cut_off = self._cut_off()
        if not cut_off:
            return ""
        return f"caches are stale: not watched for {max(cut_off.values()):.0f} s: {_list(cut_off)}"

    async def run(self) -> None:
        """Log when the caches become stale and when they are no more, for ever."""
        while True:
            await self._clock.sleep(LOOK_INTERVAL)
            self.look()

    def look(self) -> None:
        """Log what has changed since the last look."""
        cut_off = self._cut_off()
        if bool(cut_off) == self._was_stale:
            return
        self._was_stale = bool(cut_off)
        if not cut_off:
            log.info("caches are up to date again")
            return
        seconds = round(max(cut_off.values()))
        fields = {"paths": _list(cut_off), "seconds": seconds, "leading": self._is_leading()}
        log.error("caches are stale", extra=fields)

    def _cut_off(self) -> dict[str, float]:
        """Return for how many seconds each watch that counts has been cut off."""
        now = self._clock.monotonic()
        since = {path: watch.cut_off_since for path, watch in self._watches.items()}
        return {p: now - at for p, at in since.items() if at is not None and now - at >= PATIENCE}


def _list(paths: Mapping[str, float]) -> str:
    return ",".join(sorted(paths))
