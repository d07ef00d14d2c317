"""Everything that an object holds, as bytes: to show that something has changed nothing."""

from collections import deque
from collections.abc import Mapping, Set
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
    parts: list[str] = []
    _add(root, parts, {})
    return sha256("\0".join(parts).encode()).digest()


def _add(value: Any, parts: list[str], seen: dict[int, object]) -> None:
    if isinstance(value, _ATOMS):
        parts.append(repr(value))
        return
    if isinstance(value, _CODE):
        parts.append(value.__qualname__)
        return
    if id(value) in seen:
        parts.append(f"seen {type(value).__name__}")
        return
    seen[id(value)] = value  # kept alive, so that no other gets its id
    parts.append(type(value).__qualname__)
    match value:
        case np.ndarray():
            parts.append(value.tobytes().hex())
        case Random():
            parts.append(repr(value.getstate()))
        case WeakValueDictionary():
            return
        case Mapping():
            for key, held in list(value.items()):
                _add(key, parts, seen)
                _add(held, parts, seen)
        case Set():
            parts.extend(sorted(_text(held, seen) for held in value))
        case list() | tuple() | deque():
            for held in value:
                _add(held, parts, seen)
        case _:
            for name, held in sorted(_fields(value).items()):
                parts.append(name)
                _add(held, parts, seen)


def _text(value: Any, seen: dict[int, object]) -> str:
    parts: list[str] = []
    _add(value, parts, seen)
    return " ".join(parts)


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    slots = [s for kind in type(value).__mro__ for s in getattr(kind, "__slots__", ())]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return found | getattr(value, "__dict__", {})
