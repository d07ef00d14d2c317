"""Compile the published description of Kubernetes' API into the data files of this package.

    python -m berth.cluster.schemas.compile FOLDER RECORDED...

FOLDER has three gzipped JSON files of each release: ``kubernetes-1.37-openapi.json.gz``, every
OpenAPI v3 schema by its full name (``schemas``); ``-discovery``, what a server serves by default
with the columns of its tables (``resources``, ``columns``); and ``-protobuf``, the numbers of
protobuf fields (message → field → number, label, type). Only what the served kinds, and those of
:data:`GATED`, lead to is kept. The others are gzipped lines of JSON, each a request and a real
server's answer: their tables say what the columns are described as. Descriptions of fields come
from the models of kubernetes-asyncio; those of object types, and of fields that it does not know,
from lightkube's. Both are generated from the same OpenAPI document (Apache License 2.0).

``go-types.json.gz`` beside this file has what OpenAPI does not tell: of each object type its fields
as Go declares them, in that order, each with its Go type, whether it is left out when it is empty
(``omitempty``, ``omitzero``), and the structs that it is embedded in. It was read from the type
information that Go programs carry, one with Kubernetes' API 0.37 in it; those of APIService are
written by hand. Types that it does not have are in the order of OpenAPI; fields that a release does
not have are passed over.
"""

import gzip
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from berth.cluster.resource_paths import parse_path
from berth.runtime.release import RELEASES

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
MORE_ROOTS: Final = ("DeleteOptions", "ListMeta", "Status", "WatchEvent")
"""Object types of no kind that requests and answers carry."""

GATED: Final = (
    "io.k8s.api.scheduling.v1alpha3.CompositePodGroup",
    "io.k8s.api.scheduling.v1alpha3.PodGroup",
    "io.k8s.api.scheduling.v1alpha3.Workload",
    "io.k8s.api.scheduling.v1beta1.PodGroup",
    "io.k8s.api.scheduling.v1beta1.Workload",
)
"""Kinds that are served with a feature gate on, if the description of the release has them."""

SCALARS: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": (
        "JSONSchemaPropsOrArray"
    ),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": (
        "JSONSchemaPropsOrBool"
    ),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": (
        "JSONSchemaPropsOrStringArray"
    ),
}
"""Types whose JSON is not an object with fields."""

PLAIN_SCALARS: Final = {
    ("boolean", None): "boolean",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "number",
    ("string", None): "string",
    ("string", "byte"): "bytes",
}

Json = dict[str, Any]


def main(folder: Path, *recorded: Path) -> None:
    """Write the data files beside this one."""
    here, texts = Path(__file__).parent, dict(column_descriptions(recorded))
    go_types = _read(here / "go-types.json.gz")
    known: Json = {}
    for release in RELEASES:
        published, served, messages = (
            _read(folder / f"kubernetes-{release}-{part}.json.gz")
            for part in ("openapi", "discovery", "protobuf")
        )
        schemas = compiled(published["schemas"], served["resources"], messages, go_types)
        data = {
            "release": published["release"],
            "schemas": schemas,
            "resources": served["resources"],
            "columns": described(served["columns"], texts),
        }
        _write(here / f"kubernetes-{release}.json.gz", data)
        for name, schema in schemas.items():
            known.setdefault(name, {"fields": {}})["fields"] |= schema["fields"]
    _write(here / "descriptions.json.gz", descriptions(dict(sorted(known.items()))))


