"""The constraints of Services (``ValidateService``): a part of :mod:`.constraint_table`."""

from collections.abc import Iterator
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import (
    Owners,
    chosen,
    ip,
    of_each,
    port,
    said,
    shown,
    text,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Errors = Iterator[FieldError]

LONGEST_AFFINITY: Final = 86_400
BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
OF_NO_NAME: Final = "may not be set for ExternalName services"
NOT_LOCAL: Final = (
    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
)


def is_reachable(spec: Object) -> bool:
    """Whether a Service has an address outside of the cluster."""
    kind = spec.get("type")
    return kind in ("NodePort", "LoadBalancer") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def check_of_type(ports: Any, path: str, owners: Owners) -> Errors:
    """Evaluate what a Service of its type has, and cannot have."""
    spec, here = owners[-1], path.rpartition(".")[0]
    kind, is_headless = spec.get("type"), spec.get("clusterIP") == "None"
    if not ports and not is_headless and kind != "ExternalName":
        yield field_errors.required(path)
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        detail = f"may not be set to 'None' for {kind} services"
        yield field_errors.invalid(f"{here}.clusterIPs[0]", "None", detail)
    if kind == "LoadBalancer":
        for index, each in enumerate(ports or ()):
            if each.get("port") == 10250:
                detail = "may not expose port 10250 externally since it is used by kubelet"
                yield field_errors.invalid(f"{path}[{index}]", 10250, detail)
    if kind == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield field_errors.forbidden(f"{here}.{field}", OF_NO_NAME)
        name, at = (spec.get("externalName") or "").removesuffix("."), f"{here}.externalName"
        if not name:
            yield field_errors.required(at)
        yield from text(syntax.dns1123_subdomain)(name, at)


def check_named(name: str | None, path: str, owners: Owners) -> Errors:
    if not name and len(owners[-2].get("ports") or ()) > 1:
        yield field_errors.required(path)
    yield from text(syntax.dns1123_label)(name, path)


def check_distinct_names(ports: list[Object] | None, path: str) -> Errors:
    names: set[str] = set()
    for index, each in enumerate(ports or ()):
        name = each.get("name")
        if name and name in names:
            yield field_errors.duplicate(f"{path}[{index}].name", name)
        names.add(name or "")


def check_affinity_config(config: Object | None, path: str, owners: Owners) -> Errors:
    kind = owners[-1].get("sessionAffinity")
    if kind == "None" and config is not None:
        detail = f"must not be set when session affinity is {kind}"
        yield field_errors.forbidden(path, detail)
    elif kind == "ClientIP":
        client = (config or {}).get("clientIP") or {}
        seconds, here = client.get("timeoutSeconds"), f"{path}.clientIP.timeoutSeconds"
        if seconds is None:
            detail = "when session affinity type is ClientIP"
            yield field_errors.required(path, detail)
        elif not 0 < seconds <= LONGEST_AFFINITY:
            detail = f"must be greater than 0 and less than {LONGEST_AFFINITY}"
            yield field_errors.invalid(here, seconds, detail)


def check_ports_of_type(_kind: Any, path: str, owners: Owners) -> Errors:
    spec, here = owners[-1], f"{path.rpartition('.')[0]}.ports"
    ports = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        for index, each in enumerate(ports):
            if each.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                yield field_errors.forbidden(f"{here}[{index}].nodePort", detail)
    for field, at in (("nodePort", ".nodePort"), ("port", "")):
        seen: set[tuple[Any, Any]] = set()
        for index, each in enumerate(ports):
            key = each.get("protocol"), each.get(field)
            if each.get(field) and key in seen:
                bare = {"protocol": key[0], "port": key[1]}
                schema = builtin.schema("io.k8s.api.core.v1.ServicePort")
                value = shown(schema, bare) if field == "port" else key[1]
                yield field_errors.duplicate(f"{here}[{index}]{at}", value)
            seen.add(key)


def check_ranges(ranges: list[str] | None, path: str, owners: Owners) -> Errors:
    here = path.replace("loadBalancerSourceRanges", "LoadBalancerSourceRanges")
    if ranges and owners[-1].get("type") != "LoadBalancer":
        yield field_errors.forbidden(here, BALANCED)
    yield from of_each(lambda value, at: said(syntax.cidr)(value.strip(), at))(ranges, here)


def check_balanced(value: Any, path: str, owners: Owners) -> Errors:
    if value is not None and owners[-1].get("type") != "LoadBalancer":
        yield field_errors.forbidden(path, BALANCED)


def check_external_policy(policy: str | None, path: str, owners: Owners) -> Errors:
    if is_reachable(owners[-1]):
        yield from chosen("Cluster", "Local")(policy, path)
    elif policy:
        detail = "may only be set for externally-accessible services"
        yield field_errors.invalid(path, policy, detail)


def check_health_check(number: int | None, path: str, owners: Owners) -> Errors:
    spec = owners[-1]
    is_local = spec.get("externalTrafficPolicy") == "Local"
    if not number:
        return
    if spec.get("type") != "LoadBalancer" or not is_local:
        yield field_errors.invalid(path, number, NOT_LOCAL)
    else:
        yield from port(number, path)


def check_addresses(addresses: list[str] | None, path: str, owners: Owners) -> Errors:
    spec, given = owners[-1], addresses or []
    if spec.get("type") == "ExternalName":
        return
    first = spec.get("clusterIP")
    if given and not first:
        detail = "must be empty when `clusterIP` is not specified"
        yield field_errors.invalid(path, given, detail)
    elif given and given[0] != first:
        yield field_errors.invalid(path, given, "first value must match `clusterIP`")
    for index, address in enumerate(given):
        if index == 0 and address == "None":
            if len(given) > 1:
                yield field_errors.invalid(path, given, "'None' must be the first and only value")
        else:
            yield from ip(address, f"{path}[{index}]")
    if len(given) > 2:
        yield field_errors.invalid(path, given, "may only hold up to 2 values")
