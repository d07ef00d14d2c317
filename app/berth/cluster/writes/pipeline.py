"""Creating and changing objects: identity, concurrency, defaults, validation, in that order.

Synchronous on purpose: between reading an object and storing its successor nothing else runs, so a
patch never loses a race. HTTP is not known here; refusals are StatusErrors.
"""

from collections.abc import Callable
from typing import Protocol

from berth.clock import Clock, rfc3339
from berth.cluster import errors, views
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import AlreadyExistsError, NotFoundError, Store, Stored
from berth.cluster.strategies import metadata as metadata_rules
from berth.cluster.writes.deletion import Deletions, has_ended
from berth.cluster.writes.identities import Identities
from berth.field_errors import FieldError

GENERATE_ATTEMPTS = 8
"""How often a taken generated name is drawn again."""

KEPT_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
"""What no update changes; of these a create takes none from the client either."""

DROPPED_METADATA = ("managedFields", "selfLink")
"""Not kept: there is no server-side apply yet, and nobody fills selfLink any more."""

STATUS_WRITES = frozenset({"approval", "status"})
"""Subresources that take the status only."""

Change = Callable[[Object], Object]
"""Makes the proposed object, which says its type, of the current one: a PUT's body, a patch. The
current one may become part of it."""


class Admission(Protocol):
    """What a write must pass that depends on other objects; raises StatusError to refuse it."""

    def create(self, resource: ResourceType, obj: Object, store: Store) -> None:
        """Complete *obj*, about to be created, in place."""
        ...

    def update(self, resource: ResourceType, obj: Object, store: Store) -> None:
        """Evaluate what an object is about to become."""
        ...

    def delete(self, resource: ResourceType, name: str) -> None:
        """Evaluate that an object is about to be deleted."""
        ...


