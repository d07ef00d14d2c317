"""The file of a recording that is being made: compressed, and written beside the scheduler.

Lines are kept for up to a second and written by a thread, as one gzip member, so that what a killed
process leaves can be read up to the last second. Whatever goes wrong ends the recording, and not
the scheduler: a recording with a gap is of no use.
"""

import asyncio
import gzip
import logging
import os
from pathlib import Path
from threading import Lock
from typing import Final

from berth.clock import Clock
from berth.errors import UserError
from berth.files import SECRET

log = logging.getLogger(__name__)

PERIOD: Final = 1.0
"""Seconds between two writes."""
MOST_PENDING: Final = 64 << 20
"""Bytes that may wait for a slow disk."""
MOST_BYTES: Final = 1 << 30
"""Of a file, compressed, by default."""
LEVEL: Final = 1
"""Of compression: lines are so much alike that a higher one hardly makes files smaller."""
KEPT: Final = 5
"""Recordings of earlier processes that are kept."""


class RecordingWriter:
    """Writes lines to a new file; earlier ones are kept as ``FILE.1``, ``FILE.2`` and so on."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Begin the file; UserError if that cannot be done. It ends at *most_bytes*."""
        self.path = path
        self.num_lines = 0
        """That were taken; *dropped* were not, because the recording had ended."""
        self.dropped = 0
        self.num_bytes = 0
        """In the file."""
        self.problem = ""
        """Why the recording has ended; empty: it has not."""
        self._most_bytes = most_bytes
        self._lines: list[bytes] = []
        self._size = 0
        self._lock = Lock()
        try:
            _rotate(path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self._file = os.fdopen(os.open(path, flags, SECRET), "wb", buffering=0)
        except OSError as exc:
            raise UserError(f"--record {path}: {exc.strerror or exc}") from exc

    def write(self, line: bytes) -> None:
        """Take a line, without its end."""
        if self.problem:
            self.dropped += 1
            return
        self.num_lines += 1
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > MOST_PENDING:
            self._end(f"{MOST_PENDING >> 20} MiB wait to be written: the disk is too slow")

    async def run(self, clock: Clock) -> None:
        """Write every second, for ever."""
        try:
            while True:
                await clock.sleep(PERIOD)
                if self._lines:
                    await asyncio.to_thread(self.flush)
        finally:
            self.close()

    def flush(self) -> None:
        """Write what was taken."""
        with self._lock:
            taken, self._lines, self._size = self._lines, [], 0
            if not taken or self._file.closed:
                return
            data = gzip.compress(b"\n".join(taken) + b"\n", LEVEL)
            if self.num_bytes + len(data) > self._most_bytes:
                self._end(f"the file would be larger than {self._most_bytes >> 20} MiB")
                return
            try:
                self._file.write(data)
                self.num_bytes += len(data)
            except OSError as exc:
                self._end(exc.strerror or str(exc))

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        self._file.close()

    def _end(self, problem: str) -> None:
        """Record nothing any more."""
        if not self.problem:
            self.problem = problem
            self._lines, self._size = [], 0
            log.error("recording ended", extra={"file": str(self.path), "why": problem})


def _rotate(path: Path) -> None:
    """Make way for a new *path*: each earlier recording gets the next number."""
    names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, KEPT + 1))]
    for older, newer in zip(reversed(names), [*reversed(names)][1:], strict=False):
        if newer.exists():
            newer.replace(older)
