"""The engine of constraints, and the rules that they are made of.

A constraint stands in a table: object type → field → rules, in the order in which upstream
evaluates them (:mod:`.constraint_table`). It holds wherever an object of that type is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, TypeAlias

from berth.cluster import percent
from berth.cluster.resources import Object
from berth.cluster.schemas.go_value import go_value
from berth.cluster.schemas.types import Field, Schema, object_of, objects_in
from berth.cluster.strategies import selectors, syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Plain: TypeAlias = Callable[[Any, str], Iterable[FieldError]]
"""Evaluates a value, None if it is missing, at a path."""

Owners: TypeAlias = tuple[Object, ...]
"""The objects around a value, from the outermost to the one that has it."""


@dataclass(frozen=True, slots=True)
class Within:
    """A rule about a value and what is around it."""

    evaluate: Callable[[Any, str, Owners], Iterable[FieldError]]


@dataclass(frozen=True, slots=True)
class If:
    """Ends the rules of a field, and of what is in it, unless it holds of the value and around."""

    holds: Callable[[Any, Owners], bool]


Rule: TypeAlias = Plain | Within | If
Rules: TypeAlias = tuple[Rule, ...]
Table: TypeAlias = Mapping[str, Mapping[str, Rules]]
"""Object type without ``io.k8s.api.`` → field → rules. The empty field is the object itself."""

ITSELF: Final = ""
BAD_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class _Step(NamedTuple):
    """What is to be done with a field of an object."""

    name: str
    field: Field | None
    """None: it is the object itself."""
    rules: Rules
    of_missing: Rules
    """Those of them that may refuse a missing value."""
    leads_on: bool = False
    """Whether there may be rules for what is in its value."""


class Constraints:
    """A table, and the way to what it speaks of in objects of each type.

    Fields without rules may have the values that the schema lists, or be empty; those that the
    table does not name come last.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._plans: dict[Schema, list[_Step]] = {}

    def violations(self, schema: Schema, obj: Object, path: str = "") -> list[FieldError]:
        """Return what *obj* of the type *schema*, and everything in it, violates."""
        errors: list[FieldError] = []
        self._evaluate(schema, obj, path, (), errors)
        return errors

    def _evaluate(
        self, schema: Schema, obj: Object, path: str, around: Owners, errors: list[FieldError]
    ) -> None:
        owners = (*around, obj)
        for name, field, rules, of_missing, leads_on in self._plan(schema):
            value: Any = obj
            here = path
            if field is not None:
                value = obj.get(name)
                if value is None and not of_missing:
                    continue
                here = f"{path}.{name}" if path else name
            for rule in rules if value is not None else of_missing:
                if isinstance(rule, Within):
                    errors += rule.evaluate(value, here, owners)
                elif not isinstance(rule, If):
                    errors += rule(value, here)
                elif not rule.holds(value, owners):
                    break
            else:
                if leads_on and field is not None and value is not None:
                    for below, child, place in objects_in(field.type, value, here):
                        self._evaluate(below, child, place, owners, errors)

    def _plan(self, schema: Schema) -> list[_Step]:
        """Return what to look at in an object: what the table says first, in its order."""
        if (plan := self._plans.get(schema)) is None:
            rules = self._of(schema)
            leading = {
                name
                for name, field in schema.fields.items()
                if self._leads_on(object_of(field.type), set())
            }
            plan = [
                _step(name, schema.fields.get(name), rules[name], leads_on=name in leading)
                for name in rules
                if not name or name in schema.fields  # an earlier release has fewer fields
            ]
            plan += [
                _step(name, field, (), leads_on=name in leading)
                for name, field in sorted(schema.fields.items())
                if name not in rules and (field.enum or name in leading)
            ]
            self._plans[schema] = plan
        return plan

    def _of(self, schema: Schema) -> Mapping[str, Rules]:
        return self._table.get(schema.name.removeprefix("io.k8s.api."), {})

    def _leads_on(self, schema: Schema | None, seen: set[Schema]) -> bool:
        if schema is None or schema in seen:
            return False
        seen.add(schema)
        return bool(self._of(schema)) or any(
            field.enum or self._leads_on(object_of(field.type), seen)
            for field in schema.fields.values()
        )


