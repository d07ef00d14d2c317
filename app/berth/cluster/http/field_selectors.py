"""Field selectors: ``spec.nodeName=n1,status.phase!=Failed``.

Read as apimachinery's fields package does, in one pass over the text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 64 * 1024
"""Characters. A request's head cannot be longer in most servers, and each match costs as much."""

_OPERATOR: Final = re.compile("!=|==|=")
_SEPARATOR: Final = re.compile(r"\\.|,", re.DOTALL)
_SPECIAL: Final = re.compile(r"\\.?|[,=]", re.DOTALL)
_ESCAPED: Final = frozenset({r"\\", r"\,", r"\="})
MOST_SHOWN: Final = 200
"""Characters of the text that an error repeats."""


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    field: str
    equals: bool
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements hold; none: everything matches."""

    requirements: tuple[FieldRequirement, ...] = ()
    names: tuple[str, ...] = ()
    """The fields that the requirements are about."""

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Evaluate the values of an object's selectable fields; an unset one is ""."""
        return all(
            (fields.get(requirement.field, "") == requirement.value) is requirement.equals
            for requirement in self.requirements
        )

    def narrowed(self, field: str, value: str) -> "FieldSelector":
        """Return one that takes only those of the objects whose *field* has that value."""
        requirement = FieldRequirement(field, equals=True, value=value)
        return FieldSelector((*self.requirements, requirement), (*self.names, field))


def parse_field_selector(text: str) -> FieldSelector:
    """Parse *text*; raises ValueError when it is malformed.

    ``\\\\``, ``\\,`` and ``\\=`` in values stand for the character (apimachinery's fields package).
    """
    if len(text) > LONGEST:
        raise ValueError(f"invalid selector: longer than {LONGEST} characters")
    requirements: dict[FieldRequirement, None] = {}
    for term in filter(None, _terms(text)):
        operator = _OPERATOR.search(term)
        if operator is None:
            what, where = term[:MOST_SHOWN], text[:MOST_SHOWN]
            raise ValueError(f"invalid selector: {where!r}; can't understand {what!r}")
        field, value = term[: operator.start()], _unescaped(term[operator.end() :])
        requirements[FieldRequirement(field, operator[0] != "!=", value)] = None
    names = dict.fromkeys(requirement.field for requirement in requirements)
    return FieldSelector(tuple(requirements), tuple(names))


def _terms(text: str) -> Iterator[str]:
    """Cut *text* at the commas that are not escaped."""
    begin = 0
    for found in _SEPARATOR.finditer(text):
        if found[0] == ",":
            yield text[begin : found.start()]
            begin = found.end()
    yield text[begin:]


def _unescaped(value: str) -> str:
    """Return what *value* stands for; raises ValueError for what must be escaped, or cannot be."""

    def plain(found: re.Match[str]) -> str:
        if found[0] in _ESCAPED:
            return found[0][1]
        if found[0].startswith("\\"):
            raise ValueError(f"invalid field selector: invalid escape sequence: {found[0]}")
        raise ValueError(f"invalid field selector: unescaped character in value: {found[0]}")

    return _SPECIAL.sub(plain, value)
