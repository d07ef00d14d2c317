"""Which fields each kind has: names, types, how their lists merge, what they are for.

Decision (2026-11): the fields are read off the models of kubernetes-asyncio, which are generated
from the API server's own OpenAPI document; because so the list is complete, describes every field
and moves with the lock file; instead of a thousand lines of our own that fall behind. What the
models do not say, how patches merge and what is behind ``str`` and ``object``, is written here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec
from kubernetes_asyncio.client import Configuration, models

from berth.cluster.resources import Object, ResourceType
from berth.cluster.warnings import quoted


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without fields of its own."""

    name: str
    """``string``, ``integer``, ``boolean``, ``Time``, ``Quantity``, ``IntOrString`` or ``any``."""


@dataclass(frozen=True, slots=True)
class ListOf:
    item: "Type"


@dataclass(frozen=True, slots=True)
class MapOf:
    value: "Type"
    """Keys are strings."""


@dataclass(frozen=True, slots=True)
class Ref:
    model: str
    """What :func:`schema` takes."""


Type = Scalar | ListOf | MapOf | Ref


@dataclass(frozen=True, slots=True)
class Merge:
    """How a strategic merge patch treats the field."""

    strategy: str
    """``merge``, ``retainKeys`` or both with a comma between."""
    key: str = ""
    """Which field identifies an item of the list; empty: the item itself does."""


@dataclass(frozen=True, slots=True)
class Field:
    type: Type
    description: str
    required: bool
    merge: Merge | None = None
    """None: a patch replaces a list, and merges an object field by field."""


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    """``v1.PodSpec``; ``core.v1.Event`` where several groups use the same word."""
    fields: Mapping[str, Field]


SCALARS = {"str": "string", "int": "integer", "bool": "boolean", "datetime": "Time"}

QUANTITY_FIELDS = frozenset(
    {
        "allocatable",
        "allocatedResources",
        "capacity",
        "divisor",
        "limits",
        "maximumVolumeSize",
        "overhead",
        "requests",
        "sizeLimit",
    }
)
"""Strings under these names are quantities, which people also write as numbers."""

QUANTITY_VALUES = frozenset({("V1Counter", "value"), ("V1DeviceCapacity", "value")})
"""Models and fields of quantities whose name says nothing."""


BY_NAME = Merge("merge", "name")
BY_TYPE = Merge("merge", "type")
CONTAINER_MERGES = {
    "env": BY_NAME,
    "ports": Merge("merge", "containerPort"),
    "volumeDevices": Merge("merge", "devicePath"),
    "volumeMounts": Merge("merge", "mountPath"),
}
CONDITION_MERGES = {"conditions": BY_TYPE}

MERGES: Mapping[str, Mapping[str, Merge]] = {
    "V1ObjectMeta": {"finalizers": Merge("merge"), "ownerReferences": Merge("merge", "uid")},
    "V1NamespaceStatus": CONDITION_MERGES,
    "V1NodeSpec": {"podCIDRs": Merge("merge")},
    "V1NodeStatus": {"addresses": BY_TYPE, **CONDITION_MERGES},
    "V1PodSpec": {
        "containers": BY_NAME,
        "ephemeralContainers": BY_NAME,
        "hostAliases": Merge("merge", "ip"),
        "imagePullSecrets": BY_NAME,
        "initContainers": BY_NAME,
        "resourceClaims": Merge("merge,retainKeys", "name"),
        "schedulingGates": BY_NAME,
        "topologySpreadConstraints": Merge("merge", "topologyKey"),
        "volumes": Merge("merge,retainKeys", "name"),
    },
    "V1Container": CONTAINER_MERGES,
    "V1EphemeralContainer": CONTAINER_MERGES,
    "V1ContainerStatus": {
        "allocatedResourcesStatus": BY_NAME,
        "volumeMounts": Merge("merge", "mountPath"),
    },
    "V1PodStatus": {
        "hostIPs": Merge("merge", "ip"),
        "podIPs": Merge("merge", "ip"),
        "resourceClaimStatuses": Merge("merge,retainKeys", "name"),
        **CONDITION_MERGES,
    },
    "V1ServiceAccount": {"secrets": BY_NAME},
    "V1ServiceSpec": {"ports": Merge("merge", "port")},
    "V1ServiceStatus": CONDITION_MERGES,
    "V1DeploymentSpec": {"strategy": Merge("retainKeys")},
    "V1DeploymentStatus": CONDITION_MERGES,
    "V1ReplicaSetStatus": CONDITION_MERGES,
    "V1ReplicationControllerStatus": CONDITION_MERGES,
    "V1StatefulSetStatus": CONDITION_MERGES,
    "V1PersistentVolumeClaimStatus": CONDITION_MERGES,
    "V1PodDisruptionBudgetStatus": CONDITION_MERGES,
    "V1CSINodeSpec": {"drivers": BY_NAME},
    "V1ResourceClaimStatus": {"reservedFor": Merge("merge", "uid")},
}
"""By model and field, as the API's types declare it (``patchStrategy``, ``patchMergeKey``)."""


