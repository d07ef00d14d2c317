"""The types of values in an API object: objects with fields, lists, maps and scalars.

They form a graph, made as far as somebody walks it: an object type knows its fields when it is
asked for them for the first time. Kinds that come with the server (:mod:`.builtin`) and kinds that
are defined while it runs are the same here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

ABSENT: Final[Any] = object()
"""In place of a value that is not there, where null is a value."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without fields of its own."""

    name: str
    """``string``, ``int32``, ``int64``, ``number``, ``boolean``, ``bytes`` (base64 in JSON),
    ``Time``, ``MicroTime``, ``Quantity``, ``IntOrString``; or one of :data:`ANYTHING`, whose JSON
    is not described further."""


TIMES: Final = frozenset({"MicroTime", "Time"})
"""Scalars that are points in time."""
ANYTHING = frozenset(
    {
        "FieldsV1",
        "JSON",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrStringArray",
        "RawExtension",
    }
)
"""Scalars that are any JSON."""


@dataclass(frozen=True, slots=True)
class ListOf:
    item: "Type"


@dataclass(frozen=True, slots=True)
class MapOf:
    value: "Type"
    """Keys are strings."""


class Schema:
    """An object type: named fields. Two of them are equal when they are the same object."""

    def __init__(
        self, name: str, fields: Callable[[], Mapping[str, "Field"]], *, map_type: str = ""
    ) -> None:
        """*fields* is called once, when somebody wants to know."""
        self.name = name
        """``io.k8s.api.core.v1.PodSpec``."""
        self.map_type = map_type
        """``atomic``: the object has one owner as a whole; else each field has its own."""
        self._make_fields = fields

    @cached_property
    def fields(self) -> Mapping[str, "Field"]:
        return self._make_fields()

    @property
    def go_name(self) -> str:
        """``v1.PodSpec``, as messages of the API server call it."""
        return ".".join(self.name.rsplit(".", 2)[-2:])

    @property
    def short_name(self) -> str:
        """``PodSpec``."""
        return self.name.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"Schema({self.name!r})"


Type = Scalar | ListOf | MapOf | Schema


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object type, with what is declared of it."""

    type: Type
    is_required: bool = False
    default: Any = None
    """What a missing one becomes; None: nothing. Zeros are not said."""
    enum: tuple[str, ...] = ()
    """The values it may have; empty: any."""
    list_type: str = ""
    """``map`` (by :attr:`list_keys`), ``set`` or ``atomic``: who owns what of a list when it is
    applied; empty: atomic."""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    patch_strategy: str = ""
    """Of a strategic merge patch: ``merge``, ``retainKeys``, both with a comma between, or empty: a
    list is replaced."""
    merge_key: str = ""
    """Which field identifies an item of a list that is merged; empty: the item itself does."""
    zero: Any = ABSENT
    """What the API's Go types write where it is not set: an empty object, text or list, null, 0 or
    false; ABSENT: nothing."""
    by_value: bool = False
    """Whether a zero, false or empty text is as good as missing."""
    number: tuple[int, ...] = ()
    """The number of the field in protobuf; a path where JSON has inline what is a message there.
    Empty: it is not part of the message."""
    go_type: str = ""
    """What Go calls the type of a text, of the texts in a list, or of a map, that has a name of its
    own: ``v1.PreemptionPolicy``."""
    inside: str = ""
    """The structs that Go has it embedded in, with dots between: ``VolumeSource``."""

    @property
    def omits_zero(self) -> bool:
        """Whether the API's Go types leave a zero out when they write JSON (``omitempty``)."""
        return self.by_value and self.zero is ABSENT

    @property
    def merges(self) -> bool:
        """Whether a strategic merge patch merges the list."""
        return "merge" in self.patch_strategy


def reachable(schema: Schema) -> Iterator[Schema]:
    """Yield *schema* and every object type that its fields lead to, each once."""
    seen, todo = {schema}, [schema]
    while todo:
        current = todo.pop()
        yield current
        for field in current.fields.values():
            target = object_of(field.type)
            if target is not None and target not in seen:
                seen.add(target)
                todo.append(target)


def object_of(each: Type) -> Schema | None:
    """Return the object type at the bottom of a type; None for scalars."""
    match each:
        case Schema():
            return each
        case ListOf(inner) | MapOf(inner):
            return object_of(inner)
        case _:
            return None


def objects_in(
    type_: Type, value: Any, path: str = ""
) -> Iterator[tuple[Schema, dict[str, Any], str]]:
    """Yield the objects nearest in a value of a type, itself if it is one, each with its path."""
    match type_:
        case Schema() if isinstance(value, dict):
            yield type_, value, path
        case ListOf(item):
            for index, child in enumerate(value):
                yield from objects_in(item, child, f"{path}[{index}]")
        case MapOf(item):
            for key, child in value.items():
                yield from objects_in(item, child, f"{path}[{key}]")
