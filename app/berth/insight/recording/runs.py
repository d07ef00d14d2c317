"""Recordings of processes, each in one file or in several that continue each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from berth.insight.recording import lines
from berth.insight.recording.files import RecordingError, RecordingFile
from berth.runtime.release import version


@dataclass(slots=True)
class RecordedRun:
    """What one process has recorded."""

    header: lines.Header
    files: list[RecordingFile]
    """In the order in which they were written."""
    is_whole: bool = False
    """Whether :meth:`read` came to the end of the last file."""

    def read(self) -> Iterator[tuple[RecordingFile, lines.Step]]:
        """Yield the steps, each with the file that it was just read from. Raises RecordingError."""
        yield from self._steps(self.files[0])
        for earlier, file in pairwise(self.files):
            if earlier.is_cut:
                raise RecordingError(f"{earlier.path}: is cut off, and {file.path} continues it")
            if file.header().previous != earlier.digest:
                raise RecordingError(
                    f"{earlier.path}: lines are missing at its end: {file.path} does not continue"
                    f" its line {earlier.number}"
                )
            yield from self._steps(file)
        self.is_whole = True

    @staticmethod
    def _steps(file: RecordingFile) -> Iterator[tuple[RecordingFile, lines.Step]]:
        return ((file, line) for line in file.steps())

    def warnings(self) -> Iterator[str]:
        """Say what speaks against taking it for the whole and the truth, as far as it was read."""
        last = self.files[-1]
        if self.header.version != version():
            yield (
                f"{self.files[0].path}: recorded by berth {self.header.version}, and this is"
                f" {version()}: decisions may differ for that reason"
            )
        if not last.is_checked:
            yield (
                f"{last.path}: {lines.UNCHECKED_VERSION} of an older release: nothing tells whether"
                " lines are missing, moved or changed"
            )
        elif self.is_whole and last.is_cut:
            yield f"{last.path}: cut off: line {last.number + 1} is incomplete and was ignored"
        elif self.is_whole and not last.has_end:
            yield (
                f"{last.path}: ends after line {last.number} without an end: the process was"
                " killed, still runs, or could not write on"
            )


def runs(paths: Iterable[Path]) -> list[RecordedRun]:
    """Read to which recordings the files belong, in any order; return them by time.

    Raises RecordingError for a file that continues one that is not given.
    """
    files = [RecordingFile(path) for path in paths]
    headers = [(file.header(), file) for file in files]
    headers.sort(key=lambda numbered: (_run(numbered[0]), numbered[0].segment))
    recorded: list[RecordedRun] = []
    for header, file in headers:
        if not header.segment:
            recorded.append(RecordedRun(header, [file]))
            continue
        last = recorded[-1] if recorded else None
        if last is None or (_run(last.header), len(last.files)) != (_run(header), header.segment):
            raise RecordingError(
                f"{file.path}: continues another file of the same recording, which is not given"
            )
        last.files.append(file)
    return recorded


def _run(header: lines.Header) -> tuple[float, int]:
    """Return what tells the recording of a process from others."""
    return header.t, header.seed
