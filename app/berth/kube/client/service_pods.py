"""The pod and port behind a Service; for what goes to one pod, not to a name."""

from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ForbiddenError
from berth.kube.objects.cluster import Lease
from berth.kube.objects.meta import Condition
from berth.runtime.errors import UserError

CONTROL_PLANE: Final = "kube-system"
"""Where a scheduler that replaces kube-scheduler has its Lease."""


class ServiceError(UserError):
    """A Service leads to no pod; the message names it."""


class ServicePort(NamedTuple):
    """A port of a Service, as in ``berth/berth:https``."""

    namespace: str
    name: str
    port: str = ""
    """Its number or name; empty: the only one."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}{self.port and ':'}{self.port}"


class PodPort(NamedTuple):
    """Where a pod listens."""

    namespace: str
    name: str
    port: int


# Services and pods are decoded here: the scheduler reads no names of ports.
class _Port(msgspec.Struct):
    port: int
    name: str = ""
    target: int | str = msgspec.field(default=0, name="targetPort")


class _ServiceSpec(msgspec.Struct):
    ports: list[_Port] = []
    selector: dict[str, str] = {}


class _Service(msgspec.Struct):
    spec: _ServiceSpec


class _ContainerPort(msgspec.Struct):
    number: int = msgspec.field(name="containerPort")
    name: str = ""


class _Container(msgspec.Struct):
    ports: list[_ContainerPort] = []


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _PodStatus(msgspec.Struct):
    conditions: list[Condition] = []


class _Meta(msgspec.Struct):
    name: str
    deleted: str | None = msgspec.field(default=None, name="deletionTimestamp")


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def is_ready(self) -> bool:
        """Whether a Service would send requests to it."""
        conditions = self.status.conditions
        return self.metadata.deleted is None and any(
            condition.type == "Ready" and condition.status == "True" for condition in conditions
        )


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


class _Leases(msgspec.Struct):
    items: list[Lease] = []


async def pod_of(api: Api, service: ServicePort) -> PodPort:
    """Return a ready pod of *service*, if possible the one that leads the others.

    A leader is who holds a Lease of the namespace, or of the control plane: client-go, and berth,
    put the pod's name at the beginning of the identity. Raises ServiceError and ApiError.
    """
    namespace = f"/api/v1/namespaces/{quote(service.namespace, safe='')}"
    try:
        path = f"{namespace}/services/{quote(service.name, safe='')}"
        spec = msgspec.json.decode(await api.request("GET", path), type=_Service).spec
        port = _chosen(spec, service)
        if not spec.selector:
            raise ServiceError(f"service {service}: it has no selector")
        selector = ",".join(f"{key}={value}" for key, value in spec.selector.items())
        listed = await api.request("GET", f"{namespace}/pods", params={"labelSelector": selector})
        ready = [pod for pod in msgspec.json.decode(listed, type=_Pods).items if pod.is_ready]
        if not ready:
            raise ServiceError(f"service {service}: none of its pods is ready")
        holders = await _holders(api, service.namespace) if len(ready) > 1 else []
    except msgspec.MsgspecError as exc:
        raise ServiceError(f"service {service}: the answer cannot be read: {exc}") from exc
    pod = next((pod for pod in ready if _leads(pod, holders)), ready[0])
    return PodPort(service.namespace, pod.metadata.name, _number(pod, port, service))


def _leads(pod: _Pod, holders: list[str]) -> bool:
    name = pod.metadata.name
    return any(holder == name or holder.startswith(f"{name}_") for holder in holders)


async def _holders(api: Api, namespace: str) -> list[str]:
    """Return who holds Leases, as far as we may know it."""
    candidates = []
    for where in dict.fromkeys((namespace, CONTROL_PLANE)):
        path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(where, safe='')}/leases"
        try:
            leases = msgspec.json.decode(await api.request("GET", path), type=_Leases)
        except ForbiddenError:
            continue
        holders = (lease.spec.holder_identity for lease in leases.items)
        candidates += [holder for holder in holders if holder]
    return candidates


def _chosen(spec: _ServiceSpec, service: ServicePort) -> _Port:
    wanted = [port for port in spec.ports if service.port in ("", port.name, str(port.port))]
    if len(wanted) == 1:
        return wanted[0]
    known = ", ".join(f"{port.port} {port.name}".rstrip() for port in spec.ports)
    problem = "no such port" if service.port else "name one of its ports"
    raise ServiceError(f"service {service}: {problem}; it has {known or 'none'}")


def _number(pod: _Pod, port: _Port, service: ServicePort) -> int:
    """Return the port of the container behind *port*, which may name it."""
    if isinstance(port.target, int):
        return port.target or port.port
    for container in pod.spec.containers:
        for named in container.ports:
            if named.name == port.target:
                return named.number
    raise ServiceError(f"service {service}: pod {pod.metadata.name} has no port {port.target!r}")
