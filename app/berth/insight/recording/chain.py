"""The chain of a file's lines, so that none can be missing, moved or changed unseen.

Each line ends in its number and in a digest of itself and of all lines before it::

    {"op":"flush","t":1767225600.0,"line":17,"chain":"5f0c9d2b"}

The first line of a file that continues another one has the digest of the last line of that one. It
shows what has happened to a file by accident; whoever wants to deceive can compute digests, too.
"""

import re
from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 4
_SEAL: Final = re.compile(rb',"line":(\d{1,18}),"chain":"([0-9a-f]{8})"\}$')


class ChainError(ValueError):
    """A line that does not follow the lines before it; says what must have happened."""


class Chain:
    """The lines of one file, as far as they were written or read."""

    __slots__ = ("digest", "number")

    def __init__(self, digest: str = "", number: int = 0) -> None:
        self.digest = digest
        """Of the last line, in hex; at first that of the file before, empty if there is none."""
        self.number = number
        """Of the last line, from 1."""

    def copy(self) -> "Chain":
        """Return another one that goes on from here."""
        return Chain(self.digest, self.number)

    def sealed(self, line: bytes) -> bytes:
        """Return *line*, a JSON object with fields, with its number and digest: the next one."""
        self.number += 1
        line = b'%s,"line":%d' % (line[:-1], self.number)
        self.digest = _digest(self.digest, line)
        return b'%s,"chain":"%s"}' % (line, self.digest.encode())

    def check(self, line: bytes) -> None:
        """Take in the next *line*, without its end. Raises ChainError if it cannot be that."""
        self.number += 1
        seal = _SEAL.search(line)
        if seal is None:
            raise ChainError("has no check sum")
        written = int(seal[1])
        if written > self.number:
            many = (
                "1 line is" if written == self.number + 1 else f"{written - self.number} lines are"
            )
            raise ChainError(f"was written as line {written}: {many} missing before it, or moved")
        if written < self.number:
            raise ChainError(f"was written as line {written}: it was moved, or repeated")
        self.digest = _digest(self.digest, line[: seal.start(2) - len(',"chain":"')])
        if self.digest != seal[2].decode():
            raise ChainError("it, or the line before it, was changed since it was written")


def _digest(before: str, line: bytes) -> str:
    return blake2b(before.encode() + line, digest_size=DIGEST_BYTES).hexdigest()
