"""The process in which a running scheduler has questions answered: ``POST /simulate``.

Reads the size of the request's body, as in ``berth.service.server.scheduler.simulation_process``,
and the body. If that brings no snapshot, writes that it wants one and reads it until the end.
Writes lines about its progress, and then the answer as JSON; or exits with another status than 0
and writes what is wrong with the question. It may take as much memory as ``--most-memory`` and as
much CPU time as ``--most-cpu`` allow: when that is over, the answer is partial. Its other flags are
those that :attr:`berth.service.plugin_sources.KnownPlugins.as_flags` returns.
"""

import argparse
import logging
import os
import resource
import sys
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from pydantic import ValidationError

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.course import Course, each_second
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot, decode
from berth.runtime import log
from berth.runtime.clock import CpuClock, RealClock
from berth.runtime.errors import UNREADABLE, UserError
from berth.runtime.memory import collect_seldom, limit_memory
from berth.scheduler.framework.listers import Listers, with_kinds
from berth.scheduler.profile.build import Registry, kinds_read
from berth.service.plugin_sources import KnownPlugins
from berth.service.server.refusal import cut, in_words
from berth.service.server.scheduler.simulation_process import (
    OUT_OF_MEMORY,
    PROGRESS,
    SIZE,
    UNANSWERABLE,
    WANTS_SNAPSHOT,
)

NICENESS: Final = 10
"""Pods that are really waiting come first."""
NO_MEMORY: Final = (MemoryError, SystemError)
"""The latter is what comes of functions in C that fail for lack of memory and forget to say so."""
SPARE_SECONDS: Final = 15
"""CPU time beyond the budget, for the decision that is under way and for writing the answer."""
_NULL: Final = b"null"

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _RefusedError(Exception):
    """The question is wrong."""


def work(
    source: BinaryIO, target: BinaryIO, registry: Registry, *, course: Course | None = None
) -> int:
    """Answer one question; return the exit status. The answer is partial if *course* is cut."""
    try:
        question, snapshot = _read(source, target, with_kinds(kinds_read(registry)))
        answered = answer(question, snapshot, registry, course=course)
    except (UserError, _RefusedError) as exc:
        target.write(cut(str(exc)).encode("utf-8", "replace"))
        return UNANSWERABLE
    except NO_MEMORY:
        return OUT_OF_MEMORY
    if _is_short_of_memory(answered):
        return OUT_OF_MEMORY
    try:
        target.write(answered.model_dump_json(by_alias=True).encode())
    except NO_MEMORY:
        return OUT_OF_MEMORY
    return 0


def _read(source: BinaryIO, target: BinaryIO, listers: type[Listers]) -> tuple[Question, Snapshot]:
    (size,) = SIZE.unpack(source.read(SIZE.size))
    try:
        fields = _decode_fields(source.read(size))
        written = bytes(fields.pop("snapshot", _NULL))
        question = Question.model_validate_json(msgspec.json.encode(fields))
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False, include_input=False)
        raise _RefusedError(in_words(errors)) from exc
    except UNREADABLE as exc:
        raise _RefusedError(f"not a JSON object: {exc}") from exc
    if written == _NULL:
        target.write(WANTS_SNAPSHOT)
        target.flush()
        written = source.read()
    elif not written.startswith(b"{"):
        raise _RefusedError("snapshot: not an object")
    return question, decode(written, source="snapshot", listers=listers)


def _tell(target: BinaryIO, progress: dict[str, Any]) -> None:
    target.write(PROGRESS + msgspec.json.encode({"progress": progress}) + b"\n")
    target.flush()


def _is_short_of_memory(answer: Answer) -> bool:
    """Whether a plugin got no memory: like all that goes wrong in one, it is a reason of a pod."""
    compared = answer.compared.unplaced if answer.compared else ()
    return any("MemoryError" in refused.message for refused in (*answer.unplaced, *compared))


def main() -> int:
    log.setup(logging.ERROR)
    os.nice(NICENESS)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--plugin-dir", type=Path, action="append", default=[])
    parser.add_argument("--plugin", action="append", default=[])
    parser.add_argument("--most-memory", type=int, required=True, metavar="BYTES")
    parser.add_argument("--most-cpu", type=float, required=True, metavar="SECONDS")
    given = parser.parse_args()
    known = KnownPlugins.find(directories=given.plugin_dir, references=given.plugin)
    limit_memory(given.most_memory)
    try:
        collect_seldom()
        hard = int(given.most_cpu) + SPARE_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard + SPARE_SECONDS))
        source, target, clock = sys.stdin.buffer, sys.stdout.buffer, CpuClock()
        course = Course(
            lambda: clock.monotonic() / given.most_cpu,
            each_second(partial(_tell, target), RealClock()),
        )
        return work(source, target, known.registry, course=course)
    except NO_MEMORY:  # also where the lack of it is handled
        return OUT_OF_MEMORY


if __name__ == "__main__":
    sys.exit(main())
