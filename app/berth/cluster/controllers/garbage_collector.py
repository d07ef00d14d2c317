"""The garbage collector: what is owned goes when its owners are gone, or is let go.

Works as that of Kubernetes. The key is the uid of an object, which is looked at for two reasons:
it waits, deleted, for what it owns (the finalizers ``orphan`` and ``foregroundDeletion``), or one
of its owners is not there any more. Owners that the tables do not show are asked for before
anything is deleted, because watches of different kinds run at different speeds.

A reference means an object only if kind, name, namespace and uid are all its own: who may write in
one namespace cannot reach into another by its uids.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import msgspec

from berth.cluster.actions import Action, Delete, Get, Patch, Propagation
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.informers import Kind
from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import Meta, ObjectView, OwnerReference, metadata_of
from berth.cluster.writes.deletion import FOREGROUND, ORPHAN
from berth.kube.client.errors import NotFoundError

BURST: Final = 500
"""Dependents dealt with in one plan; the rest follows in the next."""

ASKED: Final = 20
"""Owners of one object asked for in one plan. Who lists thousands waits; others do not."""

ABSENT: Final = 10_000
"""Owners that are remembered not to exist."""

_decode = msgspec.json.Decoder(ObjectView).decode


class Item(NamedTuple):
    """An object and its kind."""

    kind: Kind
    meta: Meta

    @property
    def path(self) -> str:
        return self.kind.path(self.meta)

    @property
    def awaits_dependents(self) -> bool:
        """Whether it goes when the last that blocks it has gone."""
        return _is_deleted(self.meta, FOREGROUND)


@dataclass(slots=True)
class _Owners:
    """The references of an object, by what became of the owners."""

    solid: list[OwnerReference] = field(default_factory=list)
    """There, or nobody knows."""
    waiting: list[OwnerReference] = field(default_factory=list)
    """There, until what they own has gone."""
    absent: list[OwnerReference] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Paths of those that no table shows; the server must say."""


