"""Settings of memory that were measured to matter, and limits."""

import gc
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from berth.runtime.clock import Clock

HEAP_KEPT = 24 * 1024 * 1024
"""Bytes. glibc never trims less than twice the largest mapping that was ever freed (mallopt(3)),
up to 32 MiB."""


YOUNG: Final = (1_000, 5, 10)
"""Thresholds of the garbage collector: it looks at some 10,000 objects at a time."""

LOOK_SECONDS: Final = 0.1
"""The garbage collector counts what is made less what is freed, be it old. Where as much goes as
comes it would look seldom, at ever more at once: so it looks after so long, too."""

THAW_SECONDS: Final = 3_600.0


def keep_heap() -> None:
    """Keep glibc from giving the top of the heap back between attempts.

    Every attempt makes and drops a few hundred kilobytes of columns. By default glibc returns such
    memory to the system at once and faults it in again at the next attempt, which was measured to
    make scoring up to three times slower at 5,000 nodes. Harmless with another allocator.
    """
    block = np.empty(HEAP_KEPT, np.uint8)
    del block


class Survivors:
    """Spares the garbage collector what has survived it twice; for a process whose heap grows.

    Pauses are a few milliseconds then, however many objects there are; they were a second and a
    half with 50,000 pods in an embedded cluster, and 0.4 s in a scheduler with 150,000. What is
    dropped is freed by its reference count. Reference cycles of spared objects, such as those of
    closed connections, are freed once in THAW_SECONDS.
    """

    def __init__(self, clock: Clock, call_later: Callable[[Callable[[], None]], object]) -> None:
        """*call_later* calls a function outside the garbage collector."""
        self._clock = clock
        self._call_later = call_later
        self._thawed_at = clock.monotonic()

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Spare what survives until the end of the block, and go on sparing that.

        Python can only stop sparing everything, what start-up has frozen too.
        """
        before = gc.get_threshold()
        gc.set_threshold(*YOUNG)
        gc.callbacks.append(self._collected)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*before)

    async def look(self) -> None:
        """Have the garbage collector look at young objects every LOOK_SECONDS, for ever."""
        while True:
            for generation in (*[0] * YOUNG[1], 1):
                await self._clock.sleep(LOOK_SECONDS)
                gc.collect(generation)

    def _collected(self, phase: str, info: Mapping[str, int]) -> None:
        if phase != "stop" or info["generation"] == 0:
            return
        gc.freeze()
        if self._clock.monotonic() - self._thawed_at >= THAW_SECONDS:
            self._thawed_at = self._clock.monotonic()
            self._call_later(self._thaw)

    def _thaw(self) -> None:
        gc.unfreeze()
        gc.collect()  # after which all that is left is frozen again


def collect_seldom() -> None:
    """Have the garbage collector run seldom; for a process that ends after one simulation.

    Attempts leave next to nothing behind that only the collector frees, and each run of it walks
    the whole simulated cluster.
    """
    gc.set_threshold(100_000, 20, 100)


_CONTROL_GROUP: Final = Path("/sys/fs/cgroup")
_OF_THIS_PROCESS: Final = Path("/proc/self")


def room_in_container(group: Path = _CONTROL_GROUP) -> int:
    """Return how many bytes more the container may take, very many without a limit.

    By cgroup v2, which shows a container its own *group* there. At the limit the kernel kills, and
    under Kubernetes all processes of the container at once.
    """
    try:
        limit = int((group / "memory.max").read_text("ascii"))  # "max" is no number
        return max(limit - int((group / "memory.current").read_text("ascii")), 0)
    except (OSError, ValueError):
        return sys.maxsize


def limit_memory(most: int) -> None:
    """Let this process take *most* bytes more than it has; what asks for more gets a MemoryError.

    Should the kernel run out of memory nevertheless, it takes this process first. Linux only; does
    nothing elsewhere.
    """
    try:
        pages = int((_OF_THIS_PROCESS / "statm").read_text("ascii").split()[0])
        (_OF_THIS_PROCESS / "oom_score_adj").write_text("1000", "ascii")
    except (OSError, ValueError):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + most
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
