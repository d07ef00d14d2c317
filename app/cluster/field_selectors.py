"""Field selectors: ``spec.nodeName=n1,status.phase!=Failed``."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

_TERM = re.compile(r"((?:[^\\,=!]|\\.)*?)(==|!=|=)((?:[^\\,=]|\\.)*)")
_ESCAPED = re.compile(r"\\([\\,=])")
_COMMA = re.compile(r"(?:[^\\,]|\\.)+")


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
        """Judge the values of an object's selectable fields; an unset one is ""."""
        return all(
            (fields.get(requirement.field, "") == requirement.value) is requirement.equals
            for requirement in self.requirements
        )


def parse_field_selector(text: str, supported: Collection[str]) -> FieldSelector:
    """Parse *text*; raises ValueError when it is malformed or names a field not in *supported*.

    ``\\\\``, ``\\,`` and ``\\=`` in values stand for the character (apimachinery's fields package).
    """
    requirements = []
    for term in _COMMA.findall(text):
        match = _TERM.fullmatch(term)
        if match is None:
            raise ValueError(f"invalid selector: {text!r}; can't understand {term!r}")
        field, operator, value = match.groups()
        if field not in supported:
            raise ValueError(f"field label not supported: {field}")
        plain = _ESCAPED.sub(r"\1", value)
        requirements.append(FieldRequirement(field, operator != "!=", plain))
    names = dict.fromkeys(requirement.field for requirement in requirements)
    return FieldSelector(tuple(requirements), tuple(names))
