"""Columns of kinds that need few: the names and cells, kind by kind."""

from berth.cluster.columns.cells import (
    NONE,
    UNKNOWN,
    Cells,
    Since,
    dig,
    labels_text,
    listed,
    selector_text,
)
from berth.cluster.resources import Object

# NAME DATA AGE, NAME TYPE DATA AGE, NAME SECRETS AGE; NAME POD-SELECTOR AGE.


CONFIG_MAP_CELLS: Cells = {
    "Data": lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()),
}

SECRET_CELLS: Cells = {
    "Type": lambda obj: obj.get("type") or "",
    "Data": lambda obj: len(obj.get("data") or ()),
}

NETWORK_POLICY_CELLS: Cells = {
    "Pod-Selector": lambda obj: selector_text(dig(obj, "spec.podSelector")) or NONE,
}


# Claims of devices, their templates, the classes that they name, and the devices of drivers.


def claim_state(claim: Object) -> str:
    """Return ``pending``, or what is true of it: ``deleted,allocated,reserved``."""
    states = [
        state
        for state, is_so in (
            ("deleted", claim["metadata"].get("deletionTimestamp")),
            ("allocated", dig(claim, "status.allocation")),
            ("reserved", dig(claim, "status.reservedFor")),
        )
        if is_so
    ]
    return ",".join(states) if states and states != ["deleted"] else ",".join([*states, "pending"])


RESOURCE_CLAIM_CELLS: Cells = {
    "State": claim_state,
}

RESOURCE_SLICE_CELLS: Cells = {
    "Node": lambda obj: dig(obj, "spec.nodeName") or "<unset>",
    "Driver": lambda obj: dig(obj, "spec.driver") or "",
    "Pool": lambda obj: dig(obj, "spec.pool.name") or "",
}


# LAST SEEN TYPE REASON OBJECT MESSAGE, and with ``-o wide`` where the event came from.


def first_seen(event: Object) -> Since:
    """Return the age of the first occurrence; new-style events have only ``eventTime``."""
    return Since(event.get("firstTimestamp") or event.get("eventTime"))


def last_seen(event: Object) -> Since:
    """Return the age of the last occurrence; a series knows best."""
    if event.get("series"):
        return Since(dig(event, "series.lastObservedTime"))
    return Since(event["lastTimestamp"]) if event.get("lastTimestamp") else first_seen(event)


def event_count(event: Object) -> int:
    """Return how often it happened; a new-style event without series happened once."""
    if event.get("series"):
        return dig(event, "series.count") or 0
    return event.get("count") or 1


def regarded_object(event: Object) -> str:
    """Return ``pod/web-1``."""
    kind = (dig(event, "involvedObject.kind") or "").lower()
    name = dig(event, "involvedObject.name")
    return f"{kind}/{name}" if name else kind


