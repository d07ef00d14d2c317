"""Objects as they will be: changes that were decided on, before a watch reports them."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from berth.kube.objects.devices import ResourceClaim
from berth.scheduler.framework.listers import ApiObject, Change, Followers, Lister, Listers

T = TypeVar("T", bound=ApiObject)


class OutOfSyncError(Exception):
    """The object to be assumed is older than the one that is known, or of one that is gone."""


class AssumeCache(Generic[T]):
    """A lister with assumed objects laid over it, as kube-scheduler's assume cache (spec §4.8).

    An object counts as assumed until a watch reports a newer version of it, or its deletion.
    """

    __slots__ = ("__weakref__", "_assumed", "_followers", "_lister")

    def __init__(self, lister: Lister[T]) -> None:
        self._lister = lister
        self._assumed: dict[tuple[str, str], T] = {}
        self._followers: Followers[T] = Followers()
        lister.follow(self._on_change)

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object, as assumed if it is; *namespace* is "" for cluster-scoped kinds."""
        return self._assumed.get((namespace, name)) or self._lister.get(namespace, name)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the objects of all namespaces, as assumed where they are."""
        for obj in self._lister:
            yield self._assumed.get((obj.metadata.namespace, obj.metadata.name), obj)

    @property
    def assumed(self) -> Mapping[tuple[str, str], T]:
        """What is assumed now, by namespace and name."""
        return self._assumed

    def assume(self, obj: T) -> None:
        """Let *obj* stand for the object of its name.

        OutOfSyncError if a newer version is known, by ``resourceVersion``, or none at all.
        """
        meta = obj.metadata
        known = self.get(meta.namespace, meta.name)
        if known is None or is_newer(known, than=obj):
            stored = "" if known is None else known.metadata.resource_version
            raise OutOfSyncError(
                f'"{meta.key}" is out of sync (stored: {stored}, assume: {meta.resource_version})'
            )
        self._assumed[meta.namespace, meta.name] = obj
        self._followers.notify(known, obj)

    def restore(self, namespace: str, name: str) -> None:
        """Go back to what the watch reported; nothing happens if nothing is assumed."""
        assumed = self._assumed.pop((namespace, name), None)
        if assumed is not None:
            self._followers.notify(assumed, self._lister.get(namespace, name))

    def follow(self, change: Change[T]) -> None:
        """Do as :meth:`Lister.follow`; what is assumed and restored is a change, too."""
        self._followers.add(change)
        for obj in self:
            change(None, obj)

    def _on_change(self, old: T | None, new: T | None) -> None:
        obj = new or old
        assert obj is not None, "a change has an object before or after it"
        key = (obj.metadata.namespace, obj.metadata.name)
        latest = self._assumed.get(key, old)
        if latest is not None and new is not None and not is_newer(new, than=latest):
            return
        self._assumed.pop(key, None)
        self._followers.notify(latest, new)


def resource_claim_cache(listers: Listers) -> AssumeCache[ResourceClaim]:
    """Return the one cache of ResourceClaims, which all profiles and the queue share."""
    return listers.shared(_of_resource_claims)


def _of_resource_claims(listers: Listers) -> AssumeCache[ResourceClaim]:
    return AssumeCache(listers.resource_claims)


def is_newer(obj: ApiObject, *, than: ApiObject) -> bool:
    """Compare resource versions, which are integers; another object of the name is newer, too."""
    mine, theirs = obj.metadata, than.metadata
    if mine.uid != theirs.uid:
        return True
    if not (mine.resource_version.isdecimal() and theirs.resource_version.isdecimal()):
        return mine.resource_version != theirs.resource_version
    return int(mine.resource_version) > int(theirs.resource_version)
