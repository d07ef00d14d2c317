"""The objects that plugins look up, by kind; and the declaration of each kind.

A kind is declared once, as a field of :class:`Listers`. What follows from it: its watch
(:mod:`berth.service.watches`), its lister, the events that it wakes waiting pods with
(:mod:`berth.scheduler.event_handlers`), what of a malformed object counts, and that snapshots and
scenarios have its objects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from types import MethodType
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakMethod

from berth.kube.objects import pod_group
from berth.kube.objects.cluster import (
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from berth.kube.objects.device_versions import CLAIM_CONVERSIONS, SLICE_CONVERSIONS
from berth.kube.objects.devices import (
    API_VERSIONS,
    DEVICE_TAINT_RULE_VERSIONS,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
    claim_without_opaque,
    class_without_opaque,
    decode_claim,
)
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.partial_objects import any_part, part_of_claim
from berth.kube.objects.pod_group import CompositePodGroup, PodGroup
from berth.kube.objects.policy import PodDisruptionBudget
from berth.kube.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.scheduler.config.feature_gates import (
    COMPOSITE_POD_GROUP,
    DRA_DEVICE_TAINT_RULES,
    GENERIC_WORKLOAD,
)
from berth.scheduler.framework.events import ActionType, EventResource
from berth.scheduler.framework.kind import NODES, PODS, Kind

ADD, UPDATE, DELETE = ActionType.ADD, ActionType.UPDATE, ActionType.DELETE


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
    """All objects of one kind. Plugins only read it.

    It is an event handler of its kind, so that a watch can feed it directly.
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
        """Whether there is no object at all."""
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
        """Take in an object; plugins must not call this."""
        meta = obj.metadata
        objects = self._by_namespace.setdefault(meta.namespace, {})
        old = objects.get(meta.name)
        objects[meta.name] = obj
        self._changed(old, obj)

    def on_update(self, _old: T, new: T) -> None:
        """Replace an object; plugins must not call this."""
        self.on_add(new)

    def on_delete(self, obj: T) -> None:
        """Take an object out; plugins must not call this."""
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


def listed(kind: Kind[Any]) -> Any:
    """Declare a field of :class:`Listers` for *kind*."""
    return field(default_factory=Lister, metadata={"kind": kind})


