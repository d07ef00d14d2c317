"""Recordings read from files, line by line, whoever wrote them."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, cast

from berth.insight.recording import lines
from berth.insight.recording.chain import Chain, ChainError
from berth.runtime.errors import UNREADABLE, UserError

LONGEST_LINE: Final = 16 << 20
"""Bytes. An object of the API has at most a tenth of it."""

_GZIP: Final = b"\x1f\x8b"


class RecordingError(UserError):
    """A file that is no recording; names the file and the line."""


class LineError(ValueError):
    """A line that is well formed and cannot be meant; says which field, and why."""


@dataclass(slots=True)
class RecordingFile:
    """One file of a recording, compressed or not."""

    path: Path
    is_cut: bool = field(default=False, init=False)
    """Whether the last line read was cut off, as where a process was killed; it is left out."""
    has_end: bool = field(default=False, init=False)
    """Whether the line was read that a process writes when it stops."""
    is_checked: bool = field(default=True, init=False)
    """Whether lines tell that one is missing, moved or changed: not in files of older releases."""
    digest: str = field(default="", init=False)
    """Of the last line that was read."""
    number: int = field(default=0, init=False)
    """Of the last line that was read."""
    _header: lines.Header | None = field(default=None, init=False)

    @property
    def where(self) -> str:
        """The line that was read last, for messages."""
        return f"{self.path}: line {self.number}"

    def header(self) -> lines.Header:
        """Return the first line. Raises RecordingError."""
        if self._header is None:
            first = next(self.read())
            assert isinstance(first, lines.Header)
            self._header = first
        return self._header

    def steps(self) -> Iterator[lines.Step]:
        """Yield the lines after the header. Raises RecordingError."""
        return islice(self.read(), 1, None)

    def read(self) -> Iterator[lines.Step]:
        """Yield the lines; the first one is a Header. Raises RecordingError."""
        self.number, self.has_end = 0, False
        chain = Chain()
        try:
            with self._open() as file:
                for data in self._split(file):
                    self.number += 1
                    line = self._checked(data, chain)
                    if isinstance(line, lines.End):
                        self.has_end = True
                    else:
                        yield line
        except (OSError, zlib.error) as exc:
            where = f"{self.path}: line {self.number + 1}" if self.number else f"{self.path}"
            raise RecordingError(f"{where}: {getattr(exc, 'strerror', None) or exc}") from exc
        if not self.number:
            raise RecordingError(f"{self.path}: no recording: the file is empty")

    @contextmanager
    def naming_line(self) -> Iterator[None]:
        """Say of what the last line leads to that it is at fault. Raises RecordingError."""
        try:
            yield
        except (*UNREADABLE, LineError) as exc:
            raise RecordingError(f"{self.where}: {exc}") from exc

    def _open(self) -> BinaryIO:
        with self.path.open("rb") as file:
            is_compressed = file.read(len(_GZIP)) == _GZIP
        if is_compressed:
            return cast("BinaryIO", gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def _split(self, file: BinaryIO) -> Iterator[bytes]:
        number = 0
        while True:
            number += 1
            try:
                data = file.readline(LONGEST_LINE + 1)
            except EOFError:  # compressed, and the end is missing
                self.is_cut = True
                return
            if not data:
                return
            if len(data) > LONGEST_LINE:
                raise RecordingError(
                    f"{self.path}: line {number}: longer than {LONGEST_LINE >> 20} MiB"
                )
            if not data.endswith(b"\n"):
                self.is_cut = True
                return
            yield data

    def _checked(self, data: bytes, chain: Chain) -> lines.Step | lines.End:
        try:
            line: lines.Step | lines.End = lines.decode(data)
        except UNREADABLE as exc:
            raise RecordingError(f"{self.where}: no line of a recording: {exc}") from exc
        is_first = self.number == 1
        if isinstance(line, lines.Header) is not is_first:
            what = "has no header: no recording" if is_first else "has a header"
            raise RecordingError(f"{self.where} {what}")
        if self.has_end:
            raise RecordingError(f"{self.where} follows the end of the recording")
        if isinstance(line, lines.Header):
            self._check_version(line)
            chain.digest = line.previous
        if self.is_checked:
            try:
                chain.check(data.removesuffix(b"\n"))
            except ChainError as exc:
                raise RecordingError(f"{self.where}: {exc}") from exc
            self.digest = chain.digest
        return line

    def _check_version(self, header: lines.Header) -> None:
        known = (lines.API_VERSION, lines.UNCHECKED_VERSION)
        if header.kind != lines.KIND or header.api_version not in known:
            got = f"apiVersion {header.api_version!r}, kind {header.kind!r}"
            raise RecordingError(
                f"{self.where}: apiVersion {lines.API_VERSION!r}, kind {lines.KIND!r} are needed,"
                f" got {got}"
            )
        self.is_checked = header.api_version != lines.UNCHECKED_VERSION
