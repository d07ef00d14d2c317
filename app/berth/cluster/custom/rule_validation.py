"""Validation of the rules of a definition (``apiextensions/validation``)."""

from collections.abc import Iterator
from typing import Final

from berth.cluster.custom import cel_values
from berth.cluster.custom.rule_cost import Cardinality, RuleCosts, cardinality_within
from berth.cluster.custom.rules import RuleError, compiled
from berth.cluster.custom.walk import (
    EMBEDDED,
    LIST_TYPE,
    RULES,
    Schema,
    field_of,
    items,
    properties,
    values,
)
from berth.cluster.json_path import simple_steps
from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.field_errors import FieldError


def validate_rules(schema: Schema, path: str) -> list[FieldError]:
    """Return what is wrong with the rules of the structural schema at *path* of a definition."""
    return list(_validate(schema, path, uncorrelatable="", cardinality=1, is_object=True))


REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


def _validate(
    schema: Schema, path: str, *, uncorrelatable: str, cardinality: Cardinality, is_object: bool
) -> Iterator[FieldError]:
    whole = cel_values.with_object_fields(schema) if is_object else schema
    costs = RuleCosts(whole, cardinality)
    for index, rule in enumerate(schema.get(RULES) or ()):
        yield from _check_rule(
            whole,
            rule,
            f"{path}.{RULES}[{index}]",
            uncorrelatable=uncorrelatable,
            costs=costs,
        )
    for key, below in properties(schema).items():
        yield from _validate(
            below,
            f"{path}.properties[{key}]",
            uncorrelatable=uncorrelatable,
            cardinality=cardinality,
            is_object=below.get(EMBEDDED) is True,
        )
    others, item = values(schema), items(schema)
    if others is not None:
        yield from _validate(
            others,
            f"{path}.additionalProperties",
            uncorrelatable=uncorrelatable,
            cardinality=cardinality_within(schema, cardinality),
            is_object=others.get(EMBEDDED) is True,
        )
    if item is not None:
        here = f"{path}.items"
        is_keyed = schema.get(LIST_TYPE) == "map"
        yield from _validate(
            item,
            here,
            uncorrelatable=uncorrelatable if is_keyed else uncorrelatable or here,
            cardinality=cardinality_within(schema, cardinality),
            is_object=item.get(EMBEDDED) is True,
        )


def _check_rule(
    schema: Schema, rule: Object, path: str, *, uncorrelatable: str, costs: RuleCosts
) -> Iterator[FieldError]:
    source = (rule.get("rule") or "").strip()
    if not source:
        yield field_errors.required(f"{path}.rule", "rule is not specified")
        return
    message = rule.get("message")
    if message is not None and message and not message.strip():
        yield field_errors.invalid(
            f"{path}.message", message, "message must be non-empty if specified"
        )
    elif message and "\n" in message:
        yield field_errors.invalid(
            f"{path}.message", message, "message must not contain line breaks"
        )
    elif not message and "\n" in source:
        yield field_errors.required(
            f"{path}.message", "message must be specified if rule contains line breaks"
        )
    expression = rule.get("messageExpression")
    if expression is not None and not expression.strip():
        yield field_errors.required(
            f"{path}.messageExpression", "messageExpression must be non-empty if specified"
        )
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        yield field_errors.not_supported(f"{path}.reason", reason, REASONS)
    yield from _check_field_path(schema, rule.get("fieldPath"), f"{path}.fieldPath")
    optional_old = bool(rule.get("optionalOldSelf"))
    for key, returns in (("rule", "bool"), ("messageExpression", "string")):
        text = (rule.get(key) or "").strip()
        if not text:
            continue
        try:
            program = compiled(schema, text, returns, optional_old=optional_old)
        except RuleError as exc:
            yield field_errors.invalid(f"{path}.{key}", rule[key], str(exc))
            continue
        serialized, is_message = program.expression.serialize(), key == "messageExpression"
        if complaint := costs.exceeded(serialized, program.variables, is_message=is_message):
            yield field_errors.forbidden(f"{path}.{key}", complaint)
        if key == "rule" and program.uses_old and uncorrelatable:
            yield field_errors.invalid(
                f"{path}.rule",
                rule["rule"],
                f"oldSelf cannot be used on the uncorrelatable portion of the schema within "
                f"{uncorrelatable}",
            )
        if key == "rule" and optional_old and not program.uses_old:
            yield field_errors.invalid(
                f"{path}.optionalOldSelf",
                value=True,
                detail="may not be set if oldSelf is not used in rule",
            )


def _check_field_path(schema: Schema, said: str | None, path: str) -> Iterator[FieldError]:
    if said is None:
        return
    steps = simple_steps(said)
    here: Schema | None = schema
    for step in steps or ():
        here = None if here is None else field_of(here, step)
    if not steps or here is None:
        yield field_errors.invalid(
            path, said, "fieldPath must be a valid path: does not refer to a valid field"
        )
