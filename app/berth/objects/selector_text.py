"""Label selectors as queries write them: ``a=b,c!=d,e in (x,y),f notin (z),!g,h,i>5``.

Text is cut into tokens in one pass and read by the grammar of apimachinery's labels package, so
time is linear in its length whatever is written.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from berth.objects.selectors import Operator, Requirement, Selector, all_of, check_requirement

LONGEST: Final = 64 * 1024
"""Characters. A request's head cannot be longer in most servers, and each match costs as much."""

_MOST_SHOWN: Final = 200
"""Characters of the text that an error repeats."""

_TOKEN: Final = re.compile(r"(?P<word>[^\s,()=!<>]+)|(?P<mark>==|!=|[,()=!<>])")
"""Every character is a blank or begins a token."""

_COMPARISONS: Final = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    ">": Operator.GT,
    "<": Operator.LT,
}
_MEMBERSHIPS: Final = {"in": Operator.IN, "notin": Operator.NOT_IN}


class _Token(NamedTuple):
    text: str
    is_word: bool
    position: int


def parse_label_selector(text: str) -> Selector:
    """Compile the ``labelSelector`` of a query.

    Raises ``ValueError`` naming the part that cannot be read.
    """
    if len(text) > LONGEST:
        raise ValueError(f"labelSelector {text[:40]!r}...: longer than {LONGEST} characters")
    try:
        requirements = list(_Parser(text).requirements())
        for requirement in requirements:
            check_requirement(requirement)
    except ValueError as exc:
        raise ValueError(f"labelSelector {_shown(text)}: {str(exc)[:_MOST_SHOWN]}") from None
    return all_of(requirements)


class _Parser:
    """Reads requirements from tokens, looking one ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = (
            _Token(found[0], found.lastgroup == "word", found.start())
            for found in _TOKEN.finditer(text)
        )
        self._end = _Token("", is_word=False, position=len(text))
        self._next = next(self._tokens, self._end)

    def requirements(self) -> Iterator[Requirement]:
        if self._next is self._end:
            return
        yield self._requirement()
        while self._accepts(","):
            yield self._requirement()
        if self._next is not self._end:
            raise self._unreadable()

    def _requirement(self) -> Requirement:
        if self._accepts("!"):
            return Requirement(self._word(), Operator.DOES_NOT_EXIST)
        key, after = self._word(), self._next
        if not after.is_word and (operator := _COMPARISONS.get(after.text)):
            self._take()
            return Requirement(key, operator, (self._value(),))
        if after.is_word and (operator := _MEMBERSHIPS.get(after.text)):
            self._take()
            return Requirement(key, operator, self._values())
        return Requirement(key, Operator.EXISTS)

    def _values(self) -> tuple[str, ...]:
        if not self._accepts("("):
            raise self._unreadable()
        values = [self._value()]
        while self._accepts(","):
            values.append(self._value())
        if not self._accepts(")"):
            raise self._unreadable()
        return tuple(values)

    def _value(self) -> str:
        """Return the next word; values may be empty."""
        return self._take() if self._next.is_word else ""

    def _word(self) -> str:
        if not self._next.is_word:
            raise self._unreadable()
        return self._take()

    def _accepts(self, mark: str) -> bool:
        if self._next.is_word or self._next.text != mark:
            return False
        self._take()
        return True

    def _take(self) -> str:
        taken, self._next = self._next, next(self._tokens, self._end)
        return taken.text

    def _unreadable(self) -> ValueError:
        if self._next is self._end:
            return ValueError("it ends too early")
        return ValueError(f"cannot read {_shown(self._text[self._next.position :])}")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}..."
