"""The engine of constraints, and the rules that they are made of.

A constraint stands in a table: object type → field → rules, in the order in which upstream
evaluates them (:mod:`.constraint_table`). It holds wherever an object of that type is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final

import msgspec

from berth.cluster.resources import Object
from berth.cluster.schemas.types import Field, Schema, object_of, objects_in
from berth.cluster.strategies import selectors, syntax
from berth.cluster.strategies.selectors import LabelSelector
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Rule = Callable[[Any, str], Iterable[FieldError]]
"""Evaluates a value, None if it is missing, at a path."""

Table = Mapping[str, Mapping[str, tuple[Rule, ...]]]
"""Object type without ``io.k8s.api.`` → field → rules. The empty field is the object itself."""

ITSELF: Final = ""
BAD_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class Constraints:
    """A table, and the way to what it speaks of in objects of each type.

    Fields that it does not speak of may have the values that the schema lists, or be empty.
    """

    def __init__(self, table: Table, *, enums: bool = True) -> None:
        """*enums*: the values that the schema lists are evaluated, too."""
        self._table = table
        self._enums = enums
        self._plans: dict[Schema, list[tuple[str, Field | None, tuple[Rule, ...]]]] = {}

    def violations(self, schema: Schema, obj: Object, path: str = "") -> Iterator[FieldError]:
        """Yield what *obj* of the type *schema*, and everything in it, violates."""
        for name, field, rules in self._plan(schema):
            if field is None:
                for rule in rules:
                    yield from rule(obj, path)
                continue
            value, here = obj.get(name), f"{path}.{name}" if path else name
            for rule in rules:
                yield from rule(value, here)
            if value is not None:
                for below, child, place in objects_in(field.type, value, here):
                    yield from self.violations(below, child, place)

    def _plan(self, schema: Schema) -> list[tuple[str, Field | None, tuple[Rule, ...]]]:
        """Return what to look at in an object: what the table says first, in its order."""
        if (plan := self._plans.get(schema)) is None:
            rules = self._of(schema)
            plan = [
                (name, schema.fields.get(name), rules[name])
                for name in rules
                if not name or name in schema.fields  # an earlier release has fewer fields
            ]
            plan += [
                (name, field, (enumerated(*field.enum),) if self._lists(field) else ())
                for name, field in schema.fields.items()
                if name not in rules
                and (self._lists(field) or self._leads_on(object_of(field.type), {schema}))
            ]
            self._plans[schema] = plan
        return plan

    def _lists(self, field: Field) -> bool:
        return self._enums and bool(field.enum)

    def _of(self, schema: Schema) -> Mapping[str, tuple[Rule, ...]]:
        return self._table.get(schema.name.removeprefix("io.k8s.api."), {})

    def _leads_on(self, schema: Schema | None, seen: set[Schema]) -> bool:
        if schema is None or schema in seen:
            return False
        seen.add(schema)
        return bool(self._of(schema)) or any(
            self._lists(field) or self._leads_on(object_of(field.type), seen)
            for field in schema.fields.values()
        )


# Rules. Those that are not about presence say nothing of a missing value.


def required(detail: str = "") -> Rule:
    """Refuse a missing value, and an empty one."""
    return lambda value, path: [] if value else [field_errors.required(path, detail)]


def present(detail: str = "") -> Rule:
    """Refuse a missing value."""
    return lambda value, path: [field_errors.required(path, detail)] if value is None else []


def said(rule: syntax.Rule) -> Rule:
    """Evaluate the syntax of a text, also of an empty one."""
    return lambda value, path: (
        []
        if value is None
        else [field_errors.invalid(path, value, complaint) for complaint in rule(value)]
    )


def text(rule: syntax.Rule) -> Rule:
    """Evaluate the syntax of a text that may be empty."""
    evaluate = said(rule)
    return lambda value, path: evaluate(value, path) if value else []


def one_of(*supported: str) -> Rule:
    return lambda value, path: (
        []
        if value is None or value in supported
        else [field_errors.not_supported(path, value, supported)]
    )


def enumerated(*supported: str) -> Rule:
    """Evaluate a text that may be empty, or is none of these."""
    rule = one_of(*supported)
    return lambda value, path: rule(value, path) if isinstance(value, str) and value else []


def between(least: int, most: int, *, low: str, high: str) -> Rule:
    """Refuse a number below *least* in the words *low*, and one above *most* in those of *high*."""

    def rule(value: int | None, path: str) -> Iterator[FieldError]:
        if value is not None and not least <= value <= most:
            yield field_errors.invalid(path, value, low if value < least else high)

    return rule


def at_least(least: int, unit: str = "") -> Rule:
    detail = f"must be greater than or equal to {least}{unit}"
    return lambda value, path: (
        [] if value is None or value >= least else [field_errors.invalid(path, value, detail)]
    )


def above(most: int) -> Rule:
    """Refuse a number that is not greater than *most*."""
    detail = f"must be greater than {most}"
    return lambda value, path: (
        [] if value is None or value > most else [field_errors.invalid(path, value, detail)]
    )


def at_most(most: int, detail: str) -> Rule:
    """Refuse a list of more items than *most*."""
    return lambda values, path: (
        [field_errors.invalid(path, values, detail)] if len(values or ()) > most else []
    )


def of_each(*rules: Rule) -> Rule:
    """Evaluate the items of a list."""

    def rule(values: list[Any] | None, path: str) -> Iterator[FieldError]:
        for index, value in enumerate(values or ()):
            for inner in rules:
                yield from inner(value, f"{path}[{index}]")

    return rule


def ip(value: str | None, path: str) -> Iterator[FieldError]:
    """Evaluate an IP address."""
    if value is not None and not is_ip(value):
        yield field_errors.invalid(path, value, BAD_IP)


def is_ip(value: str) -> bool:
    """Whether it is an IP address; zeros before a number of IPv4 are taken, as of old."""
    plain = ".".join(part.lstrip("0") or part[:1] for part in value.split("."))
    try:
        ip_address(value if ":" in value else plain)
    except ValueError:
        return False
    return "%" not in value


def port(value: int | str | None, path: str) -> Iterable[FieldError]:
    """Evaluate the number or the name of a port."""
    if value is None:
        return []
    said = syntax.port_number(value) if isinstance(value, int) else syntax.port_name(value)
    return [field_errors.invalid(path, value, complaint) for complaint in said]


def selector(value: Object | None, path: str) -> list[FieldError]:
    """Evaluate a label selector."""
    if value is None:
        return []
    return selectors.validate(msgspec.convert(value, LabelSelector), path)


def all_or_some(what: str) -> Rule:
    """Refuse a list in which ``*`` is not alone."""
    detail = f"if '*' is present, must not specify other {what}"
    return lambda values, path: (
        [field_errors.invalid(path, values, detail)]
        if values and "*" in values and len(values) > 1
        else []
    )


def among(*supported: str) -> Rule:
    """Refuse a list with values other than these; ``*`` stands for all of them."""

    def rule(values: list[str] | None, path: str) -> Iterator[FieldError]:
        if values and "*" not in values and not set(values) <= set(supported):
            yield field_errors.not_supported(path, values, supported)

    return rule


def counted(*fields: str, most: Mapping[str, tuple[str, str]]) -> Rule:
    """Refuse an object with counts below zero in *fields*, or above others.

    *most* says in which order and words: what may not be exceeded, and how that is called, by
    what must not.
    """

    def rule(obj: Object, path: str) -> Iterator[FieldError]:
        for field in fields:
            yield from at_least(0)(obj.get(field), f"{path}.{field}")
        for names, (limit, called) in most.items():
            for field in names.split():
                count = obj.get(field) or 0
                if count > (obj.get(limit) or 0):
                    detail = f"cannot be greater than {called}"
                    yield field_errors.invalid(f"{path}.{field}", count, detail)

    return rule
