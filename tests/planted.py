"""Objects with a secret of its own in every field that can hold one, as the API's schemas say."""

import base64
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import ANYTHING, Field, ListOf, MapOf, Scalar, Schema, Type

MARK: Final = "SECRET"
DEEPEST: Final = 12
"""Fields within each other, of schemas that contain themselves."""
LEFT_OUT: Final = frozenset(
    {
        "metadata.deletionTimestamp",
        "metadata.finalizers",
        "spec.schedulingGates",
        "status.nominatedNodeName",
    }
)
"""What would keep an object from being decided about."""


_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except ValueError:
        return ""


class Planter:
    """Makes objects, and remembers which secret is in which field."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.field_of: dict[str, str] = {}
        """By secret: kind and path, with ``[]`` for items and ``{}`` for keys and values of maps.
        """

    def plant(self, group: str, version: str, kind: str, **fields: Any) -> dict[str, Any]:
        """Return an object with a secret in each field but those that *fields* give, by path.

        Dots of a path are written ``__``, as in ``spec__nodeName``. None: the field is left out.
        """
        schema = builtin.schema_of(group, version, kind)
        assert schema is not None, (group, version, kind)
        given = {path.replace("__", "."): value for path, value in fields.items()}
        made: dict[str, Any] = self._object(schema, kind, "", given, ())
        return made | {"kind": kind, "apiVersion": f"{group}/{version}" if group else version}

    def found_in(self, text: str) -> Iterator[str]:
        """Yield the fields whose secrets *text* has, as they are or in base64."""
        text += "".join(map(_decoded, _BASE64.findall(text)))
        for secret, field in self.field_of.items():
            if secret in text:
                yield field

    def _secret(self, field: str) -> str:
        secret = f"{MARK}-{next(self._numbers)}-"
        self.field_of[secret] = field
        return secret

    def _object(
        self, schema: Schema, kind: str, path: str, given: dict[str, Any], above: tuple[Schema, ...]
    ) -> dict[str, Any]:
        made = {}
        for name, field in schema.fields.items():
            here = f"{path}.{name}".lstrip(".")
            if here in given:
                if given[here] is not None:
                    made[name] = given[here]
            elif here not in LEFT_OUT and len(above) < DEEPEST and schema not in above:
                made[name] = self._value(field.type, field, kind, here, given, (*above, schema))
        return made

    def _value(
        self,
        type_: Type,
        field: Field,
        kind: str,
        path: str,
        given: dict[str, Any],
        above: tuple[Schema, ...],
    ) -> Any:
        match type_:
            case ListOf(item):
                return [self._value(item, field, kind, f"{path}[]", given, above)]
            case MapOf(value):
                key = self._secret(f"{kind}.{path}{{}}")
                return {key: self._value(value, field, kind, f"{path}{{}}", given, above)}
            case Scalar("string" | "bytes" | "IntOrString"):
                return field.enum[0] if field.enum else self._secret(f"{kind}.{path}")
            case Scalar("Time" | "MicroTime"):
                return "2026-01-01T00:00:00Z"
            case Scalar("Quantity"):
                return "1"
            case Scalar("boolean"):
                return False
            case Scalar(name) if name in ANYTHING:
                return {self._secret(f"{kind}.{path}{{}}"): self._secret(f"{kind}.{path}{{}}")}
            case Scalar():
                return 1
            case _:
                return self._object(type_, kind, path, given, above)
