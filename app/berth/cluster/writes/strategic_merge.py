"""Strategic merge patch: a merge patch that knows which lists merge and by which key.

What ``kubectl apply``, ``patch``, ``taint``, ``cordon`` and ``edit`` send. Directives in a patch:

- ``$patch: delete | replace | merge`` in an object: remove it, take it as it is, merge it;
- ``$patch: replace`` as an element of a merging list: take the rest as the whole list;
- ``$setElementOrder/<list>``: the order of the elements the client knows of;
- ``$deleteFromPrimitiveList/<list>``: values to take out of a list of plain values;
- ``$retainKeys``: drop all other keys of the object (unions, deployment strategies).
"""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec

from berth.cluster.go_text import not_unmarshalled, plus_v
from berth.cluster.schemas.types import ListOf, MapOf, Schema, Type
from berth.cluster.writes.patch import ECHOED, Json, PatchError

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder/"
DELETE_VALUES = "$deleteFromPrimitiveList/"
REPLACE = {DIRECTIVE: "replace"}
PLAIN: Final = frozenset({str, int, bool, float})
"""The types of values that are taken as they are."""

JsonObject = dict[str, Any]


def strategic_merge(document: JsonObject, patch: Json, schema: Schema) -> JsonObject:
    """Apply *patch*, merging lists as *schema* says."""
    if not isinstance(patch, dict):
        raise PatchError(not_unmarshalled(patch, "map[string]interface {}"))
    return _merge_object(document, patch, _root(schema))


class MergeError(Exception):
    """A patch that cannot be merged, which is an error of the server's in its own eyes (500)."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A field being merged: the type of its value, if it is known, and how it merges."""

    type: Type | None = None
    key: str = ""
    """What identifies an element; empty: the list is atomic or a set."""
    is_set: bool = False
    is_replaced: bool = False
    """Whether an object is taken as the patch has it."""
    known: dict[str, "_Place"] = field(default_factory=dict)
    """The places below, as far as anybody went there."""

    def below(self, name: str) -> "_Place":
        place = self.known.get(name)
        if place is not None:
            return place
        match self.type:
            case (Schema() as schema) | ListOf(Schema() as schema):
                pass
            case MapOf(value):
                return _Place(value)
            case _:
                return NOWHERE
        found = schema.fields.get(name)
        if found is None:  # and not remembered: there is no end of such names
            return NOWHERE
        key = found.merge_key if found.merges else ""
        is_set = found.merges and not key
        is_replaced = found.patch_strategy == "replace"
        place = self.known[name] = _Place(found.type, key, is_set, is_replaced)
        return place


NOWHERE = _Place()
NEW: Final = _Place()
"""Below what is not there yet: the patch is taken as it is, without its directives."""


@cache
def _root(schema: Schema) -> _Place:
    return _Place(schema)


@dataclass(frozen=True, slots=True)
class _Arrangement:
    """What the directives beside a list say of it."""

    order: list[Json] | None = None
    without: Sequence[Json] = ()


AS_IT_COMES = _Arrangement()


def _merge_object(original: JsonObject, patch: JsonObject, place: _Place) -> JsonObject:
    directives = [key for key in patch if key[:1] == "$"]
    if not directives:
        merged = original.copy()
    else:
        match patch.get(DIRECTIVE):
            case None | "merge":
                merged = _retained(original, patch)
            case "replace":
                return {key: value for key, value in patch.items() if key != DIRECTIVE}
            case "delete":
                return {}
            case unknown if place is NEW:
                merged = {}
            case unknown:
                shown = f"{plus_v(patch):.{ECHOED}}"
                raise MergeError(f"unknown patch type: {unknown!s:.{ECHOED}} in map: {shown}")
    arrangements = _arrangements(patch, directives) if directives else {}
    for key, value in patch.items():
        if type(value) in PLAIN and not directives:
            merged[key] = value
        elif isinstance(value, dict):
            before = merged.get(key)
            if value.get(DIRECTIVE) == "delete":
                merged.pop(key, None)
            elif isinstance(before, dict) and not (below := place.below(key)).is_replaced:
                merged[key] = _merge_object(before, value, below)
            elif DIRECTIVE not in value:  # else there is nothing to do it to
                merged[key] = _merge_object({}, value, NEW)
        elif value is None:
            merged.pop(key, None)
        elif key in directives:
            pass
        elif isinstance(value, list):
            arrangement = arrangements.pop(key, AS_IT_COMES)
            merged[key] = _merge_list(merged.get(key), value, place.below(key), arrangement)
        else:
            merged[key] = value
    for key, arrangement in arrangements.items():
        if key in merged:  # lists that the patch arranges only
            merged[key] = _merge_list(merged[key], None, place.below(key), arrangement)
    return merged


def _arrangements(patch: JsonObject, directives: Sequence[str]) -> dict[str, _Arrangement]:
    """Return what *directives* say, by the lists that they speak of."""
    names = {
        key.removeprefix(prefix)
        for key in directives
        for prefix in (SET_ORDER, DELETE_VALUES)
        if key.startswith(prefix)
    }
    return {
        name: _Arrangement(
            _list_of(patch, SET_ORDER + name), _list_of(patch, DELETE_VALUES + name) or ()
        )
        for name in names
    }


