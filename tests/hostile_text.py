"""Text that deceives whoever reads it on a terminal."""

import unicodedata
from typing import Final

CLEARS: Final = "\x1b[2J\x1b[H\x1b]0;owned\x07"
"""Clears the screen and names the window."""
FORGES: Final = "x\n14:03:07.120 INFO berth.scheduler: pod bound pod=default/web node=n1"
"""Goes on with what looks like a line of the log."""
REVERSES: Final = "a\u202egnp.exe\u202c\u2066b\u2069"
HIDES: Final = "ad\u200bmin\u2060\ufeff\u00ad\ufe0f\u3164\U000e0041"
"""Looks like another name."""
C1: Final = "\x9b2J\x85\x90q\x9c\x7f"
"""What terminals obey without an escape character; with next line, and delete."""
MARKUP: Final = "[/x][bold red]no[/] [link=https://example.org]here[/link] :smile:"
"""What rich would read."""
OVERWRITES: Final = "pending\r\trunning\b\b\v\f"
LONE: Final = "a\ud800b\udfff"

HOSTILE: Final = (CLEARS, FORGES, REVERSES, HIDES, C1, MARKUP, OVERWRITES, LONE)


def misread(text: str, *, allowed: str = "\n") -> set[str]:
    """Return what of *text* a terminal would obey or hide, told by categories of Unicode.

    Written apart from what is tested: general categories, not what Python calls printable.
    """
    return {
        f"U+{ord(char):04X}"
        for char in set(text)
        if char not in allowed
        and (unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") or char in HIDES[-4:-1])
    }
