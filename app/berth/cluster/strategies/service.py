"""Services: nothing routes here. Addresses and node ports are allocated by admission."""

from collections.abc import Callable, Mapping

import msgspec

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.pod_spec import PROTOCOLS
from berth.cluster.strategies.shape import Int32, Shape, section, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
KUBERNETES_IP = "10.96.0.1"
"""The address of service default/kubernetes."""
AFFINITY_SECONDS = 10_800
"""How long clients keep their pod, with ``sessionAffinity: ClientIP``."""


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
    spec = section(obj, "spec")
    spec.setdefault("type", "ClusterIP")
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    if _has_address(spec):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if _is_reachable(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if _is_balanced(spec):
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if "port" in port and port.get("targetPort") in (None, 0, ""):  # Go clients send zeros
            port["targetPort"] = port["port"]


def has_node_ports(spec: Object) -> bool:
    """Whether each port of the Service is to have one on the nodes."""
    kind: str | None = spec.get("type")
    allocates = spec.get("allocateLoadBalancerNodePorts") is not False
    return kind == "NodePort" or (kind == "LoadBalancer" and allocates)


def _has_address(spec: Object) -> bool:
    return bool(spec["type"] != "ExternalName")


def _is_reachable(spec: Object) -> bool:
    """Whether the Service has an address outside of the cluster."""
    kind: str = spec["type"]
    return kind in ("NodePort", "LoadBalancer") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def _is_balanced(spec: Object) -> bool:
    return bool(spec["type"] == "LoadBalancer")


OF_TYPES: Mapping[str, Callable[[Object], bool]] = {
    "clusterIP": _has_address,
    "clusterIPs": _has_address,
    "ipFamilies": _has_address,
    "ipFamilyPolicy": _has_address,
    "externalTrafficPolicy": _is_reachable,
    "healthCheckNodePort": _is_balanced,
    "allocateLoadBalancerNodePorts": _is_balanced,
    "loadBalancerClass": _is_balanced,
}
"""Fields that only some types have."""


def prepare(new: Object, old: Object | None) -> None:
    """Drop what went with an earlier type, and say the address in the other form too."""
    spec = section(new, "spec")
    if old is not None and spec["type"] != old["spec"].get("type"):
        _drop_fields_of_type(spec, old["spec"])
    if not _has_address(spec):
        return
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _drop_fields_of_type(new: Object, old: Object) -> None:
    """Drop what the new type cannot have, unless the client has changed that too."""
    for field, applies in OF_TYPES.items():
        if applies(old) and not applies(new) and new.get(field) == old.get(field):
            new.pop(field, None)
    if has_node_ports(old) and not has_node_ports(new):
        before = {port.get("nodePort") for port in old.get("ports") or ()}
        new["ports"] = [
            {name: each for name, each in port.items() if name != "nodePort" or each not in before}
            for port in new.get("ports") or ()
        ]


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


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    balancer = (new.get("status") or {}).get("loadBalancer") or {}
    if not balancer.get("ingress") or (new.get("spec") or {}).get("type") == "LoadBalancer":
        return []
    detail = "may only be used when `spec.type` is 'LoadBalancer'"
    return [field_errors.forbidden("status.loadBalancer.ingress", detail)]


SERVICE = Strategy(
    default=default,
    prepare=prepare,
    validate=validated(Service, validate),
    validate_status=validate_status,
    initial_status=lambda _obj: {"loadBalancer": {}},
)
