"""Long answers in pages, which come out whole although things change between one and the next.

A page ends at an item, and the next begins after it, in an order in which an item never moves. So
whatever exists all the time is listed exactly once; what comes or goes meanwhile may be or not.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from itertools import chain, islice
from typing import Annotated, Final, TypeVar

import msgspec
from fastapi import Depends, HTTPException, Query
from pydantic import Field

from berth.insight.explain.explanation import ResponseModel
from berth.runtime.tasks import PIECE, in_turns
from berth.service.server.refusal import LONGEST_WORD

DEFAULT_LIMIT: Final = 100
LARGEST_LIMIT: Final = 1_000

T = TypeVar("T")
Source = TypeVar("Source")
Key = TypeVar("Key", int, tuple[str, str])
"""Where an item is in the order; internal."""

Limit = Annotated[
    int,
    Query(
        ge=1, le=LARGEST_LIMIT, description="Maximum number of items; `continue` leads to the rest."
    ),
]
Continue = Annotated[
    str,
    Query(
        alias="continue",
        description="The `continue` of the previous page, with otherwise the same parameters."
        " If empty: the first page.",
    ),
]


class PageError(ValueError):
    """A ``continue`` that this list has not given."""


class Page(ResponseModel):
    """Some ``items`` of a list, whose type subclasses give.

    They name it as an ordinary field: Pydantic takes 10 ms for each generic model.
    """

    continue_: str = Field(default="", validation_alias="continue", serialization_alias="continue")
    """Asks for the next page; empty on the last one. Its content means nothing to anybody else."""


def ordered(items: Iterable[T], *, key: Callable[[T], Key], limit: int) -> tuple[list[T], str]:
    """Cut a page off *items*, which begin after the page before and are in order already.

    Return it with the token for the next one.
    """
    page = list(islice(items, limit + 1))
    if len(page) <= limit:
        return page, ""
    del page[limit:]
    return page, encode(key(page[-1]))


def unordered(
    items: Iterable[T], *, key: Callable[[T], Key], after: Key | None, limit: int
) -> tuple[list[T], str]:
    """Do the same with *items* in any order; costs a look at each, but no sort of all."""
    return ordered(_first(items, key=key, after=after, limit=limit), key=key, limit=limit)


async def many_unordered(
    items: Sequence[Source],
    *,
    where: Callable[[Sequence[Source]], Iterable[T]],
    key: Callable[[T], Key],
    after: Key | None,
    limit: int,
    piece: int = PIECE,
) -> tuple[list[T], str]:
    """Do the same with what *where* makes of *items*, so many of them in one turn of the loop."""
    first: list[T] = []
    async for some in in_turns(items, piece=piece):
        left = chain(first, where(some))
        first = _first(left, key=key, after=after, limit=limit)
    return ordered(first, key=key, limit=limit)


def _first(
    items: Iterable[T], *, key: Callable[[T], Key], after: Key | None, limit: int
) -> list[T]:
    """Return what comes next, one more than *limit*, by which is seen that there is more."""
    left = items if after is None else (item for item in items if key(item) > after)
    return nsmallest(limit + 1, left, key=key)


def encode(key: int | tuple[str, str]) -> str:
    """Return the token for what comes after *key*."""
    return urlsafe_b64encode(msgspec.json.encode(key)).decode()


def decode_names(token: str) -> tuple[str, str] | None:
    """Return the key in *token*, None for the first page. Raises PageError."""
    return _decode(token, _names) if token else None


def decode_number(token: str) -> int | None:
    """Do the same where keys are numbers."""
    return _decode(token, _number) if token else None


_names = msgspec.json.Decoder(tuple[str, str]).decode
_number = msgspec.json.Decoder(int).decode


def _decode(token: str, read: Callable[[bytes], T]) -> T:
    try:
        return read(urlsafe_b64decode(token.encode()))
    except (ValueError, msgspec.MsgspecError) as exc:
        raise PageError(f"continue: {token[:LONGEST_WORD]!r} was not given by this list") from exc


async def _after_names(token: Continue = "") -> tuple[str, str] | None:
    with _refused():
        return decode_names(token)


async def _after_number(token: Continue = "") -> int | None:
    with _refused():
        return decode_number(token)


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except PageError as exc:
        raise HTTPException(400, str(exc)) from exc


AfterNames = Annotated[tuple[str, str] | None, Depends(_after_names)]
"""Where a page begins, of an endpoint that has such keys; a ``continue`` of others is a 400."""
AfterNumber = Annotated[int | None, Depends(_after_number)]
