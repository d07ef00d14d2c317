"""Ownership of a workload's objects: adopting those that match, releasing others."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from berth.cluster.actions import Action, Patch
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.events.correlator import Reference
from berth.cluster.object_views import ObjectView
from berth.cluster.resources import ResourceType
from berth.cluster.strategies.selectors import LabelSelector, matches

T = TypeVar("T", bound=ObjectView)


class Claim(NamedTuple, Generic[T]):
    """What is owned, and the patches that change who owns what."""

    owned: list[T]
    actions: list[Action]


def selector_of(owner: WorkloadView) -> LabelSelector:
    """Return the selector, which the API server has validated."""
    return msgspec.convert(owner.spec.get("selector") or {}, LabelSelector)


def owner_reference(owner: ObjectView, resource: ResourceType) -> dict[str, Any]:
    """Return the reference by which *owner*, which is one of *resource*, controls others."""
    return {
        "apiVersion": resource.group_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def reference_to(obj: ObjectView, resource: ResourceType) -> Reference:
    """Return how events name *obj*, which is one of *resource*."""
    meta = obj.metadata
    return Reference(
        resource.group_version,
        resource.kind,
        meta.namespace,
        meta.name,
        meta.uid,
        resource_version=meta.resource_version,
    )


def claim(
    owner: WorkloadView,
    resource: ResourceType,
    table: Table[T],
    *,
    path: Callable[[T], str],
    fits: Callable[[T], bool] = lambda _obj: True,
    finalizer: str = "",
) -> Claim[T]:
    """Return what *owner* controls in *table* after the patches are done.

    What it controls and its selector does not select any more is released; what its selector
    selects and nobody controls is adopted, unless either is being deleted. What does not pass
    *fits* counts as not selected; what is adopted gets *finalizer*, if there is one.
    """
    selector = selector_of(owner)
    owned: list[T] = []
    actions: list[Action] = []
    for obj in table.controlled(owner.metadata.uid):
        if matches(selector, obj.metadata.labels or {}) and fits(obj):
            owned.append(obj)
        elif obj.metadata.deletion_timestamp is None:
            kept = [ref for ref in obj.metadata.owners if ref.uid != owner.metadata.uid]
            references = [msgspec.to_builtins(ref) for ref in kept]
            actions.append(_set_owners(obj, references, path(obj)))
    if owner.metadata.deletion_timestamp is not None or selector.is_empty:
        return Claim(owned, actions)
    for obj in table.orphans(owner.metadata.namespace):
        meta = obj.metadata
        is_ours = matches(selector, meta.labels or {}) and fits(obj)
        if is_ours and meta.deletion_timestamp is None:
            references = [msgspec.to_builtins(ref) for ref in meta.owners]
            references.append(owner_reference(owner, resource))
            adoption = _set_owners(obj, references, path(obj))
            if finalizer and finalizer not in (meta.finalizers or ()):
                adoption.body["metadata"]["finalizers"] = [*(meta.finalizers or ()), finalizer]
            actions.append(adoption)
    return Claim(owned, actions)


def _set_owners(obj: ObjectView, references: list[Mapping[str, Any]], path: str) -> Patch:
    body = {
        "metadata": {
            "uid": obj.metadata.uid,
            "resourceVersion": obj.metadata.resource_version,
            "ownerReferences": references,
        }
    }
    return Patch(path, body)
