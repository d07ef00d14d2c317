"""Endpoints: all addresses behind a Service in one object, as older clients read them."""

from collections.abc import Callable, Sequence
from typing import Final

from berth.cluster.actions import Create, Delete, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.service_endpoints import (
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
from berth.cluster.controllers.views import EndpointsView, ResourceView
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object

ENDPOINTS: Final = find("", "v1", "endpoints")
MANAGED_BY: Final = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
MOST_ADDRESSES: Final = 1000
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"


class EndpointsController:
    """Decides what the Endpoints of a Service say. Reads tables, writes nothing."""

    name = "endpoints"

    def __init__(
        self,
        services: Table[ResourceView],
        pods: Table[PodView],
        endpoints: Table[EndpointsView],
    ) -> None:
        self._services = services
        self._pods = pods
        self._endpoints = endpoints

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def endpoints_changed(_old: EndpointsView | None, new: EndpointsView | None) -> None:
            obj = _old if new is None else new
            if obj is not None:
                enqueue(obj.metadata.key)

        subscribe_to_services(self._services, self._pods, enqueue)
        self._endpoints.listen(endpoints_changed)

    def plan(self, key: str) -> Plan:
        service, endpoints = self._services.get(key), self._endpoints.get(key)
        if service is None:
            return NOTHING if endpoints is None else _forget(endpoints)
        if not is_selecting(service):
            return NOTHING
        pods = pods_of(service, self._pods.in_namespace(service.metadata.namespace))
        subsets, is_cut = _subsets(service, pods)
        labels = labels_of(service, **MANAGED_BY)
        annotations = {OVER_CAPACITY: "truncated"} if is_cut else {}
        meta = service.metadata
        if endpoints is None:
            metadata: Object = {"name": meta.name, "namespace": meta.namespace, "labels": labels}
            body: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
            if is_cut:
                metadata["annotations"] = annotations
            if subsets:
                body["subsets"] = subsets
            return Plan([Create(ENDPOINTS.collection_path(meta.namespace), body)])
        if (endpoints.subsets or []) == subsets and (endpoints.metadata.labels or {}) == labels:
            return NOTHING
        dropped = dict.fromkeys((endpoints.metadata.labels or {}).keys() - labels.keys())
        body = {
            "metadata": {
                "uid": endpoints.metadata.uid,
                "resourceVersion": endpoints.metadata.resource_version,
                "labels": {**labels, **dropped},
                "annotations": {OVER_CAPACITY: annotations.get(OVER_CAPACITY)},
            },
            "subsets": subsets or None,
        }
        return Plan([Patch(ENDPOINTS.path_of(meta.namespace, meta.name), body)])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: there is one object, with the name of the Service."""


def new_controller(context: ControllerContext) -> EndpointsController:
    return EndpointsController(
        context.table("services", ResourceView),
        context.table("pods", PodView),
        context.table("endpoints", EndpointsView),
    )


def _forget(endpoints: EndpointsView) -> Plan:
    """Delete what we made of a Service that is gone."""
    meta = endpoints.metadata
    if not MANAGED_BY.items() <= (meta.labels or {}).items():
        return NOTHING
    return Plan([Delete(ENDPOINTS.path_of(meta.namespace, meta.name), meta.uid)])


def _subsets(service: ResourceView, pods: Sequence[PodView]) -> tuple[list[Object], bool]:
    """Return the addresses, those with the same ports together, and whether some were left out."""
    ready: dict[Ports, list[Object]] = {}
    waiting: dict[Ports, list[Object]] = {}
    count = 0
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None and not publishes_all(service):
            continue
        ports = ports_of(service, pod)
        if ports is None:
            continue
        count += 1
        if count <= MOST_ADDRESSES:
            is_ready = pod.ready_since is not None or publishes_all(service)
            (ready if is_ready else waiting).setdefault(ports, []).append(_address(service, pod))
    subsets: list[Object] = []
    for ports in sorted({*ready, *waiting}):
        subset: Object = {}
        if ports in ready:
            subset["addresses"] = ready[ports]
        if ports in waiting:
            subset["notReadyAddresses"] = waiting[ports]
        if ports:
            subset["ports"] = [port.as_object() for port in ports]
        subsets.append(subset)
    return subsets, count > MOST_ADDRESSES


def _address(service: ResourceView, pod: PodView) -> Object:
    hostname = hostname_of(service, pod)
    return {
        "ip": pod.status.pod_ip,
        **({"hostname": hostname} if hostname else {}),
        **({"nodeName": pod.spec.node_name} if pod.spec.node_name else {}),
        "targetRef": target_reference(pod),
    }
