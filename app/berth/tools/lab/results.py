"""The file of results: written as each run ends, and read to go on after an interruption.

A file has a JSON line for each run, whole or not at all. Each says what it came from: a
:meth:`~berth.tools.lab.load.LabFile.fingerprint` of the workload and the policy.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from berth.runtime.errors import UNREADABLE
from berth.runtime.files import PUBLIC
from berth.tools.lab.curves import RunResult
from berth.tools.lab.errors import LabError

_decode = msgspec.json.Decoder(RunResult).decode


class Results:
    """The file of results, to be written to for a block."""

    def __init__(self, path: Path, *, resumes: bool, origins: Mapping[str, str]) -> None:
        """*origins*: by name of the policy, what its runs come from.

        Unless it *resumes*, the file must be new or empty: hours of work are not overwritten.
        Raises LabError for one that is not, and for results of something else; OSError.
        """
        self.path = path
        self.found: list[RunResult] = []
        """Those of these policies that were there before, one for each policy and seed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, PUBLIC)
        try:
            self._read(origins, resumes=resumes)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def add(self, result: RunResult) -> None:
        """Write *result* to the disk. Raises OSError."""
        line = msgspec.json.encode(result) + b"\n"
        while line:  # a signal may cut a write short
            line = line[os.write(self._descriptor, line) :]
        if self._is_regular():
            os.fsync(self._descriptor)

    def _is_regular(self) -> bool:
        return stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def _read(self, origins: Mapping[str, str], *, resumes: bool) -> None:
        if not self._is_regular():  # a pipe, or /dev/null
            return
        data = self.path.read_bytes()
        if data and not resumes:
            raise LabError(
                f"--results {self.path}: has results already; add --resume to do what is missing,"
                " or remove it"
            )
        whole = data.rfind(b"\n") + 1
        os.truncate(self._descriptor, whole)  # what a killed process had begun to write
        known: dict[tuple[str, int], RunResult] = {}
        for number, result in self._results(data[:whole]):
            wanted = origins.get(result.policy)
            if wanted is None:
                continue
            if result.origin != wanted:
                raise LabError(
                    f"--results {self.path}: line {number}: policy {result.policy!r}, seed"
                    f" {result.seed}: of another workload or configuration, or of another release"
                )
            known[result.policy, result.seed] = result
        self.found = [*known.values()]

    def _results(self, data: bytes) -> Iterator[tuple[int, RunResult]]:
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                yield number, _decode(line)
            except UNREADABLE as exc:
                raise LabError(f"--results {self.path}: line {number}: no result: {exc}") from exc
