"""``x-kubernetes-validations``: rules in CEL, compiled with their definition, asked of objects.

Source: ``apiextensions-apiserver/pkg/apiserver/schema/cel`` (KEP-2876, KEP-4008). The library that
evaluates CEL is loaded with the first rule.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from berth.cluster.custom import cel_values
from berth.cluster.custom.cel_values import UndefinedFieldError, Variable
from berth.cluster.custom.validation import ABSENT, keys_of, predecessors
from berth.cluster.custom.walk import (
    EMBEDDED,
    LIST_KEYS,
    RULES,
    Schema,
    child,
    items,
    properties,
    values,
)
from berth.cluster.json_path import simple_steps
from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.cel.failures import CompileError, EvaluationError
from berth.kube.field_errors import FieldError

if TYPE_CHECKING:
    from berth.kube.cel.expressions import Environment, Expression

LONGEST_MESSAGE: Final = 5120
"""Characters that a ``messageExpression`` may give."""

Evaluate = Callable[[Object, Object | None], list[FieldError]]


class RuleError(Exception):
    """A rule that cannot be compiled; the text is what the API server says of it."""


@dataclass(slots=True)
class Program:
    """A compiled expression and what it names."""

    expression: "Expression"
    environment: "Environment"
    variables: list[Variable]
    uses_old: bool
    is_optional: bool
    """Whether ``oldSelf`` is an optional (``optionalOldSelf``)."""
    paths: dict[str, str]
    """Variables to the paths that they stand for."""
    roots: frozenset[str]
    """Which of ``self`` and ``oldSelf`` it needs as a whole."""

    def evaluate(self, schema: Schema, value: Any, before: Any) -> Any:
        """Return what it gives; EvaluationError."""
        has_old = before is not ABSENT
        bindings = cel_values.bound(
            self.variables, {"self": value, "oldSelf": before if has_old else None}
        )
        if "self" in self.roots:
            bindings["self"] = cel_values.value_of(schema, value)
        if "oldSelf" in self.roots:
            bindings["oldSelf"] = cel_values.value_of(schema, before) if has_old else None
            bindings["hasOldSelf"] = has_old
        try:
            return self.expression.evaluate(self.environment.bind(bindings))
        except EvaluationError as exc:
            raise EvaluationError(self._worded(str(exc))) from exc

    def _worded(self, failure: str) -> str:
        if failure.startswith("No value with name"):
            name = failure.split('"')[1]
            return f"no such key: {self.paths.get(name, name).rpartition('.')[2]}"
        return failure


def compiled(schema: Schema, source: str, returns: str, *, optional_old: bool = False) -> Program:
    """Compile an expression about values of *schema*; raise :class:`RuleError`."""
    text = source.strip()
    try:
        names = cel_values.named(schema, text)
    except UndefinedFieldError as exc:
        raise RuleError(_undefined(text, exc)) from exc
    uses_old = "oldSelf" in text
    if optional_old:  # there it is no object
        names = [each for each in names if each.variable.root == "self"]
    written = cel_values.renamed(text, names)
    variables = list({each.variable.name: each.variable for each in names}.values())
    types = {variable.name: variable.type for variable in variables} | {
        "self": cel_values.type_of(schema)
    }
    if optional_old:
        written = (
            f"cel.bind(oldSelf, hasOldSelf ? optional.of(oldSelf) : optional.none(), {written})"
        )
        types |= {"oldSelf": "dyn", "hasOldSelf": "bool"}
    elif uses_old:
        types["oldSelf"] = types["self"]
    environment = _environment(tuple(sorted(types.items())))
    paths = {variable.name: variable.text for variable in variables}
    try:
        expression = environment.compile(written, returns)
    except CompileError as exc:
        said = str(exc)
        for name, path in paths.items():
            said = said.replace(name, path)
        if said.startswith("must "):
            article = {"bool": "a bool", "string": "a string"}[returns]
            said = f"cel expression must evaluate to {article}"
            raise RuleError(said) from exc
        raise RuleError(f"compilation failed: {said}") from exc
    roots = frozenset(re.findall(r"\b(?:self|oldSelf)\b", written))
    return Program(expression, environment, variables, uses_old, optional_old, paths, roots)


@lru_cache(maxsize=512)
def _environment(types: tuple[tuple[str, str], ...]) -> "Environment":
    from berth.kube.cel.expressions import Environment

    return Environment(types=dict(types))


def _undefined(source: str, error: UndefinedFieldError) -> str:
    before = source[: error.position]
    line, column = before.count("\n") + 1, error.position - (before.rfind("\n") + 1)
    shown = source.split("\n")[line - 1]
    return (
        f"compilation failed: ERROR: <input>:{line}:{column + 1}: undefined field "
        f"'{error.field}'\n | {shown}\n | {'.' * column}^"
    )


@dataclass(slots=True)
class _Rule:
    said: Object
    program: Program
    message: Program | None

    @property
    def text(self) -> str:
        """What a failure calls the rule."""
        return str(self.said.get("message") or self.said["rule"]).strip()


class _Node:
    """The rules at one place of a schema and below it."""

    __slots__ = ("_rules", "fields", "items", "schema", "values")

    def __init__(self, schema: Schema, *, is_object: bool) -> None:
        self.schema = cel_values.with_object_fields(schema) if is_object else schema
        self._rules: list[_Rule] | None = None
        below = {key: _node(each) for key, each in properties(schema).items()}
        self.fields = {key: each for key, each in below.items() if each is not None}
        others, item = values(schema), items(schema)
        self.values = None if others is None else _node(others)
        self.items = None if item is None else _node(item)

    @property
    def is_empty(self) -> bool:
        return not (self.schema.get(RULES) or self.fields or self.values or self.items)

    @property
    def rules(self) -> list[_Rule]:
        """The rules, compiled when the first object comes; all of them could be, once."""
        if self._rules is None:
            self._rules = [
                _compiled_rule(self.schema, each) for each in self.schema.get(RULES) or ()
            ]
        return self._rules


def _node(schema: Schema, *, is_root: bool = False) -> _Node | None:
    found = _Node(schema, is_object=is_root or schema.get(EMBEDDED) is True)
    return None if found.is_empty else found


def _compiled_rule(schema: Schema, said: Object) -> _Rule:
    optional_old = bool(said.get("optionalOldSelf"))
    program = compiled(schema, said["rule"], "bool", optional_old=optional_old)
    text = said.get("messageExpression")
    message = compiled(schema, text, "string", optional_old=optional_old) if text else None
    return _Rule(said, program, message)


def exist(schema: Schema) -> bool:
    """Tell whether *schema* has rules, anywhere."""
    below = [*properties(schema).values(), values(schema), items(schema)]
    return bool(schema.get(RULES)) or any(each is not None and exist(each) for each in below)


def evaluator(schema: Schema) -> Evaluate:
    """Return what asks the rules of *schema* of an object and its predecessor."""
    known: list[_Node | None] = []

    def evaluate(new: Object, old: Object | None) -> list[FieldError]:
        if not known:
            known.append(_node(schema, is_root=True))
        root = known[0]
        if root is None:
            return []
        return list(_evaluate(root, new, ABSENT if old is None else old, "", is_unchanged=False))

    return evaluate


def _evaluate(
    node: _Node, value: Any, before: Any, path: str, *, is_unchanged: bool
) -> Iterator[FieldError]:
    """Yield what fails; *is_unchanged*: a part that this is in is as it was."""
    if value is None:
        return
    if before is not ABSENT:
        is_unchanged = before == value
    for rule in node.rules:
        yield from _ask(rule, node.schema, value, before, path, is_unchanged=is_unchanged)
    match value:
        case dict():
            was = before if isinstance(before, dict) else {}
            for key, item in value.items():
                below = node.fields.get(key) or (
                    node.values if key not in properties(node.schema) else None
                )
                if below is not None:
                    yield from _evaluate(
                        below,
                        item,
                        was.get(key, ABSENT),
                        child(path, key),
                        is_unchanged=is_unchanged,
                    )
        case list() if node.items is not None:
            old, keys = predecessors(node.schema, before), node.schema.get(LIST_KEYS) or ()
            for index, item in enumerate(value):
                earlier = old.get(keys_of(item, keys), ABSENT) if old else ABSENT
                yield from _evaluate(
                    node.items, item, earlier, f"{path}[{index}]", is_unchanged=is_unchanged
                )


def _ask(
    rule: _Rule, schema: Schema, value: Any, before: Any, path: str, *, is_unchanged: bool
) -> Iterator[FieldError]:
    program = rule.program
    if program.uses_old:
        if before is ABSENT and not program.is_optional:
            return  # there is no transition
    elif is_unchanged:
        return  # what was wrong before may stay
    kind = schema.get("type") or ""
    try:
        answer = program.evaluate(schema, value, before)
    except EvaluationError as exc:
        yield _invalid(path, f'"{kind}"', _failed(str(exc), rule))
        return
    if answer is True:
        return
    detail = _message(rule, schema, value, before)
    where = path
    for step in simple_steps(rule.said.get("fieldPath") or "") or ():
        where = child(where, step)
    yield _refusal(rule.said.get("reason"), where, kind, value, detail)


def _failed(text: str, rule: _Rule) -> str:
    if text.startswith("no such overload"):
        return (
            f"'{text}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.text}"
        )
    return f"{text} evaluating rule: {rule.text}"


def _message(rule: _Rule, schema: Schema, value: Any, before: Any) -> str:
    if rule.message is not None:
        try:
            said = rule.message.evaluate(schema, value, before)
        except EvaluationError:
            said = ""
        text = said.strip() if isinstance(said, str) else ""
        if text and "\n" not in text and len(text) <= LONGEST_MESSAGE:
            return text
    if rule.said.get("message"):
        return str(rule.said["message"]).strip()
    return f"failed rule: {rule.said['rule'].strip()}"


def _refusal(reason: str | None, path: str, kind: str, value: Any, detail: str) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return field_errors.forbidden(path, detail)
        case "FieldValueRequired":
            return field_errors.required(path, detail)
        case "FieldValueDuplicate":
            return field_errors.duplicate(path, value)
        case _:
            shown = "" if kind in ("array", "object") else field_errors.quoted(value)
            return _invalid(path, shown, detail)


def _invalid(path: str, shown: str, detail: str) -> FieldError:
    said = f"Invalid value: {shown}: {detail}" if shown else f"Invalid value: {detail}"
    return FieldError(path or "<nil>", "FieldValueInvalid", said)
