"""Label selectors as queries write them: ``a=b,c!=d,e in (x,y),f notin (z),!g,h,i>5``.

Text is cut into tokens in one pass and read by the grammar of apimachinery's labels package, so
time is linear in its length whatever is written.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from berth.kube.objects.selectors import Operator, Requirement, Selector, all_of, check_requirement

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


_END: Final = _Token("", is_word=False)


def parse_label_selector(text: str) -> Selector:
    """Compile the ``labelSelector`` of a query.

    Raises ``ValueError`` naming the part that cannot be read.
    """
    try:
        requirements = read_requirements(text)
        for requirement in requirements:
            check_requirement(requirement)
    except ValueError as exc:
        raise ValueError(f"labelSelector {_shown(text)}: {str(exc)[:_MOST_SHOWN]}") from None
    return all_of(requirements)


def read_requirements(
    text: str,
    *,
    check_key: Callable[[str], None] = lambda _key: None,
    check_values: Callable[[Requirement], None] = lambda _requirement: None,
) -> list[Requirement]:
    """Return what a label selector requires, whatever its labels are.

    Raises ``ValueError`` in the words of apimachinery's ``labels.Parse``; *check_key* and
    *check_values* may raise it, too.
    """
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    return list(_Parser(text, check_key, check_values).requirements())


class _Parser:
    """Reads requirements from tokens, looking one ahead."""

    def __init__(
        self,
        text: str,
        check_key: Callable[[str], None],
        check_values: Callable[[Requirement], None],
    ) -> None:
        self._check_key = check_key
        self._check_values = check_values
        self._tokens = (
            _Token(match[0], match.lastgroup == "word") for match in _TOKEN.finditer(text)
        )
        self._next = next(self._tokens, _END)

    def requirements(self) -> Iterator[Requirement]:
        while self._next is not _END:
            if not self._begins_requirement:
                raise self._found("!, identifier, or 'end of string'")
            try:
                requirement = self._requirement()
                self._check_values(requirement)
            except ValueError as exc:
                raise ValueError(f"unable to parse requirement: {exc}") from None
            yield requirement
            if self._next is _END:
                return
            if not self._accepts(","):
                raise self._found("',' or 'end of string'")
            if not self._begins_requirement:
                raise self._found("identifier after ','")

    @property
    def _begins_requirement(self) -> bool:
        return self._next.is_word or self._next.text == "!"

    def _requirement(self) -> Requirement:
        is_denied = self._accepts("!")
        if not self._next.is_word:
            raise self._found("identifier")
        key = self._take()
        self._check_key(key)
        if is_denied:
            return Requirement(key, Operator.DOES_NOT_EXIST)
        after = self._next
        if after is _END or (not after.is_word and after.text == ","):
            return Requirement(key, Operator.EXISTS)
        if not after.is_word and (operator := _COMPARISONS.get(after.text)):
            self._take()
            return Requirement(key, operator, (self._value(),))
        if after.is_word and (operator := _MEMBERSHIPS.get(after.text)):
            self._take()
            return Requirement(key, operator, self._values())
        raise self._found("in, notin, =, ==, !=, gt, lt")

    def _value(self) -> str:
        """Return the value after a comparison; it may be empty."""
        if self._next is _END or (not self._next.is_word and self._next.text == ","):
            return ""
        if not self._next.is_word:
            raise self._found("identifier")
        return self._take()

    def _values(self) -> tuple[str, ...]:
        if not self._accepts("("):
            raise ValueError(f"found '{self._next.text}' expected: '('")
        if not self._next.is_word and self._next.text not in (",", ")"):
            raise self._found("',', ')' or identifier")
        values = []
        while True:
            values.append(self._take() if self._next.is_word else "")
            if self._accepts(")"):
                return tuple(values)
            if not self._accepts(","):
                raise self._found("',' or ')'" if values[-1] else "',', or identifier")

    def _accepts(self, mark: str) -> bool:
        if self._next.is_word or self._next.text != mark:
            return False
        self._take()
        return True

    def _take(self) -> str:
        taken, self._next = self._next, next(self._tokens, _END)
        return taken.text

    def _found(self, expected: str) -> ValueError:
        return ValueError(f"found '{self._next.text[:_MOST_SHOWN]}', expected: {expected}")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}..."
