"""CustomResourceDefinitions: defaults and validation (``pkg/apis/apiextensions/validation``)."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

from berth.cluster.custom import structural
from berth.cluster.json_path import JsonPath, simple_steps
from berth.cluster.resources import Object, Strategy, section
from berth.cluster.schemas import builtin
from berth.cluster.strategies import syntax
from berth.cluster.strategies.by_schema import of_schema
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a deleted definition until its objects are gone."""

APPROVAL: Final = "api-approved.kubernetes.io"
PROTECTED: Final = (".k8s.io", ".kubernetes.io")
COMMUNITY: Final = "https://github.com/kubernetes/enhancements/pull/1111"

SCOPES: Final = ("Cluster", "Namespaced")
STRATEGIES: Final = ("None", "Webhook")
COLUMN_TYPES: Final = ("integer", "number", "string", "boolean", "date")
COLUMN_FORMATS: Final = (
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "date",
    "date-time",
    "password",
)
MOST_SELECTABLE_FIELDS: Final = 8

Path = str


def approval(definition: Object) -> tuple[str, str, str] | None:
    """Return status, reason and message of whether a protected group is approved; None: it needs
    no approval (KEP-1111)."""
    if not definition["spec"]["group"].endswith(PROTECTED):
        return None
    said = (definition["metadata"].get("annotations") or {}).get(APPROVAL) or ""
    if said.startswith("unapproved"):
        return "False", "UnapprovedAnnotation", f'not approved: "{said}"'
    return "True", "ApprovedAnnotation", f"approved in {said}"


def _default(obj: Object) -> None:
    spec = section(obj, "spec")
    conversion = section(spec, "conversion")
    conversion.setdefault("strategy", "None")
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service:
        service.setdefault("port", 443)
    names = section(spec, "names")
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    for version in spec.get("versions") or ():
        version.setdefault("served", False)
        version.setdefault("storage", False)


def _prepare(new: Object, old: Object | None) -> None:
    """A new definition has its storage version stored, and no names yet."""
    if old is None:
        new["status"] = {"acceptedNames": {"kind": "", "plural": ""}}
    status = section(new, "status")
    storage = [version.get("name") for version in _versions(new) if version.get("storage")][:1]
    stored = [*(status.get("storedVersions") or ())]
    status["storedVersions"] = stored + [each for each in storage if each not in stored]


def _versions(obj: Object) -> list[Object]:
    return (obj.get("spec") or {}).get("versions") or []


def _check(obj: Object) -> list[FieldError]:
    return list(_errors(obj))


def _errors(obj: Object) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group") or ""
    name = obj["metadata"].get("name") or ""
    if name != f"{names.get('plural') or ''}.{group}":
        yield field_errors.invalid(
            "metadata.name", name, 'must be spec.names.plural+"."+spec.group'
        )
    if not group:
        yield field_errors.required("spec.group")
    elif complaints := syntax.dns1123_subdomain(group):
        yield field_errors.invalid("spec.group", group, ",".join(complaints))
    elif "." not in group:
        yield field_errors.invalid("spec.group", group, "should be a domain with at least one dot")
    elif group.endswith(PROTECTED):
        yield from _check_approval(obj)
    scope = spec.get("scope")
    if not scope:
        yield field_errors.required("spec.scope")
    elif scope not in SCOPES:
        yield field_errors.not_supported("spec.scope", scope, SCOPES)
    if spec.get("preserveUnknownFields"):
        yield field_errors.invalid(
            "spec.preserveUnknownFields",
            True,  # noqa: FBT003 - the value that is complained of
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )
    yield from _check_names(names, "spec.names")
    yield from _check_versions(spec.get("versions") or [])
    yield from _check_conversion(spec.get("conversion") or {})


