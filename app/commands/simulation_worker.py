"""The process in which a running scheduler has questions answered: ``POST /simulate``.

Reads a question, one line of JSON, then the snapshot until the end; writes the answer as JSON. Ends
with status 2 and a message instead when the question cannot be answered.
"""

import logging
import os
import sys
from typing import BinaryIO, Final

from app import log
from app.errors import UserError
from app.whatif.engine import answer
from app.whatif.question import Question
from app.whatif.snapshot import decode
from plugins.registry import IN_TREE

NICENESS: Final = 10
"""Pods that are really waiting come first."""


def work(source: BinaryIO, target: BinaryIO) -> int:
    question = Question.model_validate_json(source.readline())
    try:
        found = answer(question, decode(source.read(), source="snapshot"), IN_TREE)
    except UserError as exc:
        target.write(str(exc).encode())
        return 2
    target.write(found.model_dump_json(by_alias=True).encode())
    return 0


if __name__ == "__main__":
    log.setup(logging.ERROR)
    os.nice(NICENESS)
    sys.exit(work(sys.stdin.buffer, sys.stdout.buffer))
