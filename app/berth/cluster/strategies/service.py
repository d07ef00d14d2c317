"""Services: nothing routes here. Addresses and node ports are allocated by admission."""

from collections.abc import Callable, Mapping

from berth.cluster.resources import Object, section
from berth.cluster.strategies.constraints import is_ip
from berth.cluster.strategies.service_constraints import is_reachable
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

KUBERNETES_IP = "10.96.0.1"
"""The address of service default/kubernetes."""
AFFINITY_SECONDS = 10_800
"""How long clients keep their pod, with ``sessionAffinity: ClientIP``."""


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
    if is_reachable(spec):
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


def _is_balanced(spec: Object) -> bool:
    return bool(spec["type"] == "LoadBalancer")


OF_TYPES: Mapping[str, Callable[[Object], bool]] = {
    "clusterIP": _has_address,
    "clusterIPs": _has_address,
    "ipFamilies": _has_address,
    "ipFamilyPolicy": _has_address,
    "externalTrafficPolicy": is_reachable,
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


def _is_address(address: str) -> bool:
    return address == "None" or is_ip(address)


def check_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse another address, once there is one, while the Service has the same type."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    address, kind = before.get("clusterIP"), before.get("type")
    if not address or kind == "ExternalName" or after.get("type") != kind:
        return []
    if after.get("clusterIP") == address or not _is_address(after.get("clusterIP") or ""):
        return []
    detail = "may not change once set"
    return [field_errors.invalid("spec.clusterIPs[0]", [after["clusterIP"]], detail)]


def check_status(new: Object, _old: Object) -> list[FieldError]:
    balancer = (new.get("status") or {}).get("loadBalancer") or {}
    if not balancer.get("ingress") or (new.get("spec") or {}).get("type") == "LoadBalancer":
        return []
    detail = "may only be used when `spec.type` is 'LoadBalancer'"
    return [field_errors.forbidden("status.loadBalancer.ingress", detail)]