class GarbageCollector:
    """Decides what to delete, and what to cut loose, of the kinds that are served."""

    name = "garbage-collector"

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._kinds: list[Kind] = []
        self._by_name: dict[tuple[str, str], Kind] = {}
        """By ``apiVersion`` and ``kind``."""
        self._enqueue: Callable[[str], None] = lambda _uid: None
        self._absent: dict[tuple[str, str], None] = {}
        """Path and uid of owners that do not exist, oldest first. Uids are never used again."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        self._enqueue = enqueue

    def follow(self, kinds: Iterable[Kind]) -> None:
        """Look at *kinds* from now on: those that are served now, in the place of those before."""
        known = [kind.table for kind in self._kinds]
        before = self._by_name.keys()
        self._kinds = list(kinds)
        self._by_name = {name: kind for kind in self._kinds for name in kind.names}
        for kind in self._kinds:
            if not any(kind.table is table for table in known):
                kind.table.listen(partial(self._changed, kind))
        new = self._by_name.keys() - before
        if before and new:
            self._look_at_what_names(new)

    def _look_at_what_names(self, kinds: Collection[tuple[str, str]]) -> None:
        """Enqueue what has owners of *kinds*, which nobody could look for before."""
        for kind in self._kinds:
            for obj in kind.table.values():
                if any((ref.api_version, ref.kind) in kinds for ref in obj.metadata.owners):
                    self._enqueue(obj.metadata.uid)

    def plan(self, key: str) -> Plan:
        item = self._item(key)
        if item is None:
            return NOTHING
        if _is_deleted(item.meta, ORPHAN):
            return self._let_go(item)
        if item.awaits_dependents:
            blocked = any(ref.block_owner_deletion for _, ref in self._owned(item))
            return NOTHING if blocked else Plan([_without_finalizer(item, FOREGROUND)])
        if item.meta.deletion_timestamp is not None:
            return NOTHING
        owners = self._owners(item)
        if owners.unseen:
            asked = dict.fromkeys(owners.unseen)
            return Plan([Get(path) for path in list(asked)[:ASKED]], again=1.0)
        action = self._collect(item, owners)
        return NOTHING if action is None else Plan([action])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Note that an owner does not exist, or is another object of the same name."""
        item = self._item(key)
        if not isinstance(outcome.action, Get) or item is None:
            return
        there = _decode(outcome.answer).metadata.uid if outcome.answer else None
        if there is None and not isinstance(outcome.error, NotFoundError):
            return
        for owner in item.meta.owners:
            if owner.uid != there and self._path_of(item, owner) == outcome.action.path:
                self._note_absent(outcome.action.path, owner.uid)

    def _changed(
        self,
        kind: Kind,
        old: ObjectView | None,
        new: ObjectView | None,
    ) -> None:
        """Enqueue who is concerned by a change: the object, those it owns, those that await it."""
        if old is not None and new is not None and _concerns_nobody(old.metadata, new.metadata):
            return
        item = Item(kind, metadata_of(old, new))
        if new is None:
            self._note_absent(item.path, item.meta.uid)
        if new is None or item.awaits_dependents:
            for dependent, _ in self._owned(item):
                self._enqueue(dependent.meta.uid)
        if new is not None and self._is_due(item):
            self._enqueue(item.meta.uid)
        self._tell_of_other_namespaces(item, old, new)
        for obj in (old, new):
            for ref in obj.metadata.owners if obj is not None else ():
                owner = self._owner(item, ref)
                if owner is not None and owner.meta.deletion_timestamp is not None:
                    self._enqueue(owner.meta.uid)

    def _tell_of_other_namespaces(
        self, item: Item, old: ObjectView | None, new: ObjectView | None
    ) -> None:
        """Record references to objects of other namespaces, when one of both is new."""
        before = {ref.uid for ref in old.metadata.owners} if old is not None else set()
        for ref in new.metadata.owners if new is not None else ():
            if ref.uid not in before and (kind := self._kind_of(ref)) is not None:
                owner = kind.table.by_uid(ref.uid)
                if owner is not None and _is_elsewhere(owner.metadata, item.meta):
                    self._tell_of_other_namespace(item, ref)
        if old is not None or not item.meta.namespace:
            return
        uid = item.meta.uid
        for kind in self._kinds:
            if uid not in kind.table.owner_uids:
                continue
            for obj in kind.table.dependents(uid).values():
                if _is_elsewhere(item.meta, obj.metadata):
                    for ref in obj.metadata.owners:
                        if ref.uid == uid:
                            self._tell_of_other_namespace(Item(kind, obj.metadata), ref)

    def _tell_of_other_namespace(self, item: Item, ref: OwnerReference) -> None:
        meta, resource = item.meta, item.kind.resource
        wrong = (
            f"[{ref.api_version}/{ref.kind}, namespace: {meta.namespace}, name: {ref.name}, "
            f"uid: {ref.uid}]"
        )
        regarding = Reference(
            resource.group_version, resource.kind, meta.namespace, meta.name, meta.uid
        )
        self._recorder.event(
            regarding,
            type="Warning",
            reason="OwnerRefInvalidNamespace",
            message=f'ownerRef {wrong} does not exist in namespace "{meta.namespace}"',
        )

    def _is_due(self, item: Item) -> bool:
        meta = item.meta
        if meta.deletion_timestamp is not None:
            return _is_deleted(meta, ORPHAN) or item.awaits_dependents
        if not meta.owners:
            return False
        owners = self._owners(item)
        return bool(owners.unseen or owners.absent or owners.waiting)

    def _item(self, uid: str) -> Item | None:
        for kind in self._kinds:
            obj = kind.table.by_uid(uid)
            if obj is not None:
                return Item(kind, obj.metadata)
        return None

    def _path_of(self, item: Item, ref: OwnerReference) -> str | None:
        """Return where the owner is that *ref* of *item* means; None when nobody can tell.

        It is in the namespace of *item*, or in none; what is in none has no owner in one.
        """
        kind = self._kind_of(ref)
        if kind is None or (kind.resource.namespaced and not item.meta.namespace):
            return None
        return kind.path_of(item.meta.namespace if kind.resource.namespaced else "", ref.name)

    def _kind_of(self, ref: OwnerReference) -> Kind | None:
        return self._by_name.get((ref.api_version, ref.kind))

    def _owner(self, item: Item, ref: OwnerReference) -> Item | None:
        kind, path = self._kind_of(ref), self._path_of(item, ref)
        obj = None if kind is None or path is None else kind.table.by_uid(ref.uid)
        if kind is None or obj is None or kind.path(obj.metadata) != path:
            return None
        return Item(kind, obj.metadata)

    def _owners(self, item: Item) -> _Owners:
        found = _Owners()
        for ref in item.meta.owners:
            path, owner = self._path_of(item, ref), self._owner(item, ref)
            if owner is not None:
                (found.waiting if owner.awaits_dependents else found.solid).append(ref)
            elif path is None:
                found.solid.append(ref)
            elif (path, ref.uid) in self._absent:
                found.absent.append(ref)
            else:
                found.unseen.append(path)
        return found

    def _owned(self, owner: Item) -> Iterator[tuple[Item, OwnerReference]]:
        """Yield what *owner* owns, each with its reference."""
        uid, path = owner.meta.uid, owner.path
        for kind in self._kinds:
            for obj in list(kind.table.dependents(uid).values()):
                item = Item(kind, obj.metadata)
                for ref in item.meta.owners:
                    if ref.uid == uid and self._path_of(item, ref) == path:
                        yield item, ref
                        break

    def _collect(self, item: Item, owners: _Owners) -> Action | None:
        """Delete what has no owner left; else take away the references to those that are gone."""
        if not (owners.absent or owners.waiting):
            return None
        if owners.solid:
            return _with_owners(item, owners.solid)
        if owners.waiting:
            mine = [dependent for dependent, _ in self._owned(item)]
            if any(each.awaits_dependents for each in mine) and any(
                ref.block_owner_deletion for ref in item.meta.owners
            ):
                # Perhaps a circle, in which each would wait for the other.
                unblocked = [
                    msgspec.structs.replace(ref, block_owner_deletion=False)
                    for ref in item.meta.owners
                ]
                return _with_owners(item, unblocked)
            if mine:
                return _delete(item, "Foreground")
        return _delete(item, _own_propagation(item.meta))

    def _let_go(self, owner: Item) -> Plan:
        """Take the owner's references out of what it owns; then it may go."""
        uid = owner.meta.uid
        patches = [
            _with_owners(item, [ref for ref in item.meta.owners if ref.uid != uid])
            for item, _ in self._owned(owner)
        ]
        if not patches:
            return Plan([_without_finalizer(owner, ORPHAN)])
        return Plan([*patches[:BURST]], again=0.0 if len(patches) > BURST else None)

    def _note_absent(self, path: str, uid: str) -> None:
        self._absent.pop((path, uid), None)
        self._absent[path, uid] = None
        if len(self._absent) > ABSENT:
            del self._absent[next(iter(self._absent))]


