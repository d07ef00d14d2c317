"""EndpointSlices: the addresses behind a Service, a hundred to an object."""

import random
from collections.abc import Callable
from typing import Final

from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.owned_slices import (
    MANAGER,
    OwnedSlices,
    SliceChange,
    ports_in,
    reconcile,
    slice_deletion,
    slice_patch,
)
from berth.cluster.controllers.service_endpoints import (
    SERVICE_NAME,
    SERVICES,
    Ports,
    hostname_of,
    is_selecting,
    labels_of,
    pods_of,
    ports_of,
    publishes_all,
    subscribe_to_services,
    target_reference,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import EndpointSliceView, NodeView, ResourceView
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.runtime.clock import Clock

OURS: Final = "endpointslice-controller.k8s.io"
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
        self._slices = OwnedSlices(slices, SERVICES, OURS, clock=clock, rng=rng)
        self._expectations = self._slices.expectations

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        subscribe_to_services(self._services, self._pods, enqueue)
        self._slices.subscribe(enqueue)

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
        by_ports: dict[Ports, list[EndpointSliceView]] = {}
        for each in self._slices.of(service.metadata.uid):
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
        metadata = {"labels": labels}
        actions += [self._slices.create(service, metadata, *each) for each in change.missing]
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


def new_controller(context: ControllerContext) -> EndpointSliceController:
    return EndpointSliceController(
        context.table("services", ResourceView),
        context.table("pods", PodView),
        context.table("nodes", NodeView),
        context.table("endpointslices.discovery.k8s.io", EndpointSliceView),
        clock=context.clock,
        rng=context.rng,
    )
