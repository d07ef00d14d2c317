"""The objects of a kind by namespace, decoded: what most writes look for in vain."""

from berth.cluster.reading import objects
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.log import Change
from berth.cluster.storage.store import Store


class ByNamespace:
    """Keeps what it decoded of a namespace until something is written to an object there.

    Objects that cannot be read are left out, unless they are for the caller to find out.
    """

    def __init__(self, store: Store, resource: ResourceType, *, unreadable: bool = False) -> None:
        self._store = store
        self._resource = resource
        self._keeps_unreadable = unreadable
        self._known: dict[str, tuple[Object, ...]] = {}
        store.follow(resource.storage_key, self._forget)

    def get(self, namespace: str) -> tuple[Object, ...]:
        """Return the objects of a namespace, by name; nobody may change them."""
        found = self._known.get(namespace)
        if found is None:
            stored = self._store.list(self._resource.storage_key, namespace)
            found = self._known[namespace] = (
                tuple(each.decode() for each in stored)
                if self._keeps_unreadable
                else tuple(objects(self._resource, stored))
            )
        return found

    def _forget(self, change: Change) -> None:
        namespace, _ = change.stored.key
        self._known.pop(namespace, None)
