"""Lists that are sets, or maps with keys, have nothing twice (``schema/listtype``)."""

import json
from collections.abc import Iterator
from typing import Any

from berth.cluster.custom.validation import ABSENT, keys_of
from berth.cluster.custom.walk import LIST_KEYS, LIST_TYPE, Schema, child, field_of, items
from berth.kube import field_errors
from berth.kube.field_errors import FieldError


def duplicates(
    schema: Schema, value: Any, before: Any = ABSENT, path: str = ""
) -> Iterator[FieldError]:
    """Yield an error for every item that is there a second time, but for what was so *before*."""
    if before is not ABSENT and before == value:
        return
    if isinstance(value, dict):
        was = before if isinstance(before, dict) else {}
        for key, item in value.items():
            below = field_of(schema, key) if isinstance(item, dict | list) else None
            if below is not None:
                yield from duplicates(below, item, was.get(key, ABSENT), child(path, key))
    elif isinstance(value, list):
        yield from _repeated(schema, value, path)
        below = items(schema)
        if below is not None:
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    yield from duplicates(below, item, ABSENT, f"{path}[{index}]")


def _repeated(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    kind, keys = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or ()
    seen: set[Any] = set()
    for index, item in enumerate(value):
        match kind:
            case "set":
                identity: Any = json.dumps(item, sort_keys=True)
            case "map":
                identity = keys_of(item, keys)
            case _:
                return
        if identity in seen:
            said = {key: item.get(key) for key in keys} if kind == "map" else item
            yield field_errors.duplicate(f"{path}[{index}]", said)
        seen.add(identity)
