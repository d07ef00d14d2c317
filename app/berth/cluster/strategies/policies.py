"""Admission policies and their bindings: what is filled in, and what a policy must say.

Source: ``pkg/apis/admissionregistration/validation`` of kube-apiserver.
"""

from collections.abc import Iterator
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import selectors, syntax, webhooks
from berth.cluster.strategies.expressions import (
    check_conditions,
    check_expression,
    check_variables,
)
from berth.kube import field_errors
from berth.kube.cel.literals import as_maps
from berth.kube.field_errors import FieldError

REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
PATCH_TYPES: Final = {
    "ApplyConfiguration": ("applyConfiguration", "map"),
    "JSONPatch": ("jsonPatch", "list"),
}
"""Which field has the expression, and what that gives."""
ACTIONS: Final = ("Audit", "Deny", "Warn")
NOT_FOUND_ACTIONS: Final = ("Allow", "Deny")


def check_policy(obj: Object) -> list[FieldError]:
    """Evaluate a ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    found = list(_check_policy(spec))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        found += [
            field_errors.required(f"spec.{field}", detail)
            for field in ("validations", "auditAnnotations")
        ]
    for index, validation in enumerate(spec.get("validations") or ()):
        found += _check_validation(validation, f"spec.validations[{index}]")
    return found


def _check_policy(spec: Object) -> Iterator[FieldError]:
    """Evaluate what both kinds of policy have."""
    constraints, kind = spec.get("matchConstraints"), spec.get("paramKind")
    if kind is not None:
        yield from _check_param_kind(kind, "spec.paramKind")
    if constraints is None:
        yield field_errors.required("spec.matchConstraints")
    else:
        yield from _check_match(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            yield field_errors.required("spec.matchConstraints.resourceRules")
    conditions, variables = spec.get("matchConditions") or (), spec.get("variables") or ()
    yield from check_conditions(conditions, "spec.matchConditions")
    yield from check_variables(variables, "spec.variables")


def _check_param_kind(kind: Object, path: str) -> Iterator[FieldError]:
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    here = f"{path}.apiVersion"
    group, _, number = version.rpartition("/")
    if not version:
        yield field_errors.required(here)
    elif "/" in group:
        detail = f"unexpected GroupVersion string: {version}"
        yield field_errors.invalid(here, version, detail)
    else:
        for why in syntax.dns1123_subdomain(group) if group else ():
            yield field_errors.invalid(here, group, why)
        for why in syntax.dns1035_label(number):
            yield field_errors.invalid(here, number, why)
    if not name:
        yield field_errors.required(f"{path}.kind")
    for why in syntax.dns1035_label(name.lower()) if name else ():
        detail = f"may have mixed case, but should otherwise match: {why}"
        yield field_errors.invalid(f"{path}.kind", name, detail)


def check_mutating_policy(obj: Object) -> list[FieldError]:
    """Evaluate a MutatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    found = list(_check_policy(spec))
    if not spec.get("mutations"):
        found.append(field_errors.required("spec.mutations", "must contain at least one item"))
    for index, mutation in enumerate(spec.get("mutations") or ()):
        found += _check_mutation(mutation, f"spec.mutations[{index}]")
    return found


def _check_mutation(mutation: Object, path: str) -> Iterator[FieldError]:
    chosen = mutation.get("patchType")
    if not chosen:
        yield field_errors.required(f"{path}.patchType")
        return
    if chosen not in PATCH_TYPES:
        yield field_errors.not_supported(f"{path}.patchType", chosen, tuple(PATCH_TYPES))
        return
    for patch_type, (key, returns) in PATCH_TYPES.items():
        written = mutation.get(key)
        if patch_type == chosen and written is None:
            detail = f"must be specified when patchType is {chosen}"
            yield field_errors.required(f"{path}.{key}", detail)
        elif written is not None and patch_type == chosen:
            source, here = written.get("expression"), f"{path}.{key}.expression"
            yield from check_expression(source, here, returns, rewrite=as_maps)
        elif written is not None:
            detail = f"must not be specified when patchType is {chosen}"
            yield field_errors.forbidden(f"{path}.{key}", detail)


def check_mutating_binding(obj: Object) -> list[FieldError]:
    """Evaluate a MutatingAdmissionPolicyBinding."""
    return list(_check_binding(obj.get("spec") or {}))


def check_binding(obj: Object) -> list[FieldError]:
    """Evaluate a ValidatingAdmissionPolicyBinding."""
    spec = obj.get("spec") or {}
    found = list(_check_binding(spec))
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


def _check_binding(spec: Object) -> Iterator[FieldError]:
    """Evaluate what both kinds of binding have."""
    if not spec.get("policyName"):
        yield field_errors.required("spec.policyName")
    if (reference := spec.get("paramRef")) is not None:
        yield from _check_reference(reference, "spec.paramRef")
    yield from _check_match(spec.get("matchResources") or {}, "spec.matchResources")


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
        selector = match.get(key)
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
