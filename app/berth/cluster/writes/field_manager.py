"""Who manages which field of an object: kept with every write, and what server-side apply asks.

What a client creates or updates it manages from then on, and nobody else; what it applies it
manages too, but an applied value that contradicts another manager's is a conflict, unless it is
forced, and what a client applies no longer goes, unless another one manages it
(KEP-555; the API server's packages ``managedfields`` and structured-merge-diff ``merge``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from berth.cluster import errors
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import checks as schema_checks
from berth.cluster.schemas.types import Schema
from berth.cluster.strategies.nulls import NULL_TIMES, drop_nulls
from berth.cluster.warnings import quoted
from berth.cluster.writes.managed_fields import checks, entries, field_sets, last_applied
from berth.cluster.writes.managed_fields.compile import node_of
from berth.cluster.writes.managed_fields.entries import APPLY, UPDATE, Entry, Manager
from berth.cluster.writes.managed_fields.field_sets import (
    FieldSet,
    difference,
    intersection,
    of_paths,
    union,
    without,
)
from berth.cluster.writes.managed_fields.nodes import Difference

FindKind = Callable[[str, str, str], ResourceType | None]
"""Returns the kind with a group, version and plural, if it is served."""

UNMANAGED: Final = of_paths(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "creationTimestamp",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    ),
)
"""What nobody manages: it says which object it is, or comes from the server."""

STATUS: Final = of_paths(("f:status",))
STATUS_WRITES: Final = ("approval", "status")
"""Subresources that change the status and metadata only."""


class Conflict(NamedTuple):
    """A field that is applied with another value than its manager gave it."""

    entry: Entry
    path: field_sets.Path


class ConflictsError(Exception):
    """Fields of other managers are applied with other values."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class FieldManager:
    """Keeps ``metadata.managedFields``: which client sets which field."""

    def __init__(self, find: FindKind) -> None:
        """*find* is asked for the other versions in which a kind is managed."""
        self._find = find

    def update(
        self,
        live: Object | None,
        new: Object,
        *,
        resource: ResourceType,
        subresource: str,
        manager: str,
        now: str,
    ) -> None:
        """Set ``managedFields`` of *new*, which *manager* makes of *live*, at RFC 3339 time *now*.

        *live* is None when the object is created. *new* is complete, with defaults, and has what
        the client said of managed fields. Call it before admission, whose changes nobody manages.
        """
        known = _known(live, new, subresource)
        write = _Write(self._find, resource, subresource, live or {}, new)
        changed, removed = write.difference(resource.group_version)
        if changed or removed:
            me = Manager(manager or entries.UNKNOWN, UPDATE, resource.group_version, subresource)
            kept, mine = write.taken(known, of=me)
            if changed or mine:
                time = now if changed else (mine or {}).get("time", "")
                fields = union(difference(mine["fieldsV1"], removed), changed) if mine else changed
                if fields:
                    kept.append(entries.entry(me, resource.group_version, fields, time))
            known = entries.in_order(entries.capped(kept))
        _set(new, known)

    def apply(
        self,
        live: Object,
        applied: Object,
        *,
        resource: ResourceType,
        subresource: str,
        manager: str,
        force: bool,
        now: str,
    ) -> Object:
        """Return *live* with what *manager* applies, and without what it applies no longer.

        Where there is no object yet, *live* is one with only its type, name and namespace. Neither
        argument changes, nor shares parts with the result. 409 for conflicts that are not forced;
        400 and 500, as in the API server, for a configuration that does not fit the kind.
        """
        _check_type(applied, resource)
        node = node_of(resource)
        if wrong := checks.problems(node, applied):
            said = f"failed to create typed patch object ({_named(applied, resource)}): {wrong}"
            raise errors.StatusError(500, "", said)
        me = Manager(manager, APPLY, "", subresource)
        applying = _Applying(self._find, resource, me, live, _copy(applied), now)
        try:
            try:
                new = applying.result(force=force)
            except ConflictsError as exc:
                if manager != last_applied.KUBECTL:
                    raise
                allowed = last_applied.allowed_conflicts(live, node, resource.group_version)
                left = [each for each in exc.conflicts if not field_sets.has(allowed, each.path)]
                if left:
                    raise ConflictsError(left) from exc
                new = applying.result(force=True)
        except ConflictsError as exc:
            raise _refusal(exc.conflicts) from exc
        if manager == last_applied.KUBECTL:
            last_applied.update_annotation(new, applied)
        _decode(new, applied, resource)
        return new


