"""Values as messages of the API server show its own types: all fields, as Go calls them."""

import json
from difflib import unified_diff
from typing import Any, Final

import msgspec

from berth.cluster.data import read
from berth.cluster.schemas.builtin import META
from berth.cluster.schemas.types import ABSENT, Field, ListOf, MapOf, Scalar, Schema, Type


class _GoTypes(msgspec.Struct, frozen=True):
    """``go-values.json``: what the published description does not tell of Go's types."""

    names: dict[str, str]
    """Of fields that Go writes otherwise than with a capital letter."""
    pointers: frozenset[str]
    """Texts that are pointers, some of them in one type only."""
    orders: dict[str, tuple[str, ...]]
    """Fields of core types whose order is not that of the published description."""


GO_TYPES: Final = read("berth.cluster.schemas", "go-values.json", _GoTypes)
OF_CONTEXT: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a pod that the security context has in Go."""
ZEROS = {"string": "", "boolean": False, "int32": 0, "int64": 0, "number": 0}


def go_value(expected: Type, value: Any) -> Any:
    """Return JSON of a value of a type, as Go's JSON of the internal type has it.

    Its fields are taken to be those of the published type, but for those above.
    """
    match expected:
        case Schema() if expected.name.startswith(META) and isinstance(value, dict):
            return _sorted(value)
        case Schema() if isinstance(value, dict):
            return _object(expected, value)
        case ListOf(item) if isinstance(value, list):
            return [go_value(item, child) for child in value]
        case MapOf(item) if isinstance(value, dict):
            return {key: go_value(item, value[key]) for key in sorted(value)}
    return value


def go_diff(expected: Type, old: Any, new: Any) -> str:
    """Return how two values of a type differ, as ``diff.Diff`` of apimachinery does."""
    before, after = (
        json.dumps(go_value(expected, value), indent=1, ensure_ascii=False).splitlines()
        for value in (old, new)
    )
    lines = list(unified_diff(before, after, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _object(schema: Schema, value: dict[str, Any]) -> Any:
    kind, fields = schema.name.rpartition(".")[2], schema.fields
    is_core = schema.name.startswith("io.k8s.api.core.")
    if is_core and kind == "PodTemplateSpec":
        meta = go_value(fields["metadata"].type, value.get("metadata") or {})
        return {**meta, "Spec": go_value(fields["spec"].type, value.get("spec") or {})}
    if is_core and kind == "PodSpec":
        context = {field: value.get(field) for field in OF_CONTEXT}
        value = {**value, "securityContext": {**context, **(value.get("securityContext") or {})}}
    order = GO_TYPES.orders.get(kind) if is_core else None
    names = order or sorted(fields, key=lambda name: fields[name].number)
    return {
        GO_TYPES.names.get(name, name[:1].upper() + name[1:]): _field(
            kind, name, fields.get(name), value.get(name)
        )
        for name in names
    }


def _sorted(value: Any) -> Any:
    """Return JSON of a type that is the same in all versions, its maps in order."""
    if isinstance(value, dict):
        first = {"creationTimestamp": 0, "matchLabels": 0, "matchExpressions": 1}
        keys = sorted(value, key=lambda key: (first.get(key, 2), key))
        return {key: _sorted(value[key]) for key in keys}
    return value


def _field(kind: str, name: str, field: Field | None, value: Any) -> Any:
    if field is None:  # of a pod, and not of its security context
        return bool(value) if name.startswith("hostN") or name[4:] in ("PID", "IPC") else value
    if value is not None:
        return go_value(field.type, value)
    if {name, f"{kind}.{name}"} & GO_TYPES.pointers:
        return None
    match field.type:
        case Schema() if field.zero == {}:
            return go_value(field.type, {})
        case Scalar(scalar) if field.by_value or field.zero is not ABSENT:
            return ZEROS.get(scalar)
    return None


def in_go_order(expected: Type, value: Any) -> Any:
    """Return JSON of a value of a type in the order in which Go writes it.

    Fields come as they are declared, the keys of maps by name.
    """
    match expected:
        case Schema() if isinstance(value, dict):
            return {
                name: in_go_order(field.type, value[name])
                for name, field in expected.fields.items()
                if name in value
            }
        case ListOf(item) if isinstance(value, list):
            return [in_go_order(item, child) for child in value]
        case MapOf(item) if isinstance(value, dict):
            return {key: in_go_order(item, value[key]) for key in sorted(value)}
        case Scalar("FieldsV1"):
            return msgspec.json.decode(msgspec.json.encode(value, order="sorted"))
    return value
