"""JSON schemas for ``/openapi.json`` of what Pydantic does not read for us."""

from typing import Any

Schema = dict[str, Any]


def inlined(schema: Schema) -> Schema:
    """Put every definition where it is referred to; none refers to itself."""
    definitions = schema.pop("$defs", {})

    def resolved(part: Any) -> Any:
        if isinstance(part, list):
            return [resolved(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            of = definitions[part["$ref"].removeprefix("#/$defs/")]
            return resolved({**of, **{key: part[key] for key in part if key != "$ref"}})
        return {key: resolved(value) for key, value in part.items()}

    whole: Schema = resolved(schema)
    return whole
