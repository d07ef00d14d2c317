"""Empty lists and maps: the API's Go types leave them out when they write JSON (``omitempty``)."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from berth.cluster.schemas.types import ABSENT, Field, ListOf, MapOf, Schema, Type, object_of

WRITTEN: Final = frozenset(
    {
        ("CSINodeDriver", "topologyKeys"),
        ("ClusterRole", "rules"),
        ("CustomResourceDefinitionStatus", "conditions"),
        ("CustomResourceDefinitionStatus", "storedVersions"),
        ("EndpointSlice", "endpoints"),
        ("EndpointSlice", "ports"),
        ("HorizontalPodAutoscalerStatus", "currentMetrics"),
        ("Role", "rules"),
    }
)
"""Lists that are optional and written all the same (``types.go`` of each group)."""

_EMPTY: Final = re.compile(rb"\[\s*\]|\{\s*\}")


def has_empties(json: bytes) -> bool:
    """Whether there is an empty list or object in a JSON text, or what looks like one."""
    return _EMPTY.search(json) is not None


def drop_empties(schema: Schema, obj: Any) -> None:
    """Remove the empty lists and maps of *obj*, in place, that would not be written.

    Objects of fixed fields stay: ``emptyDir: {}`` says something.
    """
    _drop(schema, obj)


def _drop(expected: Type, value: Any) -> None:
    match expected:
        case Schema() if isinstance(value, dict):
            plan = _plan(expected)
            for name in plan.omitted & value.keys():
                if value[name] == [] or value[name] == {}:
                    del value[name]
            for name in plan.below.keys() & value.keys():
                _drop(plan.below[name], value[name])
        case ListOf(item) if isinstance(value, list):
            for child in value:
                _drop(item, child)
        case MapOf(item) if isinstance(value, dict):
            for child in value.values():
                _drop(item, child)


class _Plan(NamedTuple):
    """What is to be done with the fields of an object type."""

    omitted: frozenset[str]
    """Left out when they are empty."""
    below: Mapping[str, Type]
    """Those in which there are fields."""


@cache
def _plan(schema: Schema) -> _Plan:
    fields = schema.fields.items()
    return _Plan(
        frozenset(name for name, field in fields if _is_omitted(schema, name, field)),
        {name: field.type for name, field in fields if object_of(field.type) is not None},
    )


def _is_omitted(schema: Schema, name: str, field: Field) -> bool:
    is_collection = isinstance(field.type, ListOf | MapOf)
    return is_collection and field.zero is ABSENT and (schema.short_name, name) not in WRITTEN
