"""The extender API v1 for ``/openapi.json``. What we answer is described by its own types."""

from typing import Any, Final

import msgspec

from berth.service.extender_server import wire
from berth.service.server.json_schema import Schema, inlined

_STRING: Final[Schema] = {"type": "string", "minLength": 1}
_OBJECT: Final[Schema] = {"type": "object"}
_POD: Final[Schema] = {
    "description": "a Pod, as the API server has it",
    "type": "object",
    "properties": {"metadata": {"type": "object", "properties": {"name": _STRING}}},
    "required": ["metadata"],
}
_ARGS: Final[Schema] = {
    "description": "ExtenderArgs: Nodes, or NodeNames when nodeCacheCapable",
    "type": "object",
    "properties": {
        "Pod": _POD,
        "Nodes": {"anyOf": [_OBJECT, {"type": "null"}]},
        "NodeNames": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    },
    "required": ["Pod"],
}
_QUESTIONS: Final[dict[str, Schema]] = {
    "filter": _ARGS,
    "prioritize": _ARGS,
    "preempt": {
        "description": "ExtenderPreemptionArgs: NodeNameToMetaVictims when nodeCacheCapable",
        "type": "object",
        "properties": {
            "Pod": _POD,
            "NodeNameToVictims": {"anyOf": [_OBJECT, {"type": "null"}]},
            "NodeNameToMetaVictims": {"anyOf": [_OBJECT, {"type": "null"}]},
        },
        "required": ["Pod"],
    },
    "bind": {
        "description": "ExtenderBindingArgs",
        "type": "object",
        "properties": dict.fromkeys(("PodNamespace", "PodName", "PodUID", "Node"), _STRING),
        "required": ["PodNamespace", "PodName", "PodUID", "Node"],
    },
}
_ANSWERS: Final[dict[str, Any]] = {
    "filter": wire.ExtenderFilterResult,
    "prioritize": list[wire.HostPriority],
    "preempt": wire.ExtenderPreemptionResult,
    "bind": wire.ExtenderBindingResult,
}


def described(verb: str) -> Schema:
    """Return what the OpenAPI operation of *verb* says of its body and its answer."""
    return {
        "requestBody": {"required": True, "content": _json(_QUESTIONS[verb])},
        "responses": {
            "200": {
                "description": "Success; `Error` contains problems with the pod",
                "content": _json(inlined(msgspec.json.schema(_ANSWERS[verb]))),
            }
        },
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