@dataclass(frozen=True, slots=True)
class Listers:
    """The kinds that the scheduler reads beside pods and nodes."""

    namespaces: Lister[Namespace] = listed(
        Kind("/api/v1/namespaces", Namespace, namespaced=False, partly=any_part)
    )
    services: Lister[Service] = listed(Kind("/api/v1/services", Service, partly=any_part))
    replication_controllers: Lister[ReplicationController] = listed(
        Kind("/api/v1/replicationcontrollers", ReplicationController, partly=any_part)
    )
    replica_sets: Lister[ReplicaSet] = listed(
        Kind("/apis/apps/v1/replicasets", ReplicaSet, partly=any_part)
    )
    stateful_sets: Lister[StatefulSet] = listed(
        Kind("/apis/apps/v1/statefulsets", StatefulSet, partly=any_part)
    )
    pod_disruption_budgets: Lister[PodDisruptionBudget] = listed(
        Kind("/apis/policy/v1/poddisruptionbudgets", PodDisruptionBudget, partly=any_part)
    )
    persistent_volumes: Lister[PersistentVolume] = listed(
        Kind(
            "/api/v1/persistentvolumes",
            PersistentVolume,
            namespaced=False,
            event=EventResource.PERSISTENT_VOLUME,
            wakes=ADD | UPDATE,
        )
    )
    persistent_volume_claims: Lister[PersistentVolumeClaim] = listed(
        Kind(
            "/api/v1/persistentvolumeclaims",
            PersistentVolumeClaim,
            event=EventResource.PERSISTENT_VOLUME_CLAIM,
            wakes=ADD | UPDATE,
        )
    )
    storage_classes: Lister[StorageClass] = listed(
        Kind(
            "/apis/storage.k8s.io/v1/storageclasses",
            StorageClass,
            namespaced=False,
            event=EventResource.STORAGE_CLASS,
            wakes=ADD | UPDATE,
        )
    )
    csi_nodes: Lister[CSINode] = listed(
        Kind(
            "/apis/storage.k8s.io/v1/csinodes",
            CSINode,
            namespaced=False,
            event=EventResource.CSI_NODE,
            wakes=ADD | UPDATE,
            partly=any_part,
        )
    )
    csi_drivers: Lister[CSIDriver] = listed(
        Kind(
            "/apis/storage.k8s.io/v1/csidrivers",
            CSIDriver,
            namespaced=False,
            event=EventResource.CSI_DRIVER,
            wakes=UPDATE,
        )
    )
    csi_storage_capacities: Lister[CSIStorageCapacity] = listed(
        Kind(
            "/apis/storage.k8s.io/v1/csistoragecapacities",
            CSIStorageCapacity,
            event=EventResource.CSI_STORAGE_CAPACITY,
            wakes=ADD | UPDATE,
        )
    )
    volume_attachments: Lister[VolumeAttachment] = listed(
        Kind(
            "/apis/storage.k8s.io/v1/volumeattachments",
            VolumeAttachment,
            namespaced=False,
            event=EventResource.VOLUME_ATTACHMENT,
            wakes=DELETE,
        )
    )
    resource_claims: Lister[ResourceClaim] = listed(
        Kind(
            RESOURCE_CLAIMS,
            ResourceClaim,
            versions=API_VERSIONS,
            conversions=CLAIM_CONVERSIONS,
            without="pods with ResourceClaims wait",
            event=EventResource.RESOURCE_CLAIM,
            wakes=ADD | UPDATE,
            partly=part_of_claim,
            decoder=decode_claim,
            without_opaque=claim_without_opaque,
        )
    )
    resource_slices: Lister[ResourceSlice] = listed(
        Kind(
            "/apis/resource.k8s.io/v1/resourceslices",
            ResourceSlice,
            namespaced=False,
            versions=API_VERSIONS,
            conversions=SLICE_CONVERSIONS,
            without="there are no devices",
            event=EventResource.RESOURCE_SLICE,
            wakes=ADD | UPDATE,
        )
    )
    device_classes: Lister[DeviceClass] = listed(
        Kind(
            "/apis/resource.k8s.io/v1/deviceclasses",
            DeviceClass,
            namespaced=False,
            versions=API_VERSIONS,
            without="pods with ResourceClaims wait, and there are no extended resources of devices",
            event=EventResource.DEVICE_CLASS,
            wakes=ADD | UPDATE,
            without_opaque=class_without_opaque,
        )
    )

    device_taint_rules: Lister[DeviceTaintRule] = listed(
        # Their changes wake pods as changes of the slices that they taint.
        Kind(
            DEVICE_TAINT_RULES,
            DeviceTaintRule,
            namespaced=False,
            feature=DRA_DEVICE_TAINT_RULES,
            versions=DEVICE_TAINT_RULE_VERSIONS,
            without="devices have the taints of their ResourceSlices only",
        )
    )
    pod_groups: Lister[PodGroup] = listed(
        Kind(
            f"{pod_group.API}/podgroups",
            PodGroup,
            event=EventResource.POD_GROUP,
            wakes=ADD | UPDATE | DELETE,
            feature=GENERIC_WORKLOAD,
            versions=pod_group.VERSIONS,
            without="pods that name a PodGroup wait",
        )
    )
    composite_pod_groups: Lister[CompositePodGroup] = listed(
        Kind(
            f"{pod_group.COMPOSITE_API}/compositepodgroups",
            CompositePodGroup,
            event=EventResource.COMPOSITE_POD_GROUP,
            wakes=ADD | UPDATE | DELETE,
            feature=COMPOSITE_POD_GROUP,
            versions=pod_group.COMPOSITE_VERSIONS,
            without="pods of PodGroups that are parts of one wait",
        )
    )

    _shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def by_kind(self) -> dict[Kind[Any], Lister[Any]]:
        """Return the listers, in the order of their declarations."""
        return {kind: getattr(self, name) for name, kind in _declared(type(self))}

    def of(self, kind: Kind[Any]) -> Lister[Any]:
        """Return the objects of a kind that a plugin declares in ``READS``.

        There are none where they are not known, as in a question about a cluster of manifests.
        """
        for declared, lister in self.by_kind().items():
            if declared.is_like(kind):
                return lister
        none: Lister[Any] = self._shared.setdefault((kind.path, kind.name), Lister())
        return none

    def shared(self, make: Callable[["Listers"], S]) -> S:
        """Return ``make(self)``, called once: what the plugins of all profiles share.

        For what follows from the objects, and what plugins have decided and not yet written.
        """
        shared: S | None = self._shared.get(make)
        if shared is None:
            shared = self._shared[make] = make(self)
        return shared


def with_kinds(kinds: Iterable[Kind[Any]]) -> type[Listers]:
    """Return listers that declare *kinds*, too.

    Of several kinds of one name the first counts: objects of a kind are read in one way only.
    """
    known = dict(KINDS)
    added: list[tuple[str, type[Any], Any]] = []
    for kind in kinds:
        if known.setdefault(kind.name, kind) is kind and kind.name not in KINDS:
            added.append((f"other_{len(added)}", Lister, listed(kind)))
    if not added:
        return Listers
    return make_dataclass("Listers", added, bases=(Listers,), frozen=True, slots=True)


def kinds_of(listers: type[Listers]) -> dict[str, Kind[Any]]:
    """Return nodes, pods and the kinds that *listers* declares, by name."""
    kinds: list[Kind[Any]] = [NODES, PODS, *(kind for _, kind in _declared(listers))]
    return {kind.name: kind for kind in kinds}


def _declared(listers: type[Listers]) -> Iterator[tuple[str, Kind[Any]]]:
    """Yield the kinds with the names of their fields."""
    for lister in fields(listers):
        if "kind" in lister.metadata:
            yield lister.name, lister.metadata["kind"]


KINDS: Final = kinds_of(Listers)
"""All kinds that decide something; objects of others are not read."""
