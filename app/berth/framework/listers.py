"""Objects that plugins look up, by kind and namespace."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakMethod

from berth.objects.cluster import (
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from berth.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.objects.meta import ObjectMeta
from berth.objects.policy import PodDisruptionBudget
from berth.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


class ApiObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=ApiObject)
S = TypeVar("S")

Change: TypeAlias = Callable[[T | None, T | None], None]
"""Called with an object before and after a change, None where there is none."""


class Followers(Generic[T]):
    """Who is called at every change of some objects.

    A method does not keep its object alive: plugins of profiles that were replaced stop to follow.
    """

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: list[Callable[[], Change[T] | None]] = []

    def add(self, change: Change[T]) -> None:
        is_method = isinstance(change, MethodType)
        self._changes.append(WeakMethod(change) if is_method else lambda: change)

    def notify(self, old: T | None, new: T | None) -> None:
        gone = []
        for follower in self._changes:
            change = follower()
            if change is None:
                gone.append(follower)
            else:
                change(old, new)
        for follower in gone:
            self._changes.remove(follower)


class Lister(Generic[T]):
    """All objects of one kind. Fed by whoever watches; plugins only read.

    It has the shape of an informer's handler, so that a watch can feed it directly.
    """

    __slots__ = ("_by_namespace", "_followers", "version")

    def __init__(self, objects: Iterable[T] = ()) -> None:
        self._by_namespace: dict[str, dict[str, T]] = {}
        self._followers: Followers[T] = Followers()
        self.version = 0
        """Changes with every change, so that what follows from the objects can be kept."""
        for obj in objects:
            self.on_add(obj)

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object; *namespace* is "" for cluster-scoped kinds."""
        return self._by_namespace.get(namespace, {}).get(name)

    @property
    def is_empty(self) -> bool:
        return not self._by_namespace

    def in_namespace(self, namespace: str = "") -> Mapping[str, T]:
        """Return the objects of a namespace (or all of a cluster-scoped kind) by name.

        Not to be kept: it does not follow changes for ever.
        """
        return self._by_namespace.get(namespace, {})

    def __iter__(self) -> Iterator[T]:
        """Iterate over the objects of all namespaces."""
        for objects in self._by_namespace.values():
            yield from objects.values()

    def follow(self, change: Change[T]) -> None:
        """Call ``change(None, obj)`` for every object there is, and *change* at every change.

        For what follows from all objects and costs too much to be computed again when one of them
        changes. A bound method does not keep its object alive.
        """
        self._followers.add(change)
        for obj in self:
            change(None, obj)

    def on_add(self, obj: T) -> None:
        meta = obj.metadata
        objects = self._by_namespace.setdefault(meta.namespace, {})
        old = objects.get(meta.name)
        objects[meta.name] = obj
        self._changed(old, obj)

    def on_update(self, _old: T, new: T) -> None:
        self.on_add(new)

    def on_delete(self, obj: T) -> None:
        meta = obj.metadata
        objects = self._by_namespace.get(meta.namespace, {})
        old = objects.pop(meta.name, None)
        if old is None:
            return
        if not objects:  # namespaces come and go, too
            self._by_namespace.pop(meta.namespace, None)
        self._changed(old, None)

    def _changed(self, old: T | None, new: T | None) -> None:
        self.version += 1
        self._followers.notify(old, new)


@dataclass(frozen=True, slots=True)
class Listers:
    """The kinds that in-tree plugins read beside pods and nodes."""

    namespaces: Lister[Namespace] = field(default_factory=Lister)
    services: Lister[Service] = field(default_factory=Lister)
    replication_controllers: Lister[ReplicationController] = field(default_factory=Lister)
    replica_sets: Lister[ReplicaSet] = field(default_factory=Lister)
    stateful_sets: Lister[StatefulSet] = field(default_factory=Lister)
    pod_disruption_budgets: Lister[PodDisruptionBudget] = field(default_factory=Lister)
    persistent_volumes: Lister[PersistentVolume] = field(default_factory=Lister)
    persistent_volume_claims: Lister[PersistentVolumeClaim] = field(default_factory=Lister)
    storage_classes: Lister[StorageClass] = field(default_factory=Lister)
    csi_nodes: Lister[CSINode] = field(default_factory=Lister)
    csi_drivers: Lister[CSIDriver] = field(default_factory=Lister)
    csi_storage_capacities: Lister[CSIStorageCapacity] = field(default_factory=Lister)
    volume_attachments: Lister[VolumeAttachment] = field(default_factory=Lister)
    resource_claims: Lister[ResourceClaim] = field(default_factory=Lister)
    resource_slices: Lister[ResourceSlice] = field(default_factory=Lister)
    device_classes: Lister[DeviceClass] = field(default_factory=Lister)
    _shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def shared(self, make: Callable[["Listers"], S]) -> S:
        """Return ``make(self)``, called once: what the plugins of all profiles share.

        For what follows from the objects, and what plugins have decided and not yet written.
        """
        found: S | None = self._shared.get(make)
        if found is None:
            found = self._shared[make] = make(self)
        return found
