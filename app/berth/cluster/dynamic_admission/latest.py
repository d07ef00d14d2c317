"""Values made of stored objects, and made again when one of them has changed."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from berth.cluster.storage.log import Change
from berth.cluster.storage.store import Store

T = TypeVar("T")


class Latest(Generic[T]):
    """What *make* makes of all objects of each of *storage_keys*, in the order of their names."""

    def __init__(self, store: Store, storage_keys: Sequence[str], make: Callable[..., T]) -> None:
        """*make* takes a sequence of objects for each storage key."""
        self._store = store
        self._storage_keys = tuple(storage_keys)
        self._make = make
        self._made: T | None = None
        for storage_key in self._storage_keys:
            store.follow(storage_key, self._forget)

    def get(self) -> T:
        made = self._made
        if made is None:
            objects = map(self._store.list, self._storage_keys)
            made = self._made = self._make(*objects)
        return made

    def _forget(self, _change: Change) -> None:
        self._made = None
