"""EndpointSlices: the addresses behind a Service, a hundred to an object."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.expectations import Expectations, new_name
from berth.cluster.controllers.service_endpoints import (
    SERVICE_NAME,
    SERVICES,
    Ports,
    hostname_of,
    is_selecting,
    labels_of,
    pods_of,
    port_of,
    ports_of,
    publishes_all,
    subscribe_to_services,
    target_reference,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    EndpointSliceView,
    NodeView,
    PodView,
    ResourceView,
    controllers_of,
)
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.runtime.clock import Clock

SLICES: Final = find("discovery.k8s.io", "v1", "endpointslices")
MANAGER: Final = "endpointslice.kubernetes.io/managed-by"
OURS: Final = "endpointslice-controller.k8s.io"
MOST_ENDPOINTS: Final = 100
"""In a slice."""
ZONE: Final = "topology.kubernetes.io/zone"


class EndpointSliceController:
    """Decides what the slices of a Service say. Reads tables, writes nothing."""

    name = "endpointslice"

    def __init__(
        self,
        services: Table[ResourceView],
        pods: Table[PodView],
        nodes: Table[NodeView],
        slices: Table[EndpointSliceView],
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._services = services
        self._pods = pods
        self._nodes = nodes
        self._slices = slices
        self._rng = rng
        self._expectations = Expectations(clock)

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def slice_changed(old: EndpointSliceView | None, new: EndpointSliceView | None) -> None:
            if old is None and new is not None:
                self._expectations.see(new)
            for key in controllers_of("Service", old, new):
                enqueue(key)

        subscribe_to_services(self._services, self._pods, enqueue)
        self._slices.listen(slice_changed)

    def plan(self, key: str) -> Plan:
        service = self._services.get(key)
        if service is None:
            self._expectations.forget(key)
            return NOTHING  # what it owned goes with it
        if not is_selecting(service) or service.metadata.deletion_timestamp is not None:
            return NOTHING
        if self._expectations.unseen(key):
            return Plan(again=self._expectations.wait(key))
        wanted = self._endpoints(service)
        present = [
            each
            for each in self._slices.controlled(service.metadata.uid)
            if (each.metadata.labels or {}).get(MANAGER) == OURS
            and each.metadata.deletion_timestamp is None
        ]
        present.sort(key=lambda each: each.metadata.name)
        by_ports: dict[Ports, list[EndpointSliceView]] = {}
        for each in present:
            by_ports.setdefault(ports_in(each.ports or ()), []).append(each)
        if not wanted:
            # One that says that there is nothing.
            kept = next(iter(by_ports), ())
            wanted = {kept: {}}
        labels = labels_of(service, **{SERVICE_NAME: service.metadata.name, MANAGER: OURS})
        change = SliceChange(labels)
        for ports, endpoints in wanted.items():
            reconcile(change, ports, endpoints, by_ports.pop(ports, []))
        for gone in by_ports.values():
            change.surplus += gone
        actions = change.updates
        # A slice that is not needed takes the place of one that is missing.
        for each in change.surplus:
            if change.missing:
                actions.append(slice_patch(each, labels, *change.missing.pop()))
            else:
                actions.append(slice_deletion(each))
        actions += [self._create(key, service, labels, *each) for each in change.missing]
        return Plan(actions, again=self._expectations.wait(key))

    def finished(self, key: str, outcome: Outcome) -> None:
        self._expectations.finished(key, outcome)

    def _endpoints(self, service: ResourceView) -> dict[Ports, dict[str, Object]]:
        """Return the endpoints that there are, by ports and uid of the pod."""
        found: dict[Ports, dict[str, Object]] = {}
        pods = pods_of(service, self._pods.in_namespace(service.metadata.namespace))
        for pod in pods:
            ports = ports_of(service, pod)
            if ports is not None:
                found.setdefault(ports, {})[pod.metadata.uid] = self._endpoint(service, pod)
        return found

    def _endpoint(self, service: ResourceView, pod: PodView) -> Object:
        terminating = pod.metadata.deletion_timestamp is not None
        serving = pod.ready_since is not None
        ready = publishes_all(service) or (serving and not terminating)
        endpoint: Object = {
            "addresses": [pod.status.pod_ip],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "targetRef": target_reference(pod),
        }
        hostname = hostname_of(service, pod)
        if hostname:
            endpoint["hostname"] = hostname
        if pod.spec.node_name:
            endpoint["nodeName"] = pod.spec.node_name
            node = self._nodes.get(pod.spec.node_name)
            zone = (node.metadata.labels or {}).get(ZONE) if node is not None else None
            if zone:
                endpoint["zone"] = zone
        return endpoint

    def _create(
        self,
        key: str,
        service: ResourceView,
        labels: dict[str, str],
        ports: Ports,
        endpoints: list[Object],
    ) -> Create:
        meta = service.metadata
        prefix = f"{meta.name}-"
        asked = self._expectations.unseen(key)

        def is_taken(name: str) -> bool:
            return name in asked or self._slices.get(f"{meta.namespace}/{name}") is not None

        name = new_name(self._rng, prefix, is_taken)
        self._expectations.create(key, [name])
        body = {
            "apiVersion": SLICES.group_version,
            "kind": SLICES.kind,
            "metadata": {
                "name": name,
                "generateName": prefix,
                "namespace": meta.namespace,
                "labels": labels,
                "ownerReferences": [owner_reference(service, SERVICES)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": as_objects(ports),
        }
        return Create(SLICES.collection_path(meta.namespace), body)


def new_controller(context: ControllerContext) -> EndpointSliceController:
    return EndpointSliceController(
        context.table("services", ResourceView),
        context.table("pods", PodView),
        context.table("nodes", NodeView),
        context.table("endpointslices.discovery.k8s.io", EndpointSliceView),
        clock=context.clock,
        rng=context.rng,
    )


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
