"""Reading the configuration anew while the scheduler runs: on SIGHUP, and when files change."""

import logging
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, Generic, TypeVar

from app.clock import Clock
from app.config.errors import ConfigError

Loaded = TypeVar("Loaded")
"""What a file comes to."""

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 5.0
"""Seconds between looks at the file. Its content is compared, for a mounted ConfigMap changes by
swapping a symbolic link."""


class Reloader(Generic[Loaded]):
    """Keeps the configuration in force equal to a file, as long as the file is right.

    All of it happens without awaiting, hence between two attempts; that takes milliseconds.
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
        """*load* and *replace* raise ConfigError; *count* is told ``success`` or ``failure``.

        *also* lists further files that *load* reads; it may raise ConfigError, too.
        """
        self._path = path
        self._load = load
        self._replace = replace
        self._also = also
        self._count = count
        self._clock = clock
        self._seen = self._look()

    def reload(self) -> bool:
        """Read the file and go on by it; if anything is wrong, go on as before and return False."""
        self._seen = self._look()
        try:
            self._replace(self._load(self._path.read_bytes()))
        except (ConfigError, OSError) as error:
            problems = error.problems if isinstance(error, ConfigError) else [str(error)]
            for problem in problems:
                log.error(
                    "configuration not reloaded", extra={"file": self._path, "error": problem}
                )
            self._count("failure")
            return False
        self._count("success")
        return True

    async def run(self) -> None:
        """Look at the files for ever, and reload when one has changed, or comes, or goes."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            if self.has_changed():
                log.info("configuration changed", extra={"file": self._path})
                self.reload()

    def has_changed(self) -> bool:
        """Whether the files are others than those that were read last."""
        return self._look() != self._seen

    def _look(self) -> str:
        """Return what tells one state of the files from another, also when it cannot be read."""
        seen = sha256()
        try:
            for path in (self._path, *self._also()):
                seen.update(sha256(bytes(path)).digest() + sha256(path.read_bytes()).digest())
        except (ConfigError, OSError) as error:
            return str(error)
        return seen.hexdigest()
