"""The objects of a kind by namespace, decoded: what most writes look for in vain."""

from berth.cluster.resources import Object
from berth.cluster.storage.log import Change
from berth.cluster.storage.store import Store


class ByNamespace:
    """Keeps what it decoded of a namespace until something is written to an object there."""

    def __init__(self, store: Store, storage_key: str) -> None:
        self._store = store
        self._storage_key = storage_key
        self._known: dict[str, tuple[Object, ...]] = {}
        store.follow(storage_key, self._forget)

    def get(self, namespace: str) -> tuple[Object, ...]:
        """Return the objects of a namespace, by name; nobody may change them."""
        found = self._known.get(namespace)
        if found is None:
            stored = self._store.list(self._storage_key, namespace)
            found = self._known[namespace] = tuple(each.decode() for each in stored)
        return found

    def _forget(self, change: Change) -> None:
        namespace, _ = change.stored.key
        self._known.pop(namespace, None)
