"""Recordings of processes, each in one file or in several that continue each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from berth.recording import lines
from berth.recording.files import RecordingError, RecordingFile


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What one process has recorded."""

    header: lines.Header
    files: list[RecordingFile]
    """In the order in which they were written."""

    def read(self) -> Iterator[lines.AnyLine]:
        """Yield the steps. Raises RecordingError."""
        yield from self.files[0].steps()
        for earlier, file in pairwise(self.files):
            if earlier.is_cut:
                raise RecordingError(f"{earlier.path}: is cut off, and {file.path} continues it")
            yield from file.steps()


def runs(paths: Iterable[Path]) -> list[RecordedRun]:
    """Read to which recordings the files belong, in any order; return them by time.

    Raises RecordingError for a file that continues one that is not given.
    """
    files = [RecordingFile(path) for path in paths]
    headers = [(file.header(), file) for file in files]
    headers.sort(key=lambda each: (_run(each[0]), each[0].segment))
    found: list[RecordedRun] = []
    for header, file in headers:
        if not header.segment:
            found.append(RecordedRun(header, [file]))
            continue
        last = found[-1] if found else None
        if last is None or (_run(last.header), len(last.files)) != (_run(header), header.segment):
            raise RecordingError(
                f"{file.path}: continues another file of the same recording, which is not given"
            )
        last.files.append(file)
    return found


def _run(header: lines.Header) -> tuple[float, int]:
    """Return what tells the recording of a process from others."""
    return header.t, header.seed
