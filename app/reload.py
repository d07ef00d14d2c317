"""Reading the configuration anew while the scheduler runs: on SIGHUP, and when the file changes."""

import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from app.clock import Clock
from app.config.errors import ConfigError
from app.config.types import KubeSchedulerConfiguration

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 5.0
"""Seconds between looks at the file. Its content is compared, for a mounted ConfigMap changes by
swapping a symbolic link."""


class Reloader:
    """Keeps the configuration in force equal to a file, as long as the file is right.

    All of it happens without awaiting, hence between two attempts; that takes milliseconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        load: Callable[[bytes], KubeSchedulerConfiguration],
        replace: Callable[[KubeSchedulerConfiguration], None],
        count: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """*load* and *replace* raise ConfigError; *count* is told ``success`` or ``failure``."""
        self._path = path
        self._load = load
        self._replace = replace
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
        """Look at the file for ever, and reload when it has changed."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            if self._look() != self._seen:
                log.info("configuration file changed", extra={"file": self._path})
                self.reload()

    def _look(self) -> str:
        """Return what tells one state of the file from another, also when it cannot be read."""
        try:
            return sha256(self._path.read_bytes()).hexdigest()
        except OSError as error:
            return str(error)
