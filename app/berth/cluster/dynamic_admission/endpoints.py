"""Endpoints of webhooks: a URL, or what is behind a service."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from berth.cluster.dynamic_admission.webhooks import ClientConfig, ServiceReference
from berth.cluster.reading import readable
from berth.cluster.storage.store import NotFoundError, Store
from berth.kube.objects.meta import KubeStruct

SERVICES: Final = "services"
ENDPOINT_SLICES: Final = "endpointslices.discovery.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
HTTPS: Final = 443


class UnreachableError(Exception):
    """There is nothing that could be called."""


@dataclass(frozen=True, slots=True)
class Address:
    """What to call, and what for."""

    url: str
    """To connect to."""
    server_name: str = ""
    """The name that its certificate must have; empty: the host of the URL."""
    shown: str = ""
    """The URL in messages; empty: the URL."""


class _Port(KubeStruct, frozen=True):
    name: str | None = None
    port: int | None = None


class _ServiceSpec(KubeStruct, frozen=True):
    type: str | None = None
    external_name: str | None = None
    ports: list[_Port] | None = None


class _Service(KubeStruct, frozen=True):
    spec: _ServiceSpec = _ServiceSpec()


class _Target(KubeStruct, frozen=True):
    kind: str | None = None


class _Conditions(KubeStruct, frozen=True):
    ready: bool | None = None


class _Endpoint(KubeStruct, frozen=True):
    addresses: list[str] | None = None
    conditions: _Conditions | None = None
    target_ref: _Target | None = None


class _EndpointSlice(KubeStruct, frozen=True):
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None


def address_of(config: ClientConfig, store: Store) -> Address:
    """Return where a webhook is called; raise UnreachableError.

    The pods of hollow nodes serve nothing. So of a service only endpoints count that are no pods:
    those of an EndpointSlice that somebody wrote, or the host of an ``ExternalName``.
    """
    if config.service is None:
        return Address(config.url or "")
    service = config.service
    name = f"{service.name}.{service.namespace}.svc"
    port = service.port or HTTPS
    path = service.path or "/"
    host = _host(service, port, store)
    return Address(f"https://{host}{path}", name, f"https://{name}:{port}{path}")


def _host(reference: ServiceReference, port: int, store: Store) -> str:
    """Return host and port behind a service."""
    try:
        stored = store.get(SERVICES, reference.namespace, reference.name)
    except NotFoundError:
        raise UnreachableError(f'service "{reference.name}" not found') from None
    spec = msgspec.json.decode(stored.body, type=_Service).spec
    if spec.type == "ExternalName":
        return f"{spec.external_name}:{port}"
    wanted = [each for each in spec.ports or () if each.port == port]
    if not wanted:
        raise UnreachableError(f'no service port {port} found for service "{reference.name}"')
    hollow = False
    for endpoint, number in _endpoints(reference, wanted[0].name or "", store):
        if endpoint.target_ref is not None and endpoint.target_ref.kind == "Pod":
            hollow = True
            continue
        ready = endpoint.conditions is None or endpoint.conditions.ready is not False
        for address in endpoint.addresses or () if ready else ():
            return f"[{address}]:{number}" if ":" in address else f"{address}:{number}"
    why = f'no endpoints available for service "{reference.name}"'
    raise UnreachableError(f"{why}: hollow pods serve nothing" if hollow else why)


_read_slice = msgspec.json.Decoder(_EndpointSlice).decode


def _endpoints(
    reference: ServiceReference, port_name: str, store: Store
) -> Iterator[tuple[_Endpoint, int]]:
    """Yield the endpoints behind a port of a service, each with its own port."""
    slices = store.list(ENDPOINT_SLICES, reference.namespace)
    of_service = (each for each in slices if each.labels.get(SERVICE_NAME) == reference.name)
    for _, found in readable(of_service, _read_slice, ENDPOINT_SLICES):
        numbers = [port.port for port in found.ports or () if (port.name or "") == port_name]
        for number in numbers[:1]:
            for endpoint in found.endpoints or ():
                yield endpoint, number or HTTPS
