"""Admission policies and their bindings: what is filled in, and what a policy must say.

Source: ``pkg/apis/admissionregistration/validation`` of kube-apiserver.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from berth import field_errors
from berth.cluster.resources import Object
from berth.cluster.strategies import selectors, webhooks
from berth.cluster.strategies.expressions import check_expression, check_named
from berth.cluster.strategies.selectors import LabelSelector
from berth.cluster.strategies.shape import section
from berth.field_errors import FieldError

REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
ACTIONS: Final = ("Audit", "Deny", "Warn")
NOT_FOUND_ACTIONS: Final = ("Allow", "Deny")


def default_policy(obj: Object) -> None:
    """Of both kinds of policy."""
    spec = section(obj, "spec")
    spec.setdefault("failurePolicy", "Fail")
    _default_match(section(spec, "matchConstraints"))


def default_mutating_policy(obj: Object) -> None:
    default_policy(obj)
    obj["spec"].setdefault("reinvocationPolicy", "Never")


def default_binding(obj: Object) -> None:
    match = section(obj, "spec").get("matchResources")
    if match:
        _default_match(match)


def _default_match(match: Object) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for key in ("resourceRules", "excludeResourceRules"):
        webhooks.default_rules(match.get(key) or ())


def check_policy(obj: Object) -> list[FieldError]:
    """Evaluate a ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    found = list(_check_match(spec.get("matchConstraints") or {}, "spec.matchConstraints"))
    if not (spec.get("matchConstraints") or {}).get("resourceRules"):
        found.append(field_errors.required("spec.matchConstraints.resourceRules"))
    kind = spec.get("paramKind")
    if kind is not None:
        missing = (key for key in ("apiVersion", "kind") if not kind.get(key))
        found += [field_errors.required(f"spec.paramKind.{key}") for key in missing]
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        found.append(field_errors.required("spec.validations", detail))
    for index, validation in enumerate(spec.get("validations") or ()):
        found += _check_validation(validation, f"spec.validations[{index}]")
    for key, returns in (("matchConditions", ("bool",)), ("variables", ())):
        found += check_named(spec.get(key) or (), f"spec.{key}", *returns)
    return found


def check_binding(obj: Object) -> list[FieldError]:
    """Evaluate a ValidatingAdmissionPolicyBinding."""
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    if not spec.get("policyName"):
        found.append(field_errors.required("spec.policyName"))
    if (reference := spec.get("paramRef")) is not None:
        found += _check_reference(reference, "spec.paramRef")
    found += _check_match(spec.get("matchResources") or {}, "spec.matchResources")
    actions = spec.get("validationActions") or []
    if not actions:
        found.append(field_errors.required("spec.validationActions"))
    for index, action in enumerate(actions):
        path = f"spec.validationActions[{index}]"
        if action not in ACTIONS:
            found.append(field_errors.not_supported(path, action, ACTIONS))
        elif action in actions[:index]:
            found.append(field_errors.duplicate(path, action))
    if {"Deny", "Warn"} <= set(actions):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        found.append(field_errors.invalid("spec.validationActions", actions, detail))
    return found


def _check_reference(reference: Object, path: str) -> Iterator[FieldError]:
    name, selector = reference.get("name"), reference.get("selector")
    if bool(name) == (selector is not None):
        yield field_errors.required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if action is None:
        yield field_errors.required(f"{path}.parameterNotFoundAction")
    elif action not in NOT_FOUND_ACTIONS:
        here = f"{path}.parameterNotFoundAction"
        yield field_errors.not_supported(here, action, NOT_FOUND_ACTIONS)


def _check_match(match: Object, path: str) -> Iterator[FieldError]:
    for key in ("namespaceSelector", "objectSelector"):
        selector = msgspec.convert(match.get(key) or {}, LabelSelector)
        yield from selectors.validate(selector, f"{path}.{key}")
    for key in ("resourceRules", "excludeResourceRules"):
        yield from webhooks.check_rules(match.get(key) or [], f"{path}.{key}")


def _check_validation(validation: Object, path: str) -> Iterator[FieldError]:
    yield from check_expression(validation.get("expression"), f"{path}.expression", "bool")
    message = validation.get("message")
    if message is not None and not message.strip():
        detail = "message must be non-empty if specified"
        yield field_errors.invalid(f"{path}.message", message, detail)
    elif message and "\n" in message.strip():
        yield field_errors.invalid(
            f"{path}.message", message, "message must not contain line breaks"
        )
    if written := validation.get("messageExpression"):
        yield from check_expression(written, f"{path}.messageExpression", "string")
    reason = validation.get("reason")
    if reason and reason not in REASONS:
        yield field_errors.not_supported(f"{path}.reason", reason, REASONS)
