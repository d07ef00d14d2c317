"""How much work Python does: lines run, calls made, and characters copied."""

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, SupportsIndex


class CountedText(str):
    """A text that counts the characters copied out of it, which no line tells of."""

    copied = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        return _counted(super().__getitem__(key))

    def partition(self, sep: str) -> tuple[str, str, str]:
        before, found, after = super().partition(sep)
        return _counted(before), found, _counted(after)

    def rpartition(self, sep: str) -> tuple[str, str, str]:
        before, found, after = super().rpartition(sep)
        return _counted(before), found, _counted(after)

    def removeprefix(self, prefix: str) -> str:
        return _counted(super().removeprefix(prefix))

    def removesuffix(self, suffix: str) -> str:
        return _counted(super().removesuffix(suffix))

    def strip(self, chars: str | None = None) -> str:
        return _counted(super().strip(chars))

    def lstrip(self, chars: str | None = None) -> str:
        return _counted(super().lstrip(chars))

    def rstrip(self, chars: str | None = None) -> str:
        return _counted(super().rstrip(chars))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        return _counted(super().replace(old, new, count))


def _counted(text: str) -> CountedText:
    CountedText.copied += len(text)
    return CountedText(text)


def work(read: Callable[[Any], object], text: Any, refuses: tuple[type[BaseException], ...]) -> int:
    """Return how much work it is to *read* the *text*, or to refuse it.

    What is done in C counts only as far as it copies the text; regular expressions are looked at
    elsewhere.
    """
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return trace

    CountedText.copied = 0
    given = CountedText(text) if isinstance(text, str) else text
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(*refuses):
            read(given)
    finally:
        sys.settrace(before)
    return count + CountedText.copied
