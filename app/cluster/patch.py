"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), on plain JSON values.

Strategic merge patch is :mod:`app.cluster.strategic_merge`. All of them leave their arguments alone
and may share parts of them in what they return.
"""

import copy
from typing import Any

Json = Any
"""What a JSON decoder returns."""

MAX_OPERATIONS = 10_000
"""As the API server: a longer JSON patch is refused."""


class PatchError(Exception):
    """The patch is malformed."""


class PatchMismatchError(Exception):
    """The patch is well-formed but does not fit the document."""


def merge_patch(document: Json, patch: Json) -> Json:
    """Apply a JSON merge patch: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(document: Json, operations: Json) -> Json:
    """Apply a JSON patch, all of it or nothing."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is an array of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON patch has at most {MAX_OPERATIONS} operations")
    root = {"": copy.deepcopy(document)}
    for operation in operations:
        _apply(root, operation)
    return root[""]


def _apply(root: dict[str, Json], operation: Json) -> None:
    if not isinstance(operation, dict):
        raise PatchError(f"operation {operation!r} is not an object")
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            _add(root, path, _value(operation))
        case "remove":
            _remove(root, path)
        case "replace":
            value = _value(operation)
            _get(root, path)
            parent, key = _parent(root, path)
            parent[key if isinstance(parent, dict) else _index(parent, key)] = value
        case "move":
            source = _pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise PatchError(f"cannot move {_text(source)!r} into itself")
            value = _get(root, source)
            _remove(root, source)
            _add(root, path, value)
        case "copy":
            _add(root, path, copy.deepcopy(_get(root, _pointer(operation, "from"))))
        case "test":
            if not _equal(_get(root, path), _value(operation)):
                raise PatchMismatchError(f"testing value {_text(path)} failed: test failed")
        case unknown:
            raise PatchError(f"unknown operation {unknown!r}")


def _equal(left: Json, right: Json) -> bool:
    """JSON equality: unlike Python's, ``true`` is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


def _value(operation: dict[str, Json]) -> Json:
    if "value" not in operation:
        raise PatchError(f"operation {operation['op']!r} has no value")
    return copy.deepcopy(operation["value"])


def _pointer(operation: dict[str, Json], member: str) -> list[str]:
    """Return the tokens of a JSON pointer (RFC 6901), below the root key ``""``."""
    text = operation.get(member)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{member} {text!r} is not a JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in text.split("/")]


def _text(path: list[str]) -> str:
    return "/".join(token.replace("~", "~0").replace("/", "~1") for token in path)


def _get(root: Json, path: list[str]) -> Json:
    value = root
    for token in path:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list):
            value = value[_index(value, token)]
        else:
            raise PatchMismatchError(f"{_text(path)!r} does not exist")
    return value


def _parent(root: Json, path: list[str]) -> tuple[Json, str]:
    parent = _get(root, path[:-1])
    if not isinstance(parent, dict | list):
        raise PatchMismatchError(f"{_text(path[:-1])!r} is neither an object nor an array")
    return parent, path[-1]


def _add(root: Json, path: list[str], value: Json) -> None:
    parent, key = _parent(root, path)
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_index(parent, key, end=len(parent)), value)


def _remove(root: Json, path: list[str]) -> None:
    if len(path) == 1:
        raise PatchMismatchError("the whole document cannot be removed")
    _get(root, path)
    parent, key = _parent(root, path)
    del parent[key if isinstance(parent, dict) else _index(parent, key)]


def _index(array: list[Json], token: str, *, end: int | None = None) -> int:
    last = len(array) - 1 if end is None else end
    canonical = token.isascii() and token.isdigit() and (token == "0" or token[0] != "0")
    if not canonical or int(token) > last:
        raise PatchMismatchError(f"array index {token!r} is out of range")
    return int(token)