def settled(new: Object, old: Object) -> Object:
    """Return *new*, with the managers of *old* if nothing but their times is different.

    What a client applies may be different from what there is until defaults are filled in.
    """
    after, before = entries.stored(new), entries.stored(old)
    if after == before or entries.settled(before, after) is after:
        return new
    restored = {**new, "metadata": {**new["metadata"], "managedFields": before}}
    return restored if restored == old else new


class _Write:
    """What a write changes, in each version in which fields are managed."""

    def __init__(
        self, find: FindKind, resource: ResourceType, subresource: str, live: Object, new: Object
    ) -> None:
        self._find = find
        self._resource = resource
        self._ignored = unwritten(resource, subresource)
        self._is_new = not live
        self._live = live
        self._new = new
        self._known: dict[str, tuple[FieldSet, FieldSet] | None] = {}

    def difference(self, api_version: str) -> tuple[FieldSet, FieldSet]:
        """Return what is new or other, and what went; nothing of a version that is not served."""
        return self._in_version(api_version) or ({}, {})

    def taken(self, managed: Iterable[Entry], *, of: Manager) -> tuple[list[Entry], Entry | None]:
        """Return the entries without what the write changes or removes, and that *of* its author.

        Those of versions that are not served any more go.
        """
        kept: list[Entry] = []
        mine = None
        for each in managed:
            if entries.is_of(each, of):
                mine = each
                continue
            found = self._in_version(each["apiVersion"])
            if found is None:
                continue
            changed, removed = found
            fields = difference(difference(each["fieldsV1"], changed), removed)
            if fields is each["fieldsV1"]:
                kept.append(each)
            elif fields:
                kept.append(entries.with_fields(each, fields))
        return kept, mine

    def conflicts(self, managed: Iterable[Entry], *, of: Manager) -> list[Conflict]:
        """Return the changed fields that others manage than their author, *of* whom they are."""
        return [
            Conflict(each, path)
            for each in managed
            if not entries.is_of(each, of)
            for path in field_sets.paths_of(
                intersection(each["fieldsV1"], self.difference(each["apiVersion"])[0])
            )
        ]

    def _in_version(self, api_version: str) -> tuple[FieldSet, FieldSet] | None:
        if api_version not in self._known:
            self._known[api_version] = self._compare(api_version)
        return self._known[api_version]

    def _compare(self, api_version: str) -> tuple[FieldSet, FieldSet] | None:
        other = in_version(self._find, self._resource, api_version)
        if other is None:
            return None
        if self._is_new:
            return self._managed(created(other, self._new)), {}
        found = Difference()
        node_of(other).compare_fields(
            converted(self._live, self._resource, other),
            converted(self._new, self._resource, other),
            found,
        )
        return self._managed(found.changed), self._managed(found.removed)

    def _managed(self, fields: FieldSet) -> FieldSet:
        """Return of *fields* those that somebody manages, and this write may change."""
        return difference(without(fields, self._ignored), UNMANAGED)


