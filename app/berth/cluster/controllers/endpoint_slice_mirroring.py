"""EndpointSlices of Endpoints that somebody wrote for a Service without a selector (KEP-0752).

Source: ``pkg/controller/endpointslicemirroring``.
"""

import random
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from berth.cluster.actions import Action
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.endpoints import ENDPOINTS
from berth.cluster.controllers.owned_slices import (
    MANAGER,
    OwnedSlices,
    SliceChange,
    key_of,
    ports_in,
    reconcile,
    slice_deletion,
)
from berth.cluster.controllers.service_endpoints import SERVICE_NAME, Ports
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import EndpointSliceView, EndpointsView, ResourceView
from berth.cluster.object_views import metadata_of
from berth.cluster.resources import Object
from berth.runtime.clock import Clock

OURS: Final = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
"""An annotation of Endpoints that were a lock of leader election."""
MOST_ADDRESSES: Final = 1000
"""Of a subset; more are left out."""
NOT_MIRRORED: Final = frozenset(
    {
        "endpoints.kubernetes.io/last-change-trigger-time",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
"""Annotations that are about the Endpoints alone."""

Kind = tuple[str, Ports]
"""The address type and the ports of slices."""


class EndpointSliceMirroringController:
    """Decides what slices say of Endpoints. Reads tables, writes nothing."""

    name = "endpointslicemirroring"

    def __init__(
        self,
        endpoints: Table[EndpointsView],
        services: Table[ResourceView],
        slices: Table[EndpointSliceView],
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._endpoints = endpoints
        self._services = services
        self._slices = OwnedSlices(slices, ENDPOINTS, OURS, clock=clock, rng=rng)
        self._expectations = self._slices.expectations

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(
            old: EndpointsView | ResourceView | None, new: EndpointsView | ResourceView | None
        ) -> None:
            enqueue(metadata_of(old, new).key)

        self._endpoints.listen(changed)
        self._services.listen(changed)
        self._slices.subscribe(enqueue)

    def plan(self, key: str) -> Plan:
        endpoints = self._endpoints.get(key)
        if endpoints is None:
            self._expectations.forget(key)
            return NOTHING  # what it owned goes with it
        if self._expectations.unseen(key):
            return Plan(again=self._expectations.wait(key))
        present: dict[Kind, list[EndpointSliceView]] = {}
        for each in self._slices.of(endpoints.metadata.uid):
            present.setdefault((each.address_type, ports_in(each.ports or ())), []).append(each)
        wanted = _wanted(endpoints) if self._is_mirrored(endpoints) else {}
        labels = {
            **(endpoints.metadata.labels or {}),
            SERVICE_NAME: endpoints.metadata.name,
            MANAGER: OURS,
        }
        annotations = (endpoints.metadata.annotations or {}).items()
        metadata: dict[str, Object] = {
            "labels": labels,
            "annotations": {key: text for key, text in annotations if key not in NOT_MIRRORED},
        }
        actions: list[Action] = []
        for kind, found in wanted.items():
            change = SliceChange(labels)
            reconcile(change, kind[1], found, present.pop(kind, []))
            actions += change.updates
            actions += [slice_deletion(each) for each in change.surplus]
            actions += [
                self._slices.create(endpoints, metadata, ports, content, address_type=kind[0])
                for ports, content in change.missing
            ]
        actions += [slice_deletion(each) for gone in present.values() for each in gone]
        return Plan(actions, again=self._expectations.wait(key))

    def finished(self, key: str, outcome: Outcome) -> None:
        self._expectations.finished(key, outcome)

    def _is_mirrored(self, endpoints: EndpointsView) -> bool:
        meta = endpoints.metadata
        service = self._services.get(meta.key)
        return (
            service is not None
            and not service.spec.get("selector")
            and meta.deletion_timestamp is None
            and (meta.labels or {}).get(SKIP_MIRROR) != "true"
            and LEADER not in (meta.annotations or {})
        )


def new_controller(context: ControllerContext) -> EndpointSliceMirroringController:
    return EndpointSliceMirroringController(
        context.table("endpoints", EndpointsView),
        context.table("services", ResourceView),
        context.table("endpointslices.discovery.k8s.io", EndpointSliceView),
        clock=context.clock,
        rng=context.rng,
    )


def _wanted(endpoints: EndpointsView) -> dict[Kind, dict[str, Object]]:
    """Return the endpoints by address type and ports, and by what they are told apart by."""
    found: dict[Kind, dict[str, Object]] = {}
    for subset in endpoints.subsets or ():
        ports = ports_in(subset.get("ports") or ())
        addresses = [(each, True) for each in subset.get("addresses") or ()]
        addresses += [(each, False) for each in subset.get("notReadyAddresses") or ()]
        for address, ready in addresses[:MOST_ADDRESSES]:
            family = f"IPv{ip_address(address['ip']).version}"
            endpoint = _endpoint(address, ready=ready)
            found.setdefault((family, ports), {})[key_of(endpoint)] = endpoint
    return found


def _endpoint(address: Object, *, ready: bool) -> Object:
    said = {field: address.get(field) for field in ("hostname", "nodeName", "targetRef")}
    return {
        "addresses": [address["ip"]],
        "conditions": {"ready": ready},
        **{field: value for field, value in said.items() if value},
    }