def _check_approval(obj: Object) -> Iterator[FieldError]:
    path = f"metadata.annotations[{APPROVAL}]"
    said = (obj["metadata"].get("annotations") or {}).get(APPROVAL) or ""
    if not said:
        yield field_errors.required(
            path, f'protected groups must have approval annotation "{APPROVAL}", see {COMMUNITY}'
        )
    elif not said.startswith(("unapproved", "http://", "https://")):
        yield field_errors.invalid(
            path,
            said,
            f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a '
            f'reason starting with "unapproved", see {COMMUNITY}',
        )


def _check_names(names: Object, path: Path) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or ""
        if not value:
            yield field_errors.required(f"{path}.{key}")
            continue
        mixed = key in ("kind", "listKind")
        complaints = syntax.dns1035_label(value.lower() if mixed else value)
        if complaints:
            head = "may have mixed case, but should otherwise match: " if mixed else ""
            yield field_errors.invalid(f"{path}.{key}", value, head + ",".join(complaints))
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if complaints := syntax.dns1035_label(value):
                yield field_errors.invalid(f"{path}.{key}[{index}]", value, ",".join(complaints))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield field_errors.invalid(
            f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"
        )


def _check_versions(versions: list[Object]) -> Iterator[FieldError]:
    path = "spec.versions"
    said = [each.get("name") or "" for each in versions]
    if len(set(said)) < len(said):
        yield field_errors.invalid(path, said, "must contain unique version names")
    if sum(1 for each in versions if each.get("storage")) != 1:
        yield field_errors.invalid(
            path, said, "must have exactly one version marked as storage version"
        )
    for index, version in enumerate(versions):
        yield from _check_version(version, f"{path}[{index}]")


