"""Reading the configuration anew while the scheduler runs: on SIGHUP, and when files change."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, Generic, TypeVar

from berth.runtime.clock import Clock
from berth.runtime.tasks import background
from berth.scheduler.config.errors import ConfigError

Loaded = TypeVar("Loaded")
"""What a file comes to."""

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 5.0
"""Seconds between looks at the file. Its content is compared, for a mounted ConfigMap changes by
swapping a symbolic link."""


class Reloader(Generic[Loaded]):
    """Keeps the configuration in force equal to a file, as long as the file is right.

    To read it takes a turn of the event loop, and to go on by it another: some 10 ms each.
    """

    def __init__(
        self,
        path: Path,
        *,
        load: Callable[[bytes], Loaded],
        replace: Callable[[Loaded], None],
        also: Callable[[], Iterable[Path]] = tuple,
        count: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """*load* and *replace* raise ConfigError; *count* gets ``success`` or ``failure``.

        *also* lists further files that *load* reads; it may raise ConfigError, too.
        """
        self._path = path
        self._load = load
        self._replace = replace
        self._also = also
        self._count = count
        self._clock = clock
        self._seen = self._look()
        self._asked = asyncio.Event()
        self._reloading = asyncio.Lock()

    def ask(self) -> None:
        """Have the file read soon, also if it has not changed."""
        self._asked.set()

    async def reload(self) -> bool:
        """Read the file and go on by it; if anything is wrong, go on as before and return False."""
        async with self._reloading:
            return await self._reload()

    async def _reload(self) -> bool:
        self._seen = self._look()
        try:
            loaded = self._load(self._path.read_bytes())
        except ConfigError as error:  # it may be a file of *also* that is wrong
            return self._refuse(error.source, error.problems)
        except OSError as error:
            return self._refuse(self._path, [str(error)])
        await asyncio.sleep(0)
        try:
            self._replace(loaded)
        except ConfigError as error:
            return self._refuse(self._path, error.problems)
        self._count("success")
        return True

    def _refuse(self, source: object, problems: Iterable[str]) -> bool:
        for problem in problems:
            log.error("configuration not reloaded", extra={"file": source, "error": problem})
        self._count("failure")
        return False

    async def run(self) -> None:
        """Look at the files for ever, and reload when one has changed, or comes, or goes; and when
        asked to."""
        async with background() as start:
            start("asked for the configuration", self._reload_when_asked)
            while True:
                await self._clock.sleep(LOOK_EVERY)
                changed = self.changed()
                for path in changed:
                    log.info("configuration changed", extra={"file": path})
                if changed:
                    await self.reload()

    async def _reload_when_asked(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            await self.reload()

    def changed(self) -> list[Path]:
        """Return the files that are not as they were when they were read last."""
        now, before = self._look(), self._seen
        return sorted(p for p in now.keys() | before.keys() if now.get(p) != before.get(p))

    def _look(self) -> Mapping[Path, str]:
        """Return a fingerprint of each file, also of those that cannot be read."""
        paths, seen = [self._path], {}
        try:
            paths += self._also()
        except ConfigError as error:
            seen[Path(error.source)] = str(error)
        for path in paths:
            try:
                seen[path] = sha256(path.read_bytes()).hexdigest()
            except OSError as error:
                seen[path] = str(error)
        return seen
