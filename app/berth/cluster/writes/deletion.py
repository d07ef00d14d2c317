"""Deleting objects: at once, after a grace period, or when the last finalizer has let go.

An object with finalizers, or with a grace period (a pod on a node), is marked with a
``deletionTimestamp`` and stays: whoever holds it takes the finalizer away, a kubelet deletes the
pod again with a grace period of 0.
"""

from contextlib import suppress
from typing import Final

from berth.cluster import errors, views
from berth.cluster.kinds.builtin import find
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.cluster.times import seconds_of
from berth.runtime.clock import Clock, rfc3339

SERVICES: Final = "services"
ENDPOINTS: Final = find("", "v1", "endpoints")

LAST_SECOND = 253_402_300_799
"""9999-12-31T23:59:59Z, in unix seconds: no time of the API is later."""

ORPHAN = "orphan"
"""The finalizer that tells the garbage collector to let the dependents live."""
FOREGROUND = "foregroundDeletion"
"""The one that tells it to delete them first."""

_PROPAGATIONS = {ORPHAN: "Orphan", FOREGROUND: "Foreground"}


def finalizers_of(obj: Object) -> list[str]:
    """Return who holds an object back; a namespace is held by its ``spec.finalizers`` too."""
    spec = obj.get("spec")
    below = spec.get("finalizers") if isinstance(spec, dict) else None
    return [*(obj["metadata"].get("finalizers") or []), *(below or [])]


def has_ended(obj: Object) -> bool:
    """Whether nothing holds a deleted object any more."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("deletionGracePeriodSeconds")
        and not finalizers_of(obj)
    )


class Deletions:
    """Deletes objects of any kind."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def delete(
        self, resource: ResourceType, stored: Stored, options: DeleteOptions
    ) -> tuple[Stored, bool]:
        """Delete or mark an object; return its state after that, and whether it is gone.

        Raises :class:`~berth.cluster.storage.store.ConflictError` when it is no more what is
        *stored*.
        """
        check_preconditions(resource, stored, options)
        new = views.as_object(resource, stored)
        grace = min(_grace(resource, new, options), LAST_SECOND - int(self._clock.now()))
        _set_propagation(resource, new["metadata"], options.propagation)
        _hold(resource, new["metadata"])
        is_held = bool(grace or finalizers_of(new))
        if is_held or resource.strategy.graceful_seconds is not None:
            if "deletionTimestamp" in new["metadata"]:
                _shorten(new["metadata"], grace)
            else:
                self._mark(resource, new, grace)
        if not is_held:
            last_state = resource.to_storage(new)
            return self.end(resource, stored, last_state, dry_run=options.dry_run), True
        if new == views.as_object(resource, stored):
            return stored, False
        marked = self._store.update(
            resource.storage_key,
            resource.to_storage(new),
            expected=stored.version,
            dry_run=options.dry_run,
        )
        return marked, False

    def end(
        self,
        resource: ResourceType,
        stored: Stored,
        last_state: Object | None = None,
        *,
        dry_run: bool = False,
    ) -> Stored:
        """Remove an object that nothing holds; watchers see it go in its *last_state*.

        With a Service the server itself deletes its Endpoints (``pkg/registry/core/service``).
        """
        gone = self._store.delete(
            resource.storage_key,
            *stored.key,
            expected=stored.version,
            last_state=last_state,
            dry_run=dry_run,
        )
        if resource.storage_key == SERVICES and not dry_run:
            with suppress(NotFoundError):
                endpoints = self._store.get(ENDPOINTS.storage_key, *stored.key)
                self.delete(ENDPOINTS, endpoints, DeleteOptions())
        return gone

    def _mark(self, resource: ResourceType, new: Object, grace: int) -> None:
        metadata = new["metadata"]
        metadata["deletionTimestamp"] = rfc3339(self._clock.now() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
        resource.strategy.deleting(new)


def _grace(resource: ResourceType, obj: Object, options: DeleteOptions) -> int:
    """Return the seconds the object may live on; a second delete can only shorten them."""
    asked = options.grace_period_seconds
    if "deletionTimestamp" in obj["metadata"]:
        before = int(obj["metadata"].get("deletionGracePeriodSeconds") or 0)
        return before if asked is None else min(before, asked)
    graceful = resource.strategy.graceful_seconds
    own = 0 if graceful is None else graceful(obj)
    return own if own == 0 or asked is None else asked


def _shorten(metadata: Object, grace: int) -> None:
    """Bring the end forward, counted from the first delete."""
    before = metadata.get("deletionGracePeriodSeconds") or 0
    if grace != before:
        end = seconds_of(metadata["deletionTimestamp"])
        metadata["deletionTimestamp"] = rfc3339(end - before + grace)
        metadata["deletionGracePeriodSeconds"] = grace


def _set_propagation(resource: ResourceType, metadata: Object, asked: str) -> None:
    """Ask the collector to orphan the dependents or to delete them first, or take that back.

    What the request says comes before what the object's finalizers say, and that before what is
    usual for its kind.
    """
    if not resource.garbage_collected:
        return
    before = metadata.get("finalizers") or []
    said = next((_PROPAGATIONS[each] for each in before if each in _PROPAGATIONS), "")
    wanted = asked or said or resource.default_propagation
    after = [each for each in before if each not in _PROPAGATIONS]
    after += [each for each, propagation in _PROPAGATIONS.items() if propagation == wanted]
    if after:
        metadata["finalizers"] = after
    else:
        metadata.pop("finalizers", None)


def _hold(resource: ResourceType, metadata: Object) -> None:
    """Let those who clean up after objects of this kind hold one that is deleted."""
    held_by = resource.strategy.held_by
    if held_by and "deletionTimestamp" not in metadata:
        before = metadata.get("finalizers") or []
        metadata["finalizers"] = [*before, *(each for each in held_by if each not in before)]


def check_preconditions(resource: ResourceType, stored: Stored, options: DeleteOptions) -> None:
    """Raise a 409 unless the preconditions hold."""
    uid, version = options.uid, options.resource_version
    if uid and uid != stored.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({stored.uid}). The object might have been deleted and then recreated"
        )
        raise errors.failed_precondition(resource, stored.name, why)
    if version and version != str(stored.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({stored.version}). The object might have been modified"
        )
        raise errors.failed_precondition(resource, stored.name, why)
