"""Objects as they will be: changes that were decided on, before the API knows of them."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from berth.framework.listers import ApiObject, Lister

T = TypeVar("T", bound=ApiObject)


class OutOfSyncError(Exception):
    """The object that is to be changed is not the one that is known."""


class AssumeCache(Generic[T]):
    """A lister with assumed objects laid over it (spec §4.8).

    What is assumed counts as long as the object that it was made from is the newest known: a new
    version or the deletion of that object ends the assumption. That is looked up when asked, so
    nobody has to tell.
    """

    __slots__ = ("_assumed", "_lister")

    def __init__(self, lister: Lister[T]) -> None:
        self._lister = lister
        self._assumed: dict[tuple[str, str], T] = {}

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object, as assumed if it is; *namespace* is "" for cluster-scoped kinds."""
        assumed = self._assumed.get((namespace, name))
        if assumed is not None and self._is_of_newest(assumed):
            return assumed
        return self._lister.get(namespace, name)

    def assumed(self) -> Mapping[tuple[str, str], T]:
        """Return what is assumed now, by namespace and name."""
        ended = [key for key, obj in self._assumed.items() if not self._is_of_newest(obj)]
        for key in ended:
            del self._assumed[key]
        return self._assumed

    def assume(self, obj: T) -> None:
        """Let *obj* stand for the object that it was made from, by its ``resourceVersion``.

        OutOfSyncError if that is not the newest one known.
        """
        meta = obj.metadata
        if not self._is_of_newest(obj):
            known = self._lister.get(meta.namespace, meta.name)
            stored = "" if known is None else known.metadata.resource_version
            raise OutOfSyncError(
                f'"{meta.key}" is out of sync (stored: {stored}, assume: {meta.resource_version})'
            )
        self._assumed[meta.namespace, meta.name] = obj

    def restore(self, obj: T) -> None:
        """End what is assumed of *obj*, if anything is."""
        self._assumed.pop((obj.metadata.namespace, obj.metadata.name), None)

    def _is_of_newest(self, obj: T) -> bool:
        meta = obj.metadata
        known = self._lister.get(meta.namespace, meta.name)
        return known is not None and known.metadata.resource_version == meta.resource_version
