"""The garbage collector: what is owned goes when its owners are gone, or is let go.

Works by owner: the key is a uid. Owners that the tables do not show are asked for, once, before
anything is deleted, because watches of different kinds run at different speeds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from app.client.errors import NotFoundError
from app.cluster.actions import Action, Delete, Get, Patch
from app.cluster.controllers.controller import NOTHING, Outcome, Plan
from app.cluster.controllers.table import Table
from app.cluster.controllers.views import Meta, ObjectView, OwnerReference, metadata_of

BURST: Final = 500
"""Dependents dealt with in one plan; the rest follows in the next."""

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"

_decode = msgspec.json.Decoder(ObjectView).decode


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind whose objects own, or are owned."""

    kind: str
    api: str
    """``/api/v1`` or ``/apis/apps/v1``."""
    plural: str
    table: Table[Any]

    def path(self, meta: Meta) -> str:
        return self.path_of(meta.namespace, meta.name)

    def path_of(self, namespace: str, name: str) -> str:
        if not namespace:
            return f"{self.api}/{self.plural}/{name}"
        return f"{self.api}/namespaces/{namespace}/{self.plural}/{name}"


class Dependent(NamedTuple):
    """An object that names an owner, and its kind."""

    kind: Kind
    meta: Meta


class GarbageCollector:
    """Decides what to delete, and what to cut loose, of the kinds it is given."""

    name = "garbage-collector"

    def __init__(self, kinds: list[Kind]) -> None:
        self._kinds = {each.kind: each for each in kinds}
        self._absent: set[str] = set()
        """Owners that the server says do not exist. Uids are never used again."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(old: ObjectView | None, new: ObjectView | None) -> None:
            if old is not None and new is not None and _concerns_nobody(old.metadata, new.metadata):
                return
            for obj in (old, new):
                if obj is not None:
                    for owner in obj.metadata.owners:
                        enqueue(owner.uid)
            meta = metadata_of(old, new)
            gone = new is None and next(self._dependents(meta.uid), None) is not None
            if gone or (meta.deletion_timestamp is not None and meta.finalizers):
                enqueue(meta.uid)

        for kind in self._kinds.values():
            kind.table.listen(changed)

    def plan(self, key: str) -> Plan:
        owner = self._present(key)
        if owner is not None:
            waits = owner.meta.deletion_timestamp is not None
            return self._plan_finalizers(owner) if waits else NOTHING
        dependents = list(self._dependents(key))
        if not dependents:
            self._absent.discard(key)
            return NOTHING
        if key not in self._absent:
            return self._ask(key, dependents[0].meta)
        return _in_bursts([self._collect(each) for each in dependents])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Note that an owner does not exist, or is another object of the same name."""
        if not isinstance(outcome.action, Get):
            return
        if isinstance(outcome.error, NotFoundError) or (
            outcome.answer and _decode(outcome.answer).metadata.uid != key
        ):
            self._absent.add(key)

    def _present(self, uid: str) -> Dependent | None:
        for kind in self._kinds.values():
            obj = kind.table.by_uid(uid)
            if obj is not None:
                return Dependent(kind, obj.metadata)
        return None

    def _dependents(self, uid: str) -> Iterator[Dependent]:
        for kind in self._kinds.values():
            for obj in kind.table.dependents(uid).values():
                yield Dependent(kind, obj.metadata)

    def _ask(self, uid: str, dependent: Meta) -> Plan:
        owner = next(each for each in dependent.owners if each.uid == uid)
        kind = self._kinds.get(owner.kind)
        if kind is None:
            return NOTHING  # nobody here knows whether it exists
        namespaced = owner.kind not in ("Node", "Namespace")
        path = kind.path_of(dependent.namespace if namespaced else "", owner.name)
        return Plan([Get(path)], again=1.0)

    def _collect(self, dependent: Dependent) -> Action | None:
        """Delete what has no owner left; else take away the references to those that are gone."""
        meta = dependent.meta
        left = [owner for owner in meta.owners if owner.uid not in self._absent]
        if left:
            return _with_owners(dependent, left)
        if meta.deletion_timestamp is not None:
            return None
        return Delete(dependent.kind.path(meta), meta.uid)

    def _plan_finalizers(self, owner: Dependent) -> Plan:
        """Do what a deleted owner waits for: its dependents let go, or gone."""
        uid, finalizers = owner.meta.uid, owner.meta.finalizers or []
        mine = next((each for each in finalizers if each in (ORPHAN, FOREGROUND)), None)
        if mine is None:
            return NOTHING
        dependents = list(self._dependents(uid))
        if not dependents:
            return Plan([_patch(owner, {"finalizers": [f for f in finalizers if f != mine]})])
        if mine == ORPHAN:
            return _in_bursts(
                [
                    _with_owners(each, [ref for ref in each.meta.owners if ref.uid != uid])
                    for each in dependents
                ]
            )
        return _in_bursts(
            [
                Delete(each.kind.path(each.meta), each.meta.uid, propagation="Foreground")
                for each in dependents
                if each.meta.deletion_timestamp is None
            ]
        )


def _in_bursts(actions: Sequence[Action | None]) -> Plan:
    """Return a plan of the first actions, to be followed by another when there are more."""
    real = [action for action in actions if action is not None]
    return Plan(real[:BURST], again=0.0 if len(real) > BURST else None)


def _concerns_nobody(old: Meta, new: Meta) -> bool:
    """Whether a change leaves alone who owns whom, and who is on the way out."""
    return (
        old.owner_references == new.owner_references
        and old.finalizers == new.finalizers
        and old.deletion_timestamp == new.deletion_timestamp
    )


def _with_owners(dependent: Dependent, owners: list[OwnerReference]) -> Patch:
    return _patch(dependent, {"ownerReferences": msgspec.to_builtins(owners)})


def _patch(dependent: Dependent, metadata: Mapping[str, object]) -> Patch:
    """Change metadata of exactly the state that was looked at: lists are replaced as a whole."""
    meta = dependent.meta
    precondition = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return Patch(dependent.kind.path(meta), {"metadata": {**precondition, **metadata}})
