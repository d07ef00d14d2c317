"""``additionalPrinterColumns``: the cells of ``kubectl get``.

Source: ``apiextensions-apiserver/pkg/registry/customresource/tableconvertor``.
"""

from typing import Any, Final

import msgspec

from berth.cluster.columns.cells import COMMON, Cell, Since
from berth.cluster.custom.walk import Schema
from berth.cluster.json_path import JsonPath
from berth.cluster.resources import Column
from berth.cluster.schemas import builtin
from berth.cluster.times import seconds_of

_OF_ANY: Final = {each.name: each.description for each in builtin.kinds()[0].columns}
NAME: Final = Column("Name", "string", COMMON["Name"], format="name", description=_OF_ANY["Name"])
AGE: Final = Column("Age", "date", COMMON["Age"], description=_OF_ANY["Age"])


def columns(declared: list[Schema] | None) -> tuple[Column, ...]:
    """Return the columns of a version; with none declared, the age."""
    if not declared:
        return (NAME, AGE)
    return (
        NAME,
        *(
            Column(
                each["name"],
                each["type"],
                _cell(each["jsonPath"], each["type"]),
                each.get("format") or "",
                each.get("priority") or 0,
                each.get("description")
                or f"Custom resource definition column (in JSONPath format): {each['jsonPath']}",
            )
            for each in declared
        ),
    )


def _cell(path: str, kind: str) -> Cell:
    compiled = JsonPath(path)
    return lambda obj: _shown(compiled.first(obj), kind)


def _shown(value: Any, kind: str) -> Any:
    """Return what a cell says; None, an empty one, when the value is of another type."""
    match kind, value:
        case _, None:
            return None
        case "string", _:
            return _text(value)
        case "boolean", bool():
            return value
        case "integer" | "number", bool():
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return float(value)
        case "date", str():
            return _since(value)
        case _:
            return None


def _since(value: str) -> Any:
    try:
        seconds_of(value)
    except ValueError:
        return "<invalid>"
    return Since(value)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return msgspec.json.encode(value).decode()
