"""Warnings beside an answer: ``Warning`` headers (RFC 7234) as the API server writes them.

Text in them may come from whoever sent the request, so it is quoted, and bounded like there.
"""

from collections.abc import Iterable
from typing import Final

MOST_CHARACTERS: Final = 4 * 1024
"""Of all warnings of an answer; when they are more, each is cut."""
MOST_WHEN_CUT: Final = 256
"""Characters of one warning, when they are cut."""

_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


def quoted(text: str) -> str:
    """Return *text* as Go's ``%q`` writes it: in quotes, without a control character."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def headers(warnings: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return a header for each warning, once; so many of them that they fit."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) > MOST_CHARACTERS:
        texts = _cut(texts)
    return [(b"warning", f"299 - {_quoted_string(text)}".encode()) for text in texts]


def _cut(texts: Iterable[str]) -> list[str]:
    left, kept = MOST_CHARACTERS, []
    for text in texts:
        if left <= 0:
            break
        kept.append(text[:MOST_WHEN_CUT])
        left -= len(kept[-1])
    return kept


def _quoted_string(text: str) -> str:
    """Return *text* as a header's quoted string; a control character, which ends it, is a blank."""
    plain = "".join(each if each.isprintable() else " " for each in text)
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
