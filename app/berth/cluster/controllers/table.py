"""The objects of one kind, as a watch last told, with the indexes that controllers look up."""

import logging
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Generic, TypeVar

from berth.cluster.object_views import ObjectView

log = logging.getLogger(__name__)

T = TypeVar("T", bound=ObjectView)
Value = Callable[[T], str]
"""What an index finds an object by, such as the node of a pod. Empty: it is not in the index."""
Listener = Callable[[T | None, T | None], None]
"""Called with the object before and after a change; None: it was not, or is no more."""


class Index(Generic[T]):
    """The objects of a table by a value of theirs. The table alone writes."""

    def __init__(self, value: Value[T]) -> None:
        self._value = value
        self._members: dict[str, dict[str, T]] = defaultdict(dict)

    def get(self, value: str) -> Mapping[str, T]:
        """Return the objects with this value, by key."""
        return self._members.get(value, {})

    def values(self) -> Iterable[str]:
        """Return the values that there are."""
        return self._members.keys()

    def insert(self, obj: T) -> None:
        value = self._value(obj)
        if value:
            self._members[value][obj.metadata.key] = obj

    def remove(self, obj: T) -> None:
        value = self._value(obj)
        if value:
            _discard(self._members, value, obj.metadata.key)


class Table(Generic[T]):
    """The handler of a reflector: keeps objects and tells listeners. The reflector alone writes."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._keys: dict[str, str] = {}
        self._dependents: dict[str, dict[str, T]] = defaultdict(dict)
        self._orphans: dict[str, dict[str, T]] = defaultdict(dict)
        self._namespaces: dict[str, dict[str, T]] = defaultdict(dict)
        self._indexes: dict[Value[T], Index[T]] = {}
        self._listeners: list[Listener[T]] = []

    def index(self, value: Value[T]) -> Index[T]:
        """Return the index by *value*, the same for all that ask for it."""
        if value not in self._indexes:
            index = self._indexes[value] = Index(value)
            for obj in self._objects.values():
                index.insert(obj)
        return self._indexes[value]

    def listen(self, listener: Listener[T]) -> None:
        self._listeners.append(listener)

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def values(self) -> Iterable[T]:
        return self._objects.values()

    def __len__(self) -> int:
        return len(self._objects)

    def by_uid(self, uid: str) -> T | None:
        return self._objects.get(self._keys.get(uid, ""))

    @property
    def owner_uids(self) -> Container[str]:
        """The uids that objects name among their owners."""
        return self._dependents

    def dependents(self, uid: str) -> Mapping[str, T]:
        """Return the objects that name *uid* among their owners, by key."""
        return self._dependents.get(uid, {})

    def controlled(self, uid: str) -> Iterable[T]:
        """Return the objects whose controller is *uid*."""
        for obj in self.dependents(uid).values():
            controller = obj.metadata.controller
            if controller is not None and controller.uid == uid:
                yield obj

    def orphans(self, namespace: str) -> Iterable[T]:
        """Return the objects of *namespace* without a controller."""
        return self._orphans.get(namespace, {}).values()

    def in_namespace(self, namespace: str) -> Iterable[T]:
        return self._namespaces.get(namespace, {}).values()

    def on_add(self, obj: T) -> None:
        self._insert(obj)
        self._tell(None, obj)

    def on_update(self, old: T, new: T) -> None:
        before, after = old.metadata, new.metadata
        if before.uid != after.uid or before.owner_references != after.owner_references:
            self._remove(old)
        else:
            for index in self._indexes.values():
                index.remove(old)
        self._insert(new)
        self._tell(old, new)

    def on_delete(self, obj: T) -> None:
        self._remove(obj)
        self._tell(obj, None)

    def check_invariants(self) -> None:
        """Raise if an index disagrees with the objects. For tests; linear."""
        assert self._keys == {obj.metadata.uid: key for key, obj in self._objects.items()}
        for uid, dependents in self._dependents.items():
            assert dependents, uid
            for key, obj in dependents.items():
                assert self._objects[key] is obj
                assert uid in {owner.uid for owner in obj.metadata.owners}
        for value, index in self._indexes.items():
            found = {key for each in index.values() for key in index.get(each)}
            assert found == {key for key, obj in self._objects.items() if value(obj)}

    def _tell(self, old: T | None, new: T | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:
                # What one controller cannot make sense of, the others must hear of all the same.
                obj = new if new is not None else old
                key = "" if obj is None else obj.metadata.key
                log.exception("listener failed", extra={"object": key})

    def _insert(self, obj: T) -> None:
        meta = obj.metadata
        key = meta.key
        self._objects[key] = obj
        self._keys[meta.uid] = key
        self._namespaces[meta.namespace][key] = obj
        for owner in meta.owners:
            self._dependents[owner.uid][key] = obj
        if meta.controller is None:
            self._orphans[meta.namespace][key] = obj
        for index in self._indexes.values():
            index.insert(obj)

    def _remove(self, obj: T) -> None:
        meta = obj.metadata
        key = meta.key
        self._objects.pop(key, None)
        self._keys.pop(meta.uid, None)
        _discard(self._namespaces, meta.namespace, key)
        for owner in meta.owners:
            _discard(self._dependents, owner.uid, key)
        if meta.controller is None:
            _discard(self._orphans, meta.namespace, key)
        for index in self._indexes.values():
            index.remove(obj)


def _discard(index: dict[str, dict[str, T]], entry: str, key: str) -> None:
    members = index.get(entry)
    if members is not None:
        members.pop(key, None)
        if not members:
            del index[entry]
