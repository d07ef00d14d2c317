"""Swagger 2.0 as protobuf: the message ``openapi.v2.Document`` of gnostic (``OpenAPIv2.proto``).

Keywords that it has no field for are left out, as they are when gnostic reads JSON.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from berth.cluster.resources import Object

Write = Callable[[Any], bytes]
"""Returns a value behind the tag of its field: with its length, if it has one."""

_VARINT, _DOUBLE, _BYTES = 0, 1, 2


def as_protobuf(document: Object) -> bytes:
    """Return the message of a document of Swagger 2.0."""
    return b"".join(_fields(DOCUMENT, document))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _sized(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _sized(content)


class Message:
    """A message: which field each keyword is, and where those go that begin with ``x-``."""

    def __init__(self, *, extensions: int = 0) -> None:
        self.keywords: dict[str, tuple[int, int, Write]] = {}
        """By keyword: the number of the field, its wire type, and what writes a value."""
        self.extensions = extensions

    def has(self, wire: int, write: Write, **numbers: int) -> None:
        """Add fields, by keyword; that of ``$ref`` is called ``ref``, of ``in`` ``in_``."""
        for name, number in numbers.items():
            keyword = {"ref": "$ref", "in_": "in"}.get(name, name)
            self.keywords[keyword] = (number, wire, write)


def _fields(message: Message, obj: Mapping[str, Any]) -> Iterator[bytes]:
    for keyword, value in obj.items():
        found = message.keywords.get(keyword)
        if found is not None:
            number, wire, write = found
            tag = _varint(number << 3 | wire)
            for each in value if isinstance(value, list) else (value,):
                yield tag + write(each)
        elif message.extensions and keyword.startswith("x-"):
            yield _field(message.extensions, _field(1, keyword.encode()) + _field(2, _any(value)))


def _any(value: Any) -> bytes:
    """Return an ``Any``, which has its value as YAML; JSON is that."""
    return _field(2, msgspec.json.encode(value) + b"\n")


def _text(value: str) -> bytes:
    return _sized(value.encode())


def _of(message: Message, *wrappers: int) -> Write:
    """Return what writes a message within others, whose only field it is."""

    def write(value: Mapping[str, Any]) -> bytes:
        content = b"".join(_fields(message, value))
        for number in wrappers:
            content = _field(number, content)
        return _sized(content)

    return write


def _named(number: int, write: Write) -> Write:
    """Return what writes an object as a list of names and values, in the field *number*."""

    def write_all(value: Mapping[str, Any]) -> bytes:
        value_tag = _varint(2 << 3 | _BYTES)
        entries = (
            _field(1, name.encode()) + value_tag + write(each) for name, each in value.items()
        )
        return _sized(b"".join(_field(number, entry) for entry in entries))

    return write_all


DOCUMENT: Final = Message(extensions=16)
_INFO: Final = Message(extensions=7)
_PATH: Final = Message(extensions=10)
_OPERATION: Final = Message(extensions=13)
_RESPONSE: Final = Message(extensions=5)
_BODY: Final = Message(extensions=6)
_IN_PATH: Final = Message(extensions=22)
_IN_QUERY: Final = Message(extensions=23)
_SCHEMA: Final = Message(extensions=31)


def _parameter(value: Mapping[str, Any]) -> bytes:
    """Write a ParametersItem."""
    match value["in"]:
        case "body":
            return _of(_BODY, 1, 1)(value)
        case "path":
            return _of(_IN_PATH, 4, 2, 1)(value)
        case _:
            return _of(_IN_QUERY, 3, 2, 1)(value)


def _additional(value: Any) -> bytes:
    """Write an AdditionalPropertiesItem."""
    if isinstance(value, dict):
        return _of(_SCHEMA, 1)(value)
    return _sized(_varint(2 << 3 | _VARINT) + _varint(bool(value)))


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


DOCUMENT.has(_BYTES, _text, swagger=1)
DOCUMENT.has(_BYTES, _of(_INFO), info=2)
DOCUMENT.has(_BYTES, _named(2, _of(_PATH)), paths=8)
DOCUMENT.has(_BYTES, _named(1, _of(_SCHEMA)), definitions=9)
_INFO.has(_BYTES, _text, title=1, version=2, description=3)
_PATH.has(_BYTES, _of(_OPERATION), get=2, put=3, post=4, delete=5, options=6, head=7, patch=8)
_PATH.has(_BYTES, _parameter, parameters=9)
_OPERATION.has(_BYTES, _text, tags=1, description=3, operationId=5, produces=6, consumes=7)
_OPERATION.has(_BYTES, _parameter, parameters=8)
_OPERATION.has(_BYTES, _named(1, _of(_RESPONSE, 1)), responses=9)
_RESPONSE.has(_BYTES, _text, description=1)
_BODY.has(_BYTES, _text, description=1, name=2, in_=3)
_BODY.has(_VARINT, _varint, required=4)
_BODY.has(_BYTES, _of(_SCHEMA), schema=5)
_IN_PATH.has(_VARINT, _varint, required=1)
_IN_PATH.has(_BYTES, _text, in_=2, description=3, name=4, type=5, format=6)
_IN_QUERY.has(_VARINT, _varint, required=1)
_IN_QUERY.has(_BYTES, _text, in_=2, description=3, name=4, type=6, format=7)
_SCHEMA.has(_BYTES, _text, ref=1, format=2, title=3, description=4, pattern=13, required=19)
_SCHEMA.has(_BYTES, lambda value: _sized(_any(value)), default=5, enum=20, example=30)
_SCHEMA.has(_DOUBLE, _double, multipleOf=6, maximum=7, minimum=9)
_SCHEMA.has(_VARINT, _varint, exclusiveMaximum=8, exclusiveMinimum=10, uniqueItems=16, readOnly=27)
_SCHEMA.has(_VARINT, _varint, maxLength=11, minLength=12, maxItems=14, minItems=15)
_SCHEMA.has(_VARINT, _varint, maxProperties=17, minProperties=18)
_SCHEMA.has(_BYTES, _additional, additionalProperties=21)
_SCHEMA.has(_BYTES, lambda value: _sized(_field(1, value.encode())), type=22)
_SCHEMA.has(_BYTES, _of(_SCHEMA, 1), items=23)
_SCHEMA.has(_BYTES, _of(_SCHEMA), allOf=24)
_SCHEMA.has(_BYTES, _named(1, _of(_SCHEMA)), properties=25)
