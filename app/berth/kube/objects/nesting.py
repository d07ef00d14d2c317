"""JSON that is nested too deeply to be decoded.

Go reads ten thousand levels, and the opaque parameters of a ResourceClaim may have thousands;
decoders here may end with a RecursionError before one, by Python's version and its stack. What such
text consists of is found without recursion, in one pass.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

DEEPEST: Final = 100
"""How many levels :func:`pruned` leaves; what is read of any object has far fewer."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)
"""A string, closed or not, or a bracket; possessive, so that no byte is looked at twice."""


def is_deep(data: bytes) -> bool:
    """Whether *data* has more than :data:`DEEPEST` levels."""
    opened = data.count(b"{") + data.count(b"[")
    return opened > DEEPEST and any(True for _ in _below(data, DEEPEST))


def pruned(data: bytes) -> bytes:
    """Return *data* with ``null`` for each object and array below :data:`DEEPEST` levels."""
    return _replaced(data, DEEPEST, lambda _: b"null")[0]


def outline(data: bytes, levels: int) -> tuple[bytes, list[bytes]]:
    """Return the uppermost *levels* of *data*, and the objects and arrays that are below them.

    In their place stand their indices.
    """
    return _replaced(data, levels, lambda index: b"%d" % index)


def _replaced(
    data: bytes, levels: int, placeholder: Callable[[int], bytes]
) -> tuple[bytes, list[bytes]]:
    kept: list[bytes] = []
    taken: list[bytes] = []
    end = 0
    for begin, after in _below(data, levels):
        kept += (data[end:begin], placeholder(len(taken)))
        taken.append(data[begin:after])
        end = after
    kept.append(data[end:])
    return b"".join(kept), taken


def _below(data: bytes, levels: int) -> Iterator[tuple[int, int]]:
    """Yield where each object and array below *levels* begins, and where it has ended.

    One that is not closed ends with *data*.
    """
    depth = begin = 0
    for token in _TOKEN.finditer(data):
        match token[0]:
            case b"{" | b"[":
                if depth == levels:
                    begin = token.start()
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if depth == levels:
                    yield begin, token.end()
    if depth > levels:
        yield begin, len(data)
