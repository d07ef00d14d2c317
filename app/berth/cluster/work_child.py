"""The process in which the API server has long work done: see :mod:`berth.cluster.work_process`.

Reads jobs from its standard input, one after the other, and writes an answer to each, until the
input ends.
"""

import os
import signal
import sys
from typing import Any, BinaryIO, Final

import msgspec
import yaml

from berth.cluster.work_process import (
    HEAD,
    MOST_MEMORY,
    Compiled,
    Job,
    Outcome,
    Selector,
)
from berth.kube import documents
from berth.kube.cel.features import Features
from berth.kube.cel.selector_error import CompileError
from berth.runtime.memory import limit_memory

NICENESS: Final = 5
"""Requests that are quick come first."""


def yaml_as_json(content: bytes) -> bytes:
    """Return the JSON of a YAML document; ValueError says what is wrong with it."""
    try:
        return msgspec.json.encode(documents.load(content))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as exc:
        raise ValueError(" ".join(str(exc).split())) from exc


def repeated_keys(content: bytes) -> bytes:
    """Return what is said of repeated keys in YAML that could be read."""
    return msgspec.json.encode(documents.repeated_keys(content))


def compiled_selector(content: bytes) -> bytes:
    """Compile a selector of devices."""
    from berth.kube.cel import selectors  # takes long to load, and YAML does not need it

    asked = msgspec.msgpack.decode(content, type=Selector)
    features = Features(*asked.features)
    found = selectors.compile_expression(asked.source, features)
    if isinstance(found, CompileError):
        return msgspec.msgpack.encode(Compiled(detail=found.detail))
    program = found.program
    return msgspec.msgpack.encode(
        Compiled(program=program.packed, size=program.size, cost=found.cost, work=found.work)
    )


TASKS: Final[dict[Job, Any]] = {
    Job.YAML: yaml_as_json,
    Job.SELECTOR: compiled_selector,
    Job.REPEATED_KEYS: repeated_keys,
}


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Do jobs until *source* ends."""
    while len(head := source.read(HEAD.size)) == HEAD.size:
        size, job = HEAD.unpack(head)
        content = source.read(size)
        try:
            answer, outcome = TASKS[Job(job)](content), Outcome.DONE
        except ValueError as exc:
            answer, outcome = str(exc).encode("utf-8", "replace"), Outcome.REFUSED
        except (MemoryError, SystemError):  # the latter is what functions in C make of it
            answer, outcome = b"", Outcome.TOO_LARGE
        target.write(HEAD.pack(len(answer), outcome) + answer)
        target.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the API server ends it
    os.nice(NICENESS)
    limit_memory(MOST_MEMORY)
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
