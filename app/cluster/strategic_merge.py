"""Strategic merge patch: a merge patch that knows which lists merge and by which key.

What ``kubectl apply``, ``patch``, ``taint``, ``cordon`` and ``edit`` send. Directives in a patch:

- ``$patch: delete | replace | merge`` in an object: remove it, take it as it is, merge it;
- ``$patch: replace`` as an element of a merging list: take the rest as the whole list;
- ``$setElementOrder/<list>``: the order of the elements the client knows of;
- ``$deleteFromPrimitiveList/<list>``: values to take out of a list of plain values;
- ``$retainKeys``: drop all other keys of the object (unions, deployment strategies).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.cluster import schema
from app.cluster.patch import Json, PatchError, PatchMismatchError

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder/"
DELETE_VALUES = "$deleteFromPrimitiveList/"

JsonObject = dict[str, Any]
Identity = Callable[[Json], Json]


def strategic_merge(document: JsonObject, patch: Json, model: str) -> JsonObject:
    """Apply *patch*, merging lists as :mod:`app.cluster.schema` says of *model*."""
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch is an object")
    return _merge_object(document, patch, _Place(model))


@dataclass(frozen=True, slots=True)
class _Place:
    """A field being merged: the model of its objects, if they have one, and how it merges."""

    model: str | None = None
    declared: schema.Merge | None = None

    @property
    def key(self) -> str:
        """What identifies an element; empty: the list is atomic or a set."""
        return self.declared.key if self.declared else ""

    @property
    def is_set(self) -> bool:
        return self.declared is not None and self.declared == schema.Merge("merge")

    def below(self, field: str) -> "_Place":
        if self.model is None:
            return NOWHERE
        found = schema.schema(self.model).fields.get(field)
        return NOWHERE if found is None else _Place(_model(found.type), found.merge)


NOWHERE = _Place()


def _model(each: schema.Type) -> str | None:
    match each:
        case schema.Ref(model) | schema.ListOf(schema.Ref(model)):
            return model
        case _:
            return None


def _merge_object(original: JsonObject, patch: JsonObject, merge: _Place) -> JsonObject:
    match patch.get(DIRECTIVE):
        case None | "merge":
            pass
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
        case unknown:
            raise PatchError(f"unrecognized {DIRECTIVE} directive: {unknown!r}")
    merged = _retained(original, patch)
    for key in _list_fields(patch):
        result = _merge_list(
            merged.get(key),
            patch.get(key),
            merge=merge.below(key),
            order=_list_of(patch, SET_ORDER + key),
            without=_list_of(patch, DELETE_VALUES + key) or (),
        )
        if result is None:
            merged.pop(key, None)
        else:
            merged[key] = result
    for key, value in patch.items():
        if key.startswith("$") or isinstance(value, list):
            continue
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            below = merge.below(key)
            if value.get(DIRECTIVE) == "delete":
                merged.pop(key, None)
            else:
                merged[key] = _merge_object(
                    before if isinstance(before, dict) else {}, value, below
                )
        else:
            merged[key] = value
    return merged


def _list_fields(patch: JsonObject) -> list[str]:
    """Return the fields that the patch says something about as lists, each once."""
    names: dict[str, None] = {}
    for key, value in patch.items():
        if isinstance(value, list) and not key.startswith("$"):
            names[key] = None
        for prefix in (SET_ORDER, DELETE_VALUES):
            if key.startswith(prefix):
                names[key.removeprefix(prefix)] = None
    return list(names)


def _list_of(patch: JsonObject, key: str) -> list[Json] | None:
    value = patch.get(key)
    if value is not None and not isinstance(value, list):
        raise PatchError(f"{key} must be a list")
    return value


def _retained(original: JsonObject, patch: JsonObject) -> JsonObject:
    keep = _list_of(patch, RETAIN_KEYS)
    if keep is None:
        return dict(original)
    for key, value in patch.items():
        if not key.startswith("$") and value is not None and key not in keep:
            raise PatchError(f"{RETAIN_KEYS} lists {keep}, the patch sets {key!r} too")
    return {key: value for key, value in original.items() if key in keep}


def _merge_list(
    original: Json,
    patch: Json,
    *,
    merge: _Place,
    order: list[Json] | None,
    without: Sequence[Json],
) -> list[Json] | None:
    before: list[Json] = original if isinstance(original, list) else []
    if merge.is_set:
        known = list(before) + [value for value in patch or [] if value not in before]
        merged = [value for value in known if value not in without]
        return _ordered(merged, before, order, lambda value: value)
    if not merge.key:
        if patch is None:
            return None if original is None else before
        return [_plain(item) for item in patch]
    merged = _merge_elements(before, patch or [], merge)

    def identity(item: Json) -> Json:
        return item.get(merge.key) if isinstance(item, dict) else None

    return _ordered(merged, before, order, identity)


def _merge_elements(before: list[Json], patch: list[Json], merge: _Place) -> list[Json]:
    if any(item == {DIRECTIVE: "replace"} for item in patch):
        return [_plain(item) for item in patch if item != {DIRECTIVE: "replace"}]
    merged = list(before)
    for change in patch:
        if not isinstance(change, dict):
            raise PatchError(f"expected an object in a list merged by {merge.key!r}: {change!r}")
        if merge.key not in change:
            raise PatchMismatchError(f"{change} does not contain declared merge key: {merge.key}")
        at = _position(merged, merge.key, change[merge.key])
        if change.get(DIRECTIVE) == "delete":
            merged = [
                item
                for item in merged
                if not (isinstance(item, dict) and item.get(merge.key) == change[merge.key])
            ]
        elif at is None:
            merged.append(_merge_object({}, change, merge))
        else:
            merged[at] = _merge_object(merged[at], change, merge)
    return merged


def _position(items: list[Json], key: str, value: Json) -> int | None:
    return next(
        (i for i, item in enumerate(items) if isinstance(item, dict) and item.get(key) == value),
        None,
    )


def _plain(item: Json) -> Json:
    """Return a new value as it is to be kept: without directives and nulls."""
    return _merge_object({}, item, NOWHERE) if isinstance(item, dict) else item


def _ordered(
    merged: list[Json], before: list[Json], order: list[Json] | None, identity: Identity
) -> list[Json]:
    """Put *merged* in the order the client asked for.

    Elements that the client does not know of keep their place before or after those that were
    there with them.
    """
    if order is None:
        return merged
    wanted = [identity(item) for item in order]
    places = [identity(item) for item in before]

    def place(item: Json) -> int:
        name = identity(item)
        return places.index(name) if name in places else len(places)

    known = [item for name in wanted for item in merged if identity(item) == name]
    unknown = [item for item in merged if identity(item) not in wanted]
    result: list[Json] = []
    for item in known:
        while unknown and place(unknown[0]) < place(item):
            result.append(unknown.pop(0))
        result.append(item)
    return result + unknown
