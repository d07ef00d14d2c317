"""gzip from others: small files that stand for large ones are refused before memory is taken."""

import zlib
from typing import Final

MAGIC: Final = b"\x1f\x8b"
"""How gzip begins."""

UNSUSPICIOUS: Final = 32 << 20
"""Bytes that a file may have when it is unpacked, however small it is."""
RATIO: Final = 100
"""Larger ones may be as many times larger than packed. JSON of a cluster is 10 to 40 times; gzip
reaches 1,030."""

_WINDOW: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 1 << 20


class GzipError(ValueError):
    """What is no gzip, ends too early, or is too large when it is unpacked."""


def unpacked(data: bytes, *, most: int) -> bytes:
    """Return what *data*, one or more gzip members, stands for; at most *most* bytes.

    Raises GzipError, as soon as more has come out than may: *most* bytes, or more than
    :data:`UNSUSPICIOUS` and :data:`RATIO` times of what was read.
    """
    allowed = min(most, max(UNSUSPICIOUS, RATIO * len(data)))
    whole = bytearray()
    rest = data
    while rest:
        stream = zlib.decompressobj(_WINDOW)
        try:
            while not stream.eof:
                piece = stream.decompress(rest, min(_PIECE, allowed + 1 - len(whole)))
                rest = stream.unconsumed_tail
                whole += piece
                if len(whole) > allowed:
                    raise GzipError(_too_large(len(data), allowed, most))
                if not piece and not rest and not stream.eof:
                    raise GzipError("it is not valid gzip: it ends too early")
        except zlib.error as exc:
            raise GzipError(f"it is not valid gzip: {exc}") from exc
        rest = stream.unused_data.lstrip(b"\0")  # padding, as gzip allows it
    return bytes(whole)


def _too_large(packed: int, allowed: int, most: int) -> str:
    if allowed == most:
        return f"it has more than {most} bytes when unpacked"
    return f"its {packed} bytes stand for more than {allowed}: it is packed more than {RATIO} times"