def _step(name: str, field: Field | None, said: Rules, *, leads_on: bool) -> _Step:
    """Return the step of a field; without rules it may have the values that the schema lists."""
    if field is None:
        return _Step(name, field, said, said)
    rules = said or ((enumerated(*field.enum),) if field.enum else ())
    of_missing = tuple(rule for rule in rules if not callable(rule) or any(rule(None, name)))
    if all(isinstance(rule, If) for rule in of_missing):
        of_missing = ()  # a condition without a rule that speaks
    return _Step(name, field, rules, of_missing, leads_on)


# Rules. Those that are not about presence say nothing of a missing value.


def given(rule: Plain, default: Any) -> Plain:
    """Evaluate a missing or empty value as if it were *default*."""
    return lambda value, path: rule(value or default, path)


def anything(_value: Any, _path: str) -> tuple[()]:
    """Say nothing, whatever the schema lists."""
    return ()


def required(detail: str = "") -> Plain:
    """Refuse a missing value, and an empty one."""
    return lambda value, path: [] if value else [field_errors.required(path, detail)]


def present(detail: str = "") -> Plain:
    """Refuse a missing value."""
    return lambda value, path: [field_errors.required(path, detail)] if value is None else []


def empty(detail: str) -> Plain:
    """Refuse a value that is there."""
    return lambda value, path: [field_errors.forbidden(path, detail)] if value is not None else []


def said(rule: syntax.Rule) -> Plain:
    """Evaluate the syntax of a text, also of an empty one."""
    return lambda value, path: (
        []
        if value is None
        else [field_errors.invalid(path, value, complaint) for complaint in rule(value)]
    )


def text(rule: syntax.Rule) -> Plain:
    """Evaluate the syntax of a text that may be empty."""
    evaluate = said(rule)
    return lambda value, path: evaluate(value, path) if value else []


def spelled(rule: syntax.Rule) -> Plain:
    """Evaluate the syntax of a text; a missing one is empty."""
    evaluate = said(rule)
    return lambda value, path: evaluate(value or "", path)


def named(rule: syntax.Rule) -> Plain:
    """Refuse a missing or empty text, and evaluate the syntax of others."""
    evaluate = said(rule)
    return lambda value, path: evaluate(value, path) if value else [field_errors.required(path)]


def one_of(*supported: str) -> Plain:
    return lambda value, path: (
        []
        if value is None or value in supported
        else [field_errors.not_supported(path, value, supported)]
    )


def enumerated(*supported: str) -> Plain:
    """Evaluate a text that may be empty, or is none of these."""
    rule = one_of(*supported)
    return lambda value, path: rule(value, path) if isinstance(value, str) and value else []


def chosen(*supported: str) -> Plain:
    """Refuse a missing or empty text, and one that is none of these."""
    rule = one_of(*supported)
    return lambda value, path: rule(value, path) if value else [field_errors.required(path)]


def known(*supported: str) -> Plain:
    """Refuse what is none of these, also a missing text, which is empty."""
    rule = one_of(*supported)
    return lambda value, path: rule(value or "", path)


def between(least: int, most: int, low: str = "", high: str = "") -> Plain:
    """Refuse a number below *least* in the words *low*, and one above *most* in those of *high*."""
    both = f"must be between {least} and {most}, inclusive"

    def rule(value: int | None, path: str) -> Iterator[FieldError]:
        if value is not None and not least <= value <= most:
            detail = low if value < least else high or low
            yield field_errors.invalid(path, value, detail or both)

    return rule


def at_least(least: int, unit: str = "") -> Plain:
    detail = f"must be greater than or equal to {least}{unit}"
    return lambda value, path: (
        [] if value is None or value >= least else [field_errors.invalid(path, value, detail)]
    )


def above(most: int, detail: str = "") -> Plain:
    """Refuse a number that is not greater than *most*."""
    detail = detail or f"must be greater than {most}"
    return lambda value, path: (
        [] if value is None or value > most else [field_errors.invalid(path, value, detail)]
    )


def at_most(most: int, detail: str = "") -> Plain:
    """Refuse a list of more items than *most*."""
    return lambda values, path: (
        []
        if len(values or ()) <= most
        else [
            field_errors.invalid(path, values, detail)
            if detail
            else field_errors.too_many(path, len(values), most)
        ]
    )


def amount(value: int | str | None, path: str) -> list[FieldError]:
    """Evaluate a number that is not negative, or a percentage."""
    if isinstance(value, str):
        well_formed = percent.is_percent(value)
        return [] if well_formed else [field_errors.invalid(path, value, percent.WANTED)]
    return list(at_least(0)(value, path))


