"""How far a command with many runs is, and how it is ended."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

BAR: Final = 30
"""Characters of the bar."""


class Terminated(BaseException):
    """SIGTERM has come."""


@contextmanager
def raised_on_sigterm() -> Iterator[None]:
    """Have SIGTERM raised as an exception in the block, as Ctrl-C is."""

    def terminate(_number: int, _frame: object) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def progress(done: float, total: int, seconds: float, *, before: int = 0) -> str:
    """Return a bar, and how long it will take if the rest goes on like this.

    *done* counts whole runs and parts of runs; *before* of them were done at the beginning.
    """
    filled = int(BAR * done / total)
    bar = "#" * filled + "-" * (BAR - filled)
    shown = f"[{bar}] {int(done)} of {total} runs"
    if done <= before:
        return shown
    left = round(seconds / (done - before) * (total - done))
    return f"{shown}, {left // 60}:{left % 60:02} left"
