"""One applied configuration on its way into one object (structured-merge-diff, ``merge``)."""

from collections.abc import Sequence

from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.managed_fields import entries
from berth.cluster.writes.managed_fields.changes import (
    UNMANAGED,
    Changes,
    Conflict,
    Kinds,
    converted,
    unwritten,
)
from berth.cluster.writes.managed_fields.compile import node_of
from berth.cluster.writes.managed_fields.entries import Entry, Manager
from berth.cluster.writes.managed_fields.field_sets import (
    FieldSet,
    difference,
    in_order,
    intersection,
    union,
    without,
)


class ConflictsError(Exception):
    """Fields of other managers are applied with other values."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class Applying:
    """One configuration on its way into one object."""

    def __init__(
        self,
        kinds: Kinds,
        resource: ResourceType,
        me: Manager,
        live: Object,
        applied: Object,
        now: str,
    ) -> None:
        self._kinds = kinds
        self._resource = resource
        self._me = me
        self._known = entries.stored(live)
        self._live = entries.unmanaged(live)
        self._applied = applied
        self._now = now
        self._mine = next((each for each in self._known if entries.is_of(each, me)), None)

    def result(self, *, force: bool) -> Object:
        """Return the object with its managers."""
        resource, me = self._resource, self._me
        node = node_of(resource)
        fields = in_order(node.fields(self._applied) or {})
        fields = difference(without(fields, unwritten(resource, me.subresource)), UNMANAGED)
        last_time = (self._mine or {}).get("time") or ""
        mine = entries.entry(me, resource.group_version, fields, last_time)
        managed = [*(each for each in self._known if each is not self._mine), mine]

        new = self._pruned(node.merge(self._live, self._applied), managed)
        write = Changes(self._kinds, resource, me.subresource, self._live, new)
        if not force and (conflicts := write.conflicts(managed, of=me)):
            raise ConflictsError(conflicts)
        kept, _ = write.taken(managed, of=me)
        if fields:
            time = last_time if new == self._live else self._now
            kept.append(entries.entry(me, resource.group_version, fields, time))
        entries.set_on(new, entries.in_order(kept))
        return new

    def _pruned(self, merged: Object, managed: Sequence[Entry]) -> Object:
        """Return *merged* without what only this manager managed, and applies no longer."""
        if self._mine is None:
            return merged
        version = self._mine["apiVersion"]
        last_kind = self._kinds.in_version(self._resource, version)
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
            kind = self._kinds.in_version(self._resource, api_version)
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
