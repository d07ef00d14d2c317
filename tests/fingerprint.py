"""Everything that an object holds, as bytes: to show that something has changed nothing."""

from collections import deque
from collections.abc import Iterator, Mapping, Set
from enum import Enum
from hashlib import sha256
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import numpy as np

_ATOMS = (str, bytes, int, float, bool, type(None), Enum, type, ModuleType)
_CODE = (FunctionType, MethodType, BuiltinFunctionType)


def fingerprint(root: object) -> bytes:
    """Return a hash of all that can be reached from *root*, in the order in which it is held.

    Of code only the name counts.
    """
    hashed = sha256()
    seen: dict[int, object] = {}
    for part in _parts(root, seen):
        hashed.update(part.encode())
        hashed.update(b"\0")
    return hashed.digest()


def _parts(value: Any, seen: dict[int, object]) -> Iterator[str]:
    if isinstance(value, _ATOMS):
        yield repr(value)
        return
    if isinstance(value, _CODE):
        yield value.__qualname__
        return
    if id(value) in seen:
        yield f"seen {type(value).__name__}"
        return
    seen[id(value)] = value  # kept alive, so that no other gets its id
    yield type(value).__qualname__
    match value:
        case np.ndarray():
            yield value.tobytes().hex()
        case Random():
            yield repr(value.getstate())
        case WeakValueDictionary():
            return
        case Mapping():
            for key, held in list(value.items()):
                yield from _parts(key, seen)
                yield from _parts(held, seen)
        case Set():
            yield from sorted(" ".join(_parts(held, seen)) for held in value)
        case list() | tuple() | deque():
            for held in value:
                yield from _parts(held, seen)
        case _:
            for name, held in sorted(_fields(value).items()):
                yield name
                yield from _parts(held, seen)


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    slots = [s for kind in type(value).__mro__ for s in getattr(kind, "__slots__", ())]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return found | getattr(value, "__dict__", {})
