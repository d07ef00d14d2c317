"""JSON values as Go writes them with ``%+v``, which is how the API server shows patches."""

from typing import Any


def plus_v(value: Any) -> str:
    """Return ``map[spec:map[replicas:2]]`` for ``{"spec": {"replicas": 2}}``."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{key}:{plus_v(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(plus_v, value))}]"
    return str(value)


def kind_of(value: Any) -> str:
    """Return what Go decodes such a JSON value to."""
    kinds = {
        bool: "bool",
        int: "int64",
        float: "float64",
        str: "string",
        dict: "map",
        list: "slice",
    }
    return kinds.get(type(value), "invalid")
