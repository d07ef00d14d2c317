"""What is made of stored objects, and made again when one of them has changed."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from berth.cluster.storage.store import Store

T = TypeVar("T")


class Latest(Generic[T]):
    """What *make* makes of all objects of each of *storage_keys*, in the order of their names."""

    def __init__(self, store: Store, storage_keys: Sequence[str], make: Callable[..., T]) -> None:
        """*make* takes a sequence of objects for each storage key."""
        self._store = store
        self._storage_keys = tuple(storage_keys)
        self._make = make
        self._seen: tuple[int, ...] = ()
        self._made: T | None = None

    def get(self) -> T:
        seen = tuple(self._store.writes_of(each) for each in self._storage_keys)
        made = self._made
        if made is None or seen != self._seen:
            objects = map(self._store.list, self._storage_keys)
            made = self._made = self._make(*objects)
            self._seen = seen
        return made
