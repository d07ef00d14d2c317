"""Endpoints of a Service: pods and their ports. Pure, for Endpoints and slices."""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object

SERVICES: Final = find("", "v1", "services")
HEADLESS: Final = "service.kubernetes.io/headless"
SERVICE_NAME: Final = "kubernetes.io/service-name"


class Port(NamedTuple):
    """A port of a Service as one pod has it."""

    name: str
    protocol: str
    number: int
    app_protocol: str = ""

    def as_object(self) -> Object:
        app = {"appProtocol": self.app_protocol} if self.app_protocol else {}
        name = {"name": self.name} if self.name else {}
        return {**name, "port": self.number, "protocol": self.protocol, **app}


Ports = tuple[Port, ...]


def is_selecting(service: ResourceView) -> bool:
    """Whether the endpoints of *service* are ours to find: others are made by hand."""
    return bool(service.spec.get("selector")) and service.spec.get("type") != "ExternalName"


def is_headless(service: ResourceView) -> bool:
    return service.spec.get("clusterIP") == "None"


def publishes_all(service: ResourceView) -> bool:
    """Whether pods that are not ready, or on their way out, are shown as ready."""
    return bool(service.spec.get("publishNotReadyAddresses"))


def is_selected(service: ResourceView, pod: PodView) -> bool:
    labels = pod.metadata.labels or {}
    selector: dict[str, str] = service.spec.get("selector") or {}
    return bool(selector) and selector.items() <= labels.items()


def pods_of(service: ResourceView, pods: Iterable[PodView]) -> list[PodView]:
    """Return those of *pods* that have an address, have not ended, and are selected; sorted."""
    found = [
        pod
        for pod in pods
        if pod.status.pod_ip and not pod.is_finished and is_selected(service, pod)
    ]
    return sorted(found, key=lambda pod: pod.metadata.name)


def ports_of(service: ResourceView, pod: PodView) -> Ports | None:
    """Return the ports of *service* at *pod*; None: it has none of them."""
    wanted: list[Object] = service.spec.get("ports") or []
    if not wanted:
        return () if is_headless(service) else None
    numbers = [_number(each, pod) for each in wanted]
    ports = [
        port_of({**each, "port": number})
        for each, number in zip(wanted, numbers, strict=True)
        if number is not None
    ]
    return tuple(sorted(ports)) if ports else None


def port_of(port: Object) -> Port:
    """Return a port of an EndpointSlice as it is compared."""
    return Port(
        port.get("name") or "",
        port.get("protocol") or "TCP",
        port.get("port") or 0,
        port.get("appProtocol") or "",
    )


def hostname_of(service: ResourceView, pod: PodView) -> str:
    """Return the name of *pod* in the domain of *service*; empty: it has none."""
    if pod.spec.hostname and pod.spec.subdomain == service.metadata.name:
        return pod.spec.hostname
    return ""


def target_reference(pod: PodView) -> Object:
    meta = pod.metadata
    return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


def labels_of(service: ResourceView, **more: str) -> dict[str, str]:
    """Return the labels of what stands for *service*; keyword by keyword those of the caller."""
    labels = {k: v for k, v in (service.metadata.labels or {}).items() if k != HEADLESS}
    return {**labels, **more, **({HEADLESS: ""} if is_headless(service) else {})}


def subscribe_to_services(
    services: Table[Any], pods: Table[PodView], enqueue: Callable[[str], None]
) -> None:
    """Have *enqueue* called with the Services that a change of one, or of a pod, concerns."""

    def service_changed(old: ResourceView | None, new: ResourceView | None) -> None:
        for service in (new, old):
            if service is not None:
                enqueue(service.metadata.key)
                return

    def pod_changed(old: PodView | None, new: PodView | None) -> None:
        before, after = _seen(old), _seen(new)
        if before == after:
            return
        namespace = (new or old).metadata.namespace  # type: ignore[union-attr]
        for service in services.in_namespace(namespace):
            if any(pod is not None and is_selected(service, pod) for pod in (old, new)):
                enqueue(service.metadata.key)

    services.listen(service_changed)
    pods.listen(pod_changed)


def _seen(pod: PodView | None) -> tuple[Any, ...] | None:
    """Return what of *pod* may show in endpoints."""
    if pod is None or not pod.status.pod_ip:
        return None
    return (
        pod.metadata.uid,
        pod.metadata.labels,
        pod.metadata.deletion_timestamp is None,
        pod.is_finished,
        pod.ready_since is None,
        pod.status.pod_ip,
    )


def _number(port: Object, pod: PodView) -> int | None:
    """Return the number of a Service's port at *pod*, where it may have a name."""
    target = port.get("targetPort")
    if isinstance(target, int) and target:
        return target
    if not target:
        return int(port["port"])
    for container in pod.spec.containers or ():
        for each in container.ports or ():
            if each.name == target and each.protocol == (port.get("protocol") or "TCP"):
                return each.container_port
    return None
