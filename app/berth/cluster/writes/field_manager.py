"""Ownership of fields: kept with every write, and asked by server-side apply.

What a client creates or updates it manages from then on, and nobody else; what it applies it
manages too, but an applied value that contradicts another manager's is a conflict, unless it is
forced, and what a client applies no longer goes, unless another one manages it
(KEP-555; the API server's packages ``managedfields`` and structured-merge-diff ``merge``).
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from berth.cluster import errors
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin, quantities
from berth.cluster.schemas import checks as schema_checks
from berth.cluster.schemas.presence import complete
from berth.cluster.warnings import quoted
from berth.cluster.writes.managed_fields import checks, entries, field_sets, last_applied
from berth.cluster.writes.managed_fields.applying import Applying, ConflictsError
from berth.cluster.writes.managed_fields.changes import Changes, Conflict, FindKind, Kinds
from berth.cluster.writes.managed_fields.compile import node_of
from berth.cluster.writes.managed_fields.entries import APPLY, UPDATE, Entry, Manager
from berth.cluster.writes.managed_fields.field_sets import (
    difference,
    union,
)
from berth.cluster.writes.managed_fields.nodes import UnidentifiedError

log = logging.getLogger(__name__)


class FieldManager:
    """Keeps ``metadata.managedFields``: which client sets which field."""

    def __init__(self, find: FindKind) -> None:
        """*find* is asked for the other versions in which a kind is managed."""
        self._kinds = Kinds(find)

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
        changes = Changes(self._kinds, resource, subresource, live or {}, new)
        me = Manager(manager or entries.UNKNOWN, UPDATE, resource.group_version, subresource)
        try:
            known = _updated(known, changes, me, now)
        except UnidentifiedError:
            known = []  # fields that cannot be told apart have no owners
        except errors.StatusError:
            # Objects that cannot be converted to the version of some manager can be written still.
            log.warning("managed fields are left as they are", extra={"kind": resource.kind})
        entries.set_on(new, known)

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
        is_unowned = "uid" in live["metadata"] and not live["metadata"].get("managedFields")
        if is_unowned and (wrong := checks.problems(node, live)):
            said = (
                "failed to create manager for existing fields: failed to convert new object "
                f"({_named(live, resource)}) to smd typed: {wrong}"
            )
            raise errors.StatusError(500, "", said)
        me = Manager(manager, APPLY, "", subresource)
        applying = Applying(self._kinds, resource, me, live, _copy(applied), now)
        try:
            try:
                new = applying.result(force=force)
            except ConflictsError as exc:
                if manager != last_applied.KUBECTL:
                    raise
                allowed = last_applied.allowed_conflicts(live, node, resource.group_version)
                left = [
                    conflict
                    for conflict in exc.conflicts
                    if not field_sets.has(allowed, conflict.path)
                ]
                if left:
                    raise ConflictsError(left) from exc
                new = applying.result(force=True)
        except ConflictsError as exc:
            raise _refusal(exc.conflicts) from exc
        except UnidentifiedError as exc:
            wrong = checks.problems(node, live)
            said = f"failed to create typed live object ({_named(live, resource)}): {wrong}"
            raise errors.StatusError(500, "", said) from exc
        if manager == last_applied.KUBECTL:
            last_applied.update_annotation(new, applied)
        _decode(new, applied, resource)
        return new


def unchanged(new: Object, old: Object) -> bool:
    """Tell whether nothing but the times of managers is different.

    What a client applies may be different from what there is until defaults are filled in.
    """
    if new.keys() != old.keys():
        return False
    for part in reversed(new):  # the status is last, and what changes most
        if part != "metadata" and new[part] != old[part]:
            return False
    after, before = new["metadata"], old["metadata"]
    if after == before:
        return True
    if entries.unmanaged(new)["metadata"] != entries.unmanaged(old)["metadata"]:
        return False
    return entries.differ_in_times_only(entries.stored(old), entries.stored(new))


def _updated(known: list[Entry], changes: Changes, me: Manager, now: str) -> list[Entry]:
    """Return the entries after *me* made *changes*."""
    changed, removed = changes.difference(me.api_version)
    if not (changed or removed):
        return known
    kept, mine = changes.taken(known, of=me)
    fields = union(difference(mine["fieldsV1"], removed), changed) if mine else changed
    if fields:
        time = now if changed else (mine or {}).get("time", "")
        kept.append(entries.entry(me, me.api_version, fields, time))
    return entries.in_order(entries.capped(kept)) if len(kept) > 1 else kept


def _known(live: Object | None, new: Object, subresource: str) -> list[Entry]:
    """Return the managers before a write: those that it says itself, or else those of *live*."""
    before = entries.stored(live)
    said = new["metadata"].get("managedFields")
    if subresource or not said or said == before:
        return before
    if entries.is_reset(said):
        return []
    return entries.read(said) or before


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
    return f"{namespace}/{name}; {resource.group}/{resource.version}, Kind={resource.kind}"


def _decode(new: Object, applied: Object, resource: ResourceType) -> None:
    """Make of *new* what the API server's types make of it, or raise a 500 if they cannot."""
    if resource.structural is not None:
        complete(builtin.meta("ObjectMeta"), new["metadata"])
        return
    if why := schema_checks.misfit(resource.schema, new):
        named = _named(applied, resource)
        said = f"failed to convert new typed object ({named}) to object: {why}"
        if why == schema_checks.MALFORMED:
            kind = named.partition("; ")[2]
            said = (
                f"failed to convert new object ({named}) to proper version: "
                f"unable to convert unstructured object to {kind}: {why}"
            )
        raise errors.StatusError(500, "", said)
    complete(resource.schema, new)
    quantities.write_canonically(resource.schema, new)


def _refusal(conflicts: Sequence[Conflict]) -> errors.StatusError:
    """Return the 409 with a cause for each conflict, of the first :data:`errors.MOST_CAUSES`."""
    by_manager = sorted(conflicts, key=lambda each: _identifier(each.entry))
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager_text(each.entry)}",
            "field": field_sets.path_text(each.path),
        }
        for each in by_manager[: errors.MOST_CAUSES]
    ]
    if len(conflicts) == 1:
        text = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        fields: dict[str, list[str]] = {}
        for cause in causes:
            who = cause["message"].replace("conflict", "conflicts", 1)
            fields.setdefault(who, []).append(f"- {cause['field']}")
        lines = [line for who, below in fields.items() for line in (f"{who}:", *below)]
        if len(conflicts) > len(causes):
            lines.append(f"and {len(conflicts) - len(causes)} more")
        text = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return errors.StatusError(
        409, "Conflict", f"Apply failed with {text}", details={"causes": causes}
    )


def _identifier(one: Entry) -> tuple[str, ...]:
    """Return what the API server sorts managers by: its JSON of their entries, without fields.

    What is applied has no version and no time in it.
    """
    said = [one.get("manager") or "", one["operation"]]
    if one["operation"] != APPLY:
        said += [one["apiVersion"], one.get("time") or ""]
    return (*said, one.get("subresource") or "")


def _manager_text(one: Entry) -> str:
    text = quoted(one.get("manager") or "")
    if subresource := one.get("subresource"):
        text += f" with subresource {quoted(subresource)}"
    return text if one["operation"] == APPLY else f"{text} using {one['apiVersion']}"