def event_source(event: Object) -> str:
    """Return ``component, host``, from the old fields or else from the new ones."""
    component = dig(event, "source.component") or event.get("reportingComponent") or ""
    host = dig(event, "source.host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


EVENT_CELLS: Cells = {
    "Last Seen": last_seen,
    "Type": lambda event: event.get("type") or "",
    "Reason": lambda event: event.get("reason") or "",
    "Object": regarded_object,
    "Subobject": lambda event: dig(event, "involvedObject.fieldPath") or "",
    "Source": event_source,
    "Message": lambda event: (event.get("message") or "").strip(),
    "First Seen": first_seen,
    "Count": event_count,
}


# NAME HOLDER AGE.


LEASE_CELLS: Cells = {
    "Holder": lambda obj: dig(obj, "spec.holderIdentity") or "",
}


# NAME STATUS AGE.


NAMESPACE_CELLS: Cells = {
    "Status": lambda obj: dig(obj, "status.phase") or "",
}


# NAME STATUS ROLES AGE VERSION, and with ``-o wide`` addresses and software versions.


ROLE_PREFIX = "node-role.kubernetes.io/"
OLD_ROLE_LABEL = "kubernetes.io/role"


def node_status(node: Object) -> str:
    """Return what the Ready condition says, and whether the node is cordoned."""
    words = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in listed(node, "status.conditions")
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if dig(node, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Object) -> str:
    """Return the roles that the node's labels claim, sorted."""
    found = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        role = key.removeprefix(ROLE_PREFIX) if key.startswith(ROLE_PREFIX) else ""
        found.add(role or (value if key == OLD_ROLE_LABEL else ""))
    return ",".join(sorted(found - {""})) or NONE


def node_address(node: Object, kind: str) -> str:
    """Return the first address of that kind."""
    addresses = listed(node, "status.addresses")
    return next((each.get("address", "") for each in addresses if each.get("type") == kind), NONE)


NODE_CELLS: Cells = {
    "Status": node_status,
    "Roles": node_roles,
    "Version": lambda node: dig(node, "status.nodeInfo.kubeletVersion") or "",
    "Internal-IP": lambda node: node_address(node, "InternalIP"),
    "External-IP": lambda node: node_address(node, "ExternalIP"),
    "OS-Image": lambda node: dig(node, "status.nodeInfo.osImage") or UNKNOWN,
    "Kernel-Version": lambda node: dig(node, "status.nodeInfo.kernelVersion") or UNKNOWN,
    "Container-Runtime": lambda node: (
        dig(node, "status.nodeInfo.containerRuntimeVersion") or UNKNOWN
    ),
}


# NAME MIN-AVAILABLE MAX-UNAVAILABLE ALLOWED-DISRUPTIONS AGE.


def budget_amount(budget: Object, field: str) -> str:
    """Return a number or a percentage."""
    given = dig(budget, f"spec.{field}")
    return "N/A" if given is None else str(given)


POD_DISRUPTION_BUDGET_CELLS: Cells = {
    "Min Available": lambda obj: budget_amount(obj, "minAvailable"),
    "Max Unavailable": lambda obj: budget_amount(obj, "maxUnavailable"),
    "Allowed Disruptions": lambda obj: dig(obj, "status.disruptionsAllowed") or 0,
}


# NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY.


PRIORITY_CLASS_CELLS: Cells = {
    "Value": lambda obj: obj.get("value", 0),
    "Global-Default": lambda obj: obj.get("globalDefault", False),
    "PreemptionPolicy": lambda obj: obj.get("preemptionPolicy", ""),
}


# NAME CREATED-AT of roles; NAME ROLE AGE of bindings, with whom they are for when wide.


def subjects_text(binding: Object, kind: str) -> str:
    """Return the names of the subjects of a kind; ``namespace/name`` of service accounts."""
    return ", ".join(
        f"{each.get('namespace', '')}/{each['name']}" if kind == "ServiceAccount" else each["name"]
        for each in listed(binding, "subjects")
        if each.get("kind") == kind
    )


BINDING_CELLS: Cells = {
    "Role": lambda obj: f"{dig(obj, 'roleRef.kind')}/{dig(obj, 'roleRef.name')}",
    "Users": lambda obj: subjects_text(obj, "User"),
    "Groups": lambda obj: subjects_text(obj, "Group"),
    "ServiceAccounts": lambda obj: subjects_text(obj, "ServiceAccount"),
}


# NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE, and the selector with ``-o wide``.


def cluster_ip(service: Object) -> str:
    """Return the first virtual address; ``None`` (the word) for headless services."""
    return next(iter(listed(service, "spec.clusterIPs")), dig(service, "spec.clusterIP")) or NONE


def external_ip(service: Object) -> str:
    """Return where the outside world reaches the service, which depends on its type."""
    external = [str(each) for each in listed(service, "spec.externalIPs")]
    match dig(service, "spec.type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            ingress = listed(service, "status.loadBalancer.ingress")
            balanced = sorted({each.get("ip") or each.get("hostname", "") for each in ingress})
            return ",".join(balanced + external) or "<pending>"
        case "ExternalName":
            return dig(service, "spec.externalName") or ""
        case _:
            return UNKNOWN


def service_ports(service: Object) -> str:
    """Return ``80/TCP`` for each port, ``80:30080/TCP`` when nodes listen too."""
    texts = []
    for port in listed(service, "spec.ports"):
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or NONE


SERVICE_CELLS: Cells = {
    "Type": lambda service: dig(service, "spec.type") or "",
    "Cluster-IP": cluster_ip,
    "External-IP": external_ip,
    "Port(s)": service_ports,
    "Selector": lambda service: labels_text(dig(service, "spec.selector")) or NONE,
}
