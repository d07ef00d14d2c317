"""``metadata.managedFields``: a list of entries, each with the fields that one manager manages.

A manager is who it says it is, how it wrote (``Apply`` or ``Update``), in which subresource, and,
for updates, in which version of the API. Entries are kept as JSON has them, and never changed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from berth.cluster.resources import Object
from berth.cluster.writes.managed_fields import field_sets
from berth.cluster.writes.managed_fields.field_sets import FieldSet

Entry = dict[str, Any]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

MOST_UPDATES: Final = 10
"""Entries of updates that an object has at most; older ones become one."""

ANCIENT_CHANGES: Final = "ancient-changes"
"""The manager of older updates."""

UNKNOWN: Final = "unknown"
"""The manager of writes that do not say who it is."""


class Manager(NamedTuple):
    """Who manages fields."""

    name: str
    operation: str
    api_version: str
    """Of updates; empty for who applies, who is the same in all versions."""
    subresource: str


def manager_of(entry: Entry) -> Manager:
    """Return the manager of an entry."""
    operation = entry["operation"]
    return Manager(
        entry.get("manager") or "",
        operation,
        entry["apiVersion"] if operation == UPDATE else "",
        entry.get("subresource") or "",
    )


def is_of(one: Entry, manager: Manager) -> bool:
    """Tell whether an entry is that of *manager*."""
    operation = one["operation"]
    return bool(
        one.get("manager", "") == manager.name
        and operation == manager.operation
        and (operation == APPLY or one["apiVersion"] == manager.api_version)
        and one.get("subresource", "") == manager.subresource
    )


def entry(manager: Manager, api_version: str, fields: FieldSet, time: str = "") -> Entry:
    """Return the entry of *manager*; *time* is when it last changed something, if it did."""
    said: Entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": api_version,
    }
    if time:
        said["time"] = time
    said["fieldsType"] = "FieldsV1"
    said["fieldsV1"] = fields
    if manager.subresource:
        said["subresource"] = manager.subresource
    return said


def with_fields(one: Entry, fields: FieldSet) -> Entry:
    """Return an entry with other fields."""
    return {**one, "fieldsV1": fields}


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sort entries as the API server does: who applies first, then the older first."""
    return sorted(entries, key=_order)


def _order(one: Entry) -> tuple[str, str, str, str, str]:
    return (
        one["operation"],
        one.get("time") or "",
        one.get("manager") or "",
        one["apiVersion"],
        one.get("subresource") or "",
    )


def stored(obj: Object | None) -> list[Entry]:
    """Return the entries of an object that is stored, which are well-formed."""
    found: list[Entry] = (obj or {}).get("metadata", {}).get("managedFields") or []
    return found


def set_on(obj: Object, managed: Sequence[Entry]) -> None:
    """Say in *obj* who manages its fields."""
    before = obj.get("metadata") or {}
    metadata = {key: value for key, value in before.items() if key != "managedFields"}
    if managed:
        metadata["managedFields"] = list(managed)
    obj["metadata"] = metadata


def unmanaged(obj: Object) -> Object:
    """Return *obj* without what it says of that."""
    if not stored(obj):
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def read(said: Any) -> list[Entry] | None:
    """Return the entries in a request, one for each manager; None when they are malformed."""
    found: dict[Manager, Entry] = {}
    for one in said if isinstance(said, list) else ():
        fields = field_sets.read(one.get("fieldsV1", {})) if _is_entry(one) else None
        if fields is None:
            return None
        manager = manager_of(one)
        found[manager] = entry(manager, one["apiVersion"], fields, one.get("time") or "")
    return list(found.values())


def _is_entry(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and one.get("operation") in (APPLY, UPDATE)
        and one.get("fieldsType") == "FieldsV1"
        and bool(one.get("apiVersion"))
    )


def is_reset(said: Any) -> bool:
    """Tell whether a request wants that nobody manages any field: ``[{}]``."""
    return isinstance(said, list) and said == [{}]


def capped(entries: list[Entry]) -> list[Entry]:
    """Merge the oldest updates of each version until there are :data:`MOST_UPDATES` of them."""
    if len(entries) <= MOST_UPDATES:
        return entries
    updates = sorted((each for each in entries if each["operation"] == UPDATE), key=_order)
    excess = len(updates) - MOST_UPDATES
    if excess <= 0:
        return entries
    kept = {manager_of(each): each for each in entries}
    oldest: dict[str, Manager] = {}
    for update in updates:
        if excess <= 0:
            break
        version, manager = update["apiVersion"], manager_of(update)
        first = oldest.setdefault(version, manager)
        if first == manager:
            continue
        bucket = Manager(ANCIENT_CHANGES, UPDATE, version, "")
        before = kept.get(bucket) or kept.pop(first)
        if manager != bucket:
            del kept[manager]
        fields = field_sets.union(update["fieldsV1"], before["fieldsV1"])
        kept[bucket] = entry(bucket, version, fields, update.get("time") or "")
        excess -= 1
    return list(kept.values())


def differ_in_times_only(old: Sequence[Entry], new: Sequence[Entry]) -> bool:
    """Tell whether the same managers manage the same fields."""
    if len(old) != len(new):
        return False
    before = {manager_of(each): _timeless(each) for each in old}
    return all(before.get(manager_of(each)) == _timeless(each) for each in new)


def _timeless(one: Entry) -> Entry:
    return {key: value for key, value in one.items() if key != "time"}
