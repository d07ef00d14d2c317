"""How log lines look: one line of text, the sentence first and its fields after it."""

import logging
import sys
from typing import TextIO

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """``14:03:07.120 INFO app.scheduler: pod bound pod=default/web node=node-1``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        fields = [
            f"{key}={_quoted(value)}" for key, value in vars(record).items() if key not in _STANDARD
        ]
        return " ".join([super().formatMessage(record), *fields])


def _quoted(value: object) -> str:
    text = str(value)
    return repr(text) if not text or any(c.isspace() for c in text) else text


def setup(level: int, stream: TextIO = sys.stderr) -> None:
    """Send all log lines of *level* and above to *stream*."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("uvicorn", "asyncio", "kubernetes_asyncio"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
