"""Fields that are kept as a client wrote them: a ``RawExtension`` of Go is bytes.

What a POST or PUT says has the client's own white space and order of keys, what a JSON patch or a
merge patch leaves has the order alone, and what a strategic merge patch or an applied configuration
leaves has its keys sorted. Where such a field may not change, these bytes may not.
"""

from typing import Any

import msgspec

from berth.cluster.resources import Object

_sorted = msgspec.json.Encoder(order="sorted").encode


class Written(dict[str, Any]):
    """A JSON object with its text; it equals what has the same text."""

    __slots__ = ("text",)
    __hash__ = None

    def __init__(self, text: bytes) -> None:
        super().__init__(msgspec.json.decode(text))
        self.text = text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict):
            return False
        return self.text == (other.text if isinstance(other, Written) else _sorted(other))

    def __ne__(self, other: object) -> bool:
        return not self == other


def keep_text(obj: Object, field: str, json: bytes) -> None:
    """Have *obj* keep its *field* as it is written in *json*, an object that has it too."""
    given = obj.get(field)
    if isinstance(given, dict):
        text = bytes(msgspec.json.decode(json, type=dict[str, msgspec.Raw])[field])
        if text != _sorted(given):
            obj[field] = Written(text)


def keep_order(obj: Object, field: str) -> None:
    """Have *obj* keep its *field* with the order of its keys, without white space."""
    given = obj.get(field)
    if isinstance(given, dict):
        plain = dict(given)
        text = msgspec.json.encode(plain)
        obj[field] = plain if text == _sorted(plain) else Written(text)


def without_text(obj: Object, field: str) -> Object:
    """Return *obj* with its *field* as if its keys were sorted."""
    given = obj.get(field)
    return {**obj, field: dict(given)} if isinstance(given, Written) else obj
