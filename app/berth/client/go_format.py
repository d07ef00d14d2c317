"""What Go's ``fmt.Sprintf`` makes of a text that is given as the format, without arguments.

kube-scheduler does that to the notes of FailedScheduling events (spec §2.10).
"""

from typing import Final

FLAGS: Final = frozenset("#0+- ")
DIGITS: Final = frozenset("0123456789")
LARGEST: Final = 1_000_000
"""Go reads no further digit of a width or precision that is beyond this."""


def formatted(text: str) -> str:
    """Return *text* with a complaint in place of every verb; ``%%`` becomes ``%``."""
    if "%" not in text:
        return text
    return "".join(_Formatting(text).pieces)


class _Formatting:
    """Reads ``%[flags][width][.precision]verb``, where ``[1]`` may name an argument."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._names_argument = False
        self.pieces: list[str] = []
        while (start := text.find("%", self._at)) >= 0:
            self.pieces.append(text[self._at : start])
            self._at = start + 1
            self._names_argument = False
            self._read_verb()
        self.pieces.append(text[self._at :])

    def _read_verb(self) -> None:
        while self._next in FLAGS:
            self._at += 1
        is_named = self._read_index()
        if self._next == "*":
            is_named = False
        self._read_number("%!(BADWIDTH)")
        if self._next == ".":
            self._at += 1
            is_named = self._read_index()
            if self._next == "*":
                is_named = False
            self._read_number("%!(BADPREC)")
        if not is_named:
            self._read_index()
        verb = self._next
        self._at += 1
        if not verb:
            self.pieces.append("%!(NOVERB)")
        elif verb == "%":
            self.pieces.append("%")
        else:
            why = "BADINDEX" if self._names_argument else "MISSING"
            self.pieces.append(f"%!{verb}({why})")

    @property
    def _next(self) -> str:
        """The next character; "" at the end, which is in no set of characters."""
        return self._text[self._at : self._at + 1]

    def _read_index(self) -> bool:
        """Skip what names an argument; whether it does so by a number."""
        if self._next != "[":
            return False
        self._names_argument = True
        end = self._text.find("]", self._at)
        if end < 0 or len(self._text) - self._at < len("[1]"):
            self._at += 1
            return False
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        return bool(inside) and DIGITS.issuperset(inside) and not _is_too_large(inside)

    def _read_number(self, complaint: str) -> None:
        """Skip a width or precision; ``*`` would be an argument, of which there is none."""
        if self._next == "*":
            self._at += 1
            self.pieces.append(complaint)
            return
        start = self._at
        while self._next in DIGITS:
            self._at += 1
        if _is_too_large(self._text[start : self._at]):
            self._at = len(self._text)


def _is_too_large(digits: str) -> bool:
    return int(digits[:-1] or "0") > LARGEST