class _Applying:
    """One configuration on its way into one object."""

    def __init__(
        self,
        find: FindKind,
        resource: ResourceType,
        me: Manager,
        live: Object,
        applied: Object,
        now: str,
    ) -> None:
        self._find = find
        self._resource = resource
        self._me = me
        self._known = entries.stored(live)
        self._live = _unmanaged(live)
        self._applied = applied
        self._now = now
        self._mine = next((each for each in self._known if entries.is_of(each, me)), None)

    def result(self, *, force: bool) -> Object:
        """Return the object with its managers."""
        resource, me = self._resource, self._me
        node = node_of(resource)
        fields = node.fields(self._applied) or {}
        fields = difference(without(fields, unwritten(resource, me.subresource)), UNMANAGED)
        last_time = (self._mine or {}).get("time") or ""
        mine = entries.entry(me, resource.group_version, fields, last_time)
        managed = [*(each for each in self._known if each is not self._mine), mine]

        new = self._pruned(node.merge(self._live, self._applied), managed)
        write = _Write(self._find, resource, me.subresource, self._live, new)
        if not force and (conflicts := write.conflicts(managed, of=me)):
            raise ConflictsError(conflicts)
        kept, _ = write.taken(managed, of=me)
        if fields:
            time = last_time if new == self._live else self._now
            kept.append(entries.entry(me, resource.group_version, fields, time))
        _set(new, entries.in_order(kept))
        return new

    def _pruned(self, merged: Object, managed: Sequence[Entry]) -> Object:
        """Return *merged* without what only this manager managed, and applies no longer."""
        if self._mine is None:
            return merged
        version = self._mine["apiVersion"]
        last_kind = in_version(self._find, self._resource, version)
        if last_kind is None:
            return merged
        node = node_of(last_kind)
        merged = converted(merged, self._resource, last_kind)
        last = node.with_named(self._mine["fieldsV1"])
        pruned = node.remove(merged, last)

        owned: dict[str, FieldSet] = {version: {}}
        for each in managed:
            owned[each["apiVersion"]] = union(owned.get(each["apiVersion"], {}), each["fieldsV1"])
        for api_version, fields in owned.items():
            kind = in_version(self._find, self._resource, api_version)
            if kind is not None:
                all_of = converted(merged, last_kind, kind)
                left = _with_owned(kind, all_of, converted(pruned, last_kind, kind), fields)
                pruned = converted(left, kind, last_kind)

        before = node.with_named(node.fields(merged) or {})
        after = node.with_named(node.fields(pruned) or {})
        pruned = node.remove(merged, intersection(difference(before, after), last))
        return converted(pruned, last_kind, self._resource)


def _with_owned(kind: ResourceType, merged: Object, pruned: Object, owned: FieldSet) -> Object:
    """Return *pruned* with those fields of *merged* that somebody manages."""
    node = node_of(kind)
    kept = union(node.with_named(node.fields(pruned) or {}), node.with_named(owned))
    gone = difference(node.with_named(node.fields(merged) or {}), kept)
    left: Object = node.remove(merged, gone)
    return left


def unwritten(resource: ResourceType, subresource: str) -> FieldSet:
    """Return what a write does not change: the status, or all but status and metadata."""
    if "status" not in resource.subresources:
        return {}
    return _all_but_status(resource.schema) if subresource in STATUS_WRITES else STATUS


@lru_cache(maxsize=256)
def _all_but_status(schema: Schema) -> FieldSet:
    kept = {"apiVersion", "kind", "metadata", "status"}
    return {f"f:{name}": {} for name in schema.fields if name not in kept}


def created(resource: ResourceType, obj: Object) -> FieldSet:
    """Return the fields of a new object.

    What controllers make of one template is the same but for its metadata, so that of the rest is
    remembered.
    """
    found = Difference()
    node = node_of(resource)
    node.compare_fields({}, {"metadata": obj.get("metadata")}, found)
    for name, value in obj.items():
        known = node.known.get(name)
        if known is None or name == "metadata":
            continue
        key = (resource.schema, name, msgspec.json.encode(value))
        below = _of_templates.get(key)
        if below is None:
            one = Difference()
            node.compare_fields({}, {name: value}, one)
            below = one.changed
            if len(key[2]) <= LONGEST_TEMPLATE:
                if len(_of_templates) >= MOST_TEMPLATES:
                    _of_templates.clear()
                _of_templates[key] = below
        found.changed.update(below)
    return found.changed


