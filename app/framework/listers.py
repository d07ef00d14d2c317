"""Objects that plugins look up, by kind and namespace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from app.objects.cluster import (
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from app.objects.meta import ObjectMeta
from app.objects.policy import PodDisruptionBudget


class ApiObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=ApiObject)


class Lister(Generic[T]):
    """All objects of one kind. Fed by whoever watches; plugins only read.

    It has the shape of an informer's handler, so that a watch can feed it directly.
    """

    __slots__ = ("_by_namespace", "version")

    def __init__(self, objects: Iterable[T] = ()) -> None:
        self._by_namespace: dict[str, dict[str, T]] = {}
        self.version = 0
        """Changes with every change, so that what follows from the objects can be kept."""
        for obj in objects:
            self.on_add(obj)

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object; *namespace* is "" for cluster-scoped kinds."""
        return self._by_namespace.get(namespace, {}).get(name)

    def in_namespace(self, namespace: str = "") -> Mapping[str, T]:
        """Return the objects of a namespace (or all of a cluster-scoped kind) by name."""
        return self._by_namespace.get(namespace, {})

    def on_add(self, obj: T) -> None:
        meta = obj.metadata
        self._by_namespace.setdefault(meta.namespace, {})[meta.name] = obj
        self.version += 1

    def on_update(self, _old: T, new: T) -> None:
        self.on_add(new)

    def on_delete(self, obj: T) -> None:
        self._by_namespace.get(obj.metadata.namespace, {}).pop(obj.metadata.name, None)
        self.version += 1


@dataclass(frozen=True, slots=True)
class Listers:
    """The kinds that in-tree plugins read beside pods and nodes."""

    namespaces: Lister[Namespace] = field(default_factory=Lister)
    services: Lister[Service] = field(default_factory=Lister)
    replication_controllers: Lister[ReplicationController] = field(default_factory=Lister)
    replica_sets: Lister[ReplicaSet] = field(default_factory=Lister)
    stateful_sets: Lister[StatefulSet] = field(default_factory=Lister)
    pod_disruption_budgets: Lister[PodDisruptionBudget] = field(default_factory=Lister)
