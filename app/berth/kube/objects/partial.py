"""Objects that do not decode as a whole, read as far as they can be.

An API server that is newer than we are, or that holds what an older one let in, may send an object
with something in it that we cannot read. The rest of it still counts.
"""

from collections.abc import Sequence
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin

import msgspec

from berth.kube.objects.nesting import pruned
from berth.kube.objects.quantity import Quantity, check_quantity

LONGEST_REASON: Final = 200
"""Characters; what an error says may quote what a stranger has written."""

Path = tuple[str | int, ...]
"""Fields by their names in JSON, keys of maps, and indices."""


class Unread(NamedTuple):
    """A part of an object that could not be read, and why."""

    path: Path
    why: str

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step:.63}" for step in self.path)
        return f"{''.join(steps).removeprefix('.') or 'object'}: {self.why}"


class Partial(NamedTuple):
    """What was read of an object, and what was not."""

    obj: Any
    unread: Sequence[Unread]


def read_partly(data: bytes, kind: type[Any], last: Any = None) -> Partial:
    """Read what can be read of the JSON object *data*, which should be a *kind*.

    A part that cannot be read is as it was in *last*, the last known state of the object, if there
    is one; otherwise it is left out, as is null. Raises msgspec.DecodeError if nothing can be read.
    """
    shallow = pruned(data)
    reader = _Reader()
    if len(shallow) != len(data):
        reader.give_up((), "nested too deeply")
    obj = reader.read(msgspec.json.decode(shallow), kind, last, ())
    return Partial(obj, reader.unread)


class _Reader:
    """Reads values as they would be decoded, part by part where that fails."""

    def __init__(self) -> None:
        self.unread: list[Unread] = []

    def give_up(self, path: Path, why: str) -> None:
        self.unread.append(Unread(path, why[:LONGEST_REASON]))

    def read(self, value: Any, wanted: Any, last: Any, path: Path) -> Any:
        """Return *value* as *wanted* says. Raises msgspec.ValidationError if it is nothing like it.

        *last* is what was there before, None if that is not known.
        """
        try:
            if not _holds_quantities(wanted):
                return _converted(value, wanted)
        except msgspec.ValidationError as exc:
            failure = exc
        else:
            failure = msgspec.ValidationError("Expected `object`")
        for type_ in get_args(wanted) if isinstance(wanted, UnionType) else (wanted,):
            match value:
                case dict() if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
                    return self._struct(value, type_, last, path)
                case dict() if get_origin(type_) is dict:
                    return self._map(value, get_args(type_)[1], last, path)
                case list() if get_origin(type_) is tuple:
                    return self._items(value, get_args(type_)[0], last, path)
        raise failure

    def _struct(self, value: dict[str, Any], kind: type[Any], last: Any, path: Path) -> Any:
        before = last if isinstance(last, kind) else None
        fields = {}
        for field in msgspec.structs.fields(kind):
            written = value.get(field.encode_name)
            if written is None:
                continue
            here = (*path, field.encode_name)
            known = None if before is None else getattr(before, field.name)
            try:
                fields[field.name] = self.read(written, field.type, known, here)
            except msgspec.ValidationError as exc:
                self.give_up(here, str(exc))
                if before is not None:
                    fields[field.name] = known
        try:
            return kind(**fields)
        except (TypeError, ValueError) as exc:  # a required field is missing
            raise msgspec.ValidationError(str(exc)) from exc

    def _map(self, value: dict[str, Any], wanted: Any, last: Any, path: Path) -> dict[str, Any]:
        before = last if isinstance(last, dict) else {}
        values = {}
        for key, written in value.items():
            here = (*path, key)
            try:
                values[key] = self.read(written, wanted, before.get(key), here)
            except msgspec.ValidationError as exc:
                self.give_up(here, str(exc))
                if key in before:
                    values[key] = before[key]
        return values

    def _items(self, value: list[Any], wanted: Any, last: Any, path: Path) -> tuple[Any, ...]:
        """Read an array. What is known of its items counts if there are still as many."""
        before = last if isinstance(last, tuple) and len(last) == len(value) else None
        items = []
        for index, written in enumerate(value):
            here = (*path, index)
            known = None if before is None else before[index]
            try:
                items.append(self.read(written, wanted, known, here))
            except msgspec.ValidationError as exc:
                self.give_up(here, str(exc))
                if before is not None:
                    items.append(known)
        return tuple(items)


def _converted(value: Any, wanted: Any) -> Any:
    converted = msgspec.convert(value, wanted)
    if converted is not None and _is_quantity(wanted):
        try:
            check_quantity(converted)
        except ValueError as exc:
            raise msgspec.ValidationError(str(exc)) from exc
    return converted


def _is_quantity(wanted: Any) -> bool:
    return {*get_args(Quantity)} <= {*get_args(wanted)}


def _holds_quantities(wanted: Any) -> bool:
    """Whether *wanted* is a map of quantities, which its container checks as one value."""
    return get_origin(wanted) is dict and _is_quantity(get_args(wanted)[1])