def new_controller(context: ControllerContext) -> GarbageCollector:
    collector = GarbageCollector(context.recorder("garbage-collector-controller"))
    informers = context.informers
    informers.listen(lambda: collector.follow(informers.kinds))
    return collector


def _is_elsewhere(owner: Meta, dependent: Meta) -> bool:
    """Whether an owner is in a namespace, and in another than what names it."""
    return owner.namespace not in ("", dependent.namespace)


def _is_deleted(meta: Meta, finalizer: str) -> bool:
    """Tell whether it is deleted, and *finalizer* holds it back."""
    return meta.deletion_timestamp is not None and finalizer in (meta.finalizers or ())


def _delete(item: Item, propagation: Propagation) -> Delete:
    """Delete exactly the state that was looked at: it may have got an owner since."""
    meta = item.meta
    return Delete(
        item.path,
        meta.uid,
        propagation=propagation,
        resource_version=meta.resource_version,
    )


def _own_propagation(meta: Meta) -> Propagation:
    """Return what an object's finalizers say about those that it owns."""
    finalizers = meta.finalizers or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"


def _concerns_nobody(old: Meta, new: Meta) -> bool:
    """Whether a change leaves alone who owns whom, and who is on the way out."""
    return (
        old.owner_references == new.owner_references
        and old.finalizers == new.finalizers
        and old.deletion_timestamp == new.deletion_timestamp
    )


def _without_finalizer(item: Item, finalizer: str) -> Patch:
    left = [each for each in item.meta.finalizers or () if each != finalizer]
    return _patch(item, {"finalizers": left})


def _with_owners(item: Item, owners: list[OwnerReference]) -> Patch:
    return _patch(item, {"ownerReferences": msgspec.to_builtins(owners)})


def _patch(item: Item, metadata: Mapping[str, object]) -> Patch:
    """Change metadata of exactly the state that was looked at: lists are replaced as a whole."""
    meta = item.meta
    precondition = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return Patch(item.path, {"metadata": {**precondition, **metadata}})
