"""The OpenAPI of custom resources, as their definitions say, and of the lists of all kinds.

Sources: ``apiextensions-apiserver/pkg/controller/openapi/builder``.
"""

from collections.abc import Mapping
from typing import Any, Final

from berth.cluster.custom.walk import EMBEDDED, INT_OR_STRING, PRESERVES
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
DESCRIBED_LIKE: Final = "io.k8s.api.core.v1.Pod"
"""What is said of ``apiVersion``, ``kind`` and ``metadata`` is the same of every kind."""

NOT_IN_V2: Final = frozenset({"anyOf", "oneOf", "not", "allOf", "nullable", "default"})
"""Keywords that Swagger 2.0 has not, or whose meaning is another there."""


def schemas_of(resource: ResourceType, *, v2: bool = False) -> Object:
    """Return the schemas of a custom resource and of its lists, by name.

    With *v2* they say no more than Swagger 2.0 can: clients that read it refuse the rest.
    """
    assert resource.structural is not None
    name = resource.schema.name
    root = _as_v2(resource.structural) if v2 else dict(resource.structural)
    root["properties"] = {**(root.get("properties") or {}), **_of_every_object()}
    root["x-kubernetes-group-version-kind"] = [_gvk(resource, resource.kind)]
    return {name: root, **schema_of_list(resource)}


def schema_of_list(resource: ResourceType) -> Object:
    """Return the schema of the lists of a kind, by its name."""
    name = resource.schema.name
    said = builtin.descriptions(DESCRIBED_LIKE)
    listed: Object = {
        "description": f"{resource.kind_of_list} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": said.get("apiVersion", ""), "type": "string"},
            "items": {
                "description": f"List of {resource.plural}. More info: https://git.k8s.io/"
                "community/contributors/devel/sig-architecture/api-conventions.md",
                "type": "array",
                "items": _ref(name),
            },
            "kind": {"description": said.get("kind", ""), "type": "string"},
            "metadata": {**_described_ref("ListMeta"), "description": said.get("metadata", "")},
        },
        "x-kubernetes-group-version-kind": [_gvk(resource, resource.kind_of_list)],
    }
    prefix = name.removesuffix(resource.kind)
    return {prefix + resource.kind_of_list: listed}


def _of_every_object() -> Object:
    said = builtin.descriptions(DESCRIBED_LIKE)
    return {
        "apiVersion": {"description": said.get("apiVersion", ""), "type": "string"},
        "kind": {"description": said.get("kind", ""), "type": "string"},
        "metadata": {**_described_ref("ObjectMeta"), "description": said.get("metadata", "")},
    }


def _described_ref(name: str) -> Object:
    return {"allOf": [_ref(META + name)]}


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _gvk(resource: ResourceType, kind: str) -> Object:
    return {"group": resource.group, "kind": kind, "version": resource.version}


def _as_v2(schema: Mapping[str, Any]) -> Object:
    """Return what Swagger 2.0 can say of a schema (``ToStructuralOpenAPIV2``)."""
    found: Object = {key: value for key, value in schema.items() if key not in NOT_IN_V2}
    if schema.get(INT_OR_STRING) or schema.get("nullable"):
        found.pop("type", None)
    if schema.get(PRESERVES):
        for key in ("items", "properties", "type"):
            if not schema.get(EMBEDDED) or key != "type":
                found.pop(key, None)
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _as_v2(found[key])
    if isinstance(found.get("properties"), dict):
        found["properties"] = {key: _as_v2(each) for key, each in found["properties"].items()}
    return found
