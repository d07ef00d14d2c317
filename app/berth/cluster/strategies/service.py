"""Services: nothing routes here, but what users apply is taken and looks allocated."""

from zlib import crc32

import msgspec

from berth import field_errors
from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.nulls import drop_nulls_under
from berth.cluster.strategies.pod_spec import PROTOCOLS
from berth.cluster.strategies.shape import Int32, Shape, section, validated
from berth.field_errors import FieldError

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
KUBERNETES_IP = "10.96.0.1"
"""The address of service default/kubernetes."""


class ServicePort(Shape, frozen=True):
    name: str | None = None
    port: Int32 | None = None
    target_port: Int32 | str | None = None
    node_port: Int32 | None = None
    protocol: str | None = None


class ServiceSpec(Shape, frozen=True):
    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: list[str] | None = msgspec.field(default=None, name="clusterIPs")
    selector: dict[str, str] | None = None
    ports: list[ServicePort] | None = None
    session_affinity: str | None = None
    external_name: str | None = None


class Service(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: ServiceSpec | None = None


def default(obj: Object) -> None:
    drop_nulls_under(obj, "metadata", "spec")
    spec = section(obj, "spec")
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if "port" in port and port.get("targetPort") in (None, 0, ""):  # Go clients send zeros
            port["targetPort"] = port["port"]


def prepare(new: Object, old: Object | None) -> None:
    """Allocate addresses and node ports, or keep those of *old*."""
    spec = section(new, "spec")
    if spec["type"] == "ExternalName":
        return
    before = (old or {}).get("spec") or {}
    if not spec.get("clusterIP"):
        spec["clusterIP"] = before.get("clusterIP") or fake_ip(new)
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _allocate_node_ports(new, before)


def fake_ip(obj: Object) -> str:
    """Return an address of 10.96.0.0/16 that goes with the name; nothing answers there.

    Two services may get the same, which nobody can tell.
    """
    number = 2 + _hash(obj) % (2**16 - 4)
    return f"10.96.{number >> 8}.{number & 255}"


def _hash(obj: Object) -> int:
    meta = obj.get("metadata") or {}
    return crc32(f"{meta.get('namespace')}/{meta.get('name')}".encode())


def _allocate_node_ports(new: Object, before: Object) -> None:
    earlier = {port.get("port"): port.get("nodePort") for port in before.get("ports") or []}
    for index, port in enumerate(new["spec"].get("ports") or []):
        if not port.get("nodePort"):
            fresh = 30000 + (_hash(new) + index) % 2768
            port["nodePort"] = earlier.get(port.get("port")) or fresh


def validate(new: Service, old: Service | None) -> list[FieldError]:
    errors = metadata.validate(
        new.metadata, old.metadata if old else None, name=syntax.dns1035_label
    )
    spec = new.spec or ServiceSpec()
    if spec.type not in TYPES:
        errors.append(field_errors.not_supported("spec.type", spec.type or "", TYPES))
    if spec.session_affinity not in ("ClientIP", "None"):
        errors.append(
            field_errors.not_supported(
                "spec.sessionAffinity", spec.session_affinity or "", ("ClientIP", "None")
            )
        )
    errors += metadata.validate_labels(spec.selector, "spec.selector")
    headless = spec.cluster_ip == "None"
    if spec.type == "ExternalName":
        if not spec.external_name:
            errors.append(field_errors.required("spec.externalName"))
    elif not spec.ports and not headless:
        errors.append(field_errors.required("spec.ports"))
    errors += _validate_ports(spec.ports or [])
    before = old.spec if old else None
    if before and before.cluster_ip and before.type != "ExternalName" and spec.type == before.type:
        errors += _validate_kept_ip(spec, before)
    return errors


def _validate_kept_ip(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    if new.cluster_ip == old.cluster_ip:
        return []
    detail = "may not change once set"
    return [field_errors.invalid("spec.clusterIPs[0]", [new.cluster_ip], detail)]


def _validate_ports(ports: list[ServicePort]) -> list[FieldError]:
    errors = []
    names, places = set(), set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        if not port.name and len(ports) > 1:
            errors.append(field_errors.required(f"{path}.name"))
        elif port.name:
            errors += [
                field_errors.invalid(f"{path}.name", port.name, text)
                for text in syntax.dns1123_label(port.name)
            ]
            if port.name in names:
                errors.append(field_errors.duplicate(f"{path}.name", port.name))
            names.add(port.name)
        errors += [
            field_errors.invalid(f"{path}.{field}", number or 0, text)
            for field, number in (("port", port.port), ("targetPort", port.target_port))
            if not isinstance(number, str)
            for text in syntax.port_number(number or 0)
        ]
        if port.protocol not in PROTOCOLS:
            errors.append(
                field_errors.not_supported(f"{path}.protocol", port.protocol or "", PROTOCOLS)
            )
        if (port.protocol, port.port) in places:
            errors.append(field_errors.duplicate(path, port))
        places.add((port.protocol, port.port))
    return errors


SERVICE = Strategy(
    default=default,
    prepare=prepare,
    validate=validated(Service, validate),
    initial_status=lambda _obj: {"loadBalancer": {}},
)
