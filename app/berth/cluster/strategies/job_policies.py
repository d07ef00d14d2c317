"""The policies of a Job: which failures count (KEP-3329), when it has succeeded (KEP-3998)."""

from collections.abc import Iterator
from typing import Any, Final

from berth.cluster.indexes import Indexes
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import Owners, shown
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MOST_RULES: Final = 20
MOST_PATTERNS: Final = 20
MOST_EXIT_CODES: Final = 255
MOST_INDEXES_TEXT: Final = 64 * 1024

ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")


def check_failure_policy(policy: Object | None, at: str, owners: Owners) -> Iterator[FieldError]:
    """Evaluate ``podFailurePolicy``, and what else it says of the spec."""
    spec, path = owners[-1], at.rpartition(".")[0]
    if policy is None:
        return
    here = f"{at}.rules"
    rules = policy.get("rules") or []
    if len(rules) > MOST_RULES:
        yield field_errors.too_many(here, len(rules), MOST_RULES)
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {
        each.get("name")
        for field in ("containers", "initContainers")
        for each in pod.get(field) or ()
    }
    for index, rule in enumerate(rules):
        yield from _failure_rule(rule, spec, f"{here}[{index}]", containers)
    replacement = spec.get("podReplacementPolicy")
    if replacement not in (None, "Failed"):
        yield field_errors.not_supported(f"{path}.podReplacementPolicy", replacement, ("Failed",))


def _failure_rule(
    rule: Object, spec: Object, path: str, containers: set[Any]
) -> Iterator[FieldError]:
    if not rule.get("action"):
        yield field_errors.required(f"{path}.action", f"valid values: {_listed(ACTIONS)}")
    elif rule["action"] == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        detail = "requires the backoffLimitPerIndex to be set"
        yield field_errors.invalid(f"{path}.action", rule["action"], detail)
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        yield from _exit_codes(codes, f"{path}.onExitCodes", containers)
    if conditions:
        yield from _conditions(conditions, f"{path}.onPodConditions")
    both = "OnExitCodes and OnPodConditions"
    if codes is not None and conditions:
        yield _without_value(path, f"specifying both {both} is not supported")
    elif codes is None and not conditions:
        yield _without_value(path, f"specifying one of {both} is required")


def _conditions(patterns: list[Object], path: str) -> Iterator[FieldError]:
    if len(patterns) > MOST_PATTERNS:
        yield field_errors.too_many(path, len(patterns), MOST_PATTERNS)
    for index, pattern in enumerate(patterns):
        type_ = pattern.get("type") or ""
        for text in syntax.qualified_name(type_):
            yield field_errors.invalid(f"{path}[{index}].type", type_, text)
        status, here = pattern.get("status"), f"{path}[{index}].status"
        if not status:
            yield field_errors.required(here, f"valid values: {_listed(STATUSES)}")
        elif status not in STATUSES:
            yield field_errors.not_supported(here, status, STATUSES)


def _exit_codes(requirement: Object, path: str, containers: set[Any]) -> Iterator[FieldError]:
    operator, values = requirement.get("operator"), requirement.get("values") or []
    if not operator:
        yield field_errors.required(f"{path}.operator", f"valid values: {_listed(OPERATORS)}")
    name = requirement.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield field_errors.invalid(f"{path}.containerName", name, detail)
    here = f"{path}.values"
    if not values:
        yield field_errors.invalid(here, values, "at least one value is required")
    elif len(values) > MOST_EXIT_CODES:
        yield field_errors.too_many(here, len(values), MOST_EXIT_CODES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            detail = "must not be 0 for the In operator"
            yield field_errors.invalid(f"{here}[{index}]", value, detail)
        if value in values[:index]:
            yield field_errors.duplicate(f"{here}[{index}]", value)
    if values != sorted(values):
        yield field_errors.invalid(here, values, "must be ordered")


def check_success_policy(policy: Object | None, here: str, owners: Owners) -> Iterator[FieldError]:
    """Evaluate ``successPolicy``."""
    spec = owners[-1]
    if policy is None:
        return
    if spec.get("completionMode") != "Indexed":
        value = shown(builtin.schema("io.k8s.api.batch.v1.SuccessPolicy"), policy)
        yield field_errors.invalid(here, value, "requires indexed completion mode")
        return
    rules = policy.get("rules") or []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield field_errors.required(f"{here}.rules", detail)
    if len(rules) > MOST_RULES:
        yield field_errors.too_many(f"{here}.rules", len(rules), MOST_RULES)
    for index, rule in enumerate(rules):
        completions = spec.get("completions") or 0
        yield from _success_rule(rule, f"{here}.rules[{index}]", completions)


def _success_rule(rule: Object, path: str, completions: int) -> Iterator[FieldError]:
    count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and text is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        yield field_errors.required(path, detail)
    total = 0
    if text is not None:
        here = f"{path}.succeededIndexes"
        if len(text) > MOST_INDEXES_TEXT:
            yield field_errors.too_long(here, MOST_INDEXES_TEXT)
        try:
            total = len(Indexes.parse(text, below=completions))
        except ValueError as exc:
            detail = f"error parsing succeededIndexes: {exc}"
            yield field_errors.invalid(here, text, detail)
    if count is None:
        return
    here = f"{path}.succeededCount"
    if count < 0:
        yield field_errors.invalid(here, count, "must be greater than or equal to 0")
    for most, of_what in (
        (completions, "the number of specified completions"),
        (total if text is not None else count, _OF_INDEXES),
    ):
        if count > most:
            detail = f"must be less than or equal to {most} ({of_what})"
            yield field_errors.invalid(here, count, detail)


_OF_INDEXES: Final = "the number of indexes in the specified succeededIndexes field"


def _listed(values: tuple[str, ...]) -> str:
    """Write *values* as Go prints a list of strings."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _without_value(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {detail}")
