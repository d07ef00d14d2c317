"""Kubernetes' protobuf: bodies of requests as the JSON they stand for, and objects as answers.

The wire format is proto2 as Go's generated code writes it: fields held by value are always there,
also when they are zero, so of those a zero is read as missing; a pointer is there when somebody set
it, so its zero is kept. The numbers come from the schema. Numbers that it does not have are
skipped, as in the API server.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from functools import cache
from struct import pack, unpack
from typing import Any

import msgspec

from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Field, ListOf, MapOf, Scalar, Schema, Type

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

JSON_NUMBERS = frozenset({"boolean", "int32", "int64"})

LIST_ITEMS = 2
"""The number of ``items`` in every list of the API; that of its metadata is 1."""


class ProtobufError(Exception):
    """The body is not what it says it is."""


def decode(content: bytes, schema: Schema) -> dict[str, Any]:
    """Return the object in a protobuf body, as its JSON would be; ProtobufError when it cannot be.

    It has ``apiVersion`` and ``kind`` if the body says them.
    """
    try:
        if not content.startswith(MAGIC):
            raise ProtobufError("it does not begin with the magic number")
        envelope = dict(raw_fields(memoryview(content)[len(MAGIC) :]))
        named = {number: _text(value) for number, value in raw_fields(envelope.get(1, b""))}
        body = read_message(envelope.get(2, b""), schema)
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError, TypeError, OverflowError) as exc:
        raise ProtobufError(str(exc)) from exc
    said = {"apiVersion": named.get(1), "kind": named.get(2)}
    return {**{key: text for key, text in said.items() if text}, **body}


def encode(obj: dict[str, Any], schema: Schema) -> bytes:
    """Return *obj*, which fits *schema* and says its type, as a body."""
    return _envelope(obj.get("apiVersion", ""), obj.get("kind", ""), message_of(obj, schema))


def message_of(obj: dict[str, Any], schema: Schema) -> bytes:
    """Return *obj* without the envelope."""
    return _encoder(schema)(obj)


def encode_list(
    api_version: str, kind: str, metadata: dict[str, Any], items: Collection[bytes]
) -> Iterator[bytes]:
    """Yield a list in pieces; *kind* is its own, *items* are what :func:`list_item` returned."""
    meta = _delimited(1, message_of(metadata, builtin.meta("ListMeta")))
    yield _before_message(api_version, kind, len(meta) + sum(map(len, items))) + meta
    yield from items
    yield AFTER_MESSAGE


def list_item(obj: dict[str, Any], schema: Schema) -> bytes:
    """Return *obj* as part of a list."""
    return _delimited(LIST_ITEMS, message_of(obj, schema))


def watch_frame(type_: str, body: bytes) -> bytes:
    """Return an event of a watch, with its length in front; *body* is an object in its envelope."""
    event = _delimited(1, type_.encode()) + _delimited(2, _delimited(1, body))
    return len(event).to_bytes(4, "big") + event


def _envelope(api_version: str, kind: str, message: bytes) -> bytes:
    return _before_message(api_version, kind, len(message)) + message + AFTER_MESSAGE


def _before_message(api_version: str, kind: str, size: int) -> bytes:
    """Return how a body begins whose message has *size* bytes."""
    type_meta = _delimited(1, api_version.encode()) + _delimited(2, kind.encode())
    return MAGIC + _delimited(1, type_meta) + _length(2 << 3 | BYTES) + _length(size)


AFTER_MESSAGE = b"\x1a\x00\x22\x00"
"""Content encoding and type: they are there, and empty, in what Go writes."""


# Reading


class _Numbers(dict[int, "tuple[str, Field] | _Numbers"]):
    """The fields of a message by number: a name and its field, or a message that JSON inlines."""


@cache
def _numbers(schema: Schema) -> _Numbers:
    found = _Numbers()
    for name, field in schema.fields.items():
        if not field.number:
            continue
        at = found
        for number in field.number[:-1]:
            below = at.setdefault(number, _Numbers())
            if not isinstance(below, _Numbers):
                raise TypeError(f"{schema.name}: number {number} is of two fields")
            at = below
        at[field.number[-1]] = name, field
    return found


def read_message(content: Any, schema: Schema) -> dict[str, Any]:
    """Return what a message says, without an envelope: an item of a list."""
    message: dict[str, Any] = {}
    _read(content, _numbers(schema), message)
    return message


def _read(content: Any, numbers: _Numbers, message: dict[str, Any]) -> None:
    for number, value in raw_fields(content):
        known = numbers.get(number)
        if known is None:
            continue
        if isinstance(known, _Numbers):
            _read(value, known, message)
            continue
        name, field = known
        match field.type:
            case ListOf(item):
                message.setdefault(name, []).extend(_items(value, item))
            case MapOf(item):
                entry = dict(raw_fields(value))
                key = _text(entry.get(1, b""))
                message.setdefault(name, {})[key] = _value(entry.get(2, b""), item)
            case _:
                found = _value(value, field.type)
                if found is None or (field.by_value and not found):
                    message.pop(name, None)
                else:
                    message[name] = found


def _items(value: Any, item: Type) -> Iterator[Any]:
    """Yield the items of one field of a list: numbers may be packed."""
    if isinstance(item, Scalar) and item.name in JSON_NUMBERS and not isinstance(value, int):
        position = 0
        while position < len(value):
            number, position = _varint(value, position)
            yield _value(number, item)
    else:
        yield _value(value, item)


def _value(value: Any, expected: Type) -> Any:
    match expected:
        case Schema():
            return read_message(value, expected)
        case ListOf(item):  # as the value of a map: a message with one repeated field
            return [_value(each, item) for _, each in raw_fields(value)]
        case Scalar(name):
            return READERS[name](value)
        case _:
            raise ProtobufError(f"maps in maps are not read: {expected}")


def _read_int(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a number is expected")
    return value - (1 << 64) if value >> 63 else value


def _read_time(value: Any, *, micro: bool = False) -> str | None:
    parts = dict(raw_fields(value))
    seconds, nanos = _read_int(parts.get(1, 0)), _read_int(parts.get(2, 0))
    if not parts:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanos // 1000)
    except (ValueError, OSError) as exc:
        raise ProtobufError(f"{seconds} is not a time") from exc
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds" if micro else "seconds")
    return f"{text}Z"


def _read_int_or_string(value: Any) -> int | str:
    parts = dict(raw_fields(value))
    return _text(parts.get(3, b"")) if parts.get(1) else _read_int(parts.get(2, 0))


def _read_raw(value: Any) -> Any:
    raw = bytes(dict(raw_fields(value)).get(1, b""))
    return msgspec.json.decode(raw) if raw else None


def _read_schema_or_array(value: Any) -> Any:
    schemas = [read_message(each, _props()) for number, each in raw_fields(value) if number == 2]
    return schemas or _read_schema(value)


def _read_schema_or_bool(value: Any) -> Any:
    schema = _read_schema(value)
    return bool(dict(raw_fields(value)).get(1, 0)) if schema is None else schema


def _read_schema_or_strings(value: Any) -> Any:
    texts = [_text(each) for number, each in raw_fields(value) if number == 2]
    return texts or _read_schema(value)


def _read_schema(value: Any) -> Any:
    for number, each in raw_fields(value):
        if not isinstance(each, int) and number in (1, 2):
            return read_message(each, _props())
    return None


def _props() -> Schema:
    return builtin.schema(builtin.JSON_SCHEMA_PROPS)


def _text(value: Any) -> str:
    if isinstance(value, int):
        raise ProtobufError("a number where there is none")
    return bytes(value).decode()


READERS: dict[str, Callable[[Any], Any]] = {
    "boolean": lambda value: bool(_read_int(value)),
    "bytes": lambda value: b64encode(value).decode(),
    "int32": _read_int,
    "int64": _read_int,
    "number": lambda value: unpack("<d", value)[0],
    "string": _text,
    "IntOrString": _read_int_or_string,
    "MicroTime": lambda value: _read_time(value, micro=True),
    "Quantity": lambda value: _text(dict(raw_fields(value)).get(1, b"")) or "0",
    "Time": _read_time,
    "FieldsV1": _read_raw,
    "JSON": _read_raw,
    "JSONSchemaPropsOrArray": _read_schema_or_array,
    "JSONSchemaPropsOrBool": _read_schema_or_bool,
    "JSONSchemaPropsOrStringArray": _read_schema_or_strings,
    "RawExtension": _read_raw,
}


def raw_fields(content: Any) -> Iterator[tuple[int, Any]]:
    """Yield field number and raw value: an int, or bytes where there is a length."""
    view, position = memoryview(content), 0
    while position < len(view):
        tag, position = _varint(view, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, position = _varint(view, position)
            yield number, value
            continue
        if wire_type == BYTES:
            length, position = _varint(view, position)
        elif wire_type in (FIXED64, FIXED32):
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire_type} is not one of ours")
        if position + length > len(view):
            raise ProtobufError("it ends in the middle of a field")
        yield number, view[position : position + length]
        position += length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = view[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & ((1 << 64) - 1), position
        shift += 7
        if shift > 63:
            raise ProtobufError("a number does not end")


# Writing

Encoder = Callable[[Any], bytes]


@cache
def _encoder(schema: Schema) -> Encoder:
    """Return what writes objects of that type: its fields in the order of their numbers."""
    return _object_encoder(schema, _numbers(schema))


def _object_encoder(schema: Schema, numbers: _Numbers) -> Encoder:
    writers: dict[str, tuple[bytes, Encoder, Any]] | None = None
    inlined: list[tuple[int, Encoder]] = []

    def prepare() -> dict[str, tuple[bytes, Encoder, Any]]:
        found = {}
        for number, known in sorted(numbers.items()):
            if isinstance(known, _Numbers):
                inlined.append((number, _object_encoder(schema, known)))
            else:
                name, field = known
                found[name] = _writer(number, field.type)
        return found

    def encoded(obj: Any) -> bytes:
        nonlocal writers
        if writers is None:  # not before: types may contain themselves
            writers = prepare()
        content = bytearray()
        for name, (tag, write, kind) in writers.items():
            value = obj.get(name)
            if value is None:
                continue
            if kind is ListOf:
                for each in value:
                    content += tag + write(each)
            elif kind is MapOf:
                for key in sorted(value):
                    entry = _delimited(1, key.encode()) + b"\x12" + write(value[key])
                    content += tag + _length(len(entry)) + entry
            else:
                content += tag + write(value)
        for number, below in inlined:
            inner = below(obj)
            if inner:
                content += _delimited(number, inner)
        return bytes(content)

    return encoded


def _writer(number: int, type_: Type) -> tuple[bytes, Encoder, Any]:
    """Return the tag of a field, what writes a value after it, and which of list and map it is."""
    item: Type = type_
    kind: Any = None
    if isinstance(type_, ListOf):
        item, kind = type_.item, ListOf
    elif isinstance(type_, MapOf):
        item, kind = type_.value, MapOf
    wire_type = BYTES
    if kind is not MapOf and isinstance(item, Scalar):
        wire_type = VARINT if item.name in JSON_NUMBERS else wire_type
        wire_type = FIXED64 if item.name == "number" else wire_type
    return _length(number << 3 | wire_type), _value_encoder(item), kind


def _value_encoder(type_: Type) -> Encoder:
    match type_:
        case Schema():
            write = _encoder(type_)
            return lambda value: _with_length(write(value))
        case ListOf(item):  # as the value of a map: a message with one repeated field
            each_item = _value_encoder(item)
            return lambda value: _with_length(b"".join(b"\x0a" + each_item(x) for x in value))
        case Scalar(name):
            return WRITERS[name]
        case _:
            raise TypeError(f"maps in maps are not written: {type_}")


def _length(value: int) -> bytes:
    """Encode a number that is not negative."""
    if value < 0x80:
        return SMALL[value]
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


SMALL = tuple(bytes((number,)) for number in range(0x80))


def _with_length(content: bytes) -> bytes:
    return _length(len(content)) + content


def _delimited(number: int, content: bytes) -> bytes:
    return _length(number << 3 | BYTES) + _length(len(content)) + content


def _number(value: int) -> bytes:
    return _length(value & ((1 << 64) - 1))


def _write_time(value: str) -> bytes:
    moment = datetime.fromisoformat(value.upper())
    nanos = moment.microsecond * 1000
    seconds = int((moment.replace(microsecond=0) - EPOCH).total_seconds())
    return _with_length(b"\x08" + _number(seconds) + b"\x10" + _number(nanos))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _write_int_or_string(value: int | str) -> bytes:
    if isinstance(value, int):
        return _with_length(b"\x08\x00\x10" + _number(value) + b"\x1a\x00")
    return _with_length(b"\x08\x01\x10\x00" + _delimited(3, value.encode()))


def _write_raw(value: Any) -> bytes:
    return _with_length(_delimited(1, msgspec.json.encode(value)))


def _write_schema_or(value: Any) -> bytes:
    """Write a JSONSchemaPropsOrArray or OrStringArray."""
    if isinstance(value, dict):
        return _with_length(_delimited(1, message_of(value, _props())))
    items = (
        each.encode() if isinstance(each, str) else message_of(each, _props()) for each in value
    )
    return _with_length(b"".join(_delimited(2, item) for item in items))


def _write_schema_or_bool(value: Any) -> bytes:
    if isinstance(value, dict):
        return _with_length(b"\x08\x01" + _delimited(2, message_of(value, _props())))
    return _with_length(b"\x08" + _number(bool(value)))


WRITERS: dict[str, Encoder] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "bytes": lambda value: _with_length(b64decode(value)),
    "int32": _number,
    "int64": _number,
    "number": lambda value: pack("<d", value),
    "string": lambda value: _with_length(value.encode()),
    "IntOrString": _write_int_or_string,
    "MicroTime": _write_time,
    "Quantity": lambda value: _with_length(_delimited(1, str(value).encode())),
    "Time": _write_time,
    "FieldsV1": _write_raw,
    "JSON": _write_raw,
    "JSONSchemaPropsOrArray": _write_schema_or,
    "JSONSchemaPropsOrBool": _write_schema_or_bool,
    "JSONSchemaPropsOrStringArray": _write_schema_or,
    "RawExtension": _write_raw,
}
