"""SPDY/3.1, the server's side, as far as ``kubectl port-forward`` speaks it: streams of bytes.

The rules are those of the draft "SPDY Protocol - Draft 3.1", without flow control, which the
clients of Kubernetes do not know either.
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
FIN: Final = 1
"""The flag of the last frame of one side of a stream."""
VERSION: Final = 0x8003
LARGEST_FRAME: Final = 1 << 20
LARGEST_HEADERS: Final = 1 << 16

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date "
    "etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma proxy-authenticate "
    "proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_NAMES: Final = [
    *_WORDS.split(), "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive",
    "origin",
]  # fmt: skip


def _sized(text: str) -> bytes:
    return len(text.encode()).to_bytes(4, "big") + text.encode()


DICTIONARY: Final = b"".join(map(_sized, _NAMES)) + _REST.encode()
"""With which headers are compressed (section 2.6.10.1)."""


class SpdyError(Exception):
    """Bytes that are no SPDY."""


class Opened(NamedTuple):
    """The client has opened a stream."""

    stream: int
    headers: Mapping[str, str]


class Data(NamedTuple):
    """Bytes of a stream; *is_end*: no more come, also if it was reset."""

    stream: int
    data: bytes
    is_end: bool


class SpdyConnection:
    """Frames into events, and the other way round; ``outgoing`` is what is to be sent."""

    def __init__(self) -> None:
        self.outgoing = bytearray()
        self._received = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def receive(self, data: bytes) -> Iterator[Opened | Data]:
        """Take what has come; yield what it means. Raises SpdyError."""
        self._received += data
        while len(self._received) >= 8:
            length = int.from_bytes(self._received[5:8], "big")
            if length > LARGEST_FRAME:
                raise SpdyError("frame too large")
            if len(self._received) < 8 + length:
                return
            head, payload = bytes(self._received[:8]), bytes(self._received[8 : 8 + length])
            del self._received[: 8 + length]
            yield from self._frame(head, payload)

    def _frame(self, head: bytes, payload: bytes) -> Iterator[Opened | Data]:
        first, flags = int.from_bytes(head[:4], "big"), head[4]
        if not first >> 31:
            yield Data(first, payload, bool(flags & FIN))
            return
        if first >> 16 != VERSION or len(payload) < 4:
            raise SpdyError("not SPDY/3")
        stream = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
        match first & 0xFFFF:
            case 1:
                yield Opened(stream, self._headers(payload[10:]))
                if flags & FIN:
                    yield Data(stream, b"", is_end=True)
            case 3:
                yield Data(stream, b"", is_end=True)
            case 6:
                self._control(PING, payload)

    def reply(self, stream: int) -> None:
        """Accept a stream that was opened."""
        block = self._deflate.compress((0).to_bytes(4, "big"))
        block += self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._control(SYN_REPLY, stream.to_bytes(4, "big") + block)

    def send(self, stream: int, data: bytes, *, is_end: bool = False) -> None:
        self.outgoing += stream.to_bytes(4, "big") + bytes([FIN if is_end else 0])
        self.outgoing += len(data).to_bytes(3, "big") + data

    def _control(self, kind: int, payload: bytes) -> None:
        self.outgoing += VERSION.to_bytes(2, "big") + kind.to_bytes(2, "big")
        self.outgoing += len(payload).to_bytes(4, "big") + payload

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, LARGEST_HEADERS)
        except zlib.error as exc:
            raise SpdyError(str(exc)) from None
        if self._inflate.unconsumed_tail:
            raise SpdyError("headers too large")
        texts, at = [], 4
        while at < len(plain):
            size = int.from_bytes(plain[at : at + 4], "big")
            texts.append(plain[at + 4 : at + 4 + size].decode("latin-1"))
            at += 4 + size
        return dict(zip(texts[::2], texts[1::2], strict=False))