class Writes:
    """Creates and updates objects of any kind."""

    def __init__(
        self,
        store: Store,
        deletions: Deletions,
        *,
        admission: Admission,
        clock: Clock,
        identities: Identities,
    ) -> None:
        self._store = store
        self._deletions = deletions
        self._admission = admission
        self._clock = clock
        self._identities = identities

    def create(
        self, resource: ResourceType, namespace: str, body: Object, *, dry_run: bool = False
    ) -> Stored:
        """Create the object that a POST to *namespace* ("" when cluster-scoped) carries.

        *body* has metadata and becomes part of the object.
        """
        metadata = dict(body["metadata"])
        obj = {**body, **views.type_of(resource), "metadata": metadata}
        if metadata.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        _take_namespace(resource, metadata, namespace)
        for key in (*KEPT_METADATA, *DROPPED_METADATA):
            metadata.pop(key, None)
        self._name(resource, namespace, metadata)
        metadata["uid"] = self._identities.uid()
        metadata["creationTimestamp"] = rfc3339(self._clock.now())
        strategy = resource.strategy
        strategy.default(obj)
        self._admission.create(resource, obj, self._store)
        if not strategy.keeps_status_on_create:
            obj.pop("status", None)
        strategy.prepare(obj, None)
        status = strategy.initial_status(obj)
        if status is not None:
            obj["status"] = {**status, **(obj.get("status") or {})}
        _refuse(resource, metadata["name"], strategy.validate(obj, None))
        try:
            return self._store.create(
                resource.storage_key, resource.to_storage(obj), dry_run=dry_run
            )
        except AlreadyExistsError as exc:
            deleting = "deletionTimestamp" in exc.existing.decode()["metadata"]
            raise errors.already_exists(resource, metadata["name"], deleting=deleting) from exc

    def update(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        change: Change,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Stored:
        """Replace an object by what *change* makes of it.

        With one of :data:`STATUS_WRITES` only status and metadata are taken from the result, with
        ``finalize`` only ``spec.finalizers``; else all but the status, where the kind has that
        subresource.
        Nothing is written when nothing changes. An object that waits for its last finalizer to go
        is gone after this.
        """
        stored = self.get(resource, namespace, name)
        old = views.as_object(resource, stored)
        new = change(views.as_object(resource, stored))
        _check_same(resource, new["metadata"], stored)
        new = _confined(resource, new, old, subresource)
        strategy = resource.strategy
        strategy.default(new)
        if subresource in STATUS_WRITES:
            found = strategy.validate_status(new, old)
            if _told(new) != _told(old):
                found += metadata_rules.validate_status_write(
                    new, old, namespaced=resource.namespaced
                )
            _refuse(resource, name, found)
        elif not subresource:
            self._admission.update(resource, new, self._store)
            strategy.prepare(new, old)
            _refuse(resource, name, strategy.validate(new, old))
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return stored
        if has_ended(new):
            return self._deletions.end(resource, stored, dry_run=dry_run)
        return self._store.update(
            resource.storage_key,
            resource.to_storage(new),
            expected=stored.version,
            dry_run=dry_run,
        )

    def get(self, resource: ResourceType, namespace: str, name: str) -> Stored:
        """Return the object or raise a 404."""
        try:
            return self._store.get(resource.storage_key, namespace, name)
        except NotFoundError as exc:
            raise errors.not_found(resource, name) from exc

    def delete(
        self, resource: ResourceType, namespace: str, name: str, options: DeleteOptions
    ) -> tuple[Stored, bool]:
        """Delete an object, or mark it; return its state after that, and whether it is gone."""
        stored = self.get(resource, namespace, name)
        self._admission.delete(resource, name)
        return self._deletions.delete(resource, stored, options)

    def _name(self, resource: ResourceType, namespace: str, metadata: Object) -> None:
        if metadata.get("name"):
            return
        prefix = metadata.get("generateName")
        if not prefix:
            missing = "Required value: name or generateName is required"
            error = FieldError("metadata.name", "FieldValueRequired", missing)
            raise errors.invalid(resource, "", [error])
        for _ in range(GENERATE_ATTEMPTS):
            metadata["name"] = self._identities.name(prefix)
            try:
                self._store.get(resource.storage_key, namespace, metadata["name"])
            except NotFoundError:
                return


def _take_namespace(resource: ResourceType, metadata: Object, namespace: str) -> None:
    if not resource.namespaced:
        return
    if metadata.get("namespace", namespace) not in ("", namespace):
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def _check_same(resource: ResourceType, metadata: Object, stored: Stored) -> None:
    """Raise unless a proposed object means the stored one, in the state its author saw."""
    namespace, name = stored.key
    said = metadata.get("name") or name
    if said != name:
        raise errors.bad_request(
            f"the name of the object ({said}) does not match the name on the URL ({name})"
        )
    _take_namespace(resource, metadata, namespace)
    uid = metadata.get("uid") or stored.uid
    if uid != stored.uid:
        raise errors.conflict(resource, name, errors.uid_mismatch(uid, stored.uid))
    if metadata.get("resourceVersion", "") not in ("", "0", str(stored.version)):
        raise errors.modified(resource, name)


def _confined(resource: ResourceType, new: Object, old: Object, subresource: str) -> Object:
    """Return *new* with what this request may not change put back as it was in *old*."""
    if subresource in STATUS_WRITES:
        confined = {key: value for key, value in old.items() if key != "status"}
        confined["metadata"] = _kept(new["metadata"], old["metadata"])
        for key in resource.strategy.kept_by_status:
            _put_back(confined["metadata"], old["metadata"], key)
        return confined | ({"status": new["status"]} if new.get("status") is not None else {})
    if subresource == "finalize":
        spec = new.get("spec")
        finalizers = spec.get("finalizers") if isinstance(spec, dict) else None
        return {**old, "spec": {**(old.get("spec") or {}), "finalizers": finalizers}}
    new["metadata"] = _kept(new["metadata"], old["metadata"])
    if "status" in resource.subresources:
        _put_back(new, old, "status")
    return new


def _kept(new: Object, old: Object) -> Object:
    """Return the metadata *new*, with what no update changes as it was in *old*."""
    metadata = {key: value for key, value in new.items() if key not in DROPPED_METADATA}
    for key in ("name", *KEPT_METADATA):
        _put_back(metadata, old, key)
    return metadata


def _told(obj: Object) -> Object:
    """Return the metadata that clients decide on."""
    return {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}


def _put_back(new: Object, old: Object, key: str) -> None:
    new.pop(key, None)
    if key in old:
        new[key] = old[key]


def _refuse(resource: ResourceType, name: str, found: list[FieldError]) -> None:
    if found:
        raise errors.invalid(resource, name, found)