def _list_of(patch: JsonObject, key: str) -> list[Json] | None:
    value = patch.get(key)
    if value is not None and not isinstance(value, list):
        raise PatchError(f"{key} must be a list")
    return value


def _retained(original: JsonObject, patch: JsonObject) -> JsonObject:
    keep = _list_of(patch, RETAIN_KEYS)
    if keep is None:
        return original.copy()
    kept = {key for key in keep if isinstance(key, str)}
    for key, value in patch.items():
        if not key.startswith("$") and value is not None and key not in kept:
            raise PatchError("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in kept}


def _merge_list(
    original: Json, patch: list[Json] | None, place: _Place, arrangement: _Arrangement
) -> list[Json]:
    """Merge one list; *patch* is None when there is only an *arrangement*."""
    before: list[Json] = original if isinstance(original, list) else []
    if place.is_set:
        there = set(map(_identity, before))
        known = before + [value for value in patch or () if _identity(value) not in there]
        without = set(map(_identity, arrangement.without))
        merged = [value for value in known if _identity(value) not in without]
        return _ordered(merged, before, _order(patch, arrangement), "")
    if not place.key:
        return before if patch is None else [_plain(item) for item in patch]
    if not isinstance(original, list):
        merged = [_plain(item) for item in patch or () if not _is_deleted(item)]
    else:
        merged = _merge_elements(before, patch or [], place)
    if not before and arrangement is AS_IT_COMES:
        return merged  # in the order of the patch
    if REPLACE in (patch or ()):
        return merged
    return _ordered(merged, before, _order(patch, arrangement), place.key)


def _order(patch: list[Json] | None, arrangement: _Arrangement) -> list[Json]:
    """Return the elements in the order that the client wants: as it says, or as it lists them."""
    if arrangement.order is not None:
        return arrangement.order
    return [each for each in patch or () if not (isinstance(each, dict) and DIRECTIVE in each)]


def _merge_elements(before: list[Json], patch: list[Json], place: _Place) -> list[Json]:
    if REPLACE in patch:
        return [_plain(item) for item in patch if item != REPLACE]
    merged: list[Json] = list(before)
    places: dict[Hashable, list[int]] = {}
    """Where the elements of a key are; the API allows several in some lists."""
    for index, item in enumerate(before):
        if isinstance(item, dict):
            name = item.get(place.key)
            places.setdefault(name if type(name) is str else _identity(name), []).append(index)
    for change in patch:
        if not isinstance(change, dict):
            raise PatchError(
                f"expected an object in a list merged by {place.key!r}: {change!r:.{ECHOED}}"
            )
        if place.key not in change:
            why = f"does not contain declared merge key: {place.key}"
            raise MergeError(f"map: {plus_v(change)} {why}")
        name = change[place.key]
        if type(name) is not str:
            name = _identity(name)
        known = places.get(name)
        if change.get(DIRECTIVE) == "delete":
            for index in places.pop(name, ()):
                merged[index] = _GONE
        elif known is None:
            places[name] = [len(merged)]
            merged.append(_merge_object({}, change, NEW))
        else:
            merged[known[0]] = _merge_object(merged[known[0]], change, place)
    return [item for item in merged if item is not _GONE]


_GONE: Final = object()
"""In the place of an element that a patch deletes."""


def _identity(value: Json) -> Hashable:
    """Return what two equal values of JSON have in common, to look them up by."""
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="deterministic")
    name: Hashable = value
    return name


def _is_deleted(item: Json) -> bool:
    """Tell whether an element of a patch is one that is to go."""
    return isinstance(item, dict) and item.get(DIRECTIVE) == "delete"


def _plain(item: Json) -> Json:
    """Return a new value as it is to be kept: without directives and nulls."""
    return _merge_object({}, item, NEW) if isinstance(item, dict) else item


def _names(items: list[Json], key: str) -> list[Hashable]:
    """Return what identifies each of *items*: what they have at *key*; empty: they themselves."""
    if not key:
        return [_identity(item) for item in items]
    names = (item.get(key) if isinstance(item, dict) else None for item in items)
    return [name if type(name) is str else _identity(name) for name in names]


def _ordered(merged: list[Json], before: list[Json], order: list[Json], key: str) -> list[Json]:
    """Put *merged*, whose elements *key* identifies, in the order the client asked for.

    As the API server does: elements that the client does not speak of keep their place before or
    after those that were there with them; new ones come before what is left of them.
    """
    wanted = dict.fromkeys(_names(order, key))
    names = _names(merged, key)
    by_name: dict[Hashable, list[Json]] = {}
    unknown: deque[tuple[Hashable, Json]] = deque()
    for name, item in zip(names, merged, strict=True):
        if name in wanted:
            by_name.setdefault(name, []).append(item)
        else:
            unknown.append((name, item))
    if not unknown:
        return [item for name in wanted for item in by_name.get(name, ())]
    places: dict[Hashable, int] = {}
    for index, name in enumerate(_names(before, key)):
        places.setdefault(name, index)
    result: list[Json] = []
    for name in wanted:
        for item in by_name.get(name, ()):
            while unknown and places.get(unknown[0][0], -1) < places.get(name, -1):
                result.append(unknown.popleft()[1])
            result.append(item)
    return [*result, *(item for _, item in unknown)]