JSON_TYPES: Mapping[str, frozenset[type]] = {
    "any": frozenset({bool, dict, float, int, list, str}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "string": frozenset({str}),
    "IntOrString": frozenset({int, str}),
    "Quantity": frozenset({float, int, str}),
    "Time": frozenset({str}),
}
"""What a JSON decoder may make of the values of each scalar."""

MOST_UNKNOWN = 100
"""Unknown fields that are told of, as in the API server's decoder."""

EMPTY: Mapping[str, Any] = {
    "boolean": False,
    "integer": 0,
    "string": "",
    "IntOrString": 0,
    "Quantity": "0",
}
"""What null means in the place of a value that cannot be missing."""

TIME: Any = Annotated[datetime, msgspec.Meta(tz=True)]
"""RFC 3339, as columns and controllers read it."""

GO_NAMES = {"boolean": "bool", "integer": "int64", "any": "object"}


def model_of(resource: ResourceType) -> str:
    """Return the model of a kind."""
    return model_named(resource.group, resource.version, resource.kind)


@cache
def model_named(group: str, version: str, kind: str) -> str:
    """Return what a kind's model is called; it need not exist.

    ``V1Pod``, but ``CoreV1Event``, because several groups use the same word.
    """
    name = version.capitalize() + kind
    prefix = (group or "core").split(".")[0].capitalize()
    return prefix + name if hasattr(models, prefix + name) else name


@cache
def schema(model: str) -> Schema:
    """Return the fields of a model; raises AttributeError when there is none of that name."""
    cls = getattr(models, model)
    required = _required(cls)
    merges = MERGES.get(model, {})
    fields = {
        cls.attribute_map[attribute]: Field(
            type=_parse(type_text, cls.attribute_map[attribute])
            if (model, attribute) not in QUANTITY_VALUES
            else Scalar("Quantity"),
            description=_description(getattr(cls, attribute)),
            required=attribute in required,
            merge=merges.get(cls.attribute_map[attribute]),
        )
        for attribute, type_text in cls.openapi_types.items()
    }
    return Schema(schema_name(model), fields)


def schema_name(model: str) -> str:
    """Return ``v1.Pod`` for ``V1Pod`` and ``core.v1.Event`` for ``CoreV1Event``."""
    match = re.fullmatch(r"([A-Z][a-z]+)?(V\d+[a-z0-9]*)([A-Z]\w*)", model)
    if match is None:
        raise ValueError(f"{model!r} is not the name of a model of the Kubernetes API")
    return ".".join(part for part in (match[1], match[2]) if part).lower() + f".{match[3]}"


def reachable(model: str) -> Iterator[str]:
    """Yield *model* and every model that its fields lead to, each once."""
    seen, todo = {model}, [model]
    while todo:
        current = todo.pop()
        yield current
        for each in schema(current).fields.values():
            target = target_of(each.type)
            if target is not None and target not in seen:
                seen.add(target)
                todo.append(target)


def target_of(each: Type) -> str | None:
    """Return the model at the bottom of a type; None for scalars."""
    match each:
        case Ref(model):
            return model
        case ListOf(inner) | MapOf(inner):
            return target_of(inner)
        case _:
            return None


def prune(resource: ResourceType, obj: Object) -> list[str]:
    """Take the fields out of *obj* that the kind does not have; return where they were.

    What ``fieldValidation=Strict`` refuses and ``Warn`` warns of: paths such as
    ``spec.containers[0].foo``, the first :data:`MOST_UNKNOWN` of them. Values of the wrong JSON
    type are none of its business; it does not look into them.
    """
    found: list[str] = []
    _prune(Ref(model_of(resource)), obj, "", found)
    return found


def fill_nulls(resource: ResourceType, obj: Object) -> None:
    """Put empty values in the place of null elements of lists, as decoding into Go types does.

    Null fields are for others to drop; values of the wrong JSON type are for others to refuse.
    """
    _fill(Ref(model_of(resource)), obj)


def _fill(expected: Type, value: Any) -> None:
    match expected:
        case Ref(model) if isinstance(value, dict):
            fields = schema(model).fields
            for key, child in value.items():
                if key in fields and isinstance(child, dict | list):
                    _fill(fields[key].type, child)
        case ListOf(item) if isinstance(value, list):
            for index, child in enumerate(value):
                if child is None:
                    value[index] = _empty(item)
                else:
                    _fill(item, child)
        case MapOf(item) if isinstance(value, dict):
            for child in value.values():
                _fill(item, child)


def _empty(each: Type) -> Any:
    match each:
        case Ref() | MapOf():
            return {}
        case ListOf():
            return []
        case Scalar(name):
            return EMPTY.get(name)


def misfit(resource: ResourceType, obj: Object) -> str | None:
    """Return what is wrong with the JSON type of the first value that does not fit its field.

    In the words of the API server, which decodes into Go structs: ``json: cannot unmarshal number
    into Go struct field EnvVar.spec.containers.env.value of type string``. None: all fit.
    """
    return next(_misfits(Ref(model_of(resource)), obj, "", ""), None)


def _misfits(expected: Type, value: Any, owner: str, path: str) -> Iterator[str]:
    if value is None:
        return
    match expected:
        case Ref(model) if isinstance(value, dict):
            own = schema(model)
            for key, child in value.items():
                if key in own.fields:
                    child_path = f"{path}.{key}" if path else key
                    name = own.name.rpartition(".")[2]
                    yield from _misfits(own.fields[key].type, child, name, child_path)
        case ListOf(item) if isinstance(value, list):
            for child in value:
                yield from _misfits(item, child, owner, path)
        case MapOf(item) if isinstance(value, dict):
            for child in value.values():
                yield from _misfits(item, child, owner, path)
        case Scalar("Time") if isinstance(value, str):
            if not _is_time(value):
                yield f'parsing time {quoted(value[:100])} as "2006-01-02T15:04:05Z07:00"'
        case Scalar(name) if type(value) in JSON_TYPES[name] and not _is_too_long(value):
            pass
        case _:
            where = f"struct field {owner}.{path}" if path else "value"
            found, wanted = json_type(value), go_type(expected)
            if _is_too_long(value):
                found = f"number {value}"
            yield f"json: cannot unmarshal {found} into Go {where} of type {wanted}"


def _is_time(text: str) -> bool:
    try:
        msgspec.convert(text, TIME)
    except msgspec.ValidationError:
        return False
    return True


def _is_too_long(value: Any) -> bool:
    """Tell whether a number does not fit the 64 bits that the API has for it."""
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def json_type(value: Any) -> str:
    """Return what Go calls the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case int():
            return "number"
        case float():
            return f"number {value}"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def go_type(expected: Type) -> str:
    """Return what Go calls the type of a field, as far as the models tell."""
    match expected:
        case Ref(model):
            return ".".join(schema_name(model).rsplit(".", 2)[-2:])
        case ListOf(item):
            return f"[]{go_type(item)}"
        case MapOf(value):
            return f"map[string]{go_type(value)}"
        case Scalar(name):
            return GO_NAMES.get(name, name)


def _prune(expected: Type, value: Any, path: str, found: list[str]) -> None:
    match expected:
        case Ref(model) if isinstance(value, dict):
            fields = schema(model).fields
            for key, child in list(value.items()):
                if key not in fields:
                    del value[key]
                    if len(found) < MOST_UNKNOWN:
                        found.append(f"{path}.{key}" if path else key)
                elif isinstance(child, dict | list):
                    _prune(fields[key].type, child, f"{path}.{key}" if path else key, found)
        case ListOf(Ref() as item) if isinstance(value, list):
            for index, child in enumerate(value):
                _prune(item, child, f"{path}[{index}]", found)
        case MapOf(Ref() as item) if isinstance(value, dict):
            for key, child in value.items():
                _prune(item, child, f"{path}.{key}", found)


def _parse(text: str, field: str) -> Type:
    """Read a type as the generator writes it: ``list[V1Container]``, ``dict(str, str)``."""
    if match := re.fullmatch(r"list\[(.+)\]", text):
        return ListOf(_parse(match[1], field))
    if match := re.fullmatch(r"dict\(str, (.+)\)", text):
        return MapOf(_parse(match[1], field))
    if text == "str" and field in QUANTITY_FIELDS:
        return Scalar("Quantity")
    if text == "object":
        return Scalar("any" if field in ("fieldsV1", "parameters") else "IntOrString")
    return Scalar(SCALARS[text]) if text in SCALARS else Ref(text)


def _description(attribute: property) -> str:
    """Return what a generated property says of itself, between its first and last lines."""
    _, _, rest = (attribute.__doc__ or "").partition("\n\n")
    return rest.partition(":return:")[0].replace("  # noqa: E501", "").strip()


def _required(cls: Any) -> set[str]:
    """Return the attributes that the model refuses to be without."""
    lenient, strict = Configuration(), Configuration()
    lenient.client_side_validation = False
    instance = cls(local_vars_configuration=lenient)
    instance.local_vars_configuration = strict
    required = set()
    for attribute in cls.openapi_types:
        try:
            setattr(instance, attribute, None)
        except ValueError:
            required.add(attribute)
    return required
