"""Files of scenarios: JSON lines in, JSON lines out, compressed where the name ends in ``.gz``."""

import gzip
import json
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

from berth.insight.offline.scenario import ScenarioError
from berth.runtime.errors import UserError
from berth.runtime.printable import printable_json
from berth.scheduler.config.errors import ConfigError

LONGEST_LINE: Final = 64 << 20
"""Characters. A scenario of 5,000 nodes and 50,000 pods has fewer."""

log = logging.getLogger(__name__)

Scenario = Mapping[str, Any]


class FileError(UserError):
    """A file cannot be read or written, or does not hold scenarios; names the place."""


def answer_all(
    source: Path, target: Path, decide: Callable[[Scenario], Mapping[str, Any]]
) -> list[str]:
    """Write what *decide* says of each scenario in *source* to *target*, in order.

    A scenario that is malformed, or that it fails on, is answered ``{"id", "unsupported"}`` and
    the rest goes on; returned are the reasons, with the places. Raises FileError.
    """
    problems = []
    with opened(source, "rt") as lines, opened(target, "wt") as answers:
        for where, scenario in scenarios(source, lines):
            try:
                answer = decide(scenario)
            except (ScenarioError, ConfigError) as exc:
                problems.append(f"{where}: {exc}")
                answer = {"id": scenario.get("id"), "unsupported": str(exc)}
            except Exception as exc:
                log.exception("scenario not decided", extra={"place": where})
                problems.append(f"{where}: {exc!r}")
                answer = {"id": scenario.get("id"), "unsupported": repr(exc)}
            answers.write(printable_json(json.dumps(answer, ensure_ascii=False)) + "\n")
    return problems


def scenarios(source: Path, file: IO[str]) -> Iterator[tuple[str, Scenario]]:
    """Yield where in *source* each scenario stands, and the scenario.

    A line is a scenario, or an object with one under ``scenario``; empty lines are passed over.
    """
    for number, line in enumerate(lines_of(source, file), start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        try:
            read = json.loads(line)
        except ValueError as exc:
            raise FileError(f"{where}: not JSON: {exc}") from exc
        scenario = read.get("scenario", read) if isinstance(read, dict) else read
        if not isinstance(scenario, dict):
            raise FileError(f"{where}: an object is needed, got {type(scenario).__name__}")
        yield where, scenario


def lines_of(source: Path, file: IO[str]) -> Iterator[str]:
    """Yield the lines of *file*, which is *source*; FileError for one that is too long or broken.

    A small compressed file may hold a line that does not fit into memory.
    """
    number = 1
    try:
        while line := file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise FileError(f"{source}, line {number}: longer than {LONGEST_LINE} characters")
            yield line
            number += 1
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise FileError(f"{source}, line {number}: cannot be read: {exc}") from exc


@contextmanager
def opened(path: Path, mode: str) -> Iterator[IO[str]]:
    """Open a text file, compressed or not; FileError names it when that fails."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        file = opener(path, mode, encoding="utf-8")
    except OSError as exc:
        raise FileError(f"{path}: {exc.strerror}") from exc
    with file:
        yield cast("IO[str]", file)
