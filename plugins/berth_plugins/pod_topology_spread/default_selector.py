"""The selector that finds a pod's siblings: what its services and its owner select by."""

from collections.abc import Mapping
from typing import Final

from berth.kube.objects.cluster import ReplicaSet, ReplicationController, StatefulSet
from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.selectors import (
    EVERYTHING,
    NOTHING,
    Selector,
    compile_selector,
    selector_from_map,
)
from berth.scheduler.framework.listers import Lister, Listers
from berth.scheduler.framework.pod_info import PodInfo

MOST_KEPT: Final = 1024
"""Kinds of pods of which it is known which services select them."""

OwnerSelector = Mapping[str, str] | LabelSelector | None
"""As written: a ReplicationController has a plain map."""

_Owners = Lister[ReplicationController] | Lister[ReplicaSet] | Lister[StatefulSet]


class DefaultSelectors:
    """Finds default selectors (spec §5.12), and keeps them while what they follow from stays.

    The services are looked through again when any of them changed. Of the owner only the selector
    matters: the status of a ReplicaSet changes with every pod.
    """

    def __init__(self, listers: Listers) -> None:
        self._services = listers.services
        self._version = -1
        """That of the services which ``_found`` is for."""
        self._found: dict[tuple[str, tuple[tuple[str, str], ...]], Mapping[str, str]] = {}
        """By namespace and labels of pods, what the services that select them select by."""
        self._owners: Mapping[tuple[str, str], _Owners] = {
            ("v1", "ReplicationController"): listers.replication_controllers,
            ("apps/v1", "ReplicaSet"): listers.replica_sets,
            ("apps/v1", "StatefulSet"): listers.stateful_sets,
        }

    def of(self, pod: PodInfo) -> Selector:
        """Return what the services that select *pod* and its controller, if known, select by.

        Empty if there are neither.
        """
        kept = pod.template.memo((self, "default selector"), _Kept)
        owner = self._owner_selector(pod)
        if kept.services_version != self._services.version:
            kept.services_version = self._services.version
            kept.services = self._labels_of_services(pod)
            kept.selector = None
        if kept.selector is None or kept.owner != owner:
            kept.owner = owner
            kept.selector = _union(kept.services, owner)
        return kept.selector

    def _labels_of_services(self, pod: PodInfo) -> Mapping[str, str]:
        if self._version != self._services.version or len(self._found) >= MOST_KEPT:
            self._version = self._services.version
            self._found.clear()
        kind = pod.namespace, tuple(pod.labels.items())
        selectors = self._found.get(kind)
        if selectors is None:
            selectors = self._found[kind] = self._find_services(pod)
        return selectors

    def _find_services(self, pod: PodInfo) -> Mapping[str, str]:
        merged: dict[str, str] = {}
        for service in self._services.in_namespace(pod.namespace).values():
            wanted = service.spec.selector
            if wanted is not None and wanted.items() <= pod.labels.items():
                merged |= wanted
        return merged

    def _owner_selector(self, pod: PodInfo) -> OwnerSelector:
        reference = pod.pod.metadata.controller
        if reference is None:
            return None
        lister = self._owners.get((reference.api_version, reference.kind))
        owner = lister.get(pod.namespace, reference.name) if lister else None
        return owner.spec.selector if owner else None


class _Kept:
    """The selector of one template, with what it follows from."""

    __slots__ = ("owner", "selector", "services", "services_version")

    def __init__(self) -> None:
        self.services_version = -1
        self.services: Mapping[str, str] = {}
        self.owner: OwnerSelector = None
        self.selector: Selector | None = None


def _union(services: Mapping[str, str], owner: OwnerSelector) -> Selector:
    """Add what the owner selects by to what services do.

    The labels of a ReplicationController replace those of services; an owner's label selector that
    is absent or cannot be compiled adds nothing, as in kube-scheduler.
    """
    if not services and not owner:
        return EVERYTHING
    if not isinstance(owner, LabelSelector):
        return selector_from_map({**services, **(owner or {})})
    selector = selector_from_map(services)
    try:
        of_owner = compile_selector(owner)
    except ValueError:
        return selector
    return selector if of_owner is NOTHING else selector.and_also(of_owner)
