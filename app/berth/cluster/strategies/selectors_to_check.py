"""Selectors of devices that are compiled elsewhere before an object with them is validated.

To compile one takes up to a fifth of a second, in which nobody else on the event loop is served.
So where somebody can, validation stops at the first look, says what it needs, and is done again.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from berth.kube.cel.features import Features

QUICK: Final = 512
"""Bytes of selectors that are compiled at once, in about ten milliseconds."""


class Unchecked(NamedTuple):
    """A selector that nobody has compiled yet."""

    source: str
    features: Features


class UncheckedError(Exception):
    """Validation needs these to be compiled first."""

    def __init__(self, selectors: Iterable[Unchecked]) -> None:
        super().__init__("selectors are not compiled yet")
        self.selectors = tuple(selectors)


@contextmanager
def compiled_elsewhere(possible: bool) -> Iterator[None]:
    """Let :func:`require_compiled` raise UncheckedError in the block, if it is *possible*."""
    token = _elsewhere.set(possible)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def require_compiled(sources: Iterable[str], features: Features) -> None:
    """Raise UncheckedError if it takes long to compile *sources* and somebody else can."""
    if not _elsewhere.get():
        return
    found = dict.fromkeys(sources)
    if sum(map(len, found)) <= QUICK:
        return
    from berth.kube.cel.selectors import MAX_LENGTH, is_known  # takes long to load

    unknown = [
        Unchecked(source, features)
        for source in found
        if len(source) <= MAX_LENGTH and not is_known(source, features)
    ]
    if sum(len(each.source) for each in unknown) > QUICK:
        raise UncheckedError(unknown)


_elsewhere: ContextVar[bool] = ContextVar("selectors are compiled elsewhere", default=False)
