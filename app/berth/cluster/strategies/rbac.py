"""Roles and their bindings: what a rule must say, and whom a binding may name."""

from functools import partial

import msgspec

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, selectors, syntax
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.selectors import LabelSelector
from berth.cluster.strategies.shape import Shape, section, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

GROUP = "rbac.authorization.k8s.io"


class PolicyRule(Shape, frozen=True):
    verbs: list[str] | None = None
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None
    non_resource_urls: list[str] | None = msgspec.field(default=None, name="nonResourceURLs")


class AggregationRule(Shape, frozen=True):
    cluster_role_selectors: list[LabelSelector] | None = None


class Role(Shape, frozen=True):
    """Also a ClusterRole; only that aggregates."""

    metadata: ObjectMeta | None = None
    rules: list[PolicyRule] | None = None
    aggregation_rule: AggregationRule | None = None


class Subject(Shape, frozen=True):
    kind: str | None = None
    api_group: str | None = None
    name: str | None = None
    namespace: str | None = None


class RoleRef(Shape, frozen=True):
    api_group: str | None = None
    kind: str | None = None
    name: str | None = None


class Binding(Shape, frozen=True):
    """A RoleBinding or ClusterRoleBinding."""

    metadata: ObjectMeta | None = None
    role_ref: RoleRef | None = None
    subjects: list[Subject] | None = None


def _default_binding(obj: Object) -> None:
    reference = section(obj, "roleRef")
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    for subject in obj.get("subjects") or []:
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def _validate_role(new: Role, old: Role | None, *, namespaced: bool) -> list[FieldError]:
    errors = _validate_metadata(new, old, namespaced=namespaced)
    for index, rule in enumerate(new.rules or []):
        errors += _validate_rule(rule, f"rules[{index}]", namespaced=namespaced)
    if new.aggregation_rule is None or namespaced:
        return errors
    path = "aggregationRule.clusterRoleSelectors"
    selecting = new.aggregation_rule.cluster_role_selectors
    if not selecting:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(field_errors.required(path, why))
    for index, selector in enumerate(selecting or []):
        errors += selectors.validate(selector, f"{path}[{index}]")
    return errors


def _validate_rule(rule: PolicyRule, path: str, *, namespaced: bool) -> list[FieldError]:
    errors = []
    if not rule.verbs:
        why = "verbs must contain at least one value"
        errors.append(field_errors.required(f"{path}.verbs", why))
    urls = rule.non_resource_urls
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            errors.append(field_errors.invalid(where, urls, why))
        if rule.api_groups or rule.resources or rule.resource_names:
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(field_errors.invalid(where, urls, why))
        return errors
    if not rule.api_groups:
        why = "resource rules must supply at least one api group"
        errors.append(field_errors.required(f"{path}.apiGroups", why))
    if not rule.resources:
        why = "resource rules must supply at least one resource"
        errors.append(field_errors.required(f"{path}.resources", why))
    return errors


def _validate_binding(new: Binding, old: Binding | None, *, namespaced: bool) -> list[FieldError]:
    errors = _validate_metadata(new, old, namespaced=namespaced)
    reference = new.role_ref or RoleRef()
    if reference.api_group != GROUP:
        group = reference.api_group or ""
        errors.append(field_errors.not_supported("roleRef.apiGroup", group, [GROUP]))
    kinds = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if reference.kind not in kinds:
        errors.append(field_errors.not_supported("roleRef.kind", reference.kind or "", kinds))
    if not reference.name:
        errors.append(field_errors.required("roleRef.name"))
    else:
        errors += [
            field_errors.invalid("roleRef.name", reference.name, text)
            for text in syntax.path_segment(reference.name)
        ]
    for index, subject in enumerate(new.subjects or []):
        errors += _validate_subject(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and new.role_ref != old.role_ref:
        shown = {
            "APIGroup": reference.api_group or "",
            "Kind": reference.kind or "",
            "Name": reference.name or "",
        }
        errors.append(field_errors.invalid("roleRef", shown, "cannot change roleRef"))
    return errors


def _validate_subject(subject: Subject, path: str, *, namespaced: bool) -> list[FieldError]:
    errors = [] if subject.name else [field_errors.required(f"{path}.name")]
    group = subject.api_group or ""
    match subject.kind:
        case "ServiceAccount":
            if subject.name:
                errors += [
                    field_errors.invalid(f"{path}.name", subject.name, text)
                    for text in syntax.dns1123_subdomain(subject.name)
                ]
            if group:
                errors.append(field_errors.not_supported(f"{path}.apiGroup", group, [""]))
            if not subject.namespace and not namespaced:
                errors.append(field_errors.required(f"{path}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                errors.append(field_errors.not_supported(f"{path}.apiGroup", group, [GROUP]))
        case kind:
            known = ["ServiceAccount", "User", "Group"]
            errors.append(field_errors.not_supported(f"{path}.kind", kind or "", known))
    return errors


def _validate_metadata(
    new: Role | Binding, old: Role | Binding | None, *, namespaced: bool
) -> list[FieldError]:
    return metadata.validate(
        new.metadata,
        old.metadata if old else None,
        namespaced=namespaced,
        name=syntax.path_segment,
    )


ROLE = Strategy(validate=validated(Role, partial(_validate_role, namespaced=True)))
CLUSTER_ROLE = Strategy(validate=validated(Role, partial(_validate_role, namespaced=False)))
ROLE_BINDING = Strategy(
    default=_default_binding,
    validate=validated(Binding, partial(_validate_binding, namespaced=True)),
)
CLUSTER_ROLE_BINDING = Strategy(
    default=_default_binding,
    validate=validated(Binding, partial(_validate_binding, namespaced=False)),
)
