"""Parts of objects that controllers read, whatever the kind."""

from collections.abc import Callable, Iterator
from typing import Self

import msgspec


class View(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Part of an API object. Null is taken for missing."""


class OwnerReference(View, frozen=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(View, frozen=True):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def key(self) -> str:
        """``namespace/name``, or the name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def owners(self) -> list[OwnerReference]:
        return self.owner_references or []

    @property
    def controller(self) -> OwnerReference | None:
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class ObjectView(View, frozen=True):
    """What the garbage collector knows of any object."""

    metadata: Meta

    @classmethod
    def decoder(cls) -> Callable[[bytes], Self]:
        """Return what reads an object's JSON. A view of which little is kept has its own."""
        return msgspec.json.Decoder(cls).decode


def metadata_of(old: ObjectView | None, new: ObjectView | None) -> Meta:
    """Return the metadata of what changed, in its latest state. One of the two is there."""
    obj = new if new is not None else old
    if obj is None:
        raise ValueError("a change of nothing")
    return obj.metadata


def controllers_of(kind: str, *states: ObjectView | None) -> Iterator[str]:
    """Yield the keys of what controls an object, of this kind, before and after a change."""
    for state in states:
        controller = state.metadata.controller if state is not None else None
        if state is not None and controller is not None and controller.kind == kind:
            yield f"{state.metadata.namespace}/{controller.name}"


class Condition(View, frozen=True):
    type: str
    status: str = ""
    last_transition_time: str | None = None
    reason: str | None = None