def _check_version(version: Object, path: Path) -> Iterator[FieldError]:
    name = version.get("name") or ""
    if complaints := syntax.dns1035_label(name):
        yield field_errors.invalid(f"{path}.name", name, ",".join(complaints))
    if not version.get("deprecated") and version.get("deprecationWarning"):
        yield field_errors.invalid(
            f"{path}.deprecationWarning",
            version["deprecationWarning"],
            "can only be set for deprecated versions",
        )
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield field_errors.required(f"{path}.schema.openAPIV3Schema", "schemas are required")
    else:
        yield from structural.validate(schema, f"{path}.schema.openAPIV3Schema")
    yield from _check_subresources(version.get("subresources") or {}, f"{path}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _check_column(column, f"{path}.additionalPrinterColumns[{index}]")
    yield from _check_selectable(
        version.get("selectableFields") or [], schema or {}, f"{path}.selectableFields"
    )


def _check_subresources(subresources: Object, path: Path) -> Iterator[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for key, roots, where, is_required in (
        ("specReplicasPath", (".spec.",), ".spec", True),
        ("statusReplicasPath", (".status.",), ".status", True),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status", False),
    ):
        value, here = scale.get(key) or "", f"{path}.scale.{key}"
        if not value:
            if is_required:
                yield field_errors.required(here)
        elif _no_path(value) or simple_steps(value) is None:
            yield field_errors.invalid(here, value, _no_path(value) or "must be a simple json path")
        elif not value.startswith(roots):
            yield field_errors.invalid(here, value, f"should be a json path under {where}")


def _check_column(column: Object, path: Path) -> Iterator[FieldError]:
    if not column.get("name"):
        yield field_errors.required(f"{path}.name")
    kind = column.get("type") or ""
    if not kind:
        yield field_errors.required(
            f"{path}.type", f"must be one of {','.join(sorted(COLUMN_TYPES))}"
        )
    elif kind not in COLUMN_TYPES:
        yield field_errors.invalid(
            f"{path}.type", kind, f"must be one of {','.join(sorted(COLUMN_TYPES))}"
        )
    form = column.get("format") or ""
    if form and form not in COLUMN_FORMATS:
        yield field_errors.invalid(
            f"{path}.format", form, f"must be one of {','.join(sorted(COLUMN_FORMATS))}"
        )
    value = column.get("jsonPath") or ""
    if not value:
        yield field_errors.required(f"{path}.jsonPath")
    elif complaint := _no_path(value):
        yield field_errors.invalid(f"{path}.jsonPath", value, complaint)


def _no_path(value: str) -> str:
    """Return why *value* is no JSON path; empty when it is one."""
    if not value.startswith((".", "[")):
        return "must be a simple json path starting with ."
    try:
        JsonPath(value)
    except ValueError as exc:
        return f"is an invalid path: {exc}"
    return ""


def _check_selectable(declared: list[Object], schema: Object, path: Path) -> Iterator[FieldError]:
    if len(declared) > MOST_SELECTABLE_FIELDS:
        yield field_errors.too_many(path, len(declared), MOST_SELECTABLE_FIELDS)
    seen: set[str] = set()
    for index, each in enumerate(declared):
        value, here = each.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not value:
            yield field_errors.required(here)
            continue
        steps = simple_steps(value)
        if not steps:
            yield field_errors.invalid(here, value, "is an invalid path")
            continue
        if steps[0] == "metadata":
            yield field_errors.invalid(here, value, "must not point to fields in metadata")
        found: Any = schema
        for step in steps:
            found = (found.get("properties") or {}).get(step) if isinstance(found, dict) else None
        if found is None:
            yield field_errors.invalid(
                here, value, "is an invalid path: does not refer to a valid field"
            )
        elif found.get("type") not in ("boolean", "integer", "string"):
            yield field_errors.invalid(
                here,
                value,
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed.",
            )
        if value in seen:
            yield field_errors.duplicate(here, value)
        seen.add(value)


def _check_conversion(conversion: Object) -> Iterator[FieldError]:
    path, strategy = "spec.conversion", conversion.get("strategy") or ""
    if not strategy:
        yield field_errors.required(f"{path}.strategy")
    elif strategy not in STRATEGIES:
        yield field_errors.not_supported(f"{path}.strategy", strategy, STRATEGIES)
    webhook = conversion.get("webhook")
    if strategy == "Webhook":
        if webhook is None or webhook.get("clientConfig") is None:
            yield field_errors.required(
                f"{path}.webhook.clientConfig", "required when strategy is set to Webhook"
            )
        if not (webhook or {}).get("conversionReviewVersions"):
            yield field_errors.required(f"{path}.webhook.conversionReviewVersions")
    elif webhook is not None:
        yield field_errors.forbidden(
            f"{path}.webhook", "should not be set when strategy is not set to Webhook"
        )


def _check_update(new: Object, old: Object) -> list[FieldError]:
    return list(_update_errors(new, old))


def _update_errors(new: Object, old: Object) -> Iterator[FieldError]:
    spec, before = new["spec"], old["spec"]
    immutable: list[tuple[str, Callable[[Object], Any]]] = [
        ("spec.group", lambda each: each.get("group")),
        ("spec.names.plural", lambda each: each["names"].get("plural")),
    ]
    conditions = (old.get("status") or {}).get("conditions") or ()
    established = {"type": "Established", "status": "True"}
    if any(established.items() <= condition.items() for condition in conditions):
        immutable += [
            ("spec.scope", lambda each: each.get("scope")),
            ("spec.names.kind", lambda each: each["names"].get("kind")),
        ]
    for path, value in immutable:
        if value(spec) != value(before):
            yield field_errors.invalid(path, value(spec), "field is immutable")
    known = {version.get("name") for version in _versions(new)}
    for index, stored in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if stored not in known:
            yield field_errors.invalid(
                f"status.storedVersions[{index}]",
                stored,
                f"missing from spec.versions; {stored} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {stored} and removes {stored} from status.storedVersions",
            )


def _strategy() -> Strategy:
    schema = builtin.schema_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert schema is not None
    general = of_schema(
        schema,
        namespaced=False,
        default=_default,
        prepare=_prepare,
        check=_check,
        check_update=_check_update,
        generation=True,
    )
    return dataclasses.replace(general, held_by=(FINALIZER,))


CUSTOM_RESOURCE_DEFINITION: Final = _strategy()
