"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), on plain JSON values.

Strategic merge patch is :mod:`berth.cluster.writes.strategic_merge`. All of them leave their
arguments alone and may share parts of them in what they return.

A JSON patch is read as the API server's library does (evanphx/json-patch v4): what is replaced need
not be there, what is not there equals null, and negative indices count from the end.
"""

import copy
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from berth.cluster.go_text import not_unmarshalled
from berth.kube.documents import DEPTH_LIMIT, depth_and_size

Json = Any
"""What a JSON decoder returns."""

MAX_OPERATIONS = 10_000
"""As the API server: a longer JSON patch is refused."""

MAX_COPIED = 3 * 1024 * 1024
"""Bytes that the ``copy`` operations of a JSON patch may add, as in the API server."""

MAX_MOVED = 10_000_000
"""Elements of arrays that the operations of a JSON patch may push aside, and values they may look
at: some hundredths of a second. The API server has no such limit, but more than one thread."""

ECHOED = 200
"""Characters of a wrong operation that are told back."""


class PatchError(Exception):
    """The patch is malformed, in the API server's words."""


class PatchTooLargeError(Exception):
    """The patch has too many operations."""


class PatchMismatchError(Exception):
    """The patch is well-formed but does not fit the document."""


def merge_patch(document: Json, patch: Json) -> Json:
    """Apply a JSON merge patch: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        raise _not_decoded(patch, "map[string]interface {}")
    return _merged(document, patch)


def _merged(document: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def in_merged_order(merged: Json, patch: Json) -> Json:
    """Return what :func:`merge_patch` made in the order in which the API server has it.

    Objects that its library merges, and all that are new, have their members by name.
    """
    match merged, patch:
        case dict(), dict():
            return {
                key: in_merged_order(merged[key], patch[key]) if key in patch else merged[key]
                for key in sorted(merged)
            }
        case list(), list():
            return [in_merged_order(item, item) for item in merged]
    return merged


def _not_decoded(value: Json, wanted: str) -> PatchError:
    return PatchError(f"error decoding patch: {not_unmarshalled(value, wanted)}")


def json_patch(document: Json, operations: Json) -> Json:
    """Apply a JSON patch, all of it or nothing."""
    if not isinstance(operations, list):
        raise _not_decoded(operations, "[]handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            raise _not_decoded(operation, "handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLargeError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
    root = {"": copy.deepcopy(document)}
    work = _Work()
    for operation in operations:
        _apply(root, operation, work)
    return root[""]


def in_patched_order(document: Json, operations: list[dict[str, Json]]) -> Json:
    """Sort, in place, the objects on the way to what *operations* changed in *document*.

    That is how the API server's library leaves what :func:`json_patch` made.
    """
    paths = [_pointer(operation, "path") for operation in operations]
    paths += [_pointer(operation, "from") for operation in operations if "from" in operation]
    for path in [["", ""], *paths]:
        value = document
        for token in path[1:]:
            if isinstance(value, dict):
                members = sorted(value.items())
                value.clear()
                value.update(members)
                value = value.get(token)
            elif isinstance(value, list) and INDEX.fullmatch(token) and int(token) < len(value):
                value = value[int(token)]
            else:
                break
    return document


@dataclass(slots=True)
class _Work:
    """What the operations of a patch cost so far."""

    copied: int = 0
    moved: int = 0

    def copy(self, value: Json) -> Json:
        """Return a copy on its own."""
        encoded = msgspec.json.encode(value)
        self.copied += len(encoded)
        if self.copied > MAX_COPIED:
            raise PatchMismatchError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self.copied}, exceeding the limit {MAX_COPIED}"
            )
        return msgspec.json.decode(encoded)

    def move(self, elements: int) -> None:
        self.moved += elements
        if self.moved > MAX_MOVED:
            raise PatchMismatchError(
                f"the operations push aside more than {MAX_MOVED} elements of arrays"
            )

    def check_depth(self, value: Json, path: list[str]) -> None:
        """Raise if the document would be too deep with *value* at *path*."""
        if isinstance(value, dict | list) and value:
            depth, size = depth_and_size(value)
            self.move(size)
            # The first token is the document itself.
            if len(path) - 1 + depth > DEPTH_LIMIT:
                raise PatchMismatchError(
                    f"exceeded max depth: it would be nested deeper than {DEPTH_LIMIT} levels"
                )


def _apply(root: dict[str, Json], operation: dict[str, Json], work: _Work) -> None:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            _add(root, path, _value(operation), work)
        case "remove":
            _remove(root, path, work)
        case "replace":
            value = _value(operation)
            work.check_depth(value, path)
            parent, key = _parent(root, path)
            parent[key if isinstance(parent, dict) else _index(parent, key)] = value
        case "move":
            source = _pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise PatchMismatchError(f"cannot move {_text(source)!r:.{ECHOED}} into itself")
            value = _get(root, source)
            _remove(root, source, work)
            _add(root, path, value, work)
        case "copy":
            _add(root, path, work.copy(_at(root, _pointer(operation, "from"))), work)
        case "test":
            if not _equal(_at(root, path), _value(operation)):
                raise PatchMismatchError(
                    f"testing value {_text(path):.{ECHOED}} failed: test failed"
                )
        case unknown:
            raise PatchMismatchError(f"Unexpected kind: {unknown!r:.{ECHOED}}")


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
    return copy.deepcopy(operation.get("value"))


def _pointer(operation: dict[str, Json], member: str) -> list[str]:
    """Return the tokens of a JSON pointer (RFC 6901), below the root key ``""``."""
    text = operation.get(member)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchMismatchError(f"{member} {text!r:.{ECHOED}} is not a JSON pointer")
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
            raise PatchMismatchError(f"{_text(path)!r:.{ECHOED}} does not exist")
    return value


def _at(root: Json, path: list[str]) -> Json:
    """Return the value at *path*; of an object that has no such member, null."""
    parent, key = _parent(root, path)
    return parent.get(key) if isinstance(parent, dict) else parent[_index(parent, key)]


def _parent(root: Json, path: list[str]) -> tuple[Json, str]:
    parent = _get(root, path[:-1])
    if not isinstance(parent, dict | list):
        where = f"{_text(path[:-1])!r:.{ECHOED}}"
        raise PatchMismatchError(f"{where} is neither an object nor an array")
    return parent, path[-1]


def _add(root: Json, path: list[str], value: Json, work: _Work) -> None:
    parent, key = _parent(root, path)
    work.check_depth(value, path)
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        index = _index(parent, key, end=len(parent))
        work.move(len(parent) - index)
        parent.insert(index, value)


def _remove(root: Json, path: list[str], work: _Work) -> None:
    if len(path) == 1:
        raise PatchMismatchError("the whole document cannot be removed")
    _get(root, path)
    parent, key = _parent(root, path)
    if isinstance(parent, dict):
        del parent[key]
    else:
        index = _index(parent, key)
        work.move(len(parent) - index)
        del parent[index]


def _index(array: list[Json], token: str, *, end: int | None = None) -> int:
    size = len(array) if end is None else end + 1
    if INDEX.fullmatch(token) and -size <= (index := int(token)) < size:
        return index + size if index < 0 else index
    raise PatchMismatchError(f"array index {token!r:.{ECHOED}} is out of range")


INDEX = re.compile("[+-]?[0-9]{1,18}")
