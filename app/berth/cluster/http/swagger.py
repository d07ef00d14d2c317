"""OpenAPI 3.0 documents in the older form, Swagger 2.0."""

from typing import Any

from berth.cluster.resources import Object

PROTOBUF_TYPES = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)
"""Two names for the same. kubectl asks by the second, which is not a valid media type, and can read
an answer only under the first."""


def from_v3(document: Object) -> Object:
    """Return what *document* says, as Swagger 2.0 says it.

    Knows what :mod:`berth.cluster.http.openapi` writes: references stand alone or in an ``allOf``
    of one.
    """
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": {path: _path_item(item) for path, item in document["paths"].items()},
        "definitions": _schema(document["components"]["schemas"]),
    }


def _path_item(item: Object) -> Object:
    return {
        key: [_parameter(each) for each in value] if key == "parameters" else _operation(value)
        for key, value in item.items()
    }


def _operation(operation: Object) -> Object:
    found = {key: value for key, value in operation.items() if key != "requestBody"}
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        content = body["content"]
        found["consumes"] = list(content)
        schema = _schema(next(iter(content.values()))["schema"])
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
    if parameters:
        found["parameters"] = parameters
    return found


def _parameter(parameter: Object) -> Object:
    rest = {key: value for key, value in parameter.items() if key != "schema"}
    return {**rest, **parameter["schema"]}


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    combined = {key for key in ("allOf", "oneOf") if isinstance(value.get(key), list)}
    found = {key: _schema(each) for key, each in value.items() if key not in combined}
    reference = value.get("$ref")
    if isinstance(reference, str):
        found["$ref"] = reference.replace("#/components/schemas/", "#/definitions/")
    if "allOf" in combined:
        for each in value["allOf"]:
            found |= _schema(each)
    if "oneOf" in combined:
        found["type"] = "string"  # quantities, and ports that have a name or a number
    return found