LONGEST_TEMPLATE: Final = 8 * 1024
MOST_TEMPLATES: Final = 1000
"""How many parts of new objects are remembered, and of how many bytes."""

_of_templates: dict[tuple[Schema, str, bytes], FieldSet] = {}


def in_version(find: FindKind, resource: ResourceType, api_version: str) -> ResourceType | None:
    """Return the same kind in another version; None when it is not served."""
    if api_version == resource.group_version:
        return resource
    group, _, version = api_version.rpartition("/")
    return find(group, version, resource.plural)


def converted(obj: Object, resource: ResourceType, other: ResourceType) -> Object:
    """Return an object of *resource* as *other*, another version of the kind, shows it."""
    if resource is other:
        return obj
    seen = other.from_storage(resource.to_storage(_copy(obj)))  # which may change it
    return {**seen, "apiVersion": other.group_version, "kind": other.kind}


def _known(live: Object | None, new: Object, subresource: str) -> list[Entry]:
    """Return the managers before a write: those that it says itself, or else those of *live*."""
    before = entries.stored(live)
    said = new["metadata"].get("managedFields")
    if subresource or not said or said == before:
        return before
    if entries.is_reset(said):
        return []
    return entries.read(said) or before


def _set(obj: Object, managed: Sequence[Entry]) -> None:
    before = obj.get("metadata") or {}
    metadata = {key: value for key, value in before.items() if key != "managedFields"}
    if managed:
        metadata["managedFields"] = list(managed)
    obj["metadata"] = metadata


def _unmanaged(obj: Object) -> Object:
    if not entries.stored(obj):
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _check_type(applied: Object, resource: ResourceType) -> None:
    said = (applied.get("apiVersion") or "", applied.get("kind") or "")
    if said != (resource.group_version, resource.kind):
        version = said[0] or "/"
        raise errors.bad_request(f"invalid object type: {version}, Kind={said[1]}")
    metadata: Any = applied.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")


def _copy(applied: Object) -> Object:
    copied: Object = msgspec.json.decode(msgspec.json.encode(applied))
    return copied


def _named(applied: Object, resource: ResourceType) -> str:
    """Return what an object is called where it could not be read."""
    metadata = applied.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    namespace, name = said.get("namespace") or "", said.get("name") or ""
    return f"{namespace}/{name}; {resource.group_version}, Kind={resource.kind}"


def _decode(new: Object, applied: Object, resource: ResourceType) -> None:
    """Make of *new* what the API server's types make of it, or raise a 500 if they cannot."""
    if resource.structural is not None:
        return
    if why := schema_checks.misfit(resource.schema, new):
        said = f"failed to convert new typed object ({_named(applied, resource)}) to object: {why}"
        raise errors.StatusError(500, "", said)
    schema_checks.fill_nulls(resource.schema, new)
    drop_nulls(new, keep=NULL_TIMES)


def _refusal(conflicts: Sequence[Conflict]) -> errors.StatusError:
    """Return the 409 with a cause for each conflict."""
    by_manager = sorted(conflicts, key=lambda each: entries.manager_of(each.entry))
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager_text(each.entry)}",
            "field": field_sets.path_text(each.path),
        }
        for each in by_manager
    ]
    if len(causes) == 1:
        text = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: dict[str, list[str]] = {}
        for cause in causes:
            lines.setdefault(cause["message"], []).append(f"- {cause['field']}")
        said = [
            f"{who.replace('conflict', 'conflicts', 1)}:\n" + "\n".join(fields)
            for who, fields in lines.items()
        ]
        text = f"{len(causes)} conflicts: " + "\n".join(said)
    return errors.StatusError(
        409, "Conflict", f"Apply failed with {text}", details={"causes": causes}
    )


def _manager_text(one: Entry) -> str:
    text = quoted(one.get("manager") or "")
    if subresource := one.get("subresource"):
        text += f" with subresource {quoted(subresource)}"
    return text if one["operation"] == APPLY else f"{text} using {one['apiVersion']}"
