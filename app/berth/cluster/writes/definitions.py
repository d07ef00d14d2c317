"""CustomResourceDefinitions become kinds, and with them their objects go.

Follows the store from within its commits, so that a kind is served when the answer to the create of
its definition is on its way. Sources: ``apiextensions-apiserver/pkg/controller`` (``status``,
``establish``, ``finalizer``, ``apiapproval``).
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from berth.cluster import views
from berth.cluster.custom.definition import FINALIZER, approval
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.custom import is_terminating, resource_types, storage_type
from berth.cluster.kinds.registry import Registry
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.log import Change, ChangeType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.cluster.writes.deletion import Deletions, has_ended
from berth.runtime.clock import Clock, rfc3339

log = logging.getLogger(__name__)

DEFINITIONS: Final = find("apiextensions.k8s.io", "v1", "customresourcedefinitions")

MOST_GONE: Final = 8
"""Kinds that are gone and whose changes are kept for those who watch them."""

DELETING: Final = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
DELETED: Final = ("InstanceDeletionCompleted", "removed all instances")
"""Reasons and messages of the condition ``Terminating``."""


@dataclass(slots=True)
class _Known:
    """What has become of a definition."""

    group: str
    names: Object
    """Those that it has, which others of its group cannot have."""
    is_waiting: bool = False
    """Whether it has not got all the names that it wants."""
    served: list[ResourceType] = field(default_factory=list)


class Definitions:
    """Keeps *registry* in step with the CustomResourceDefinitions in *store*."""

    def __init__(
        self, registry: Registry, store: Store, deletions: Deletions, *, clock: Clock
    ) -> None:
        self._registry = registry
        self._store = store
        self._deletions = deletions
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._removed: deque[str] = deque()
        """Storage keys of kinds that are gone, the latest last."""
        self._watched: set[str] = set()
        """Storage keys whose last object somebody waited for, or waits."""

    def start(self) -> None:
        """Serve what is defined, and follow what becomes of it. Call it once."""
        for stored in self._store.list(DEFINITIONS.storage_key):
            self._try(stored, partial(self._settle, stored))
        self._store.follow(DEFINITIONS.storage_key, self._changed)

    def _changed(self, change: Change) -> None:
        stored = change.stored
        if change.type is ChangeType.DELETED:
            self._try(stored, partial(self._forget, stored.name))
        else:
            self._try(stored, partial(self._settle, stored))

    def _try(self, stored: Stored, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception:  # the write is done; nobody else can be told, nor are others to suffer
            log.exception("definition failed", extra={"definition": stored.name})

    def _settle(self, stored: Stored) -> None:
        """Give a definition its names, serve what it defines, and say so in its status."""
        definition = views.as_object(DEFINITIONS, stored)
        if is_terminating(definition):
            self._terminate(definition)
            return
        names, conditions = self._accepted(definition)
        status = {
            **(definition.get("status") or {}),
            "acceptedNames": names,
            "conditions": conditions,
        }
        known = self._known.setdefault(stored.name, _Known(definition["spec"]["group"], names))
        released = known.names != names
        known.names, known.is_waiting = names, _status_of(conditions, "NamesAccepted") != "True"
        if definition.get("status") != status:
            definition["status"] = status
            self._update(definition)  # comes back here, with nothing to say
        elif _is_established(status):
            self._serve(known, resource_types(definition))
        if released:
            self._retry(stored.name)

    def _serve(self, known: _Known, resources: list[ResourceType]) -> None:
        """Put the kinds in the place of those that the definition had before."""
        taken = {(resource.group, resource.version, resource.plural) for resource in resources}
        for each in known.served:
            if (each.group, each.version, each.plural) not in taken:
                self._registry.remove(each)
        known.served = []
        for resource in resources:
            there = self._registry.find(resource.group, resource.version, resource.plural)
            if there is None or there.structural is not None:  # what came with the server stays
                self._registry.add(resource)
                known.served.append(resource)

    def _forget(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            self._removed += {each.storage_key: None for each in known.served}
            self._serve(known, [])
            self._retry(name)
            self._compact()

    def _compact(self) -> None:
        """Forget the changes of kinds that are gone, but for the latest, which some still watch."""
        while len(self._removed) > MOST_GONE:
            storage_key = self._removed.popleft()
            if all(each.storage_key != storage_key for each in self._registry):
                self._store.compact(storage_key)

    def _retry(self, released: str) -> None:
        """Look again at those who wait for names that *released* may have had."""
        waiting = [each for each, known in self._known.items() if known.is_waiting]
        for name in waiting:
            if name != released:
                self._settle(self._store.get(DEFINITIONS.storage_key, "", name))

    # Names.

    def _accepted(self, definition: Object) -> tuple[Object, list[Object]]:
        """Return the names that a definition has, and its conditions (``status`` controller)."""
        spec, status = definition["spec"], definition.get("status") or {}
        wanted, had = spec["names"], status.get("acceptedNames") or {}
        mine = definition["metadata"]["name"]
        others = [
            known.names
            for name, known in self._known.items()
            if name != mine and known.group == spec["group"]
        ]
        resources = {text for names in others for text in _resource_names(names)}
        kinds = {names.get(key) for names in others for key in ("kind", "listKind")}
        conflicts: list[tuple[str, str]] = []
        names: Object = dict(had)
        for key, taken in (
            ("plural", resources),
            ("singular", resources),
            ("shortNames", resources),
            ("kind", kinds),
            ("listKind", kinds),
        ):
            value = wanted.get(key)
            clashes = [each for each in _as_list(value) if each in taken]
            if clashes:
                reason = f"{key[0].upper()}{key[1:]}Conflict"
                said = ", ".join(f'"{clash}" is already in use' for clash in clashes)
                conflicts.append((reason, said))
            else:
                _put(names, key, value)
        _put(names, "categories", wanted.get("categories"))
        names = {"plural": "", "kind": "", **names}
        return names, self._conditions(definition, conflicts)

    def _conditions(self, definition: Object, conflicts: list[tuple[str, str]]) -> list[Object]:
        conditions: list[Object] = [
            dict(condition)
            for condition in (definition.get("status") or {}).get("conditions") or ()
        ]
        if conflicts:
            reason, message = conflicts[0]
            self._set(conditions, "NamesAccepted", "False", reason, message)
        else:
            self._set(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
        approved = approval(definition)
        if approved is not None:
            self._set(conditions, "KubernetesAPIApprovalPolicyConformant", *approved)
        if _status_of(conditions, "Established") == "True":
            pass  # it stays so
        elif conflicts:
            self._set(
                conditions, "Established", "False", "NotAccepted", "not all names are accepted"
            )
        else:
            self._set(
                conditions,
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            )
        return conditions

    def _set(
        self, conditions: list[Object], kind: str, status: str, reason: str, message: str
    ) -> None:
        said = {"type": kind, "status": status, "reason": reason, "message": message}
        for condition in conditions:
            if condition.get("type") == kind:
                if condition.get("status") != status:
                    said["lastTransitionTime"] = rfc3339(self._clock.now())
                condition |= said
                return
        conditions.append({**said, "lastTransitionTime": rfc3339(self._clock.now())})

    # The end.

    def _terminate(self, definition: Object) -> None:
        """Delete the objects of a definition; when the last is gone, let go of it."""
        metadata, status = definition["metadata"], definition["status"]
        if FINALIZER not in (metadata.get("finalizers") or ()):
            return
        if _status_of(status.get("conditions") or [], "Terminating") != "True":
            conditions = status.setdefault("conditions", [])
            self._set(conditions, "Terminating", "True", *DELETING)
            self._update(definition)  # comes back here
            return
        name, resource = metadata["name"], storage_type(definition)
        known = self._known.setdefault(
            name, _Known(resource.group, status["acceptedNames"], is_waiting=False)
        )
        self._serve(known, resource_types(definition) if _is_established(status) else [])
        for stored in self._store.list(resource.storage_key):
            self._deletions.delete(resource, stored, DeleteOptions())
        if not self._store.list(resource.storage_key):
            self._release(name)
        elif resource.storage_key not in self._watched:
            self._watched.add(resource.storage_key)
            self._store.follow(resource.storage_key, lambda change: self._gone(name, change))

    def _gone(self, name: str, change: Change) -> None:
        """Let go of a definition that waits for its objects, when that was the last."""
        if change.type is not ChangeType.DELETED or self._store.list(name):
            return
        try:
            self._release(name)
        except Exception:  # the write is done; nobody else can be told
            log.exception("definition not released", extra={"definition": name})

    def _release(self, name: str) -> None:
        try:
            stored = self._store.get(DEFINITIONS.storage_key, "", name)
        except NotFoundError:
            return
        definition = views.as_object(DEFINITIONS, stored)
        metadata = definition["metadata"]
        if not is_terminating(definition) or FINALIZER not in (metadata.get("finalizers") or ()):
            return
        metadata["finalizers"].remove(FINALIZER)
        self._set(definition["status"]["conditions"], "Terminating", "False", *DELETED)
        if has_ended(definition):
            self._deletions.end(DEFINITIONS, stored)
        else:
            self._update(definition)

    def _update(self, definition: Object) -> None:
        self._store.update(DEFINITIONS.storage_key, definition)


def _resource_names(names: Object) -> list[str]:
    return [
        each for key in ("plural", "singular", "shortNames") for each in _as_list(names.get(key))
    ]


def _as_list(value: Any) -> list[str]:
    if not value:
        return []
    return value if isinstance(value, list) else [value]


def _put(names: Object, key: str, value: Any) -> None:
    if value:
        names[key] = value
    else:
        names.pop(key, None)


def _status_of(conditions: list[Object], kind: str) -> str:
    return (
        next(
            (condition.get("status") for condition in conditions if condition.get("type") == kind),
            None,
        )
        or ""
    )


def _is_established(status: Object) -> bool:
    return _status_of(status.get("conditions") or [], "Established") == "True"
