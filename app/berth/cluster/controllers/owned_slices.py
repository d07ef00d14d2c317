"""Slices of endpoints that a controller makes for objects of one kind.

What :mod:`.endpoint_slice` and :mod:`.endpoint_slice_mirroring` have in common.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.expectations import Expectations, new_name
from berth.cluster.controllers.service_endpoints import Ports, port_of
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import EndpointSliceView, EndpointsView, ResourceView
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import controllers_of
from berth.cluster.resources import Object, ResourceType
from berth.runtime.clock import Clock

SLICES: Final = find("discovery.k8s.io", "v1", "endpointslices")
MANAGER: Final = "endpointslice.kubernetes.io/managed-by"
MOST_ENDPOINTS: Final = 100
"""In a slice."""


class OwnedSlices:
    """The slices that objects of a kind own, and those that are created and not seen yet."""

    def __init__(
        self,
        slices: Table[EndpointSliceView],
        owners: ResourceType,
        manager: str,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """*manager* is the controller, as labels of its slices call it."""
        self._slices = slices
        self._owners = owners
        self._manager = manager
        self._rng = rng
        self.expectations = Expectations(clock)

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(old: EndpointSliceView | None, new: EndpointSliceView | None) -> None:
            if old is None and new is not None:
                self.expectations.see(new)
            for key in controllers_of(self._owners.kind, old, new):
                enqueue(key)

        self._slices.listen(changed)

    def of(self, uid: str) -> list[EndpointSliceView]:
        """Return those of an owner that nobody deletes, by name."""
        found = [
            each
            for each in self._slices.controlled(uid)
            if (each.metadata.labels or {}).get(MANAGER) == self._manager
            and each.metadata.deletion_timestamp is None
        ]
        return sorted(found, key=lambda each: each.metadata.name)

    def create(
        self,
        owner: ResourceView | EndpointsView,
        metadata: Mapping[str, Object],
        ports: Ports,
        endpoints: list[Object],
        *,
        address_type: str = "IPv4",
    ) -> Create:
        """Make a slice of *owner* under a new name, with labels and annotations in *metadata*."""
        meta, prefix = owner.metadata, f"{owner.metadata.name}-"
        asked = self.expectations.unseen(meta.key)

        def is_taken(name: str) -> bool:
            return name in asked or self._slices.get(f"{meta.namespace}/{name}") is not None

        name = new_name(self._rng, prefix, is_taken)
        self.expectations.create(meta.key, [name])
        body = {
            "apiVersion": SLICES.group_version,
            "kind": SLICES.kind,
            "metadata": {
                "name": name,
                "generateName": prefix,
                "namespace": meta.namespace,
                **metadata,
                "ownerReferences": [owner_reference(owner, self._owners)],
            },
            "addressType": address_type,
            "endpoints": endpoints,
            "ports": as_objects(ports),
        }
        return Create(SLICES.collection_path(meta.namespace), body)


@dataclass(slots=True)
class SliceChange:
    """What makes the slices of a Service say what they should."""

    labels: dict[str, str]
    updates: list[Action] = field(default_factory=list)
    surplus: list[EndpointSliceView] = field(default_factory=list)
    """Slices that nothing is left for."""
    missing: list[tuple[Ports, list[Object]]] = field(default_factory=list)
    """The ports and endpoints of slices that are not there."""


def reconcile(
    change: SliceChange,
    ports: Ports,
    endpoints: dict[str, Object],
    slices: Sequence[EndpointSliceView],
) -> None:
    """Note what makes *slices*, all of *ports*, say *endpoints*; few of them change."""
    left = dict(endpoints)
    contents: list[list[Object]] = []
    for each in slices:
        keys = [key_of(endpoint) for endpoint in each.endpoints or ()]
        contents.append([left.pop(key) for key in keys if key in left])
    rest = list(left.values())
    for content in contents:
        room = MOST_ENDPOINTS - len(content)
        content += rest[:room]
        rest = rest[room:]
    kept = 0
    for each, content in zip(slices, contents, strict=True):
        if not content and (endpoints or kept):
            change.surplus.append(each)
            continue
        kept += 1
        if (each.endpoints or []) != content or (each.metadata.labels or {}) != change.labels:
            change.updates.append(slice_patch(each, change.labels, ports, content))
    if not kept and not rest:
        change.missing.append((ports, []))
    while rest:
        change.missing.append((ports, rest[:MOST_ENDPOINTS]))
        rest = rest[MOST_ENDPOINTS:]


def ports_in(ports: Iterable[Object]) -> Ports:
    return tuple(sorted(map(port_of, ports)))


def key_of(endpoint: Object) -> str:
    """Return what an endpoint is told from others by: its pod, or else its address."""
    uid = (endpoint.get("targetRef") or {}).get("uid")
    return str(uid or next(iter(endpoint.get("addresses") or ()), ""))


def _path(each: EndpointSliceView) -> str:
    return SLICES.path_of(each.metadata.namespace, each.metadata.name)


def slice_deletion(each: EndpointSliceView) -> Delete:
    return Delete(_path(each), each.metadata.uid)


def slice_patch(
    each: EndpointSliceView, labels: dict[str, str], ports: Ports, endpoints: list[Object]
) -> Patch:
    meta = each.metadata
    dropped = dict.fromkeys((meta.labels or {}).keys() - labels.keys())
    metadata = {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "labels": {**labels, **dropped},
    }
    body: Object = {"metadata": metadata, "endpoints": endpoints}
    if ports_in(each.ports or ()) != ports:
        body["ports"] = as_objects(ports)
    return Patch(_path(each), body)


def as_objects(ports: Ports) -> list[Object]:
    return [port.as_object() | {"name": port.name} for port in ports]
