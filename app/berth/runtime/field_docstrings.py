"""JSON schemas that have the docstrings of fields as descriptions."""

import ast
import inspect
import sys
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


class DescribedFields:
    """A base of models and dataclasses, whose docstrings are read when Pydantic makes a schema.

    Its ``use_attribute_docstrings`` reads the source of every class as it is made: a good part of
    the start of a process, which seldom shows a schema.
    """

    __slots__ = ()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        texts: dict[str, str] = {}
        for kind in reversed(cls.__mro__[: cls.__mro__.index(DescribedFields)]):
            texts |= _docstrings(kind.__module__).get(kind.__name__, {})
        for field, described in zip(_fields(cls), properties.values(), strict=True):
            if field in texts:
                described.setdefault("description", texts[field])
        return schema


def _fields(kind: type) -> Iterable[str]:
    """Return the names of the fields, in the order of the properties."""
    of_model: Iterable[str] | None = getattr(kind, "model_fields", None)
    return [field.name for field in fields(kind)] if of_model is None else of_model


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of each class, by the names of both."""
    found: dict[str, dict[str, str]] = {}
    for kind in ast.parse(inspect.getsource(sys.modules[module])).body:
        for pair in pairwise(kind.body if isinstance(kind, ast.ClassDef) else ()):
            match kind, pair:
                case (
                    ast.ClassDef(name=name),
                    (
                        ast.AnnAssign(target=ast.Name(id=field)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ),
                ):
                    found.setdefault(name, {})[field] = inspect.cleandoc(text)
    return found
