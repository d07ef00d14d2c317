"""The objects of a kind by namespace, decoded: what most writes look for in vain."""

from berth.cluster.resources import Object
from berth.cluster.storage.store import Store

NONE: tuple[Object, ...] = ()


class ByNamespace:
    """Keeps what it decoded until something is written to an object of the kind."""

    def __init__(self, store: Store, storage_key: str) -> None:
        self._store = store
        self._storage_key = storage_key
        self._writes = -1
        self._known: dict[str, tuple[Object, ...]] = {}

    def get(self, namespace: str) -> tuple[Object, ...]:
        """Return the objects of a namespace, by name; nobody may change them."""
        writes = self._store.writes_of(self._storage_key)
        if writes != self._writes:
            self._writes = writes
            self._known.clear()
        found = self._known.get(namespace)
        if found is None:
            stored = self._store.list(self._storage_key, namespace)
            found = self._known[namespace] = tuple(each.decode() for each in stored)
        return found
