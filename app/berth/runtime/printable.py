"""Text that anybody may have written, made fit for a terminal: seen as it is, never obeyed.

Names of claims, images, messages and labels come from whoever may create an object. Terminals obey
control characters in them, show text backwards after others, and show some not at all. Here each
such character becomes its escape sequence as Python and Go write it, ``\\x1b`` or ``\\u202e``.

For what people read on a terminal or in a log. What goes to an API is left as it is.
"""

from collections.abc import Callable
from typing import Final

CUT: Final = "..."

_UNSEEN: Final = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),  # combining grapheme joiner
        (0x115F, 0x1160),  # Hangul fillers
        (0x17B4, 0x17B5),  # Khmer inherent vowels
        (0x180B, 0x180F),  # Mongolian variation selectors
        (0x2800, 0x2800),  # Braille without a dot
        (0x3164, 0x3164),  # Hangul filler
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFFA0, 0xFFA0),  # Hangul filler, half as wide
        (0xE0100, 0xE01EF),  # more variation selectors
    )
    for code in range(first, last + 1)
)
"""Letters and marks that show nothing: of two names that look alike one may have them.

They are Unicode's Default_Ignorable_Code_Point as far as ``str.isprintable`` knows no better.
"""


def printable(text: str, *, limit: int | None = None) -> str:
    """Return *text* in one line, with escapes for what terminals obey or do not show.

    That is: controls (C0, with tab and newline, DEL, C1), line separators, marks that change the
    direction, zero-width and other format characters, unpaired surrogates, private and unassigned
    characters. At most *limit* characters of *text* are taken, and ``...`` says that there is more.
    """
    if limit is not None and len(text) > limit:
        text = text[:limit] + CUT
    return _escaped(text, _escape)


def printable_lines(text: str) -> str:
    """Return *text* as :func:`printable` does, but for its newlines, which stay.

    For text of berth that has several lines; what others wrote in it must be in one line each.
    """
    return "\n".join(printable(line) for line in text.split("\n"))


def printable_json(document: str) -> str:
    """Return a JSON *document* that means the same and is printable.

    What JSON allows outside of strings stays; inside, such characters get JSON's own escapes.
    """
    return "\n".join(_escaped(line, _json_escape) for line in document.split("\n"))


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char.isprintable() and char not in _UNSEEN else escape(char) for char in text
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _json_escape(char: str) -> str:
    """Escape *char*; one beyond the Basic Multilingual Plane is a pair of surrogates."""
    if char in "\t\r":  # only between values: in strings JSON has them escaped already
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
