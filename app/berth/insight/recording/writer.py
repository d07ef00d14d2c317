"""The files of a recording that is being made: compressed, and written beside the scheduler.

Lines are kept for up to a second and written by a thread, as one gzip member, so that what a killed
process leaves can be read up to the last second. When the file is full, another one continues it.
Whatever goes wrong ends the recording, and not the scheduler: a recording with a gap is of no use,
nor is one without its beginning, so that no file of this process is deleted.
"""

import asyncio
import errno
import gzip
import logging
import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

from berth.insight.recording.chain import Chain
from berth.insight.recording.lines import End, encode, next_header
from berth.runtime.clock import Clock
from berth.runtime.errors import UserError
from berth.runtime.files import SECRET

log = logging.getLogger(__name__)

PERIOD: Final = 1.0
"""Seconds between two writes."""
MOST_PENDING: Final = 64 << 20
"""Bytes that may wait for a slow disk."""
MOST_BYTES: Final = 1 << 30
"""Of a file, compressed, by default."""
LEVEL: Final = 1
"""Of compression: lines are so much alike that a higher one hardly makes files smaller."""
END: Final = encode(End())
KEPT: Final = 5
"""Earlier files that are kept by default."""


class RecordingWriter:
    """Writes lines to a new file; earlier ones are kept as ``FILE.1``, ``FILE.2`` and so on."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES, keep: int = KEPT) -> None:
        """Another file begins where one would exceed *most_bytes*; *keep* earlier ones are kept.

        What is written at once is in one file, even if that exceeds *most_bytes*.
        """
        self.path = path
        self.num_lines = 0
        """That were written; *dropped* were not, because the recording has ended."""
        self.dropped = 0
        self.num_bytes = 0
        """Written, compressed."""
        self.problem = ""
        """Why the recording has ended; empty: it has not."""
        self._most_bytes = most_bytes
        self._keep = keep
        self._file: BinaryIO | None = None
        self._num_files = 0
        self._left = most_bytes
        """Bytes for which there is room in the file."""
        self._chain = Chain()
        self._header = b""
        """The first line of the file."""
        self._lines: list[bytes] = []
        self._size = 0
        self._lock = Lock()

    def write(self, line: bytes) -> None:
        """Take a line, without its end. UserError if it is the first and no file can be made."""
        if self.problem:
            self.dropped += 1
            return
        if self._file is None:
            self._header = line
            try:
                self._begin_file()
            except OSError as exc:
                raise UserError(f"--record {self.path}: {exc.strerror or exc}") from exc
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
            if not taken or self._file is None or self._file.closed:
                return
            data, chain = self._sealed(taken)
            is_full = len(data) > self._left < self._most_bytes
            if is_full and self._num_files > self._keep:
                problem = f"all {self._num_files} files of {self._most_bytes >> 20} MiB are full"
                self._end(problem, lost=len(taken))
                return
            try:
                if is_full:
                    self._continue_in_next_file()
                    data, chain = self._sealed(taken)
                self._put(data)
                self._chain = chain
                self.num_lines += len(taken)
            except OSError as exc:
                self._end(exc.strerror or str(exc), lost=len(taken))

    def _sealed(self, lines: Iterable[bytes]) -> tuple[bytes, Chain]:
        """Return what is to be written for *lines*, and the chain that they end."""
        chain = self._chain.copy()
        return _compressed(map(chain.sealed, lines)), chain

    def _put(self, data: bytes) -> None:
        assert self._file is not None
        size = self._file.write(data)
        self.num_bytes += size
        self._left -= size
        if size < len(data):  # what follows could not be read
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _continue_in_next_file(self) -> None:
        assert self._file is not None
        self._file.close()
        self._header = next_header(self._header, self._chain.digest)
        self._chain = Chain(self._chain.digest)
        self._begin_file()
        data, self._chain = self._sealed([self._header])
        self._put(data)
        log.info("recording continues in another file", extra={"file": str(self.path)})

    def _begin_file(self) -> None:
        _rotate(self.path, keep=self._keep)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._file = os.fdopen(os.open(self.path, flags, SECRET), "wb", buffering=0)
        self._num_files += 1
        self._left = self._most_bytes

    def close(self) -> None:
        """Write what is left and that this is the end, and close the file."""
        self.flush()
        with self._lock:
            if self._file is not None and not self._file.closed and not self.problem:
                try:
                    self._put(self._sealed([END])[0])
                except OSError as exc:
                    self._end(exc.strerror or str(exc))
        if self._file is not None:
            self._file.close()

    def _end(self, problem: str, *, lost: int = 0) -> None:
        """Record nothing any more; *lost* lines were taken and could not be written."""
        self.dropped += lost + len(self._lines)
        self._lines, self._size = [], 0
        if not self.problem:
            self.problem = problem
            log.error("recording ended", extra={"file": str(self.path), "why": problem})


def _compressed(lines: Iterable[bytes]) -> bytes:
    return gzip.compress(b"\n".join(lines) + b"\n", LEVEL)


def _rotate(path: Path, *, keep: int) -> None:
    """Make way for a new *path*: each earlier file gets the next number, up to *keep*.

    Those after a number that is free stay where they are.
    """
    names = [path]
    while names[-1].exists() and len(names) <= keep:
        names.append(path.with_name(f"{path.name}.{len(names)}"))
    for newer, older in reversed([*pairwise(names)]):
        newer.replace(older)
