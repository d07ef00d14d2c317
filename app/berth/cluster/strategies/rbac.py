"""The constraints of roles and their bindings: a part of :mod:`.constraint_table`."""

from collections.abc import Iterator
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import selectors, syntax
from berth.cluster.strategies.constraints import (
    Owners,
    known,
    required,
    text,
)
from berth.cluster.strategies.defaults import RBAC
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Errors = Iterator[FieldError]

GROUP: Final = RBAC


def _is_namespaced(owners: Owners) -> bool:
    return bool((owners[0].get("metadata") or {}).get("namespace"))


def check_rule(rule: Object, path: str, owners: Owners) -> Errors:
    here, urls = f"{path}.nonResourceURLs", rule.get("nonResourceURLs")
    yield from required("verbs must contain at least one value")(rule.get("verbs"), f"{path}.verbs")
    if urls:
        if _is_namespaced(owners):
            why = "namespaced rules cannot apply to non-resource URLs"
            yield field_errors.invalid(here, urls, why)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield field_errors.invalid(here, urls, why)
        return
    for field, what in (("apiGroups", "api group"), ("resources", "resource")):
        detail = f"resource rules must supply at least one {what}"
        yield from required(detail)(rule.get(field), f"{path}.{field}")


def check_aggregated(found: list[Object] | None, path: str) -> Errors:
    why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
    yield from required(why)(found, path)
    for index, value in enumerate(found or ()):
        complaints = selectors.validate(value, f"{path}[{index}]")
        yield from complaints
        if complaints:  # upstream shows what it could not read
            yield field_errors.invalid(f"{path}[{index}]", None, "invalid label selector.")


def check_role_kind(kind: str | None, path: str, owners: Owners) -> Errors:
    kinds = ("Role", "ClusterRole") if _is_namespaced(owners) else ("ClusterRole",)
    yield from known(*kinds)(kind, path)


def check_subject(subject: Object, path: str, owners: Owners) -> Errors:
    name, group, kind = (subject.get(field) or "" for field in ("name", "apiGroup", "kind"))
    yield from required()(name, f"{path}.name")
    match kind:
        case "ServiceAccount":
            yield from text(syntax.dns1123_subdomain)(name, f"{path}.name")
            yield from known("")(group, f"{path}.apiGroup")
            if not _is_namespaced(owners):
                yield from required()(subject.get("namespace"), f"{path}.namespace")
        case "User" | "Group":
            yield from known(GROUP)(group, f"{path}.apiGroup")
        case _:
            supported = ("ServiceAccount", "User", "Group")
            yield field_errors.not_supported(f"{path}.kind", kind, supported)


def check_role_ref(new: Object, old: Object) -> list[FieldError]:
    """Refuse another role."""
    reference = new.get("roleRef") or {}
    if reference == (old.get("roleRef") or {}):
        return []
    shown = {
        name: reference.get(field) or ""
        for name, field in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    }
    return [field_errors.invalid("roleRef", shown, "cannot change roleRef")]