def at_most_all(value: int | str | None, path: str) -> list[FieldError]:
    """Refuse a well-formed percentage of more than 100."""
    if isinstance(value, str) and percent.is_percent(value) and percent.number_of(value) > 100:
        return [field_errors.invalid(path, value, "must not be greater than 100%")]
    return []


def of_each(*rules: Plain) -> Plain:
    """Evaluate the items of a list, or the values of a map."""

    def rule(values: Any, path: str) -> Iterator[FieldError]:
        items = values.items() if isinstance(values, dict) else enumerate(values or ())
        for key, value in items:
            for inner in rules:
                yield from inner(value, f"{path}[{key}]")

    return rule


def keys(*rules: Plain) -> Plain:
    """Evaluate the keys of a map."""

    def rule(values: Object | None, path: str) -> Iterator[FieldError]:
        for key in values or ():
            for inner in rules:
                yield from inner(key, f"{path}[{key}]")

    return rule


def distinct(field: str = "", at: str = "") -> Plain:
    """Refuse a list of which two items, or their *field*, are the same; *at*: what is blamed."""

    def rule(values: list[Any] | None, path: str) -> Iterator[FieldError]:
        seen: list[Any] = []
        for index, each in enumerate(values or ()):
            value = (each.get(field) or "") if field else each
            if value in seen:
                yield field_errors.duplicate(
                    f"{path}[{index}]{at or (field and '.' + field)}", value
                )
            seen.append(value)

    return rule


def at_most_one(fields: Iterable[str], detail: str) -> Plain:
    """Refuse all but the first of those *fields* of an object that are there."""

    def rule(obj: Object, path: str) -> Iterator[FieldError]:
        for name in [name for name in fields if obj.get(name) is not None][1:]:
            yield field_errors.forbidden(f"{path}.{name}", detail)

    return rule


def first_of(*fields: str) -> If:
    """Have the object in a field looked at only if none of *fields* before it is there."""

    def holds(value: Any, owners: Owners) -> bool:
        obj = owners[-1]
        for name in fields:
            if (given := obj.get(name)) is not None:
                return given is value
        return value is None

    return If(holds)


def at_least_one(fields: Iterable[str], detail: str) -> Plain:
    """Refuse an object that has none of *fields*."""
    return lambda obj, path: (
        []
        if any(obj.get(name) is not None for name in fields)
        else [field_errors.required(path, detail)]
    )


def exactly_one(fields: Iterable[str], none: str, several: str) -> Plain:
    """Refuse an object that has none, or several, of *fields*: each time in one word about it."""

    def rule(obj: Object, path: str) -> Iterator[FieldError]:
        count = sum(obj.get(name) is not None for name in fields)
        if count != 1:
            yield field_errors.invalid(path, "", several if count else none)

    return rule


def shown(schema: Schema, value: Any) -> Any:
    """Return a value of a type as messages show it."""
    return go_value(schema, value)


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
    return selectors.validate(value, path)


def domain_path(value: str | None, path: str) -> Iterator[FieldError]:
    """Evaluate ``example.com/path``."""
    if value is None:
        return
    host, _, rest = value.partition("/")
    if not value:
        yield field_errors.required(path)
    elif not host or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield field_errors.invalid(path, value, detail)
    else:
        yield from said(syntax.dns1123_subdomain)(host, path)
        if syntax.HTTP_PATH.fullmatch(rest) is None:
            pattern = syntax.HTTP_PATH.pattern
            detail = f"Invalid path (regex used for validation is '{pattern}')"
            yield field_errors.invalid(path, rest, detail)


def all_or_some(what: str) -> Plain:
    """Refuse a list in which ``*`` is not alone."""
    detail = f"if '*' is present, must not specify other {what}"
    return lambda values, path: (
        [field_errors.invalid(path, values, detail)]
        if values and "*" in values and len(values) > 1
        else []
    )


def among(*supported: str) -> Plain:
    """Refuse a list with values other than these; ``*`` stands for all of them."""

    def rule(values: list[str] | None, path: str) -> Iterator[FieldError]:
        if values and "*" not in values and not set(values) <= set(supported):
            yield field_errors.not_supported(path, values, supported)

    return rule


def counted(*fields: str, most: Mapping[str, tuple[str, str]]) -> Plain:
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
