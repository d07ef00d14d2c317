"""Recordings read from files, line by line, whoever wrote them."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, cast

from berth.errors import UNREADABLE, UserError
from berth.recording import lines

LONGEST_LINE: Final = 16 << 20
"""Bytes. An object of the API has at most a tenth of it."""

_GZIP: Final = b"\x1f\x8b"


class RecordingError(UserError):
    """A file that is no recording; names the file and the line."""


@dataclass(slots=True)
class RecordingFile:
    """One file of a recording, compressed or not."""

    path: Path
    is_cut: bool = field(default=False, init=False)
    """Whether the last line read was cut off, as where a process was killed; it is left out."""

    def header(self) -> lines.Header:
        """Return the first line. Raises RecordingError."""
        first = next(self.read())
        assert isinstance(first, lines.Header)
        return first

    def steps(self) -> Iterator[lines.AnyLine]:
        """Yield the lines after the header. Raises RecordingError."""
        return islice(self.read(), 1, None)

    def read(self) -> Iterator[lines.AnyLine]:
        """Yield the lines; the first one is a Header. Raises RecordingError."""
        number = 0
        try:
            with self._open() as file:
                for number, data in enumerate(self._split(file), start=1):
                    yield self._checked(number, data)
        except (OSError, zlib.error) as exc:
            where = f"{self.path}: line {number + 1}" if number else f"{self.path}"
            raise RecordingError(f"{where}: {getattr(exc, 'strerror', None) or exc}") from exc
        if not number:
            raise RecordingError(f"{self.path}: no recording: the file is empty")

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

    def _checked(self, number: int, data: bytes) -> lines.AnyLine:
        where = f"{self.path}: line {number}"
        try:
            line: lines.AnyLine = lines.decode(data)
        except UNREADABLE as exc:
            raise RecordingError(f"{where}: no line of a recording: {exc}") from exc
        if isinstance(line, lines.Header) is not (number == 1):
            what = "has a header" if number > 1 else "has no header: no recording"
            raise RecordingError(f"{where} {what}")
        if isinstance(line, lines.Header) and (line.api_version, line.kind) != (
            lines.API_VERSION,
            lines.KIND,
        ):
            got = f"apiVersion {line.api_version!r}, kind {line.kind!r}"
            raise RecordingError(
                f"{where}: apiVersion {lines.API_VERSION!r}, kind {lines.KIND!r} are needed,"
                f" got {got}"
            )
        return line
