"""The process in which a running scheduler has questions answered: ``POST /simulate``.

Reads a question, one line of JSON, then the snapshot until the end; writes the answer as JSON. Ends
with status 2 and a message instead when the question cannot be answered. Its flags are those that
:attr:`app.plugin_sources.KnownPlugins.as_flags` returns.
"""

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import BinaryIO, Final

from app import log
from app.errors import UserError
from app.plugin_sources import KnownPlugins
from app.profile.build import Registry
from app.whatif.engine import answer
from app.whatif.question import Question
from app.whatif.snapshot import decode

NICENESS: Final = 10
"""Pods that are really waiting come first."""


def work(source: BinaryIO, target: BinaryIO, registry: Registry) -> int:
    """Answer one question; return the exit status."""
    question = Question.model_validate_json(source.readline())
    try:
        found = answer(question, decode(source.read(), source="snapshot"), registry)
    except UserError as exc:
        target.write(str(exc).encode())
        return 2
    target.write(found.model_dump_json(by_alias=True).encode())
    return 0


def main() -> int:
    log.setup(logging.ERROR)
    os.nice(NICENESS)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--plugin-dir", type=Path, action="append", default=[])
    parser.add_argument("--plugin", action="append", default=[])
    given = parser.parse_args()
    known = KnownPlugins.find(directories=given.plugin_dir, references=given.plugin)
    return work(sys.stdin.buffer, sys.stdout.buffer, known.registry)


if __name__ == "__main__":
    sys.exit(main())