def column_descriptions(recorded: Iterable[Path]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the description of each column of the tables in *recorded*, by plural and name."""
    for path in recorded:
        for line in gzip.decompress(path.read_bytes()).splitlines():
            said = json.loads(line)
            parsed, answer = parse_path(said["path"]), said["response"]
            events = answer.get("events") if isinstance(answer, dict) else ()
            for table in (answer, *(obj for _, obj in events or ())):
                if parsed and isinstance(table, dict) and table.get("kind") == "Table":
                    for column in table["columnDefinitions"] or ():
                        yield (parsed.resource, column["name"]), column["description"]


def described(columns: Json, texts: Mapping[tuple[str, str], str]) -> Json:
    """Return *columns* with what each is described as.

    The name, and when an object was made, are the same for all kinds. Columns of kinds that no
    recording shows have no description.
    """
    common = {
        name: Counter(text for (_, each), text in texts.items() if each == name).most_common(1)
        for name in ("Name", "Age")
    }
    usual = {name: found[0][0] for name, found in common.items() if found}
    usual["Created At"] = usual.get("Age", "")
    return {
        path: [
            {
                **each,
                "description": texts.get((path.split("/")[-1], each["name"]))
                or usual.get(each["name"], ""),
            }
            for each in of_kind
        ]
        for path, of_kind in columns.items()
    }


def compiled(schemas: Json, resources: Json, messages: Json, go_types: Json) -> Json:
    """Return the schemas that *resources* lead to, in the form of the data file."""
    found: Json = {}
    todo = [*roots(schemas, resources), *(META + each for each in MORE_ROOTS)]
    todo += [name for name in GATED if name in schemas]
    while todo:
        name = todo.pop()
        if name in found or name in SCALARS:
            continue
        found[name] = _schema(name, schemas[name], messages, go_types.get(name, ()))
        todo += references(schemas[name])
    return dict(sorted(found.items()))


def roots(schemas: Json, resources: Json) -> Iterator[str]:
    """Yield the schemas of the kinds, and of what their subresources speak."""
    by_kind = {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in schemas.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }
    for path, resource in resources.items():
        group, version, _ = path.split("/") if path.count("/") == 2 else ("", *path.split("/"))
        yield by_kind[group, version, resource["kind"]]
        for subresource in resource["subresources"]:
            kind = subresource["kind"]
            spoken = (kind["group"] or group, kind["version"] or version, kind["kind"])
            if spoken in by_kind:  # the options of exec and its like are query parameters
                yield by_kind[spoken]


def references(node: Any) -> Iterator[str]:
    """Yield the names of the schemas that *node* refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield _referred(node)
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def _referred(node: Json) -> str:
    return str(node["$ref"]).rpartition("/")[2]


class GoField(NamedTuple):
    """A field as Go declares it."""

    name: str
    """In JSON."""
    type: str
    """``*v1.PreemptionPolicy``."""
    omit: str
    """``omitempty``, ``omitzero`` or empty."""
    inside: str
    """The embedded structs on the way to it, with dots between."""


def _schema(name: str, schema: Json, messages: Json, go_fields: Iterable[list[str]]) -> Json:
    numbers = dict(_numbers(_message_name(name), messages))
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    declared = {go.name: go for go in itertools.starmap(GoField, go_fields)}
    fields = {}
    for field in [*(field for field in declared if field in properties), *properties]:
        if field in fields:
            continue
        node = properties[field]
        entry = _field(node, declared.get(field), is_required=field in required)
        if field not in ("apiVersion", "kind") or "x-kubernetes-group-version-kind" not in schema:
            entry["number"] = numbers[_spelled(field)]
        fields[field] = entry
    found: Json = {"fields": fields}
    if kinds := schema.get("x-kubernetes-group-version-kind"):
        found["kinds"] = [[kind["group"], kind["version"], kind["kind"]] for kind in kinds]
    if map_type := schema.get("x-kubernetes-map-type"):
        found["map_type"] = map_type
    if unions := schema.get("x-kubernetes-unions"):
        found["unions"] = unions
    return found


def _field(node: Json, go: GoField | None, *, is_required: bool) -> Json:
    type_ = _type(node)
    entry: Json = {"type": type_}
    if is_required:
        entry["required"] = True
    if node.get("default"):
        entry["default"] = node["default"]
    for key, extension in (
        ("enum", "enum"),
        ("list_type", "x-kubernetes-list-type"),
        ("list_keys", "x-kubernetes-list-map-keys"),
        ("map_type", "x-kubernetes-map-type"),
        ("strategy", "x-kubernetes-patch-strategy"),
        ("merge_key", "x-kubernetes-patch-merge-key"),
    ):
        if extension in node:
            entry[key] = node[extension]
    if go is None:
        go = GoField("", "", "" if is_required else "omitempty", "")
    is_pointer = go.type.startswith("*")
    if type_ in ZEROS and not is_pointer:
        entry["by_value"] = True
    zero = _zero(type_, go.omit, is_pointer=is_pointer)
    if zero is not _NOTHING:
        entry["zero"] = zero
    named = go.type.removeprefix("*")
    if type_.removeprefix("[]") == "string" and named.removeprefix("[]") not in ("", "string"):
        entry["go_type"] = named.removeprefix("[]")
    elif type_.startswith("map[]") and "." in named and not named.startswith("map["):
        entry["go_type"] = named
    if go.inside and go.inside != "TypeMeta":
        entry["inside"] = go.inside
    return entry


ZEROS: Final = {"boolean": False, "int32": 0, "int64": 0, "number": 0, "string": ""}
"""Of scalars that Go has itself."""
_NOTHING: Final = object()


def _zero(type_: str, omit: str, *, is_pointer: bool) -> Any:
    """Return what Go writes for a field that is not set.

    ``omitempty`` leaves no struct out, and times are structs.
    """
    has_null = is_pointer or type_.startswith(("[]", "map[]"))
    if omit == "omitzero" or (omit and (has_null or type_ in ZEROS)):
        return _NOTHING
    if has_null or type_ in ("MicroTime", "Time"):
        return None
    if "." in type_:
        return {}
    return "0" if type_ == "Quantity" else ZEROS.get(type_, _NOTHING)


def _type(node: Json) -> str:
    """Write a type as the data file has it: ``[]string``, ``map[]Quantity``, a schema's name."""
    match node:
        case {"$ref": str()}:
            name = _referred(node)
            return SCALARS.get(name, name)
        case {"allOf": [inner]}:
            return _type(inner)
        case {"type": "array"}:
            return f"[]{_type(node['items'])}"
        case {"type": "object", "additionalProperties": values}:
            return f"map[]{_type(values)}"
        case _:
            return PLAIN_SCALARS[node["type"], node.get("format")]


def _message_name(schema: str) -> str:
    """Return what protobuf calls a schema: ``io.k8s.api…`` is ``k8s.io.api…``."""
    return schema.replace("io.k8s.", "k8s.io.", 1).replace("-", "_")


def _spelled(name: str) -> str:
    """Return what the names of a field in JSON and in protobuf have in common."""
    return re.sub("[^a-z0-9]", "", name.lower())


def _numbers(message: str, messages: Json) -> Iterator[tuple[str, list[int]]]:
    """Yield the fields of a message with their numbers.

    What JSON has inline, protobuf has in messages inside: the number is a path then.
    """
    for name, (number, label, type_text) in messages[message].items():
        yield _spelled(name), [number]
        inner = f"{message.rpartition('.')[0]}.{type_text}"
        if label != "repeated" and inner in messages and inner != message:
            for below, path in _inlined(inner, messages):
                yield below, [number, *path]


def _inlined(message: str, messages: Json) -> Iterator[tuple[str, list[int]]]:
    """Yield the fields of a message that may be inline in JSON: the outer one's own win."""
    if message.rpartition(".")[2] in INLINE:
        yield from _numbers(message, messages)


INLINE: Final = frozenset(
    {
        "DeviceConfiguration",
        "EphemeralContainerCommon",
        "IngressRuleValue",
        "LocalObjectReference",
        "PersistentVolumeSource",
        "ProbeHandler",
        "Rule",
        "RuleWithOperations",
        "VolumeSource",
    }
)
"""Go's embedded structs."""


def descriptions(schemas: Mapping[str, Json]) -> Json:
    """Return what is said of object types, and of their fields by type and field."""
    types: Json = {}
    fields = _said_of_fields(schemas)
    for name, schema in schemas.items():
        text, _, parameters = _docstring(name).partition("**parameters**")
        if text := _in_paragraphs(text):
            types[name] = text
        for field, said in _PARAMETER.findall(parameters):
            if field in schema["fields"]:
                fields.setdefault(name, {}).setdefault(field, _in_paragraphs(said))
    return {"types": types, "fields": fields}


_PARAMETER: Final = re.compile(
    r"^ *\* \*\*(\w+)\*\* ``[^`]*`` - (.*?)(?=^ *\* \*\*|\Z)", re.MULTILINE | re.DOTALL
)


def _docstring(schema: str) -> str:
    """Return what lightkube's model of an object type says; "" without a model."""
    *_, group, version, kind = schema.split(".")
    try:
        module = import_module(f"lightkube.models.{group}_{version}")
    except ModuleNotFoundError:
        return ""
    return getattr(module, kind, None).__doc__ or ""


def _in_paragraphs(text: str) -> str:
    paragraphs = (" ".join(each.split()) for each in text.split("\n\n"))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _said_of_fields(schemas: Iterable[str]) -> Json:
    from kubernetes_asyncio.client import models

    found: Json = {}
    for schema in schemas:
        model = next((m for m in _model_names(schema) if hasattr(models, m)), None)
        if model is None:
            continue
        cls = getattr(models, model)
        said = {
            cls.attribute_map[attribute]: _said(getattr(cls, attribute))
            for attribute in cls.openapi_types
        }
        found[schema] = {field: text for field, text in said.items() if text}
    return found


def _model_names(schema: str) -> Iterator[str]:
    """Yield what a model may be called: ``CoreV1Event`` where groups share a word."""
    *_, group, version, kind = schema.split(".")
    yield group.capitalize() + version.capitalize() + kind
    yield version.capitalize() + kind


def _said(attribute: property) -> str:
    """Return what a generated property says of itself, between its first and last lines."""
    _, _, rest = (attribute.__doc__ or "").partition("\n\n")
    return rest.partition(":return:")[0].replace("  # noqa: E501", "").strip()


def _read(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def _write(path: Path, data: Any) -> None:
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
